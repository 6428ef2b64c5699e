"""A listener that keeps what it hears, and lets a test wait for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from broker_service.storage.port import SessionKey, StoredEntry

Call = tuple[SessionKey, int, tuple[StoredEntry, ...]]

DEADLINE_S = 20.0


class Recorder:
    def __init__(self) -> None:
        self.calls: list[Call] = []
        self._heard = asyncio.Event()

    def __call__(
        self, session: SessionKey, position: int, entries: tuple[StoredEntry, ...]
    ) -> None:
        self.calls.append((session, position, entries))
        self._heard.set()

    def positions(self, session: SessionKey) -> list[int]:
        return [position for heard, position, _ in self.calls if heard == session]

    async def until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait until what was heard fulfils a condition; fails by name."""
        try:
            async with asyncio.timeout(DEADLINE_S):
                while not condition():
                    self._heard.clear()
                    await self._heard.wait()
        except TimeoutError:
            raise AssertionError(f"not heard of in time: {what}; {len(self.calls)} calls") from None

    async def until_at(self, session: SessionKey, position: int) -> None:
        await self.until(
            lambda: position in self.positions(session), f"{session.session_id} at {position}"
        )
