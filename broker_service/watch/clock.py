"""Time as watches need it: injected, and cheap for deadlines that nearly never come."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol


class Timer(Protocol):
    def cancel(self) -> None: ...


class Clock(Protocol):
    """Monotonic seconds and timers: an event loop, or a test's own."""

    def time(self) -> float: ...

    def call_later(self, delay: float, callback: Callable[[], object], /) -> Timer: ...


class Deadline:
    """An instant that each frame puts off by `period` seconds, and that passes only in silence.

    Its timer is not moved along: when it fires too early, it is set anew. A timer that is set and
    cancelled for each frame would cost as much as the frame does.
    """

    def __init__(self, clock: Clock, period: float, passed: Callable[[], object]) -> None:
        self.at = math.inf
        self._clock = clock
        self._period = period
        self._passed = passed
        self._timer: Timer | None = None

    def put_off(self) -> None:
        """Call `passed` when the period is over, if it is not put off again."""
        self.at = self._clock.time() + self._period
        if self._timer is None:
            self._arm(self._period)

    def stop(self) -> None:
        """Call nothing until it is put off again. The timer stays: that will be soon."""
        self.at = math.inf

    def close(self) -> None:
        """Call nothing any more."""
        self.at = math.inf
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self, delay: float) -> None:
        self._timer = self._clock.call_later(delay, self._fire)

    def _fire(self) -> None:
        self._timer = None
        left = self.at - self._clock.time()
        if left <= 0:
            self._passed()
        elif left <= self._period:  # it is running
            self._arm(left)
