"""Reads a script; every problem is told with file, line and column."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from runner_service.agents.script import Script
from runner_service.agents.yaml_nodes import PlacedData, YamlProblem, read_yaml

MAX_SCRIPT_BYTES = 16 * 1024 * 1024


class ScriptError(ValueError):
    """A script that cannot be used. `problems`: one line each, `file:line:column: problem`."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = problems
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        super().__init__(problems[0] + more)


def load_script(path: Path) -> Script:
    """The script of a file. Raises `ScriptError`."""
    try:
        data = path.read_bytes()
    except OSError as error:
        reason = error.strerror or "cannot be read"
        raise ScriptError([f"{path}: {reason}"]) from error
    if len(data) > MAX_SCRIPT_BYTES:
        raise ScriptError([f"{path}: larger than {MAX_SCRIPT_BYTES} bytes"])
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise ScriptError([f"{path}: is not UTF-8 at byte {error.start}"]) from error
    return parse_script(text, str(path))


def parse_script(text: str, name: str) -> Script:
    """The script of a text; `name` stands for it in problems. Raises `ScriptError`."""
    try:
        placed = read_yaml(text)
    except YamlProblem as error:
        place = error.place
        raise ScriptError([f"{name}:{place.line}:{place.column}: {error.problem}"]) from error
    try:
        return Script.model_validate(placed.data)
    except ValidationError as error:
        raise ScriptError(_problems(error, placed, name)) from error


def _problems(error: ValidationError, placed: PlacedData, name: str) -> list[str]:
    problems = []
    for found in error.errors(include_url=False, include_input=False):
        path = found["loc"]
        place = placed.place_of([*path, *found.get("ctx", {}).get("at", ())])
        message = found["msg"]
        if found["type"] == "missing":
            message = f"{path[-1]} is missing"
        problems.append((place.line, place.column, message[:1].lower() + message[1:]))
    return [f"{name}:{line}:{column}: {text}" for line, column, text in sorted(problems)]
