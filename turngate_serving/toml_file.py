"""An operator's TOML file, read into a strict model, with the place of each problem."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from turngate_serving.exit import StartError

M = TypeVar("M", bound=BaseModel)


def read_toml(path: Path, model: type[M]) -> M:
    """The file as this model; validators find its folder as `info.context["folder"]`.

    Raises StartError, with `file:line: key` for all that does not fit. Values are never told: they
    may be secrets.
    """
    try:
        text = path.read_text(encoding="utf-8")
        document = tomllib.loads(text)
    except OSError as error:
        raise StartError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise StartError(f"cannot read {path}: it is no UTF-8 text") from error
    except tomllib.TOMLDecodeError as error:
        raise StartError(f"{path}: {error}") from error
    try:
        return model.model_validate(document, context={"folder": path.parent})
    except ValidationError as error:
        problems = [
            f"{_place(path, text, problem['loc'])}: {_said(problem['msg'])}"
            for problem in error.errors(include_input=False, include_url=False)
        ]
        raise StartError("; ".join(problems)) from error


def _said(message: str) -> str:
    return message.removeprefix("Value error, ")


_HEADER = re.compile(r"""\s*\[\[?\s*["']?([^\]"'.\s]+)""")


def _place(path: Path, text: str, loc: Sequence[int | str]) -> str:
    """`file:line: key`; `tomllib` does not say the line, so it is looked for: in the table, or the
    so many-th table of an array, that the place begins with.
    """
    key = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in loc)[1:]
    table = str(loc[0]) if len(loc) > 1 else ""
    nth = loc[1] if len(loc) > 1 and isinstance(loc[1], int) else 0
    names = [part for part in loc if isinstance(part, str)]
    name = re.compile(rf"""\s*["']?{re.escape(names[-1])}["']?\s*=""") if names else None
    found, current, seen = 0, "", -1
    for number, line in enumerate(text.splitlines(), start=1):
        if header := _HEADER.match(line):
            current = header[1]
            seen += current == table
            if current == table and seen == nth:
                found = number
        elif name and name.match(line) and current == table and (not table or seen == nth):
            found = number
            break
    where = f"{path}:{found}" if found else str(path)
    return f"{where}: {key}" if key else where
