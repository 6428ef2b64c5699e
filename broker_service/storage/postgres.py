"""The PostgreSQL store: the one that several brokers share.

A replica has one connection that writes (`postgres_writer`), one that hears of the others' commits
(`postgres_listener`), and a few for everything that is one statement (`postgres_reads`). It works
with PostgreSQL itself, or a pooler that gives each connection a session of its own: in others
nobody can listen.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Concatenate, ParamSpec, TypeAlias, TypeVar

from broker_service.storage import postgres_reads as reads
from broker_service.storage.checks import check_limit, check_write, storable
from broker_service.storage.listeners import Listeners
from broker_service.storage.port import (
    CommitListener,
    Committed,
    InteractionListing,
    Loaded,
    RecordedRequest,
    RequestKey,
    SessionFilter,
    SessionKey,
    SessionListing,
    StoredEntry,
    StoreUnavailable,
    StoreUnusable,
    Work,
    WorkKey,
    WorkKind,
    Write,
)
from broker_service.storage.postgres_clock import DatabaseClock
from broker_service.storage.postgres_connect import Pool, hang_up, open_connection
from broker_service.storage.postgres_driver import Connection
from broker_service.storage.postgres_errors import OPENING_ERRORS, place, store_error
from broker_service.storage.postgres_listener import Listener
from broker_service.storage.postgres_notices import Announcements
from broker_service.storage.postgres_schema import check_schema, migrate_schema
from broker_service.storage.postgres_writer import Writer

P = ParamSpec("P")
R = TypeVar("R")

Clock: TypeAlias = Callable[[], int]
"""Milliseconds since the Unix epoch."""

_POOL = 6  # connections for single statements
_SWEEP_EVERY = 60_000  # ms between two looks for remembered requests that have run out


async def open_postgres(
    url: str, *, migrate: bool = False, clock: Clock | None = None
) -> PostgresStore:
    """Open the store at `url` (`postgresql://…`, as libpq and asyncpg have it).

    With `migrate`, an older schema is brought up to this version first; without, it is refused.
    `clock` stands in for the database's.

    Raises StoreUnavailable if the database cannot be reached, and StoreUnusable if its schema is
    older, newer, or another program's. Both name host and database, and no credentials.
    """
    announcements = Announcements(listeners := Listeners(asyncio.get_running_loop()))

    async def connect_once() -> Connection:
        connection = await open_connection(url)
        try:
            await check_schema(connection)
        except BaseException:
            connection.terminate()
            raise
        return connection

    database_clock = DatabaseClock()
    listener = Listener(connect_once, database_clock, announcements)
    try:
        if migrate:
            await _migrate(url)
        await listener.start()
        try:
            connection = await connect_once()
        except BaseException:
            await listener.close()
            raise
    except OPENING_ERRORS as error:
        raise _not_opened(url, error) from error
    now = _forwards(clock or database_clock)
    writer = Writer(connection, connect_once, now, announcements)
    return PostgresStore(writer, listener, Pool(url, _POOL), listeners, now)


async def migrate(url: str) -> int:
    """Create the schema at `url` or bring it up to this version; answers the version.

    Raises what `open_postgres` raises.
    """
    try:
        return await _migrate(url)
    except OPENING_ERRORS as error:
        raise _not_opened(url, error) from error


class PostgresStore:
    """The port `Store` on PostgreSQL; see there for what each method promises.

    A commit that fails with StoreUnavailable because the connection broke may have been stored
    nevertheless: the database may have finished it when its answer was lost. It is stored whole or
    not at all, and listeners are told if it was. Whoever gets StoreUnavailable therefore loads the
    session anew before deciding again; a request id makes the repetition safe (E1).
    """

    def __init__(
        self, writer: Writer, listener: Listener, pool: Pool, listeners: Listeners, now: Clock
    ) -> None:
        self._writer = writer
        self._listener = listener
        self._pool = pool
        self._listeners = listeners
        self._now = now
        self._next_sweep = 0
        self._closing: asyncio.Task[None] | None = None

    def now(self) -> int:
        return self._now()

    def listen(self, listener: CommitListener) -> None:
        self._listeners.add(listener)

    async def commit(self, write: Write) -> Committed:
        check_write(write)
        return await self._writer.commit(write)

    async def claim(
        self, kind: WorkKind, owner: str, lease_until: int, limit: int
    ) -> tuple[Work, ...]:
        check_limit(limit)
        now = self.now()
        taken = await self._ask(reads.claim, kind, owner, lease_until, limit, now)
        if now >= self._next_sweep:
            self._next_sweep = now + _SWEEP_EVERY
            if await self._ask(reads.sweep, now):
                self._next_sweep = now
        return taken

    async def renew(self, owner: str, works: Sequence[WorkKey], lease_until: int) -> set[WorkKey]:
        return await self._ask(reads.renew, owner, tuple(works), lease_until)

    async def load(self, session: SessionKey) -> Loaded | None:
        return await self._ask(reads.load, session) if _findable(session) else None

    async def read_events(self, session: SessionKey, after_version: int) -> tuple[StoredEntry, ...]:
        if not _findable(session):
            return ()
        return await self._ask(reads.read_events, session, after_version)

    async def read(
        self, session: SessionKey, after: int, max_entries: int, max_bytes: int
    ) -> tuple[StoredEntry, ...]:
        check_limit(max_entries)
        if not _findable(session):
            return ()
        return await self._ask(reads.read, session, after, max_entries, max_bytes)

    async def read_nodes(
        self, session: SessionKey, node_ids: Sequence[str]
    ) -> tuple[StoredEntry, ...]:
        findable = [node_id for node_id in node_ids if storable(node_id)]
        if not _findable(session):
            return ()
        return await self._ask(reads.read_nodes, session, findable)

    async def read_subject(self, session: SessionKey, subject_id: str) -> tuple[StoredEntry, ...]:
        if not _findable((*session, subject_id)):
            return ()
        return await self._ask(reads.read_subject, session, subject_id)

    async def last_position(self, session: SessionKey) -> int | None:
        return await self._ask(reads.last_position, session) if _findable(session) else None

    async def find_request(self, key: RequestKey) -> RecordedRequest | None:
        return await self._ask(reads.find_request, key, self.now()) if _findable(key) else None

    async def find_session(self, session: SessionKey) -> bytes | None:
        return await self._ask(reads.find_session, session) if _findable(session) else None

    async def list_sessions(
        self, where: SessionFilter, after: tuple[int, str] | None, limit: int
    ) -> SessionListing:
        check_limit(limit)
        if not _findable(_texts(where, after)):
            return SessionListing((), None)
        return await self._ask(reads.list_sessions, where, after, limit)

    async def list_interactions(
        self, where: SessionFilter, after: tuple[int, str] | None, limit: int
    ) -> InteractionListing:
        check_limit(limit)
        if not _findable(_texts(where, after)):
            return InteractionListing((), None)
        return await self._ask(reads.list_interactions, where, after, limit)

    async def next_due(self, kind: WorkKind) -> int | None:
        return await self._ask(reads.next_due, kind)

    async def close(self) -> None:
        if self._closing is None:
            self._closing = asyncio.create_task(self._close())
        # Shielded: a caller that is cancelled leaves nothing half-closed behind.
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        await self._writer.close()
        await self._listener.close()
        await self._pool.close()

    async def _ask(
        self,
        question: Callable[Concatenate[Connection, P], Awaitable[R]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> R:
        if self._closing is not None:
            raise StoreUnavailable("the store is closed")
        async with self._pool.connection() as connection:
            return await question(connection, *args, **kwargs)


def _forwards(clock: Clock) -> Clock:
    """The same clock, but never running backwards: it stands until it is caught up with."""
    latest = 0

    def now() -> int:
        nonlocal latest
        latest = max(latest, clock())
        return latest

    return now


async def _migrate(url: str) -> int:
    connection = await open_connection(url)
    try:
        return await migrate_schema(connection)
    finally:
        await hang_up(connection)


def _not_opened(url: str, error: Exception) -> StoreUnavailable:
    """What `open_postgres` raises: for the operator, who may know where the store is."""
    if isinstance(error, ValueError):  # the driver's, with the address in its text
        return StoreUnusable(f"cannot open {place(url)}: its address is not understood")
    kind = StoreUnusable if isinstance(error, StoreUnusable) else StoreUnavailable
    reason = error if isinstance(error, StoreUnavailable) else store_error(error)
    return kind(f"cannot open {place(url)}: {reason}")


def _findable(texts: Sequence[str]) -> bool:
    """Whether rows with these texts can be there; those with others need not be asked for."""
    return all(storable(text) for text in texts)


def _texts(where: SessionFilter, after: tuple[int, str] | None) -> list[str]:
    texts = [where.tenant_id, where.principal or "", after[1] if after else ""]
    return texts + [text for label in where.labels for text in label]
