"""Frames are joined from stored bytes, and read like messages that were encoded as a whole."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_service.storage.port import EntryKind
from broker_service.watch.frames import Element, FrameLimits, encode_entry, gather
from tests.unit.watch.samples import S, deleted, place, stored, text
from turngate.v1.broker_pb2 import WatchSessionResponse
from turngate.v1.event_pb2 import SessionEvent


def frame(
    *elements: Element,
    after: int = 0,
    without_deltas: bool = False,
    limits: FrameLimits | None = None,
) -> WatchSessionResponse:
    batch = gather(S, after, elements, without_deltas, limits or FrameLimits())
    return WatchSessionResponse.FromString(batch.frame(live=True))


def sent(parsed: WatchSessionResponse) -> list[int]:
    return [event.position for event in parsed.events]


@given(
    st.lists(
        st.tuples(st.text(max_size=300), st.sampled_from(("", "ann"))), min_size=1, max_size=20
    ),
    st.integers(0, 2**50),
    st.booleans(),
)
def test_a_frame_is_what_protobuf_would_have_encoded(
    contents: list[tuple[str, str]], start: int, live: bool
) -> None:
    expected = WatchSessionResponse(live=live)
    elements = []
    for offset, (content, actor) in enumerate(contents, start + 1):
        event = text(content)
        event.actor = actor
        elements.append(encode_entry(stored(offset, event)))
        event.position = offset
        expected.events.append(event)
    batch = gather(S, start, elements, False, FrameLimits())
    parsed = WatchSessionResponse.FromString(batch.frame(live))
    assert place(parsed) == start + len(contents)
    expected.cursor = parsed.cursor
    assert parsed == expected


def test_an_event_of_nothing_but_a_position() -> None:
    parsed = frame(encode_entry(stored(1, SessionEvent(actor="ann"))))
    assert parsed.events[0] == SessionEvent(position=1, actor="ann")


@pytest.mark.parametrize(("extra", "expected"), [(-1, [1]), (0, [1, 2]), (1, [1, 2])])
def test_a_frame_ends_before_it_is_too_large(extra: int, expected: list[int]) -> None:
    """Nothing on the wire exceeds the limit: one byte under, at and over it."""
    elements = [encode_entry(stored(position)) for position in (1, 2)]
    limits = FrameLimits()
    reserved = limits.size - limits.elements_size
    size = sum(len(element.encoded) for element in elements) + reserved + extra
    batch = gather(S, 0, elements, False, FrameLimits(size=size))
    data = batch.frame(live=True)
    assert sent(WatchSessionResponse.FromString(data)) == expected
    assert len(data) <= size


def test_a_frame_has_so_many_entries_at_most() -> None:
    elements = [encode_entry(stored(position)) for position in range(1, 10)]
    parsed = frame(*elements, limits=FrameLimits(entries=4))
    assert sent(parsed) == [1, 2, 3, 4]
    assert place(parsed) == 4


def test_an_entry_that_is_larger_than_a_frame_goes_alone() -> None:
    large = encode_entry(stored(1, text("x" * 5000)))
    parsed = frame(large, encode_entry(stored(2)), limits=FrameLimits(size=1000))
    assert sent(parsed) == [1]
    assert parsed.events[0].text_delta.text == "x" * 5000


def test_without_deltas_the_cursor_moves_behind_them() -> None:
    """A watcher that leaves deltas out never reads them again."""
    elements = [
        encode_entry(stored(1)),
        encode_entry(stored(2, kind=EntryKind.DELTA)),
        encode_entry(stored(3, kind=EntryKind.DELTA)),
    ]
    assert sent(frame(*elements)) == [1, 2, 3]
    parsed = frame(*elements, without_deltas=True)
    assert sent(parsed) == [1]
    assert place(parsed) == 3


def test_the_deletion_is_the_end_whatever_comes_after() -> None:
    elements = [encode_entry(stored(1, deleted())), encode_entry(stored(2))]
    batch = gather(S, 0, elements, False, FrameLimits())
    assert batch.is_end
    assert batch.position == 1


def test_content_that_looks_like_a_deletion_is_not_the_end() -> None:
    """The bytes of the field's tag can be part of a text."""
    entry = stored(1, text("\x82\x02"))
    assert b"\x82\x02" in entry.payload
    assert not encode_entry(entry).is_end
    assert encode_entry(stored(1, deleted())).is_end
