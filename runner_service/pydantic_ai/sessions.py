"""Keeps what an agent has open between its runs: sessions with tool servers, connections."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

import structlog
from pydantic_ai.agent import AbstractAgent

log = structlog.stdlib.get_logger(__name__)

_Deps = TypeVar("_Deps")


class Sessions(Generic[_Deps]):
    """An agent that is entered when it is first needed, and left at the end or after a failure.

    Entering and leaving happen in one task, as the libraries underneath want it.
    """

    def __init__(self, agent: AbstractAgent[_Deps, object]) -> None:
        self._agent = agent
        self._holder: asyncio.Task[None] | None = None
        self._opened: asyncio.Future[None] | None = None
        self._release = asyncio.Event()

    async def open(self) -> None:
        """Wait until all is open. Raises what keeps it from opening; the next call tries anew."""
        if self._opened is None or self._holder is None or self._holder.done():
            self._release = asyncio.Event()
            self._opened = asyncio.get_running_loop().create_future()
            self._holder = asyncio.create_task(self._hold(self._opened, self._release))
            self._holder.add_done_callback(_told_to(self._opened))
        # A caller that is cancelled leaves the opening to the others.
        await asyncio.shield(self._opened)

    def renew(self) -> None:
        """What is open may be broken: the next `open` opens it again."""
        self._release.set()
        self._opened = None

    async def close(self) -> None:
        """Leave it, and wait for that."""
        self.renew()
        if self._holder is not None:
            await asyncio.wait({self._holder})

    async def _hold(self, opened: asyncio.Future[None], release: asyncio.Event) -> None:
        async with self._agent:
            if not opened.done():
                opened.set_result(None)
            await release.wait()


def _told_to(opened: asyncio.Future[None]) -> Callable[[asyncio.Task[None]], None]:
    """Hands the end of the holder on to those who wait for the opening."""

    def ended(holder: asyncio.Task[None]) -> None:
        error = None if holder.cancelled() else holder.exception()
        if opened.done():
            if error is not None:
                log.warning("an agent's sessions ended badly", exc_info=error)
        elif error is None:
            opened.cancel()
        else:
            opened.set_exception(error)
            opened.exception()  # those who waited may be gone

    return ended
