"""When a webhook that did not arrive is sent again."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from broker_service.webhooks.schedule import JITTER, pause_s, retry_after_s

NOW = datetime(2026, 5, 4, 12, 0, 0, tzinfo=UTC)


def test_the_pauses_are_those_of_the_standard_then_it_is_given_up() -> None:
    minute, hour = 60, 3600
    wanted = [5, 5 * minute, 30 * minute, *(h * hour for h in (2, 5, 10, 14, 20, 24))]
    assert [pause_s(failures, 5.0, 0.0) for failures in range(1, 10)] == wanted
    assert pause_s(10, 5.0, 0.0) is None


def test_all_pauses_grow_with_the_first_and_by_chance() -> None:
    assert pause_s(2, 0.05, 0.0) == pytest.approx(3.0)
    assert pause_s(2, 0.05, 1.0) == pytest.approx(3.0 * (1 + JITTER))


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, 0),
        ("", 0),
        ("120", 120),
        (" 7 ", 7),
        ("999999999", 86_400),
        ("9" * 5_000, 0),
        ("-5", 0),
        ("1.5", 0),
        ("soon", 0),
        ("Mon, 04 May 2026 12:01:30 GMT", 90),
        ("Mon, 04 May 2026 12:01:30 -0000", 90),
        ("Mon, 04 May 2026 11:00:00 GMT", 0),
        ("Tue, 04 May 2027 12:00:00 GMT", 86_400),
    ],
)
def test_retry_after_is_understood_and_bounded(header: str | None, seconds: float) -> None:
    assert retry_after_s(header, NOW) == seconds
