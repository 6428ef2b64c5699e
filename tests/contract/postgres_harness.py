"""The harness of the PostgreSQL store."""

from __future__ import annotations

from broker_service.storage.port import SessionKey, Store
from broker_service.storage.postgres import open_postgres
from tests.contract.harness import ManualClock
from tests.contract.postgres_server import ask


class PostgresHarness:
    def __init__(self, url: str) -> None:
        self.url = url
        self.clock = ManualClock()

    async def open(self) -> Store:
        return await open_postgres(self.url, migrate=True, clock=self.clock)

    def durable_position(self, session: SessionKey) -> int | None:
        rows = ask(
            self.url,
            "SELECT position FROM sessions WHERE tenant_id = $1 AND session_id = $2",
            *session,
        )
        return rows[0][0] if rows else None

    def count_requests(self) -> int:
        count: int = ask(self.url, "SELECT count(*) FROM requests")[0][0]
        return count
