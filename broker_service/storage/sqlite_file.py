"""The file of the SQLite store: who holds it, and the connection that writes it."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from pathlib import Path

from broker_service.storage import sqlite_schema
from broker_service.storage.port import StoreHeld, StoreUnusable
from broker_service.storage.sqlite_errors import store_error


def hold(file: Path) -> int:
    """Take the lock that keeps a second broker out; answers its file descriptor.

    Raises StoreHeld or StoreUnusable, naming the path.
    """
    if not file.parent.is_dir():
        raise StoreUnusable(f"cannot open {file}: the folder {file.parent} does not exist")
    if file.is_dir():
        raise StoreUnusable(f"cannot open {file}: it is a folder")
    try:
        lock = os.open(f"{file}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise StoreUnusable(f"cannot open {file}: {error.strerror} ({file}.lock)") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(lock)
        if isinstance(error, BlockingIOError):
            raise StoreHeld(f"{file} is held by another broker that is running") from error
        raise StoreUnusable(f"cannot lock {file}.lock: {error.strerror}") from error
    return lock


def connect(file: Path) -> sqlite3.Connection:
    """The writing connection, on a file whose schema is this version's.

    Raises StoreUnusable, naming the path and the reason.
    """
    try:
        connection = sqlite3.connect(
            file, isolation_level=None, check_same_thread=False, cached_statements=256
        )
        try:
            connection.execute("PRAGMA synchronous = FULL")
            sqlite_schema.prepare(connection)  # first: a file that is refused is not changed
            mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
            if mode != "wal":
                raise StoreUnusable(
                    f"its file system does not allow WAL mode (journal mode: {mode})"
                )
            # What is deleted is overwritten, so that an erased session is gone from the file, too.
            connection.execute("PRAGMA secure_delete = ON")
            # Pages (16 MB) between two checkpoints, which the commit that makes one has to wait
            # for: with the default of 1,000 that is one commit in a hundred.
            connection.execute("PRAGMA wal_autocheckpoint = 4000")
            # Bytes of WAL that stay on the disk after a peak.
            connection.execute("PRAGMA journal_size_limit = 67108864")
            cut_log(connection)  # a broker that died may have left erased content in it
        except BaseException:
            connection.close()
            raise
    except sqlite3.Error as error:
        raise StoreUnusable(f"cannot open {file}: {store_error(error)}") from error
    except StoreUnusable as error:
        raise StoreUnusable(f"cannot open {file}: {error}") from error
    return connection


def cut_log(connection: sqlite3.Connection) -> bool:
    """Bring all of the write-ahead log into the file and cut it to nothing, so that older pages are
    gone from the disk. Answers False if a read that needs it is in the way."""
    connection.execute("PRAGMA busy_timeout = 50")  # milliseconds; commits wait for it
    busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    connection.execute("PRAGMA busy_timeout = 5000")
    return not busy
