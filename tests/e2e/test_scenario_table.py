"""README.md names the tests of each acceptance scenario, and they are there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

FOLDER = Path(__file__).parent
SCENARIOS = [1, 2, 3, 4, 5, 7, 8, 10, 11, 12, 15, 16, 17, 18]
VARIANTS = 2
_ROW = re.compile(r"^\| (?P<number>\d+) \| [^|]+ \| (?P<told>[^|]+) \| (?P<others>[^|]+) \|$", re.M)


def table() -> dict[int, tuple[list[str], list[str]]]:
    """For each scenario, the tests that play it as it is told, and its variants."""
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    return {
        int(row["number"]): (
            re.findall(r"`(\w+)`", row["told"]),
            re.findall(r"`(\w+)`", row["others"]),
        )
        for row in _ROW.finditer(text)
    }


def names_in_this_folder() -> list[str]:
    """The names of all tests."""
    return [
        node.name
        for file in FOLDER.glob("test_*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
    ]


def test_each_scenario_is_played_with_variants() -> None:
    rows = table()
    assert list(rows) == SCENARIOS
    there = names_in_this_folder()
    for number, (told, others) in rows.items():
        assert told, number
        assert len(set(others)) >= VARIANTS, number
        for name in (*told, *others):
            assert there.count(name) == 1, f"scenario {number}: {name}"


def test_a_test_that_names_a_scenario_is_in_its_row() -> None:
    rows = table()
    for name in names_in_this_folder():
        named = re.match(r"test_scenario_(\d+)_", name)
        if named and (number := int(named[1])) in rows:
            assert name in {*rows[number][0], *rows[number][1]}, name
