"""What the contract tests need of a store beside the port: one `Harness` for each store."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Protocol

from broker_service.storage.port import SessionKey, Store
from broker_service.storage.sqlite import open_sqlite


class ManualClock:
    """A clock that only a test moves; milliseconds."""

    def __init__(self) -> None:
        self.instant = 1_000_000

    def __call__(self) -> int:
        return self.instant

    def advance(self, milliseconds: int) -> int:
        self.instant += milliseconds
        return self.instant


class Harness(Protocol):
    clock: ManualClock

    async def open(self) -> Store:
        """Open the store, by the harness's clock. Again after a close, it finds the same data."""
        ...

    def durable_position(self, session: SessionKey) -> int | None:
        """The session's last position, seen through a connection that is not the store's."""
        ...

    def count_requests(self) -> int:
        """How many request ids are stored, run out or not."""
        ...


class SqliteHarness:
    def __init__(self, folder: Path) -> None:
        self.path = folder / "store.db"
        self.clock = ManualClock()

    async def open(self) -> Store:
        return open_sqlite(self.path, self.clock)

    def durable_position(self, session: SessionKey) -> int | None:
        return self._ask(
            "SELECT position FROM sessions WHERE tenant_id = ? AND session_id = ?", *session
        )

    def count_requests(self) -> int:
        return self._ask("SELECT count(*) FROM requests") or 0

    def _ask(self, question: str, *values: str) -> int | None:
        outside = sqlite3.connect(self.path)
        try:
            row: tuple[int] | None = outside.execute(question, values).fetchone()
            return row[0] if row else None
        finally:
            outside.close()
