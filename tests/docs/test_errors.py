"""docs/errors.md, the contract's enum with its comments, and the table of codes are the same.

The worked examples are what real services answer; with TURNGATE_WRITE_DOCS the page gets them.
"""

import asyncio
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs import error_examples, error_examples_rare
from tests.docs.error_blocks import Refused
from tests.docs.error_services import new_world
from tests.docs.pages import ROOT, page, rows
from tests.e2e.conftest import SCRIPTS
from tests.e2e.pair import QUICK, Pair, new_pair
from turngate.v1.error_reason_pb2 import ErrorReason
from turngate_core.errors import CODES, Reason

PREFIX = "ERROR_REASON_"
IN_CONTRACT = [v.name.removeprefix(PREFIX) for v in ErrorReason.DESCRIPTOR.values if v.number]
ROWS = {
    cells[0].strip("`"): cells
    for cells in rows(page("docs/errors.md"))
    if re.fullmatch(r"`[A-Z_]+`", cells[0])
}
PAGE = ROOT / "docs" / "errors.md"
EXAMPLES = re.compile(r"(?<=<!-- examples -->\n)(.*?)(?=<!-- end -->)", re.S)
# In the order in which they are run.
PROVOCATIONS = {
    Reason(provoke.__name__.upper()): provoke
    for provoke in (*error_examples.PROVOCATIONS, *error_examples_rare.PROVOCATIONS)
}
NEVER = error_examples_rare.NEVER
PROVOKED_WITHIN_SECONDS = 30.0


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


def test_every_reason_has_an_example_or_cannot_happen() -> None:
    assert sorted([*PROVOCATIONS, *NEVER]) == sorted(IN_CONTRACT)


def test_the_examples_are_what_the_services_answer(tmp_path: Path) -> None:
    """E2: code, message and all details of each error, from a real call."""
    scripts = [SCRIPTS / "conversations.yaml", SCRIPTS / "scenarios.yaml"]
    store = f"sqlite:{tmp_path / 'sessions.db'}"
    flags = (*QUICK, "--held-messages=1")
    with new_pair(tmp_path, store, scripts, broker_flags=flags) as pair:
        answers = asyncio.run(provoked(pair, tmp_path))
    for reason, answer in answers.items():
        assert answer.error.reason == reason, answer.error
        assert answer.error.code.name in CODES[reason], reason
        assert set(answer.error.metadata) <= set(code_words(ROWS[reason][2])), reason
    made = "".join(examples(answers))
    if os.environ.get("TURNGATE_WRITE_DOCS"):
        PAGE.write_text(EXAMPLES.sub(lambda _: made, page("docs/errors.md")), encoding="utf-8")
    found = EXAMPLES.search(page("docs/errors.md"))
    assert found is not None
    assert found[0] == made


async def provoked(pair: Pair, folder: Path) -> dict[Reason, Refused]:
    """What each provocation is answered with. Fails by name if one takes too long."""
    answers: dict[Reason, Refused] = {}
    async with new_world(pair, folder) as world:
        for reason, provoke in PROVOCATIONS.items():
            try:
                async with asyncio.timeout(PROVOKED_WITHIN_SECONDS):
                    answers[reason] = await provoke(world)
            except TimeoutError:
                pytest.fail(f"{reason} did not come within {PROVOKED_WITHIN_SECONDS:g} s")
    return answers


def sections() -> Iterator[tuple[str, list[Reason]]]:
    """The page's sections that have tables, with the reasons in them."""
    for section in page("docs/errors.md").split("\n## ")[1:]:
        reasons = re.findall(r"^\| `([A-Z_]+)` \|", section, re.M)
        if reasons:
            yield section.partition("\n")[0], [Reason(reason) for reason in reasons]


def examples(answers: dict[Reason, Refused]) -> Iterator[str]:
    """The page's examples, by its sections."""
    for title, reasons in sections():
        yield f"\n### Examples: {title[0].lower()}{title[1:]}\n"
        for reason in reasons:
            if reason in NEVER:
                yield f"\n`{reason}` has no example: {NEVER[reason]}.\n"
            else:
                what = (PROVOCATIONS[reason].__doc__ or "").strip()
                yield f"\n`{reason}`: {what}\n"
                yield f"\n```text\n{answers[reason].block()}\n```\n"
    yield "\n"
