"""What the SQLite store reads: one function a question, on a connection that only reads."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from broker_service.storage.port import (
    EntryKind,
    InteractionListing,
    Loaded,
    RecordedRequest,
    RequestKey,
    SessionFilter,
    SessionKey,
    SessionListing,
    StoredEntry,
    WorkKind,
)

_ENTRY = "SELECT position, version, kind, payload, node_id, subject_id FROM entries"
_SESSION_NO = "(SELECT session_no FROM sessions WHERE tenant_id = ? AND session_id = ?)"
_IDS = "(SELECT value FROM json_each(?))"

_EntryRow = tuple[int, int, int, bytes, str, str]
_KINDS = {kind.value: kind for kind in EntryKind}


class Readers:
    """A few threads with a reading connection each: a read never waits for the writer."""

    def __init__(self, uri: str, threads: int) -> None:
        self._uri = uri
        self._idle: list[sqlite3.Connection] = []
        self.pool = ThreadPoolExecutor(threads, thread_name_prefix="sqlite-reader")

    def take(self) -> sqlite3.Connection:
        """A connection for one read, to be given back. Called on the pool's threads."""
        try:
            return self._idle.pop()
        except IndexError:
            # Threads pass connections on, but never share one.
            return sqlite3.connect(
                self._uri, uri=True, isolation_level=None, check_same_thread=False
            )

    def give_back(self, connection: sqlite3.Connection) -> None:
        if connection.in_transaction:  # the read failed half-way
            connection.close()
        else:
            self._idle.append(connection)

    def close(self) -> None:
        """Wait for the reads that run, then close the connections."""
        self.pool.shutdown(wait=True)
        while self._idle:
            self._idle.pop().close()


def load(db: sqlite3.Connection, session: SessionKey) -> Loaded | None:
    db.execute("BEGIN")  # one state of the file for the three questions
    try:
        head: tuple[int, int, int] | None = db.execute(
            "SELECT session_no, version, position FROM sessions"
            " WHERE tenant_id = ? AND session_id = ?",
            session,
        ).fetchone()
        if head is None:
            return None
        number, version, position = head
        row: tuple[int, bytes] | None = db.execute(
            "SELECT version, payload FROM snapshots WHERE session_no = ?", (number,)
        ).fetchone()
        snapshot_version, snapshot = row or (0, None)
        events = read_events(db, session, snapshot_version)
        return Loaded(snapshot, snapshot_version, events, version, position)
    finally:
        db.execute("COMMIT")


def read_events(
    db: sqlite3.Connection, session: SessionKey, after_version: int
) -> tuple[StoredEntry, ...]:
    return _entries(
        db.execute(
            f"{_ENTRY} INDEXED BY entries_by_version"
            f" WHERE session_no = {_SESSION_NO} AND kind = 1 AND version > ? ORDER BY version",
            (*session, after_version),
        )
    )


def read(
    db: sqlite3.Connection, session: SessionKey, after: int, max_entries: int, max_bytes: int
) -> tuple[StoredEntry, ...]:
    rows: Iterable[_EntryRow] = db.execute(
        f"{_ENTRY} WHERE session_no = {_SESSION_NO} AND position > ? ORDER BY position LIMIT ?",
        (*session, after, max_entries),
    )
    taken: list[_EntryRow] = []
    size = 0
    for row in rows:
        size += len(row[3])
        if taken and size > max_bytes:
            break
        taken.append(row)
    return _entries(taken)


def read_nodes(
    db: sqlite3.Connection, session: SessionKey, node_ids: Sequence[str]
) -> tuple[StoredEntry, ...]:
    return _entries(
        db.execute(
            # INDEXED BY: else a long list of ids could be answered by reading the whole session.
            f"{_ENTRY} INDEXED BY entries_by_node WHERE session_no = {_SESSION_NO}"
            f" AND node_id <> '' AND node_id IN {_IDS} ORDER BY position",
            (*session, json.dumps(list(node_ids))),
        )
    )


def read_subject(
    db: sqlite3.Connection, session: SessionKey, subject_id: str
) -> tuple[StoredEntry, ...]:
    return _entries(
        db.execute(
            f"{_ENTRY} INDEXED BY entries_by_message WHERE session_no = {_SESSION_NO}"
            " AND subject_id <> '' AND subject_id = ? ORDER BY position",
            (*session, subject_id),
        )
    )


