"""W3: a watcher that resumes anywhere ends with the same text."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.client.logs import Log, text_part
from turngate.v1 import event_pb2 as ev
from turngate_client import fold
from turngate_client.drafts import FoldError, put_piece
from turngate_client.session_view import SessionView

# Code points beyond the BMP, combining marks and joiners: offsets count code points, not bytes,
# UTF-16 units or what is seen as one character.
TEXTS = st.text(st.sampled_from("ab\u0308\U0001f600\u200d\u2028ß\0"), max_size=40)


def split(text: str, cuts: list[int]) -> list[tuple[int, str]]:
    places = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    return [(start, text[start:end]) for start, end in pairwise(places)]


@given(
    TEXTS,
    st.lists(st.integers(0, 1_000), max_size=8),
    st.lists(st.tuples(st.integers(0, 1_000), st.integers(0, 1_000)), max_size=6),
    st.data(),
)
def test_W3_any_split_and_any_repetition_folds_to_the_same_text(
    text: str, cuts: list[int], repeated: list[tuple[int, int]], data: st.DataObject
) -> None:
    pieces = split(text, cuts)
    played: list[tuple[int, str]] = []
    for index, piece in enumerate(pieces):
        played.append(piece)
        came = pieces[index][0] + len(pieces[index][1])
        for first, second in repeated:
            start, end = sorted((first % (came + 1), second % (came + 1)))
            if data.draw(st.booleans()):
                played.append((start, text[start:end]))  # a piece cut otherwise, seen before
    folded = ""
    for offset, piece_text in played:
        folded = put_piece(folded, offset, piece_text)
    assert folded == text


@given(
    TEXTS,
    TEXTS,
    st.lists(st.integers(0, 1_000), max_size=6),
    st.lists(st.integers(0, 1_000), max_size=4),
    st.booleans(),
)
def test_W1_W3_resuming_anywhere_folds_to_the_same_view(
    text: str, thought: str, cuts: list[int], resumes: list[int], complete: bool
) -> None:
    log = Log()
    log.prompt("p-1", "hi")
    log.run("r-1", "p-1")
    log.started("r-1", "m-1")
    for offset, piece in split(thought, cuts):
        log.add(
            text_delta=ev.TextDelta(
                message_id="m-1",
                run_id="r-1",
                kind=ev.TEXT_KIND_REASONING,
                offset=offset,
                text=piece,
            )
        )
    for offset, piece in split(text, cuts):
        log.delta("r-1", "m-1", offset, piece, part=1)
    if complete:
        log.completed("r-1", "m-1", text_part(text))
    whole = fold(log.events)

    resumed = SessionView()
    for resume in [*resumes, 0]:
        start = min(resume % (len(log.events) + 1), resumed.position)  # never after what it has
        fold(log.events[start : start + 1 + resume % 7], resumed)
    fold(log.events, resumed)

    assert resumed == whole
    assert resumed.text("r-1") == text


def test_W3_missing_text_is_refused_not_papered_over() -> None:
    with pytest.raises(FoldError, match="begins at 5, but only 2"):
        put_piece("ab", 5, "x")


def test_W3_offsets_count_code_points() -> None:
    assert put_piece("\U0001f600", 1, "!") == "\U0001f600!"
    with pytest.raises(FoldError):
        put_piece("\U0001f600", 2, "!")
