"""Telling listeners of commits: what all stores have in common."""

from __future__ import annotations

import asyncio
from typing import TypeVar

from broker_service.storage.port import CommitListener, SessionKey, StoredEntry

T = TypeVar("T")


class Listeners:
    """Those who hear of durable commits (W1). To be used on the event loop `loop`."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._listeners: list[CommitListener] = []

    def add(self, listener: CommitListener) -> None:
        self._listeners.append(listener)

    def tell(self, session: SessionKey, position: int, entries: tuple[StoredEntry, ...]) -> None:
        """Call each listener, soon.

        Each call is scheduled by itself, so that one that fails is reported by the loop and keeps
        nothing from the others. Callers of a commit that are woken after this go on after them.
        """
        for listener in self._listeners:
            self._loop.call_soon(listener, session, position, entries)


def settle(future: asyncio.Future[T], outcome: T | Exception) -> None:
    """Answer a caller, unless it was cancelled; the others of its group were not."""
    if future.done():
        return
    if isinstance(outcome, Exception):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)
