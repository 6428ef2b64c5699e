"""The TOML file of settings: one table a service, unknown names refused with their place."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path

from turngate_serving.exit import StartError

# One file serves all services of an installation.
SECTIONS = ("broker", "runner")


def read_table(path: Path, section: str, names: Sequence[str]) -> dict[str, object]:
    """The table of one service, whose keys are among `names`. Raises `StartError`."""
    try:
        text = path.read_text(encoding="utf-8")
        document = tomllib.loads(text)
    except OSError as error:
        raise StartError(f"cannot read settings from {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise StartError(f"cannot read settings from {path}: it is no UTF-8 text") from error
    except tomllib.TOMLDecodeError as error:
        raise StartError(f"{path}: {error}") from error

    for name, value in document.items():
        if name not in SECTIONS:
            place = _place(path, text, None, name)
            raise StartError(f"{place}: unknown table {name!r}{_did_you_mean(name, SECTIONS)}")
        if not isinstance(value, dict):
            raise StartError(f"{_place(path, text, None, name)}: {name!r} has to be a table")
    table: dict[str, object] = document.get(section, {})
    for name in table:
        if name not in names:
            place = _place(path, text, section, name)
            hint = _did_you_mean(name, names)
            raise StartError(f"{place}: unknown setting {name!r} in [{section}]{hint}")
    return table


def place_in_file(path: Path, section: str, name: str) -> str:
    """`file:line` of a setting that `read_table` has returned."""
    return _place(path, path.read_text(encoding="utf-8"), section, name)


def _did_you_mean(name: str, names: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(names), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


_HEADER = re.compile(r"""\s*\[\s*["']?([^\]"'.\s]+)""")
_KEY = re.compile(r"""\s*["']?([^"'=.\s]+)["']?\s*(?:\.\s*["']?([^"'=.\s]+))?.*=""")


def _place(path: Path, text: str, section: str | None, name: str) -> str:
    """`file:line` of a key or table; `tomllib` does not say, so the line is looked for."""
    current: str | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        if header := _HEADER.match(line):
            current = header[1]
            if section is None and current == name:
                return f"{path}:{number}"
        elif key := re.match(
            r"""\s*["']?([^"'=.\s]+)["']?\s*(?:\.\s*["']?([^"'=.\s]+))?.*=""", line
        ):
            dotted = section is not None and current is None and key.groups() == (section, name)
            if dotted or (current == section and key[1] == name):
                return f"{path}:{number}"
    return str(path)
