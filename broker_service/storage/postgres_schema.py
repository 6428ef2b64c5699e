"""The tables of the PostgreSQL store and their versions.

They stand in the first schema of the connection's search path, so that an address may name one of
its own (`?search_path=turngate`). Ids compare byte by byte (`COLLATE "C"`), as in the SQLite store.

`sessions.session_no` stands for (tenant, session) in the two tables that grow with what is said. It
is only ever found through both of them (P2). Tables whose rows are updated all the time leave room
on their pages, so that an update needs no new index rows.
"""

from __future__ import annotations

from broker_service.storage.port import StoreUnusable
from broker_service.storage.postgres_driver import Connection, server_version

OLDEST_SERVER = 13
_MIGRATION_LOCK = 0x5447_5354  # "TGST": of two that migrate, one goes first

_V1 = (
    """CREATE TABLE sessions (
        session_no bigint PRIMARY KEY,
        tenant_id text COLLATE "C" NOT NULL,
        session_id text COLLATE "C" NOT NULL,
        version bigint NOT NULL,
        position bigint NOT NULL,
        UNIQUE (tenant_id, session_id)
    ) WITH (fillfactor = 70)""",
    "CREATE SEQUENCE sessions_session_no OWNED BY sessions.session_no",
    """CREATE TABLE entries (
        session_no bigint NOT NULL,
        position bigint NOT NULL,
        version bigint NOT NULL,
        kind smallint NOT NULL,
        node_id text COLLATE "C" NOT NULL,
        subject_id text COLLATE "C" NOT NULL,
        payload bytea NOT NULL,
        PRIMARY KEY (session_no, position)
    )""",
    "CREATE UNIQUE INDEX entries_by_version ON entries (session_no, version) WHERE kind = 1",
    "CREATE INDEX entries_by_node ON entries (session_no, node_id) WHERE node_id <> ''",
    "CREATE INDEX entries_by_subject ON entries (session_no, subject_id) WHERE subject_id <> ''",
    """CREATE TABLE snapshots (
        session_no bigint PRIMARY KEY,
        version bigint NOT NULL,
        payload bytea NOT NULL
    )""",
    # ready_at: the instant at which the work can be taken, the later of due_at and the lease's end.
    """CREATE TABLE work (
        kind smallint NOT NULL,
        tenant_id text COLLATE "C" NOT NULL,
        session_id text COLLATE "C" NOT NULL,
        work_id text COLLATE "C" NOT NULL,
        due_at bigint NOT NULL,
        ready_at bigint NOT NULL,
        token bigint NOT NULL,
        owner text COLLATE "C",
        payload bytea NOT NULL,
        PRIMARY KEY (kind, tenant_id, session_id, work_id)
    ) WITH (fillfactor = 70)""",
    "CREATE INDEX work_by_ready ON work (kind, ready_at)",
    """CREATE TABLE requests (
        tenant_id text COLLATE "C" NOT NULL,
        session_id text COLLATE "C" NOT NULL,
        principal text COLLATE "C" NOT NULL,
        method text COLLATE "C" NOT NULL,
        request_id text COLLATE "C" NOT NULL,
        fingerprint bytea NOT NULL,
        response bytea NOT NULL,
        keep_until bigint,
        PRIMARY KEY (tenant_id, session_id, principal, method, request_id)
    )""",
    "CREATE INDEX requests_by_end ON requests (keep_until) WHERE keep_until IS NOT NULL",
    """CREATE TABLE interactions (
        tenant_id text COLLATE "C" NOT NULL,
        session_id text COLLATE "C" NOT NULL,
        interaction_id text COLLATE "C" NOT NULL,
        opened_at bigint NOT NULL,
        payload bytea NOT NULL,
        PRIMARY KEY (tenant_id, session_id, interaction_id)
    )""",
    "CREATE INDEX interactions_by_age ON interactions (tenant_id, opened_at, interaction_id)",
    # found_by: what the two side tables were made from; they are rewritten only when it changes.
    """CREATE TABLE session_rows (
        tenant_id text COLLATE "C" NOT NULL,
        session_id text COLLATE "C" NOT NULL,
        created_at bigint NOT NULL,
        updated_at bigint NOT NULL,
        found_by text COLLATE "C" NOT NULL,
        payload bytea NOT NULL,
        PRIMARY KEY (tenant_id, session_id)
    ) WITH (fillfactor = 70)""",
    "CREATE INDEX session_rows_by_age ON session_rows (tenant_id, created_at, session_id)",
    """CREATE TABLE session_members (
        tenant_id text COLLATE "C" NOT NULL,
        session_id text COLLATE "C" NOT NULL,
        principal text COLLATE "C" NOT NULL,
        created_at bigint NOT NULL,
        PRIMARY KEY (tenant_id, session_id, principal)
    )""",
    """CREATE INDEX session_members_by_age
        ON session_members (tenant_id, principal, created_at, session_id)""",
    """CREATE TABLE session_labels (
        tenant_id text COLLATE "C" NOT NULL,
        session_id text COLLATE "C" NOT NULL,
        name text COLLATE "C" NOT NULL,
        value text COLLATE "C" NOT NULL,
        PRIMARY KEY (tenant_id, session_id, name, value)
    )""",
)

