"""The loop that looks for due work."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
import structlog

from broker_service.storage.port import StoreUnavailable
from broker_service.sweep import Sweep
from tests.unit.watch.samples import within

LONG_S = 3600.0


class Steps:
    """Does what is next in the list: answers it or raises it; the last one ends the wait."""

    def __init__(self, *results: bool | Exception) -> None:
        self.done = asyncio.Event()
        self._results: Iterator[bool | Exception] = iter(results)
        self._left = len(results)

    async def step(self) -> bool:
        result = next(self._results)
        self._left -= 1
        if not self._left:
            self.done.set()
        if isinstance(result, Exception):
            raise result
        return result


async def test_more_that_is_due_is_looked_for_at_once() -> None:
    steps = Steps(True, True, False)
    sweep = Sweep(steps.step)
    sweep.start(LONG_S)
    await within(steps.done.wait())
    await within(sweep.close())


@pytest.mark.parametrize(
    ("error", "logged"),
    [
        (StoreUnavailable("away"), "store unavailable"),
        (RuntimeError("a mistake"), "a sweep failed"),
    ],
)
async def test_S2_a_step_that_fails_is_done_again(error: Exception, logged: str) -> None:
    """S2: what all sessions rely on does not end by one mistake; the log says what it was."""
    steps = Steps(error, False)
    sweep = Sweep(steps.step)
    with structlog.testing.capture_logs() as logs:
        sweep.start(0.001)
        await within(steps.done.wait())
        await within(sweep.close())
    assert [line["event"] for line in logs] == [logged]


async def test_close_ends_the_pause_and_can_be_repeated() -> None:
    steps = Steps(False)
    sweep = Sweep(steps.step)
    sweep.start(LONG_S)
    await within(steps.done.wait())
    await within(sweep.close())
    await within(sweep.close())
    await within(Sweep(steps.step).close())
