"""The statements of a group: one that locks and reads, one that stores and notifies.

Each is put together from the parts that its group needs; a part takes whole columns (`unnest`), so
that a thousand rows cost one round trip as one row does. All replicas lock in the same order: kinds
of rows in the order of `read`'s parts, rows of a kind in the order of `Keys`. So none waits in a
ring with others.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from broker_service.storage.port import SessionKey, WorkKey, WorkKind
from broker_service.storage.postgres_driver import Connection
from broker_service.storage.postgres_errors import LostRace
from broker_service.storage.postgres_group import Found, Head, Keys, Rows, SessionRow

CHANNEL = "left('turngate_' || current_schema(), 63)"
"""SQL: the channel of this store's notifications; stores of a database do not hear each other."""

_PAYLOAD_BYTES = 7_900  # a notification has less than 8,000

_KEY = ("text", "text")
_WORK = ("smallint", "text", "text", "text")
_REQUEST = ("text",) * 5


_WORK_KINDS = ", ".join(str(kind.value) for kind in WorkKind)  # all: the index begins with them
_OF_SESSION = "d.tenant_id = k.t AND d.session_id = k.s"
_ERASED = {
    "entries": "d.session_no = k.no AND d.position < k.p",
    "snapshots": "d.session_no = k.no",
    "work": f"d.kind IN ({_WORK_KINDS}) AND {_OF_SESSION}",
    "requests": _OF_SESSION,
    "interactions": _OF_SESSION,
    "session_rows": _OF_SESSION,
    "session_members": _OF_SESSION,
    "session_labels": _OF_SESSION,
}
"""Which rows `d` of a table go with an erased session `k`."""


