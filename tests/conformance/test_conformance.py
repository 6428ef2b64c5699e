"""All own cases, one test each; and the runner itself: nothing is ever skipped or half judged."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.areas import AREAS
from tests.conformance.case_files import OWN_CASES, Case, case_paths, load_cases
from tests.conformance.runner import failure, run

CASES = [case for path in case_paths(OWN_CASES) for case in load_cases(path)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_case(case: Case) -> None:
    assert failure(case) is None


def test_every_area_has_cases() -> None:
    assert {case.area for case in CASES} == set(AREAS)


def test_ids_are_unique() -> None:
    ids = [case.id for case in CASES]
    assert len(ids) == len(set(ids))


def _run(folder: Path, name: str, text: str) -> tuple[int, list[str]]:
    (folder / name).write_text(text, encoding="utf-8")
    return run(folder)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("weather.json", "{}"),
        ("gate.json", '{"op": "leap"}'),
        ("gate.json", '{"op": "sequence", "steps": [{"jump": 1}]}'),
        ("degrade.json", '{"op": "leap"}'),
        ("extraction.json", '{"messages": [], "gates": [{"tool": "t", "mode": "leap"}]}'),
        ("resume.json", '{"messages": [], "live": {"kind": "leap", "id": "x"}}'),
        ("approvals.json", '{"policy": {}, "grant_scope": "weekly", "messages": [], "gates": []}'),
    ],
)
def test_what_is_unknown_fails(tmp_path: Path, name: str, given: str) -> None:
    case = f'[{{"id": "x-1", "input": {given}, "expected": {{"y": 1}}}}]'
    passed, failures = _run(tmp_path, name, case)
    assert (passed, len(failures)) == (0, 1)
    assert "x-1" in failures[0]


@pytest.mark.parametrize(
    "text", ["", "{}", "[1]", '[{"id": "a"}]', '[{"id":"a","input":{},"expected":{}}]']
)
def test_a_file_without_proper_cases_fails(tmp_path: Path, text: str) -> None:
    passed, failures = _run(tmp_path, "gate.json", text)
    assert (passed, len(failures)) == (0, 1)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_another_expectation_fails(case: Case) -> None:
    """No case passes whatever comes out: each value at its top level is really compared."""
    for key in case.expected:
        wrong = {**case.expected, key: "something else"}
        assert failure(Case(case.area, case.id, case.input, wrong)) is not None


def test_numbers_of_cases_are_exact(tmp_path: Path) -> None:
    """T2: 2^53 + 1 is not 2^53, in what is expected neither."""
    case = """[{"id": "n", "input": {
        "messages": [{"role": "user", "parts": [
            {"kind": "tool_call", "call_id": "k", "tool": "t", "args": {}},
            {"kind": "tool_result", "call_id": "k", "output": 9007199254740993}]}],
        "gates": [{"tool": "t", "args": {}}]},
        "expected": {"verdicts": [{"verdict": "fulfilled", "output": %s}]}}]"""
    assert _run(tmp_path, "extraction.json", case % "9007199254740993")[0] == 1
    assert _run(tmp_path, "extraction.json", case % "9007199254740992")[0] == 0


def test_hostile_values_in_cases_are_judged_like_others(tmp_path: Path) -> None:
    """X3: 10,000 levels, half a surrogate and NaN have no key: the call parks, nothing breaks."""
    case = """[{"id": "h", "input": {
        "messages": [{"role": "user", "parts": [
            {"kind": "tool_call", "call_id": "k", "tool": "t", "args": {"a": %s}},
            {"kind": "tool_result", "call_id": "k", "output": 1}]}],
        "gates": [{"tool": "t", "args": {"a": %s}}]},
        "expected": {"verdicts": [{"verdict": "park"}]}}]"""
    for value in ("[" * 10_000 + "]" * 10_000, '"\\ud800"', "NaN"):
        assert _run(tmp_path, "extraction.json", case % (value, value)) == (1, [])
