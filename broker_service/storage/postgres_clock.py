"""The database's clock (I4): one for all replicas, read here without asking it each time."""

from __future__ import annotations

import time

from broker_service.storage.postgres_driver import Connection


class DatabaseClock:
    """Milliseconds since the Unix epoch by the database's clock.

    Between two looks at it, this machine's steady clock is added to what was seen last; so changes
    of this machine's time of day do not matter. It is wrong by half a round trip at most.
    """

    def __init__(self) -> None:
        self._ahead_ns = 0  # of the steady clock

    def __call__(self) -> int:
        return (time.monotonic_ns() + self._ahead_ns) // 1_000_000

    async def look(self, connection: Connection) -> None:
        """Set it by the database's clock. Raises one of DRIVER_ERRORS."""
        before = time.monotonic_ns()
        microseconds: int = await connection.fetchval(
            "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
        )
        after = time.monotonic_ns()
        self._ahead_ns = microseconds * 1_000 - (before + after) // 2