class _Statement:
    """A statement in the making: named parts, and the values of its placeholders."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.selects: list[str] = []
        self.values: list[object] = []

    def value(self, value: object) -> str:
        self.values.append(value)
        return f"${len(self.values)}"

    def rows(self, types: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
        """SQL for rows given as one array a column."""
        columns = list(zip(*rows, strict=True))
        arrays = [
            f"{self.value(column)}::{kind}[]" for column, kind in zip(columns, types, strict=True)
        ]
        return f"unnest({', '.join(arrays)})"

    @property
    def text(self) -> str:
        head = f"WITH {', '.join(self.parts)} " if self.parts else ""
        return head + " UNION ALL ".join(self.selects)


async def read(connection: Connection, keys: Keys) -> Found:
    """Lock what the keys name and read it, within a transaction that is open."""
    statement = _Statement()
    if keys.sessions:
        rows = statement.rows(_KEY, keys.sessions)
        statement.parts.append(
            "s AS MATERIALIZED (SELECT k.i, t.session_no, t.version, t.position"
            f" FROM {rows} WITH ORDINALITY k (tenant_id, session_id, i)"
            " JOIN sessions t USING (tenant_id, session_id) ORDER BY k.i FOR NO KEY UPDATE OF t)"
        )
        count = statement.value(len(keys.sessions))
        statement.selects.append(
            "SELECT 1, i, coalesce(s.session_no, nextval('sessions_session_no')),"
            " coalesce(s.version, 0), coalesce(s.position, 0), NULL::text"
            f" FROM generate_series(1::bigint, {count}::bigint) k (i) LEFT JOIN s USING (i)"
        )
    if keys.works:
        rows = statement.rows(_WORK, [work_row(work) for work in keys.works])
        statement.parts.append(
            "w AS MATERIALIZED (SELECT k.i, t.token, t.owner"
            f" FROM {rows} WITH ORDINALITY k (kind, tenant_id, session_id, work_id, i)"
            " JOIN work t USING (kind, tenant_id, session_id, work_id)"
            " ORDER BY k.i FOR UPDATE OF t)"
        )
        statement.selects.append("SELECT 2, i, token, NULL::bigint, NULL::bigint, owner FROM w")
    if keys.rows:
        rows = statement.rows(_KEY, keys.rows)
        statement.parts.append(
            "r AS MATERIALIZED (SELECT k.i, t.found_by"
            f" FROM {rows} WITH ORDINALITY k (tenant_id, session_id, i)"
            " JOIN session_rows t USING (tenant_id, session_id) ORDER BY k.i FOR UPDATE OF t)"
        )
        statement.selects.append(
            "SELECT 3, i, NULL::bigint, NULL::bigint, NULL::bigint, found_by FROM r"
        )
    if keys.requests:
        rows = statement.rows(_REQUEST, keys.requests)
        statement.selects.append(
            "SELECT 4, k.i, t.keep_until, NULL::bigint, NULL::bigint, NULL::text FROM"
            f" {rows} WITH ORDINALITY k (tenant_id, session_id, principal, method, request_id, i)"
            " JOIN requests t USING (tenant_id, session_id, principal, method, request_id)"
        )
    found = Found()
    if not statement.selects:
        return found
    answer: list[tuple[int, int, int, int, int, str]] = await connection.fetch(
        statement.text, *statement.values
    )
    for kind, place, first, second, third, text in answer:
        match kind:
            case 1:
                found.heads[keys.sessions[place - 1]] = Head(first, second, third)
            case 2:
                found.works[keys.works[place - 1]] = (text, first)
            case 3:
                found.rows[keys.rows[place - 1]] = text
            case _:
                found.requests[keys.requests[place - 1]] = first
    return found


async def store(connection: Connection, rows: Rows, now: int) -> None:
    """Store the rows and notify the other replicas, within a transaction that is open.

    Raises LostRace.
    """
    if rows.erased:
        await _erase(connection, rows)
    if rows.compacted:
        await _compact(connection, rows)
    changed = [row for row in rows.sessions.values() if row.changed]
    known = [row.put.session for row in changed if row.known]
    if known:  # apart, since a statement cannot delete and insert the same row
        statement = _Statement()
        given = statement.rows(_KEY, known)
        statement.parts.append(f"k AS MATERIALIZED (SELECT * FROM {given} k (t, s))")
        statement.parts.append(
            "m AS (DELETE FROM session_members USING k WHERE tenant_id = k.t AND session_id = k.s)"
        )
        statement.selects.append(
            "DELETE FROM session_labels USING k WHERE tenant_id = k.t AND session_id = k.s"
        )
        await connection.execute(statement.text, *statement.values)
    statement = _Statement()
    _log(statement, rows)
    _works(statement, rows)
    _interactions(statement, rows)
    _session_rows(statement, rows, changed)
    remembered = "0"
    if rows.requests:
        # One that has run out may still be there; one that has not, another replica's, stays.
        given = statement.rows(
            (*_REQUEST, "bytea", "bytea", "bigint"),
            [(*r.key, r.fingerprint, r.response, r.keep_until) for r in rows.requests.values()],
        )
        statement.parts.append(
            f"q AS (INSERT INTO requests AS t SELECT * FROM {given}"
            " ON CONFLICT (tenant_id, session_id, principal, method, request_id) DO UPDATE"
            " SET fingerprint = excluded.fingerprint, response = excluded.response,"
            " keep_until = excluded.keep_until"
            f" WHERE t.keep_until <= {statement.value(now)}::bigint RETURNING 1)"
        )
        remembered = "(SELECT count(*) FROM q)"
    payloads = statement.value(notices(rows))
    statement.selects.append(
        f"SELECT {remembered}, (SELECT count(pg_notify({CHANNEL}, p))"
        f" FROM unnest({payloads}::text[]) p)"
    )
    stored: tuple[int, int] = await connection.fetchrow(statement.text, *statement.values)
    if stored[0] != len(rows.requests):
        raise LostRace


def notices(rows: Rows) -> list[str]:
    """The payloads that tell of a commit: as a rule one. Each is a JSON list of tenant, session and
    last position, of one session after the other."""
    payloads: list[str] = []
    parts: list[str] = []
    size = 0
    for session, head in (rows.created | rows.moved).items():
        flat = [*session, head.position]
        part = json.dumps(flat, ensure_ascii=False, separators=(",", ":"))[1:-1]
        length = len(part.encode()) + 1
        if parts and size + length > _PAYLOAD_BYTES:
            payloads.append(f"[{','.join(parts)}]")
            parts, size = [], 0
        parts.append(part)
        size += length
    if parts:
        payloads.append(f"[{','.join(parts)}]")
    return payloads


def noticed(payload: str) -> list[tuple[SessionKey, int]]:
    """What a payload of `notices` tells."""
    flat = json.loads(payload)
    return [
        (SessionKey(tenant_id, session_id), position)
        for tenant_id, session_id, position in zip(flat[::3], flat[1::3], flat[2::3], strict=True)
    ]


def work_row(work: WorkKey) -> tuple[int, str, str, str]:
    """The key of a row of work, column by column."""
    return (work.kind.value, *work.session, work.work_id)


async def _erase(connection: Connection, rows: Rows) -> None:
    """Apart from what follows, which may put new rows of the same sessions."""
    statement = _Statement()
    given = statement.rows(
        ("bigint", *_KEY, "bigint"),
        [(number, *key, position) for key, (number, position) in sorted(rows.erased.items())],
    )
    statement.parts.append(f"k AS MATERIALIZED (SELECT * FROM {given} k (no, t, s, p))")
    for number, (table, condition) in enumerate(_ERASED.items()):
        statement.parts.append(f"d{number} AS (DELETE FROM {table} d USING k WHERE {condition})")
    statement.selects.append("SELECT 1")
    await connection.execute(statement.text, *statement.values)


async def _compact(connection: Connection, rows: Rows) -> None:
    """Deltas that are stored already; of those in this same group some may stay (see the port)."""
    statement = _Statement()
    given = statement.rows(("bigint", "text"), rows.compacted)
    # The condition on '' is the one of the index.
    statement.selects.append(
        f"DELETE FROM entries d USING {given} k (no, s)"
        " WHERE d.session_no = k.no AND d.subject_id <> '' AND d.subject_id = k.s AND d.kind = 2"
    )
    await connection.execute(statement.text, *statement.values)


def _log(statement: _Statement, rows: Rows) -> None:
    if rows.created:
        given = statement.rows(
            ("bigint", *_KEY, "bigint", "bigint"),
            [(h.number, *key, h.version, h.position) for key, h in rows.created.items()],
        )
        statement.parts.append(f"s1 AS (INSERT INTO sessions SELECT * FROM {given})")
    if rows.moved:
        given = statement.rows(
            ("bigint",) * 3, [(h.number, h.version, h.position) for h in rows.moved.values()]
        )
        statement.parts.append(
            "s2 AS (UPDATE sessions t SET version = k.version, position = k.position"
            f" FROM {given} k (session_no, version, position) WHERE t.session_no = k.session_no)"
        )
    if rows.entries:
        given = statement.rows(
            ("bigint", "bigint", "bigint", "smallint", "text", "text", "bytea"),
            [
                (no, e.position, e.version, e.kind.value, e.node_id, e.subject_id, e.payload)
                for no, e in rows.entries
            ],
        )
        statement.parts.append(f"e AS (INSERT INTO entries SELECT * FROM {given})")
    if rows.snapshots:
        given = statement.rows(
            ("bigint", "bigint", "bytea"),
            [(number, put.version, put.payload) for number, put in sorted(rows.snapshots.items())],
        )
        statement.parts.append(
            f"n AS (INSERT INTO snapshots AS t SELECT * FROM {given} ON CONFLICT (session_no)"
            " DO UPDATE SET version = excluded.version, payload = excluded.payload"
            " WHERE excluded.version >= t.version)"
        )


def _works(statement: _Statement, rows: Rows) -> None:
    gone = [work_row(work) for work, put in rows.works.items() if put is None]
    if gone:
        given = statement.rows(_WORK, sorted(gone))
        statement.parts.append(
            f"w1 AS (DELETE FROM work t USING {given} k (kind, tenant_id, session_id, work_id)"
            " WHERE t.kind = k.kind AND t.tenant_id = k.tenant_id AND t.session_id = k.session_id"
            " AND t.work_id = k.work_id)"
        )
    put_rows = [
        (
            *work_row(work),
            put.due_at,
            max(put.due_at, put.lease_until or put.due_at),
            put.token,
            put.owner,
            put.payload,
        )
        for work, put in sorted(rows.works.items(), key=lambda item: work_row(item[0]))
        if put is not None
    ]
    if put_rows:
        given = statement.rows(
            (*_WORK, "bigint", "bigint", "bigint", "text", "bytea"),
            put_rows,
        )
        statement.parts.append(
            f"w2 AS (INSERT INTO work SELECT * FROM {given}"
            " ON CONFLICT (kind, tenant_id, session_id, work_id) DO UPDATE"
            " SET due_at = excluded.due_at, ready_at = excluded.ready_at, token = excluded.token,"
            " owner = excluded.owner, payload = excluded.payload)"
        )


def _interactions(statement: _Statement, rows: Rows) -> None:
    ordered = sorted(rows.interactions.items())
    gone = [(*session, name) for (session, name), put in ordered if put is None]
    if gone:
        given = statement.rows((*_KEY, "text"), gone)
        statement.parts.append(
            f"i1 AS (DELETE FROM interactions t USING {given} k (tenant_id, session_id, name)"
            " WHERE t.tenant_id = k.tenant_id AND t.session_id = k.session_id"
            " AND t.interaction_id = k.name)"
        )
    put_rows = [
        (*session, name, put.opened_at, put.payload)
        for (session, name), put in ordered
        if put is not None
    ]
    if put_rows:
        given = statement.rows((*_KEY, "text", "bigint", "bytea"), put_rows)
        statement.parts.append(
            f"i2 AS (INSERT INTO interactions SELECT * FROM {given}"
            " ON CONFLICT (tenant_id, session_id, interaction_id) DO UPDATE"
            " SET opened_at = excluded.opened_at, payload = excluded.payload)"
        )


def _session_rows(statement: _Statement, rows: Rows, changed: list[SessionRow]) -> None:
    if rows.sessions:
        given = statement.rows(
            (*_KEY, "bigint", "bigint", "text", "bytea"),
            [
                (*key, row.put.created_at, row.put.updated_at, row.found_by, row.put.payload)
                for key, row in sorted(rows.sessions.items())
            ],
        )
        statement.parts.append(
            f"l AS (INSERT INTO session_rows SELECT * FROM {given}"
            " ON CONFLICT (tenant_id, session_id) DO UPDATE SET created_at = excluded.created_at,"
            " updated_at = excluded.updated_at, found_by = excluded.found_by,"
            " payload = excluded.payload)"
        )
    members = [
        (*row.put.session, principal, row.put.created_at)
        for row in changed
        for principal in row.members
    ]
    if members:
        given = statement.rows((*_KEY, "text", "bigint"), members)
        statement.parts.append(f"m AS (INSERT INTO session_members SELECT * FROM {given})")
    labels = [(*row.put.session, *label) for row in changed for label in row.labels]
    if labels:
        given = statement.rows((*_KEY, "text", "text"), labels)
        statement.parts.append(f"b AS (INSERT INTO session_labels SELECT * FROM {given})")