def last_position(db: sqlite3.Connection, session: SessionKey) -> int | None:
    row: tuple[int] | None = db.execute(
        "SELECT position FROM sessions WHERE tenant_id = ? AND session_id = ?", session
    ).fetchone()
    return row[0] if row else None


def find_request(db: sqlite3.Connection, key: RequestKey, now: int) -> RecordedRequest | None:
    row: tuple[bytes, bytes] | None = db.execute(
        "SELECT fingerprint, response FROM requests WHERE tenant_id = ? AND session_id = ?"
        " AND principal = ? AND method = ? AND request_id = ?"
        " AND (keep_until IS NULL OR keep_until > ?)",
        (*key, now),
    ).fetchone()
    return RecordedRequest(*row) if row else None


def find_session(db: sqlite3.Connection, session: SessionKey) -> bytes | None:
    row: tuple[bytes] | None = db.execute(
        "SELECT payload FROM session_rows WHERE tenant_id = ? AND session_id = ?", session
    ).fetchone()
    return row[0] if row else None


def list_sessions(
    db: sqlite3.Connection, where: SessionFilter, after: tuple[int, str] | None, limit: int
) -> SessionListing:
    values: list[str | int] = [where.tenant_id]
    if where.principal is None:
        sql = (
            "SELECT s.created_at, s.session_id, s.payload FROM session_rows s WHERE s.tenant_id = ?"
        )
        place = "s"
    else:
        sql = (
            "SELECT m.created_at, m.session_id, s.payload FROM session_members m"
            " CROSS JOIN session_rows s USING (tenant_id, session_id)"
            " WHERE m.tenant_id = ? AND m.principal = ?"
        )
        place = "m"
        values.append(where.principal)
    sql += _with_labels(where, place, values)
    if after is not None:
        sql += f" AND ({place}.created_at, {place}.session_id) < (?, ?)"
        values += after
    sql += f" ORDER BY {place}.created_at DESC, {place}.session_id DESC LIMIT ?"
    rows, next_after = _page(db, sql, values, limit)
    return SessionListing(rows, next_after)


def list_interactions(
    db: sqlite3.Connection, where: SessionFilter, after: tuple[int, str] | None, limit: int
) -> InteractionListing:
    values: list[str | int] = [where.tenant_id]
    sql = (
        "SELECT i.opened_at, i.interaction_id, i.payload"
        " FROM interactions i INDEXED BY interactions_by_age WHERE i.tenant_id = ?"
    )
    if where.principal is not None:
        sql += (
            " AND EXISTS (SELECT 1 FROM session_members m WHERE m.tenant_id = i.tenant_id"
            " AND m.session_id = i.session_id AND m.principal = ?)"
        )
        values.append(where.principal)
    sql += _with_labels(where, "i", values)
    if after is not None:
        sql += " AND (i.opened_at, i.interaction_id) > (?, ?)"
        values += after
    sql += " ORDER BY i.opened_at, i.interaction_id LIMIT ?"
    rows, next_after = _page(db, sql, values, limit)
    return InteractionListing(rows, next_after)


def next_due(db: sqlite3.Connection, kind: WorkKind) -> int | None:
    row: tuple[int | None] = db.execute(
        "SELECT min(ready_at) FROM work WHERE kind = ?", (kind.value,)
    ).fetchone()
    return row[0]


def _entries(rows: Iterable[_EntryRow]) -> tuple[StoredEntry, ...]:
    return tuple(
        [
            StoredEntry(position, version, _KINDS[kind], payload, node_id, subject_id)
            for position, version, kind, payload, node_id, subject_id in rows
        ]
    )


def _with_labels(where: SessionFilter, place: str, values: list[str | int]) -> str:
    for label in where.labels:
        values += label
    return (
        f" AND EXISTS (SELECT 1 FROM session_labels l WHERE l.tenant_id = {place}.tenant_id"
        f" AND l.session_id = {place}.session_id AND l.name = ? AND l.value = ?)"
    ) * len(where.labels)


def _page(
    db: sqlite3.Connection, sql: str, values: list[str | int], limit: int
) -> tuple[tuple[bytes, ...], tuple[int, str] | None]:
    """A page of (instant, id, payload), read with one row more to see whether another follows."""
    found: list[tuple[int, str, bytes]] = db.execute(sql, (*values, limit + 1)).fetchall()
    rows = found[:limit]
    next_after = rows[-1][:2] if len(found) > limit else None
    return tuple([payload for _, _, payload in rows]), next_after
