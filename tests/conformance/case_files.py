"""Reading case files: numbers exactly as written, values that the product itself refuses too."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from turngate_core.json_text import JsonValue
from turngate_core.number import Number

JsonObject: TypeAlias = dict[str, JsonValue]

OWN_CASES = Path(__file__).parent / "cases"


class CaseError(ValueError):
    """A case, or a file of cases, that cannot be understood. It counts as failed."""


@dataclass(frozen=True, slots=True)
class Case:
    """One case; its area is the name of its file."""

    area: str
    id: str
    input: JsonObject
    expected: JsonObject


@contextmanager
def deep_values() -> Iterator[None]:
    """Cases may nest deeper than anything that the product accepts, and Python by default."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, 12_000))
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


def case_paths(path: Path) -> list[Path]:
    """The files at a path: itself, or all `.json` files of a folder in order of name."""
    if path.is_dir():
        paths = sorted(path.glob("*.json"))
        if not paths:
            raise CaseError(f"{path}: no .json file in this folder")
        return paths
    if not path.is_file():
        raise CaseError(f"{path}: no such file or folder")
    return [path]


def load_cases(path: Path) -> list[Case]:
    """The cases of a file. Raises `CaseError` if it holds no list of cases."""
    try:
        # Not `json_text.parse`: cases hold on purpose what that refuses, such as half a surrogate.
        value: JsonValue = json.loads(
            path.read_text(encoding="utf-8"),
            parse_int=Number,
            parse_float=Number,
            parse_constant=Number,
        )
    except (OSError, ValueError, RecursionError) as error:
        raise CaseError(f"{path}: cannot be read: {error}") from error
    if not isinstance(value, list):
        raise CaseError(f"{path}: not a list of cases")
    return [_case(path.stem, item, index) for index, item in enumerate(value)]


def _case(area: str, value: JsonValue, index: int) -> Case:
    if not isinstance(value, dict):
        raise CaseError(f"{area}[{index}]: not an object")
    case_id, given, expected = value.get("id"), value.get("input"), value.get("expected")
    if not isinstance(case_id, str):
        raise CaseError(f"{area}[{index}]: has no id")
    if not isinstance(given, dict) or not isinstance(expected, dict) or not expected:
        raise CaseError(f"{area}[{index}]: needs an input and an expected object")
    return Case(area, case_id, given, expected)
