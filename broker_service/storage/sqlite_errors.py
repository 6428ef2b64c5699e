"""SQLite's own errors in the words of the port."""

from __future__ import annotations

import sqlite3

from broker_service.storage.port import StoreUnavailable, StoreUnusable

_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT}

_REASONS = {
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_IOERR: "reading or writing failed (I/O error)",
    sqlite3.SQLITE_BUSY: "another process keeps it locked",
    sqlite3.SQLITE_READONLY: "it is read-only",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened",
    sqlite3.SQLITE_PERM: "access is not permitted",
    sqlite3.SQLITE_NOMEM: "there is not enough memory",
}


def store_error(error: sqlite3.Error) -> StoreUnavailable:
    """The port's error for a failure of SQLite; its text names no file and no statement (E2)."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    primary = int(code) & 0xFF  # the rest of an extended code says where, not what
    if primary in _DAMAGED:
        return StoreUnusable("the database file is damaged or no database")
    reason = _REASONS.get(primary, f"SQLite error {code}")
    return StoreUnavailable(f"the store is unavailable: {reason}")


def concerns_one_write(error: sqlite3.Error) -> bool:
    """Whether the values of one write are to blame, and not the store."""
    return isinstance(
        error,
        sqlite3.DataError
        | sqlite3.IntegrityError
        | sqlite3.InterfaceError
        | sqlite3.ProgrammingError,
    )
