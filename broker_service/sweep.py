"""The loop of everything that looks for due work: timers, compaction, webhooks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from broker_service.storage.port import StoreUnavailable

log = structlog.stdlib.get_logger(__name__)


class Sweep:
    """Does `step` again and again: at once while it answers that more may be due, else after a
    pause.

    A step that fails is logged and done again: one mistake must not end what all sessions rely on.
    """

    def __init__(self, step: Callable[[], Awaitable[bool]]) -> None:
        self._step = step
        self._closing = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self, interval_s: float) -> None:
        """Look every so many seconds, until `close`."""
        self._task = asyncio.create_task(self._sweep(interval_s))

    async def close(self) -> None:
        """Finish the step that is under way. Idempotent."""
        self._closing.set()
        if self._task is not None:
            await asyncio.wait((self._task,))

    async def _sweep(self, interval_s: float) -> None:
        while not self._closing.is_set():
            (done,) = await asyncio.gather(self._step(), return_exceptions=True)
            if isinstance(done, StoreUnavailable):
                log.warning("store unavailable", error=str(done))
            elif isinstance(done, BaseException):
                log.error("a sweep failed", step=self._step.__qualname__, exc_info=done)
            elif done:
                continue
            try:
                async with asyncio.timeout(interval_s):
                    await self._closing.wait()
            except TimeoutError:
                continue
