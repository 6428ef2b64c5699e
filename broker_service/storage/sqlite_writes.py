"""What the SQLite store writes: one `Transaction` takes the writes of a group commit one by one.

Each write is checked in full before its first row is stored, so that a refused one leaves nothing
behind and the others of its group go on. Entries and heads are gathered and stored at the end of
the group, many rows a statement: a statement costs a hand-over of the interpreter's lock, which is
what limits a busy broker.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from broker_service.storage.checks import check_fence, check_snapshot, check_version, placed
from broker_service.storage.port import (
    Append,
    Committed,
    DeleteDeltas,
    DeleteInteraction,
    DeleteWork,
    Effect,
    EraseSession,
    PutInteraction,
    PutSession,
    PutSnapshot,
    PutWork,
    RememberRequest,
    RequestAlreadyRecorded,
    SessionKey,
    StoredEntry,
    Work,
    WorkKey,
    WorkKind,
    Write,
)

_ENTRY_ROW = "(?, ?, ?, ?, ?, ?, ?)"
_CHUNKS = (64, 8, 1)  # rows a statement; few sizes, so that each stays a prepared statement
_INSERT_ENTRIES = {
    rows: f"INSERT INTO entries VALUES {', '.join([_ENTRY_ROW] * rows)}" for rows in _CHUNKS
}
_SWEEP_ROWS = 1_000
_KEYED_TABLES = (
    "work",
    "requests",
    "interactions",
    "session_rows",
    "session_members",
    "session_labels",
)


@dataclass(slots=True)
class Head:
    """Where a session stands."""

    session_no: int
    version: int
    position: int


class Heads:
    """The heads of the sessions written last, so that a hot session is not read before each
    append."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._known: dict[SessionKey, Head] = {}

    def get(self, connection: sqlite3.Connection, session: SessionKey) -> Head | None:
        head = self._known.get(session)
        if head is None:
            row: tuple[int, int, int] | None = connection.execute(
                "SELECT session_no, version, position FROM sessions"
                " WHERE tenant_id = ? AND session_id = ?",
                session,
            ).fetchone()
            if row is not None:
                head = self.put(session, Head(*row))
        return head

    def put(self, session: SessionKey, head: Head) -> Head:
        self._known[session] = head
        return head

    def trim(self) -> None:
        """Drop the oldest ones over the limit. Only between transactions: in one, a head that was
        moved is nowhere else yet."""
        while len(self._known) > self._limit:
            del self._known[next(iter(self._known))]

    def forget(self) -> None:
        """To be called when a transaction was rolled back: what is known here is not what is
        stored."""
        self._known.clear()


