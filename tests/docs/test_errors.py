"""docs/errors.md, the contract's enum with its comments, and the table of codes are the same."""

import re

import pytest

from tests.docs.pages import page, rows
from turngate.v1.error_reason_pb2 import ErrorReason
from turngate_core.errors import CODES, Reason

PREFIX = "ERROR_REASON_"
IN_CONTRACT = [v.name.removeprefix(PREFIX) for v in ErrorReason.DESCRIPTOR.values if v.number]
ROWS = {
    cells[0].strip("`"): cells
    for cells in rows(page("docs/errors.md"))
    if re.fullmatch(r"`[A-Z_]+`", cells[0])
}


def code_words(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def comment_of(reason: str) -> str:
    """What the contract says beside a reason."""
    source = page("protos/turngate/v1/error_reason.proto")
    found = re.search(rf"((?: *//.*\n)+) *{PREFIX}{reason} =", source)
    assert found is not None
    return " ".join(line.strip().removeprefix("//").strip() for line in found[1].splitlines())


def test_every_reason_stands_there_once_and_no_other() -> None:
    listed = re.findall(r"^\| `([A-Z_]+)` \|", page("docs/errors.md"), re.M)
    assert sorted(listed) == sorted(IN_CONTRACT)


@pytest.mark.parametrize("reason", IN_CONTRACT)
def test_a_reason_has_its_codes(reason: str) -> None:
    assert code_words(ROWS[reason][1]) == [str(code) for code in CODES[Reason(reason)]]


@pytest.mark.parametrize("reason", IN_CONTRACT)
def test_a_reason_has_the_metadata_of_the_contract(reason: str) -> None:
    _, _, metadata = comment_of(reason).partition("Metadata:")
    promised = [word for word in code_words(metadata) if re.fullmatch(r"[a-z_]+", word)]
    assert code_words(ROWS[reason][2]) == promised


@pytest.mark.parametrize("reason", IN_CONTRACT)
def test_a_reason_says_when_it_comes_and_what_to_do(reason: str) -> None:
    assert all(len(cell) > 3 for cell in ROWS[reason][3:5])
