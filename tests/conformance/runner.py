"""The runner of conformance cases and its command line."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.conformance.areas import AREAS
from tests.conformance.case_files import (
    OWN_CASES,
    Case,
    CaseError,
    case_paths,
    deep_values,
    load_cases,
)
from tests.conformance.matching import matches
from turngate_core.json_text import dump


def failure(case: Case) -> str | None:
    """One line with id, expected and got, or `None` if the case passes."""
    run = AREAS.get(case.area)
    if run is None:
        return f"{case.area}/{case.id}: unknown area {case.area}"
    expected = dump(case.expected)
    try:
        got = run(case.input)
    except ValueError as error:  # what the case asks for is not known, or not well formed
        return f"{case.area}/{case.id}: expected {expected}, got an error: {error}"
    if matches(case.area, case.expected, got):
        return None
    return f"{case.area}/{case.id}: expected {expected}, got {dump(got)}"


def run(path: Path) -> tuple[int, list[str]]:
    """The number of cases that pass, and a line for each that fails."""
    passed, failures = 0, []
    with deep_values():
        for file in case_paths(path):
            try:
                cases = load_cases(file)
            except CaseError as error:
                failures.append(str(error))
                continue
            for case in cases:
                line = failure(case)
                if line is None:
                    passed += 1
                else:
                    failures.append(line)
    return passed, failures


def main() -> None:
    """`python -m tests.conformance [file or folder]`: exit code 1 if a case fails."""
    arguments = sys.argv[1:]
    if len(arguments) > 1:
        sys.exit("usage: python -m tests.conformance [file or folder]")
    path = Path(arguments[0]) if arguments else OWN_CASES
    try:
        passed, failures = run(path)
    except CaseError as error:
        passed, failures = 0, [str(error)]
    for line in failures:
        print(line.encode("utf-8", "backslashreplace").decode())
    print(f"{passed} passed, {len(failures)} failed")
    sys.exit(1 if failures else 0)
