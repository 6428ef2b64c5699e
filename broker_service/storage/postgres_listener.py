"""The connection that hears of other replicas' commits, and looks at the database's clock."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import structlog

from broker_service.storage.port import SessionKey, StoreUnavailable
from broker_service.storage.postgres_clock import DatabaseClock
from broker_service.storage.postgres_connect import connect_again
from broker_service.storage.postgres_driver import DRIVER_ERRORS, Connection
from broker_service.storage.postgres_notices import Announcements
from broker_service.storage.postgres_sql import CHANNEL, noticed

_LOOK_EVERY_S = 10.0
_LOOK_TIMEOUT_S = 5.0

log = structlog.stdlib.get_logger(__name__)


class Listener:
    """Listens for as long as the store is open. To be made and used on one event loop."""

    def __init__(
        self,
        connect_once: Callable[[], Awaitable[Connection]],
        clock: DatabaseClock,
        announcements: Announcements,
    ) -> None:
        self._connect_once = connect_once
        self._clock = clock
        self._announcements = announcements
        # Whatever is committed after the last look was committed by this transaction or a later.
        self._horizon = ""
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Connect and listen; from then on no commit is missed. Raises one of DRIVER_ERRORS."""
        connection = await self._listen()
        self._task = asyncio.create_task(self._serve(connection))

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _serve(self, connection: Connection) -> None:
        try:
            while True:
                await self._until_lost(connection)
                connection.terminate()
                connection = await connect_again(self._listen_again, self._say_why)
                log.info("hears of other brokers' commits again")
        finally:
            connection.terminate()

    def _say_why(self, error: StoreUnavailable) -> None:
        log.warning("does not hear of other brokers' commits", error=str(error))

    async def _until_lost(self, connection: Connection) -> None:
        """Now and then look at the clock, which also finds out whether the connection lives."""
        lost = asyncio.Event()
        connection.add_termination_listener(lambda _: lost.set())
        while not connection.is_closed():
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_EVERY_S):
                    await lost.wait()
            try:
                async with asyncio.timeout(_LOOK_TIMEOUT_S):
                    await self._look(connection)
            except DRIVER_ERRORS:
                return

    async def _listen(self) -> Connection:
        connection = await self._connect_once()
        try:
            channel: str = await connection.fetchval(f"SELECT {CHANNEL}")
            await connection.add_listener(channel, self._hear)
            if not self._horizon:
                await self._look(connection)
        except BaseException:
            connection.terminate()
            raise
        return connection

    async def _listen_again(self) -> Connection:
        """Listen, then tell of everything that was committed while nobody heard of it."""
        connection = await self._listen()
        try:
            # A row's xmin is the transaction that wrote it last. `age` counts transactions back
            # from now, across the wrap-around of their numbers.
            missed: list[tuple[str, str, int]] = await connection.fetch(
                "SELECT tenant_id, session_id, position FROM sessions"
                " WHERE age(xmin) <= age($1::text::xid)",
                self._horizon,
            )
            for tenant_id, session_id, position in missed:
                self._announcements.foreign(SessionKey(tenant_id, session_id), position)
            await self._look(connection)
        except BaseException:
            connection.terminate()
            raise
        return connection

    async def _look(self, connection: Connection) -> None:
        self._horizon = await connection.fetchval(
            "SELECT pg_snapshot_xmin(pg_current_snapshot())::xid::text"
        )
        await self._clock.look(connection)

    def _hear(self, _connection: object, _pid: int, _channel: str, payload: object) -> None:
        for session, position in noticed(str(payload)):
            self._announcements.foreign(session, position)
