"""Cursors (W2): opaque, of one session, and refused by name."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_service.storage.port import SessionKey
from broker_service.watch.cursor import cursor_at, position_of
from tests.unit.watch.samples import OTHER, S
from turngate_core.errors import Reason, Refusal

POSITIONS = st.integers(0, 2**63 - 1)
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def refusal(cursor: str, key: SessionKey = S, last: int = 2**63) -> Reason:
    with pytest.raises(Refusal) as refused:
        position_of(key, cursor, last)
    return refused.value.reason


@given(POSITIONS)
def test_a_cursor_names_its_position(position: int) -> None:
    """W2."""
    cursor = cursor_at(S, position)
    assert position_of(S, cursor, position) == position
    assert set(cursor) <= set(ALPHABET), "cursors go into URLs as they are"


def test_no_cursor_and_the_cursor_at_0_are_the_start() -> None:
    assert position_of(S, "", 5) == 0
    assert position_of(S, cursor_at(S, 0), 5) == 0


def test_cursors_that_clients_hold_stay_valid() -> None:
    """A client may come back after weeks: the form of cursors may not change unseen."""
    assert position_of(S, "AShEntyFgQLmAAAAAAAAACpyqhYX", 100) == 42


@given(POSITIONS, st.integers(0, 27), st.sampled_from(ALPHABET + "+/=. é"))
def test_a_garbled_cursor_is_invalid(position: int, index: int, character: str) -> None:
    """W2: one wrong character is enough."""
    cursor = cursor_at(S, position)
    garbled = cursor[:index] + character + cursor[index + 1 :]
    if garbled != cursor:
        assert refusal(garbled) is Reason.CURSOR_INVALID


@given(st.text(max_size=40).filter(bool))
def test_any_other_text_is_invalid(text: str) -> None:
    """W2."""
    assert refusal(text) is Reason.CURSOR_INVALID


def test_a_part_of_a_cursor_or_more_than_one_is_invalid() -> None:
    cursor = cursor_at(S, 7)
    for text in (cursor[:-1], cursor[:-4], cursor + "\n", cursor + "A", cursor + cursor):
        assert refusal(text) is Reason.CURSOR_INVALID


def test_a_cursor_of_another_version_is_invalid() -> None:
    data = bytearray(base64.urlsafe_b64decode(cursor_at(S, 7)))
    data[0] = 2
    assert refusal(base64.urlsafe_b64encode(data).decode()) is Reason.CURSOR_INVALID


@pytest.mark.parametrize(
    "key", [OTHER, SessionKey("other", "s1"), SessionKey("acmes", "1"), SessionKey("acm", "es1")]
)
def test_another_sessions_cursor_is_foreign(key: SessionKey) -> None:
    """W2: also of the same id in another tenant (P2), and before anything is said of its place."""
    assert refusal(cursor_at(key, 7), last=3) is Reason.CURSOR_FOREIGN


def test_a_cursor_beyond_the_log_is_from_the_future() -> None:
    """W2: the last position is the last one accepted."""
    assert position_of(S, cursor_at(S, 7), 7) == 7
    assert refusal(cursor_at(S, 8), last=7) is Reason.CURSOR_FUTURE