STEPS: tuple[tuple[str, ...], ...] = (_V1,)
"""Step n brings a database from version n to n + 1. A published step is never changed."""

VERSION = len(STEPS)


async def check_schema(connection: Connection) -> None:
    """Raise StoreUnusable, saying what to do, unless the schema is of exactly this version."""
    version = await _version(connection)
    if version < VERSION:
        raise StoreUnusable(
            f"its schema has version {version}, this broker needs version {VERSION}:"
            " run `turngate migrate`"
        )


async def migrate_schema(connection: Connection) -> int:
    """Create the tables, or bring those of an older version up to this one, in one transaction.

    Answers the version that is there then. Raises StoreUnusable for a newer version, and where
    tables of another program are in the way.
    """
    if await _version(connection) == VERSION:
        return VERSION
    await connection.execute("BEGIN")
    try:
        await connection.execute(f"SELECT pg_advisory_xact_lock({_MIGRATION_LOCK})")
        version = await _version(connection)
        if version == 0:
            await _check_empty(connection)
            await connection.execute("CREATE TABLE turngate_schema (version integer NOT NULL)")
            await connection.execute("INSERT INTO turngate_schema VALUES (0)")
        for statements in STEPS[version:]:
            for statement in statements:
                await connection.execute(statement)
        await connection.execute("UPDATE turngate_schema SET version = $1", VERSION)
    except BaseException:
        if not connection.is_closed():
            await connection.execute("ROLLBACK")
        raise
    await connection.execute("COMMIT")
    return VERSION


async def _version(connection: Connection) -> int:
    """The version of the schema, 0 if there is none. Raises StoreUnusable for what cannot be used
    by this broker, whatever is done."""
    server = server_version(connection)
    if server < OLDEST_SERVER:
        raise StoreUnusable(f"PostgreSQL {server} is too old: needs {OLDEST_SERVER} or newer")
    schema: str | None
    prepared: bool
    # Not to_regclass: it answers from a cache that does not see what another migrated meanwhile.
    schema, prepared = await connection.fetchrow(
        "SELECT current_schema(), EXISTS (SELECT 1 FROM pg_tables"
        " WHERE schemaname = current_schema() AND tablename = 'turngate_schema')"
    )
    if schema is None:
        raise StoreUnusable("the schema that its search_path names does not exist")
    if not prepared:
        return 0
    version: int = await connection.fetchval("SELECT version FROM turngate_schema")
    if version > VERSION:
        raise StoreUnusable(
            f"its schema has version {version}, this broker knows versions up to {VERSION}"
        )
    return version


async def _check_empty(connection: Connection) -> None:
    """Tables of the same names that are not ours are not written to."""
    taken: str | None = await connection.fetchval(
        "SELECT min(tablename) FROM pg_tables WHERE schemaname = current_schema()"
        " AND tablename IN ('sessions', 'entries', 'snapshots', 'work', 'requests',"
        " 'interactions', 'session_rows', 'session_members', 'session_labels')"
    )
    if taken is not None:
        raise StoreUnusable(
            f"it has a table {taken} of another program: name a schema of its own in the address"
            " (?search_path=turngate)"
        )
