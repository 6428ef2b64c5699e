"""What the PostgreSQL store asks in one statement each: one function a question."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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
    Work,
    WorkKey,
    WorkKind,
)
from broker_service.storage.postgres_driver import Connection
from broker_service.storage.postgres_sql import work_row

_COLUMNS = "position, version, kind, payload, node_id, subject_id"
_SESSION_NO = "(SELECT session_no FROM sessions WHERE tenant_id = $1 AND session_id = $2)"
_SWEEP_ROWS = 1_000

_EntryRow = tuple[int, int, int, bytes, str, str]
_KINDS = {kind.value: kind for kind in EntryKind}


async def load(db: Connection, session: SessionKey) -> Loaded | None:
    # One statement: the snapshot, the head and the events are of one state of the database.
    head: tuple[int, int, int, bytes | None, str, str]
    rows: list[_EntryRow] = await db.fetch(
        "WITH head AS MATERIALIZED (SELECT session_no, t.position, t.version,"
        " n.version AS snapshot_version, n.payload FROM sessions t LEFT JOIN snapshots n"
        " USING (session_no) WHERE tenant_id = $1 AND session_id = $2)"
        " SELECT position, version, coalesce(snapshot_version, 0), payload, 'head', ''"
        " FROM head UNION ALL"
        " SELECT e.position, e.version, e.kind, e.payload, e.node_id, e.subject_id FROM head h"
        " JOIN entries e ON e.session_no = h.session_no AND e.kind = 1"
        " AND e.version > coalesce(h.snapshot_version, 0)",
        *session,
    )
    if not rows:
        return None
    head, *events = rows
    position, version, snapshot_version, snapshot, _, _ = head
    return Loaded(snapshot, snapshot_version, _entries(events), version, position)


async def read_events(
    db: Connection, session: SessionKey, after_version: int
) -> tuple[StoredEntry, ...]:
    return _entries(
        await db.fetch(
            f"SELECT {_COLUMNS} FROM entries"
            f" WHERE session_no = {_SESSION_NO} AND kind = 1 AND version > $3",
            *session,
            after_version,
        )
    )


async def read(
    db: Connection, session: SessionKey, after: int, max_entries: int, max_bytes: int
) -> tuple[StoredEntry, ...]:
    return _entries(
        await db.fetch(
            f"SELECT {_COLUMNS} FROM (SELECT *, row_number() OVER w AS place,"
            " sum(octet_length(payload)) OVER w AS size"
            f" FROM (SELECT {_COLUMNS} FROM entries WHERE session_no = {_SESSION_NO}"
            " AND position > $3 ORDER BY position LIMIT $4) page"
            " WINDOW w AS (ORDER BY position)) sized WHERE place = 1 OR size <= $5",
            *session,
            after,
            max_entries,
            max_bytes,
        )
    )


async def read_nodes(
    db: Connection, session: SessionKey, node_ids: Sequence[str]
) -> tuple[StoredEntry, ...]:
    # Unordered, so that nothing makes the planner go by position, through the whole session.
    return _entries(
        await db.fetch(
            f"SELECT {_COLUMNS} FROM entries WHERE session_no = {_SESSION_NO}"
            " AND node_id <> '' AND node_id = ANY ($3::text[])",
            *session,
            node_ids,
        )
    )


async def read_subject(
    db: Connection, session: SessionKey, subject_id: str
) -> tuple[StoredEntry, ...]:
    return _entries(
        await db.fetch(
            f"SELECT {_COLUMNS} FROM entries WHERE session_no = {_SESSION_NO}"
            " AND subject_id <> '' AND subject_id = $3",
            *session,
            subject_id,
        )
    )


async def last_position(db: Connection, session: SessionKey) -> int | None:
    position: int | None = await db.fetchval(
        "SELECT position FROM sessions WHERE tenant_id = $1 AND session_id = $2", *session
    )
    return position


async def find_request(db: Connection, key: RequestKey, now: int) -> RecordedRequest | None:
    row: tuple[bytes, bytes] | None = await db.fetchrow(
        "SELECT fingerprint, response FROM requests WHERE tenant_id = $1 AND session_id = $2"
        " AND principal = $3 AND method = $4 AND request_id = $5"
        " AND (keep_until IS NULL OR keep_until > $6)",
        *key,
        now,
    )
    return RecordedRequest(*row) if row else None


async def find_session(db: Connection, session: SessionKey) -> bytes | None:
    payload: bytes | None = await db.fetchval(
        "SELECT payload FROM session_rows WHERE tenant_id = $1 AND session_id = $2", *session
    )
    return payload


async def list_sessions(
    db: Connection, where: SessionFilter, after: tuple[int, str] | None, limit: int
) -> SessionListing:
    values: list[str | int] = [where.tenant_id]
    if where.principal is None:
        sql = (
            "SELECT s.created_at, s.session_id, s.payload FROM session_rows s"
            " WHERE s.tenant_id = $1"
        )
        place = "s"
    else:
        sql = (
            "SELECT m.created_at, m.session_id, s.payload FROM session_members m"
            " JOIN session_rows s USING (tenant_id, session_id)"
            " WHERE m.tenant_id = $1 AND m.principal = $2"
        )
        place = "m"
        values.append(where.principal)
    sql += _with_labels(where, place, values)
    if after is not None:
        values += after
        here = len(values)
        sql += f" AND ({place}.created_at, {place}.session_id) < (${here - 1}, ${here})"
    sql += f" ORDER BY {place}.created_at DESC, {place}.session_id DESC"
    rows, next_after = await _page(db, sql, values, limit)
    return SessionListing(rows, next_after)


async def list_interactions(
    db: Connection, where: SessionFilter, after: tuple[int, str] | None, limit: int
) -> InteractionListing:
    values: list[str | int] = [where.tenant_id]
    sql = (
        "SELECT i.opened_at, i.interaction_id, i.payload FROM interactions i WHERE i.tenant_id = $1"
    )
    if where.principal is not None:
        sql += (
            " AND EXISTS (SELECT 1 FROM session_members m WHERE m.tenant_id = i.tenant_id"
            " AND m.session_id = i.session_id AND m.principal = $2)"
        )
        values.append(where.principal)
    sql += _with_labels(where, "i", values)
    if after is not None:
        values += after
        here = len(values)
        sql += f" AND (i.opened_at, i.interaction_id) > (${here - 1}, ${here})"
    sql += " ORDER BY i.opened_at, i.interaction_id"
    rows, next_after = await _page(db, sql, values, limit)
    return InteractionListing(rows, next_after)


async def claim(
    db: Connection, kind: WorkKind, owner: str, lease_until: int, limit: int, now: int
) -> tuple[Work, ...]:
    # Rows that another replica is taking are left to it, not waited for.
    rows: list[tuple[int, str, str, str, int, int, bytes]] = await db.fetch(
        "WITH due AS MATERIALIZED (SELECT tenant_id, session_id, work_id, ready_at FROM work"
        " WHERE kind = $1 AND ready_at <= $4"
        " ORDER BY ready_at, tenant_id, session_id, work_id LIMIT $5 FOR UPDATE SKIP LOCKED)"
        " UPDATE work t SET token = t.token + 1, owner = $2, ready_at = greatest(t.due_at, $3)"
        " FROM due WHERE t.kind = $1 AND t.tenant_id = due.tenant_id"
        " AND t.session_id = due.session_id AND t.work_id = due.work_id"
        " RETURNING due.ready_at, t.tenant_id, t.session_id, t.work_id, t.due_at, t.token,"
        " t.payload",
        kind.value,
        owner,
        lease_until,
        now,
        limit,
    )
    return tuple(
        [
            Work(WorkKey(kind, SessionKey(tenant_id, session_id), work_id), due_at, token, payload)
            for _, tenant_id, session_id, work_id, due_at, token, payload in sorted(
                rows, key=lambda row: row[:4]
            )
        ]
    )


async def renew(
    db: Connection, owner: str, works: Sequence[WorkKey], lease_until: int
) -> set[WorkKey]:
    asked = sorted(set(works), key=work_row)  # locked in the order of all replicas
    columns = list(zip(*[work_row(work) for work in asked], strict=True)) or [()] * 4
    held: list[tuple[int]] = await db.fetch(
        "WITH held AS MATERIALIZED (SELECT k.i, t.kind, t.tenant_id, t.session_id, t.work_id"
        " FROM unnest($1::smallint[], $2::text[], $3::text[], $4::text[]) WITH ORDINALITY"
        " k (kind, tenant_id, session_id, work_id, i)"
        " JOIN work t USING (kind, tenant_id, session_id, work_id)"
        " WHERE t.owner = $5 ORDER BY k.i FOR UPDATE OF t)"
        " UPDATE work t SET ready_at = greatest(t.due_at, $6) FROM held h"
        " WHERE t.kind = h.kind AND t.tenant_id = h.tenant_id AND t.session_id = h.session_id"
        " AND t.work_id = h.work_id RETURNING h.i",
        *columns,
        owner,
        lease_until,
    )
    return {asked[place - 1] for (place,) in held}


async def next_due(db: Connection, kind: WorkKind) -> int | None:
    due: int | None = await db.fetchval(
        "SELECT min(ready_at) FROM work WHERE kind = $1", kind.value
    )
    return due


async def sweep(db: Connection, now: int) -> bool:
    """Forget requests that have run out, a bounded number of them; answers if more are left."""
    forgotten: list[object] = await db.fetch(
        "WITH old AS MATERIALIZED (SELECT * FROM requests WHERE keep_until <= $1"
        " ORDER BY keep_until LIMIT $2 FOR UPDATE SKIP LOCKED)"
        " DELETE FROM requests t USING old o WHERE t.tenant_id = o.tenant_id"
        " AND t.session_id = o.session_id AND t.principal = o.principal AND t.method = o.method"
        " AND t.request_id = o.request_id RETURNING 1",
        now,
        _SWEEP_ROWS,
    )
    return len(forgotten) == _SWEEP_ROWS


def _entries(rows: Iterable[_EntryRow]) -> tuple[StoredEntry, ...]:
    """Entries in order of position, whatever the order of the rows."""
    return tuple(
        [
            StoredEntry(position, version, _KINDS[kind], payload, node_id, subject_id)
            for position, version, kind, payload, node_id, subject_id in sorted(
                rows, key=lambda row: row[0]
            )
        ]
    )


def _with_labels(where: SessionFilter, place: str, values: list[str | int]) -> str:
    sql = ""
    for label in where.labels:
        values += label
        here = len(values)
        sql += (
            f" AND EXISTS (SELECT 1 FROM session_labels l WHERE l.tenant_id = {place}.tenant_id"
            f" AND l.session_id = {place}.session_id AND l.name = ${here - 1}"
            f" AND l.value = ${here})"
        )
    return sql


async def _page(
    db: Connection, sql: str, values: list[str | int], limit: int
) -> tuple[tuple[bytes, ...], tuple[int, str] | None]:
    """A page of (instant, id, payload), read with one row more to see whether another follows."""
    found: list[tuple[int, str, bytes]] = await db.fetch(
        f"{sql} LIMIT ${len(values) + 1}", *values, limit + 1
    )
    rows = found[:limit]
    next_after = (rows[-1][0], rows[-1][1]) if len(found) > limit else None
    return tuple([payload for _, _, payload in rows]), next_after
