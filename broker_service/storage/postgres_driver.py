"""asyncpg, as far as the store uses it: the driver ships no types that a checker reads.

What it answers are rows whose columns the reader of each statement names and types.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Protocol, TypeAlias, cast

_asyncpg = import_module("asyncpg")

Notified: TypeAlias = Callable[[object, int, str, object], None]
"""Called with connection, process id, channel and payload of a notification."""


class Connection(Protocol):
    """A connection: one statement at a time, each in a transaction of its own unless BEGIN ran."""

    async def execute(self, query: str, *values: object) -> str: ...

    async def fetch(self, query: str, *values: object) -> list[Any]: ...

    async def fetchrow(self, query: str, *values: object) -> Any: ...

    async def fetchval(self, query: str, *values: object) -> Any: ...

    async def add_listener(self, channel: str, callback: Notified) -> None: ...

    def add_termination_listener(self, callback: Callable[[object], None]) -> None: ...

    def is_closed(self) -> bool: ...

    async def close(self) -> None: ...

    def terminate(self) -> None: ...


async def connect(url: str, settings: Mapping[str, str], *, timeout_s: float) -> Connection:
    """Connect within `timeout_s`. `settings` are the server's, for this connection.

    Raises one of DRIVER_ERRORS.
    """
    connection = await _asyncpg.connect(
        url,
        timeout=timeout_s,
        server_settings=dict(settings),
        statement_cache_size=1_000,
        max_cached_statement_lifetime=0,
    )
    return cast(Connection, connection)


def server_version(connection: Connection) -> int:
    """The server's major version."""
    return int(cast(Any, connection).get_server_version().major)


DRIVER_ERRORS: tuple[type[Exception], ...] = (
    _asyncpg.PostgresError,  # refused by the server, or the connection was lost in between
    _asyncpg.InterfaceError,  # refused by the driver
    _asyncpg.InternalClientError,  # what came was not understood
    OSError,  # TimeoutError, too
)


def sqlstate(error: BaseException) -> str:
    """The server's five-character code of an error; "" for one that is not the server's."""
    code = getattr(error, "sqlstate", None)
    return code if isinstance(code, str) else ""
