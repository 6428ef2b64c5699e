"""The tables of the SQLite store and their versions.

`sessions.session_no` stands for (tenant, session) in the two tables that grow with what is said: it
saves some 100 bytes an entry and index row. It is only ever found through both of them (P2).
"""

from __future__ import annotations

import sqlite3

from broker_service.storage.port import StoreUnusable

APPLICATION_ID = 0x5447_5354  # "TGST", so that another program's database is not written to

_V1 = (
    """CREATE TABLE sessions (
        session_no INTEGER PRIMARY KEY,
        tenant_id TEXT NOT NULL,
        session_id TEXT NOT NULL,
        version INTEGER NOT NULL,
        position INTEGER NOT NULL,
        UNIQUE (tenant_id, session_id)
    )""",
    # With a rowid: entries of many sessions that are committed together share the file's last pages
    # (measured: 45 % more rows a second than clustered by session).
    """CREATE TABLE entries (
        session_no INTEGER NOT NULL,
        position INTEGER NOT NULL,
        version INTEGER NOT NULL,
        kind INTEGER NOT NULL,
        node_id TEXT NOT NULL,
        subject_id TEXT NOT NULL,
        payload BLOB NOT NULL,
        PRIMARY KEY (session_no, position)
    )""",
    "CREATE UNIQUE INDEX entries_by_version ON entries (session_no, version) WHERE kind = 1",
    "CREATE INDEX entries_by_node ON entries (session_no, node_id) WHERE node_id <> ''",
    "CREATE INDEX entries_by_message ON entries (session_no, subject_id) WHERE subject_id <> ''",
    """CREATE TABLE snapshots (
        session_no INTEGER PRIMARY KEY,
        version INTEGER NOT NULL,
        payload BLOB NOT NULL
    )""",
    # ready_at: the instant at which the work can be taken, the later of due_at and the lease's end.
    """CREATE TABLE work (
        kind INTEGER NOT NULL,
        tenant_id TEXT NOT NULL,
        session_id TEXT NOT NULL,
        work_id TEXT NOT NULL,
        due_at INTEGER NOT NULL,
        ready_at INTEGER NOT NULL,
        token INTEGER NOT NULL,
        owner TEXT,
        payload BLOB NOT NULL,
        PRIMARY KEY (kind, tenant_id, session_id, work_id)
    ) WITHOUT ROWID""",
    "CREATE INDEX work_by_ready ON work (kind, ready_at)",
    """CREATE TABLE requests (
        tenant_id TEXT NOT NULL,
        session_id TEXT NOT NULL,
        principal TEXT NOT NULL,
        method TEXT NOT NULL,
        request_id TEXT NOT NULL,
        fingerprint BLOB NOT NULL,
        response BLOB NOT NULL,
        keep_until INTEGER,
        PRIMARY KEY (tenant_id, session_id, principal, method, request_id)
    ) WITHOUT ROWID""",
    "CREATE INDEX requests_by_end ON requests (keep_until) WHERE keep_until IS NOT NULL",
    """CREATE TABLE interactions (
        tenant_id TEXT NOT NULL,
        session_id TEXT NOT NULL,
        interaction_id TEXT NOT NULL,
        opened_at INTEGER NOT NULL,
        payload BLOB NOT NULL,
        PRIMARY KEY (tenant_id, session_id, interaction_id)
    ) WITHOUT ROWID""",
    "CREATE INDEX interactions_by_age ON interactions (tenant_id, opened_at, interaction_id)",
    # found_by: what the two side tables were made from; they are rewritten only when it changes.
    """CREATE TABLE session_rows (
        tenant_id TEXT NOT NULL,
        session_id TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        updated_at INTEGER NOT NULL,
        found_by TEXT NOT NULL,
        payload BLOB NOT NULL,
        PRIMARY KEY (tenant_id, session_id)
    ) WITHOUT ROWID""",
    "CREATE INDEX session_rows_by_age ON session_rows (tenant_id, created_at, session_id)",
    """CREATE TABLE session_members (
        tenant_id TEXT NOT NULL,
        session_id TEXT NOT NULL,
        principal TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        PRIMARY KEY (tenant_id, session_id, principal)
    ) WITHOUT ROWID""",
    """CREATE INDEX session_members_by_age
        ON session_members (tenant_id, principal, created_at, session_id)""",
    """CREATE TABLE session_labels (
        tenant_id TEXT NOT NULL,
        session_id TEXT NOT NULL,
        name TEXT NOT NULL,
        value TEXT NOT NULL,
        PRIMARY KEY (tenant_id, session_id, name, value)
    ) WITHOUT ROWID""",
)

STEPS: tuple[tuple[str, ...], ...] = (_V1,)
"""Step n brings a file from version n to n + 1. A published step is never changed."""

VERSION = len(STEPS)


def prepare(connection: sqlite3.Connection) -> None:
    """Create the tables, or bring those of an older version up to this one, in one transaction.

    Raises StoreUnusable for a file of a newer version or of another program.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = _pragma(connection, "user_version")
        tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if tables and _pragma(connection, "application_id") != APPLICATION_ID:
            raise StoreUnusable("it is the database of another program")
        if version > VERSION:
            raise StoreUnusable(
                f"its schema has version {version}, this broker knows versions up to {VERSION}"
            )
        for statements in STEPS[version:]:
            for statement in statements:
                connection.execute(statement)
        if version < VERSION:
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    value: int = connection.execute(f"PRAGMA {name}").fetchone()[0]
    return value
