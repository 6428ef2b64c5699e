"""Connections of the PostgreSQL store: how each is set up, and how a lost one comes back."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from broker_service.storage.port import StoreUnavailable
from broker_service.storage.postgres_driver import DRIVER_ERRORS, Connection, connect
from broker_service.storage.postgres_errors import store_error

CONNECT_TIMEOUT_S = 5.0
STATEMENT_TIMEOUT_S = 15.0

_GOODBYE_S = 2.0
_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 2.0

SETTINGS = {
    "application_name": "turngate",
    # A replica that stalls in a transaction holds up the others: its locks are taken from it. And
    # one that has gone without a word (a machine that lost its power) is found out.
    "idle_in_transaction_session_timeout": "5000",
    "tcp_keepalives_idle": "5",
    "tcp_keepalives_interval": "2",
    "tcp_keepalives_count": "3",
    # Every statement here finds its rows by an index. Its plan is made once, at times when the
    # tables are still empty, and must not be one for empty tables.
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "plan_cache_mode": "force_generic_plan",
    "jit": "off",
}


async def open_connection(url: str) -> Connection:
    """Connect. What is committed over it is durable (E4), whatever the database's default is.

    Raises one of DRIVER_ERRORS.
    """
    connection = await connect(url, SETTINGS, timeout_s=CONNECT_TIMEOUT_S)
    try:
        await connection.fetch(
            "SELECT set_config('synchronous_commit', 'on', false)"
            " WHERE current_setting('synchronous_commit') = 'off'"
        )
    except BaseException:
        connection.terminate()
        raise
    return connection


async def connect_again(
    connect_once: Callable[[], Awaitable[Connection]], failed: Callable[[StoreUnavailable], None]
) -> Connection:
    """Connect, as often as it takes, with growing pauses. `failed` is told of each failure."""
    pause = _FIRST_PAUSE_S
    while True:
        try:
            return await connect_once()
        except StoreUnavailable as error:
            failed(error)
        except DRIVER_ERRORS as error:
            failed(store_error(error))
        # Spread, so that the replicas do not all come at once.
        await back_off(pause * random.uniform(0.5, 1.0))
        pause = min(2 * pause, _LONGEST_PAUSE_S)


async def back_off(seconds: float) -> None:
    """The pause before something is tried again; ended only by its time or a cancel."""
    elapsed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    timer = asyncio.get_running_loop().call_later(seconds, elapsed.set_result, None)
    try:
        await elapsed
    finally:
        timer.cancel()


async def hang_up(connection: Connection) -> None:
    """Say goodbye to the server, if it still listens."""
    with suppress(*DRIVER_ERRORS):
        async with asyncio.timeout(_GOODBYE_S):
            await connection.close()
    connection.terminate()


class Pool:
    """A few connections for statements of their own, each in its own transaction."""

    def __init__(self, url: str, size: int) -> None:
        self._url = url
        self._size = size
        self._free = asyncio.Semaphore(size)
        self._idle: list[Connection] = []

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """A connection for the length of the block; driver errors leave it as StoreUnavailable.

        One whose block was left by an error or a cancel is not used again: what it would answer
        next is not known.
        """
        async with self._free:
            connection: Connection | None = None
            try:
                async with asyncio.timeout(STATEMENT_TIMEOUT_S):
                    connection = self._take() or await open_connection(self._url)
                    yield connection
            except BaseException as error:
                if connection is not None:
                    connection.terminate()
                if isinstance(error, DRIVER_ERRORS) and not isinstance(error, ValueError):
                    raise store_error(error) from error
                raise
            self._idle.append(connection)

    async def close(self) -> None:
        """Wait for the statements that run, then close the connections."""
        for _ in range(self._size):
            await self._free.acquire()
        while self._idle:
            await hang_up(self._idle.pop())

    def _take(self) -> Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_closed():
                return connection
        return None
