"""The SQLite store: the embedded default, one file and one broker.

One thread writes (`sqlite_writer`), a few others read on connections of their own (`sqlite_reads`).
The file is in WAL mode, so neither waits for the other, and commits are synced to the disk (E4).
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeAlias, TypeVar

from broker_service.storage import sqlite_reads as reads
from broker_service.storage.checks import check_limit, check_write
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
    Work,
    WorkKey,
    WorkKind,
    Write,
)
from broker_service.storage.sqlite_errors import store_error
from broker_service.storage.sqlite_file import connect, hold
from broker_service.storage.sqlite_writer import Writer

P = ParamSpec("P")
R = TypeVar("R")

Clock: TypeAlias = Callable[[], int]
"""Milliseconds since the Unix epoch."""

_READ_THREADS = 4


def system_clock() -> int:
    return time.time_ns() // 1_000_000


def open_sqlite(path: str | Path, clock: Clock = system_clock) -> SqliteStore:
    """Open the store in the file `path`, made if absent. To be called on the event loop it serves.

    Beside the file stand `<path>.lock`, held as long as the store is open (the system drops it
    when the process dies), and while it is open SQLite's `-wal` and `-shm`.

    Raises StoreHeld if a running broker has it open, and StoreUnusable if its folder is missing or
    not writable, or the file is damaged, of a newer schema or of another program. All name the
    path.
    """
    loop = asyncio.get_running_loop()
    file = Path(path).resolve()  # one lock, whatever name the file was given
    lock = hold(file)
    try:
        connection = connect(file)
    except BaseException:
        os.close(lock)
        raise
    return SqliteStore(file, lock, connection, clock, loop)


class SqliteStore:
    """The port `Store` on SQLite; see there for what each method promises."""

    def __init__(
        self,
        file: Path,
        lock: int,
        connection: sqlite3.Connection,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._lock = lock
        self._connection = connection
        self._clock = clock
        self._last_now = 0
        self._now_lock = threading.Lock()
        self._readers = reads.Readers(f"{file.as_uri()}?mode=ro", _READ_THREADS)
        self._writer = Writer(connection, self.now, loop)
        self._closing: asyncio.Task[None] | None = None

    def now(self) -> int:
        with self._now_lock:  # the writer's thread asks, too
            self._last_now = max(self._last_now, self._clock())
            return self._last_now

    def listen(self, listener: CommitListener) -> None:
        self._writer.listen(listener)

    async def commit(self, write: Write) -> Committed:
        check_write(write)
        return await self._writer.do(lambda transaction: transaction.commit(write))

    async def claim(
        self, kind: WorkKind, owner: str, lease_until: int, limit: int
    ) -> tuple[Work, ...]:
        check_limit(limit)
        return await self._writer.do(
            lambda transaction: transaction.claim(kind, owner, lease_until, limit)
        )

    async def renew(self, owner: str, works: Sequence[WorkKey], lease_until: int) -> set[WorkKey]:
        named = tuple(works)
        return await self._writer.do(
            lambda transaction: transaction.renew(owner, named, lease_until)
        )

    async def load(self, session: SessionKey) -> Loaded | None:
        return await self._read(reads.load, session)

    async def read_events(self, session: SessionKey, after_version: int) -> tuple[StoredEntry, ...]:
        return await self._read(reads.read_events, session, after_version)

    async def read(
        self, session: SessionKey, after: int, max_entries: int, max_bytes: int
    ) -> tuple[StoredEntry, ...]:
        check_limit(max_entries)
        return await self._read(reads.read, session, after, max_entries, max_bytes)

    async def read_nodes(
        self, session: SessionKey, node_ids: Sequence[str]
    ) -> tuple[StoredEntry, ...]:
        return await self._read(reads.read_nodes, session, tuple(node_ids))

    async def read_subject(self, session: SessionKey, subject_id: str) -> tuple[StoredEntry, ...]:
        return await self._read(reads.read_subject, session, subject_id)

    async def last_position(self, session: SessionKey) -> int | None:
        return await self._read(reads.last_position, session)

    async def find_request(self, key: RequestKey) -> RecordedRequest | None:
        return await self._read(reads.find_request, key, self.now())

    async def find_session(self, session: SessionKey) -> bytes | None:
        return await self._read(reads.find_session, session)

    async def list_sessions(
        self, where: SessionFilter, after: tuple[int, str] | None, limit: int
    ) -> SessionListing:
        check_limit(limit)
        return await self._read(reads.list_sessions, where, after, limit)

    async def list_interactions(
        self, where: SessionFilter, after: tuple[int, str] | None, limit: int
    ) -> InteractionListing:
        check_limit(limit)
        return await self._read(reads.list_interactions, where, after, limit)

    async def next_due(self, kind: WorkKind) -> int | None:
        return await self._read(reads.next_due, kind)

    async def close(self) -> None:
        if self._closing is None:
            self._closing = asyncio.create_task(self._close())
        # Shielded: a caller that is cancelled leaves no half-closed file behind.
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        await self._writer.close()
        await asyncio.to_thread(self._release)

    def _release(self) -> None:
        self._readers.close()
        self._connection.close()  # the last one: SQLite folds the WAL into the file
        os.close(self._lock)

    async def _read(
        self,
        question: Callable[Concatenate[sqlite3.Connection, P], R],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> R:
        if self._closing is not None:
            raise StoreUnavailable("the store is closed")

        def ask() -> R:
            try:
                connection = self._readers.take()
                try:
                    return question(connection, *args, **kwargs)
                finally:
                    self._readers.give_back(connection)
            except sqlite3.Error as error:
                raise store_error(error) from error

        return await asyncio.get_running_loop().run_in_executor(self._readers.pool, ask)