class Transaction:
    """An open transaction of the writer's connection. `finish` has to be called before its
    COMMIT."""

    def __init__(
        self, connection: sqlite3.Connection, heads: Heads, now: Callable[[], int]
    ) -> None:
        self._connection = connection
        self._heads = heads
        self._now = now
        self._entries: list[tuple[int, int, int, int, str, str, bytes]] = []
        self._moved: dict[int, Head] = {}
        self.published: list[tuple[SessionKey, int, tuple[StoredEntry, ...]]] = []
        self.erased = False

    def commit(self, write: Write) -> Committed:
        """Check the write in full, then store it."""
        for append in write.appends:
            if append.fence is not None:
                check_fence(append.fence, self._held(append.fence.work))
        for effect in write.effects:
            if isinstance(effect, RememberRequest):
                self._check_request(effect)
        for append in write.appends:
            check_version(append, self._version(append.session))
        for effect in write.effects:
            if isinstance(effect, PutSnapshot):
                check_snapshot(effect, self._version(effect.session), write)
        entries = tuple([self._append(append) for append in write.appends])
        for effect in write.effects:
            self._store(effect)
        return Committed(entries)

    def claim(self, kind: WorkKind, owner: str, lease_until: int, limit: int) -> tuple[Work, ...]:
        rows: list[tuple[str, str, str, int, int, bytes]] = self._connection.execute(
            "SELECT tenant_id, session_id, work_id, due_at, token, payload FROM work"
            " WHERE kind = ? AND ready_at <= ?"
            " ORDER BY ready_at, tenant_id, session_id, work_id LIMIT ?",
            (kind.value, self._now(), limit),
        ).fetchall()
        taken = tuple(
            Work(
                WorkKey(kind, SessionKey(tenant_id, session_id), work_id),
                due_at,
                token + 1,
                payload,
            )
            for tenant_id, session_id, work_id, due_at, token, payload in rows
        )
        self._connection.executemany(
            "UPDATE work SET token = ?, owner = ?, ready_at = max(due_at, ?)"
            " WHERE kind = ? AND tenant_id = ? AND session_id = ? AND work_id = ?",
            [(work.token, owner, lease_until, *_work_place(work.work)) for work in taken],
        )
        return taken

    def renew(self, owner: str, works: Sequence[WorkKey], lease_until: int) -> set[WorkKey]:
        held: set[WorkKey] = set()
        for work in works:
            done = self._connection.execute(
                "UPDATE work SET ready_at = max(due_at, ?)"
                " WHERE kind = ? AND tenant_id = ? AND session_id = ? AND work_id = ?"
                " AND owner = ?",
                (lease_until, *_work_place(work), owner),
            )
            if done.rowcount:
                held.add(work)
        return held

    def sweep(self) -> bool:
        """Forget requests that have run out, a bounded number of them; answers if more are left."""
        forgotten = self._connection.execute(
            "DELETE FROM requests WHERE (tenant_id, session_id, principal, method, request_id) IN"
            " (SELECT tenant_id, session_id, principal, method, request_id FROM requests"
            " WHERE keep_until <= ? ORDER BY keep_until LIMIT ?)",
            (self._now(), _SWEEP_ROWS),
        )
        return forgotten.rowcount == _SWEEP_ROWS

    def finish(self) -> None:
        """Store what was gathered."""
        done = 0
        for rows in _CHUNKS:
            while len(self._entries) - done >= rows:
                values: list[int | str | bytes] = []
                for entry in self._entries[done : done + rows]:
                    values += entry
                self._connection.execute(_INSERT_ENTRIES[rows], values)
                done += rows
        self._connection.executemany(
            "UPDATE sessions SET version = ?, position = ? WHERE session_no = ?",
            [(head.version, head.position, head.session_no) for head in self._moved.values()],
        )

    def _held(self, work: WorkKey) -> tuple[str | None, int] | None:
        row: tuple[str | None, int] | None = self._connection.execute(
            "SELECT owner, token FROM work"
            " WHERE kind = ? AND tenant_id = ? AND session_id = ? AND work_id = ?",
            _work_place(work),
        ).fetchone()
        return row

    def _check_request(self, effect: RememberRequest) -> None:
        found = self._connection.execute(
            "SELECT 1 FROM requests WHERE tenant_id = ? AND session_id = ? AND principal = ?"
            " AND method = ? AND request_id = ? AND (keep_until IS NULL OR keep_until > ?)",
            (*effect.key, self._now()),
        ).fetchone()
        if found is not None:
            raise RequestAlreadyRecorded(effect.key)

    def _version(self, session: SessionKey) -> int | None:
        head = self._heads.get(self._connection, session)
        return None if head is None else head.version

    def _append(self, append: Append) -> tuple[StoredEntry, ...]:
        if not append.entries:
            return ()
        head = self._heads.get(self._connection, append.session)
        if head is None:
            created = self._connection.execute(
                "INSERT INTO sessions (tenant_id, session_id, version, position)"
                " VALUES (?, ?, 0, 0)",
                append.session,
            )
            assert created.lastrowid is not None
            head = self._heads.put(append.session, Head(created.lastrowid, 0, 0))
        number = head.session_no
        entries = placed(append, head.version, head.position)
        self._entries += [
            (
                number,
                entry.position,
                entry.version,
                entry.kind.value,
                entry.node_id,
                entry.subject_id,
                entry.payload,
            )
            for entry in entries
        ]
        head.version, head.position = entries[-1].version, entries[-1].position
        self._moved[number] = head
        self.published.append((append.session, head.position, entries))
        return entries

    def _store(self, effect: Effect) -> None:
        run = self._connection.execute
        match effect:
            case PutWork():
                ready_at = max(effect.due_at, effect.lease_until or effect.due_at)
                run(
                    "INSERT OR REPLACE INTO work (kind, tenant_id, session_id, work_id,"
                    " due_at, ready_at, token, owner, payload) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (
                        *_work_place(effect.work),
                        effect.due_at,
                        ready_at,
                        effect.token,
                        effect.owner,
                        effect.payload,
                    ),
                )
            case DeleteWork():
                run(
                    "DELETE FROM work"
                    " WHERE kind = ? AND tenant_id = ? AND session_id = ? AND work_id = ?",
                    _work_place(effect.work),
                )
            case RememberRequest():
                run(
                    # REPLACE: one that has run out may still be there.
                    "INSERT OR REPLACE INTO requests VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                    (*effect.key, effect.fingerprint, effect.response, effect.keep_until),
                )
            case PutInteraction():
                run(
                    "INSERT OR REPLACE INTO interactions VALUES (?, ?, ?, ?, ?)",
                    (*effect.session, effect.interaction_id, effect.opened_at, effect.payload),
                )
            case DeleteInteraction():
                run(
                    "DELETE FROM interactions"
                    " WHERE tenant_id = ? AND session_id = ? AND interaction_id = ?",
                    (*effect.session, effect.interaction_id),
                )
            case PutSession():
                self._store_session(effect)
            case PutSnapshot():
                head = self._heads.get(self._connection, effect.session)
                assert head is not None  # check_snapshot
                run(
                    "INSERT INTO snapshots VALUES (?, ?, ?) ON CONFLICT (session_no) DO UPDATE"
                    " SET version = excluded.version, payload = excluded.payload"
                    " WHERE excluded.version >= version",
                    (head.session_no, effect.version, effect.payload),
                )

            case DeleteDeltas():
                self._delete_deltas(effect)
            case EraseSession():
                self._erase(effect.session)

    def _delete_deltas(self, effect: DeleteDeltas) -> None:
        head = self._heads.get(self._connection, effect.session)
        if head is not None:
            self._connection.executemany(
                # The condition on '' is the one of the index.
                "DELETE FROM entries WHERE session_no = ? AND subject_id <> ''"
                " AND subject_id = ? AND kind = 2",
                [(head.session_no, subject_id) for subject_id in effect.subject_ids],
            )

    def _erase(self, session: SessionKey) -> None:
        """Bytes are overwritten: the connection has `secure_delete`."""
        run = self._connection.execute
        self.erased = True
        for table in _KEYED_TABLES:
            run(f"DELETE FROM {table} WHERE {_at_session(table)}", session)
        head = self._heads.get(self._connection, session)
        if head is None:
            return
        number = head.session_no
        run("DELETE FROM snapshots WHERE session_no = ?", (number,))
        run("DELETE FROM entries WHERE session_no = ? AND position < ?", (number, head.position))
        self._entries = [
            entry for entry in self._entries if entry[0] != number or entry[1] == head.position
        ]

    def _store_session(self, effect: PutSession) -> None:
        members = sorted({effect.owner, *effect.participants})
        labels = sorted(set(effect.labels))
        found_by = json.dumps([effect.created_at, members, labels])
        run = self._connection.execute
        known = run(
            "SELECT found_by FROM session_rows WHERE tenant_id = ? AND session_id = ?",
            effect.session,
        ).fetchone()
        if known == (found_by,):
            run(
                "UPDATE session_rows SET updated_at = ?, payload = ?"
                " WHERE tenant_id = ? AND session_id = ?",
                (effect.updated_at, effect.payload, *effect.session),
            )
            return
        run(
            "INSERT OR REPLACE INTO session_rows VALUES (?, ?, ?, ?, ?, ?)",
            (*effect.session, effect.created_at, effect.updated_at, found_by, effect.payload),
        )
        for table in ("session_members", "session_labels"):
            run(f"DELETE FROM {table} WHERE tenant_id = ? AND session_id = ?", effect.session)
        self._connection.executemany(
            "INSERT INTO session_members VALUES (?, ?, ?, ?)",
            [(*effect.session, principal, effect.created_at) for principal in members],
        )
        self._connection.executemany(
            "INSERT INTO session_labels VALUES (?, ?, ?, ?)",
            [(*effect.session, name, value) for name, value in labels],
        )


def _at_session(table: str) -> str:
    """The condition for all rows of a session, by the table's key."""
    at = "tenant_id = ? AND session_id = ?"
    kinds = ", ".join(str(kind.value) for kind in WorkKind)
    return f"kind IN ({kinds}) AND {at}" if table == "work" else at


def _work_place(work: WorkKey) -> tuple[int, str, str, str]:
    return (work.kind.value, *work.session, work.work_id)
