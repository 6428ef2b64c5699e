"""SQLite's own: opening, closing and refusing a file."""

import os
import shutil
import sqlite3
import threading
from pathlib import Path

import pytest

from broker_service.storage import sqlite_schema
from broker_service.storage.port import (
    PutInteraction,
    PutSnapshot,
    PutWork,
    RecordedRequest,
    RememberRequest,
    SessionFilter,
    Store,
    StoreUnavailable,
    StoreUnusable,
    WorkKind,
)
from broker_service.storage.sqlite import open_sqlite
from broker_service.storage.sqlite_file import connect
from broker_service.storage.sqlite_writes import Transaction
from tests.contract.harness import ManualClock
from tests.contract.samples import REQUEST, RUN, S, event, everything, row, write


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


def garble(path: Path, start: int) -> None:
    """Put other bytes in the place of all from `start` on; the length stays."""
    content = path.read_bytes()
    path.write_bytes(content[:start] + b"\xff" * (len(content) - start))


def refused(path: Path, why: str) -> None:
    """Refused with the path and the reason, the file untouched, and no lock left behind."""
    before = path.read_bytes() if path.is_file() else b""
    for _ in range(2):
        with pytest.raises(StoreUnusable, match=why) as error:
            open_sqlite(path)
        assert str(path) in str(error.value)
    assert (path.read_bytes() if path.is_file() else b"") == before


async def test_a_reopened_store_has_everything(path: Path) -> None:
    clock = ManualClock()
    store = open_sqlite(path, clock)
    await store.commit(
        write(
            event("a", "r1", "m1"),
            event("b"),
            effects=(
                PutWork(RUN, due_at=5, token=4, payload=b"w"),
                RememberRequest(REQUEST, b"f", b"r"),
                PutInteraction(S, "i1", 1, b"i"),
                row("s1", 1, labels=(("x", "y"),)),
                PutSnapshot(S, 1, b"snap"),
            ),
        )
    )
    log, loaded = await everything(store), await store.load(S)
    await store.close()

    store = open_sqlite(path, clock)
    assert await everything(store) == log
    assert await store.load(S) == loaded
    assert await store.read_nodes(S, ["r1"]) == log[:1]
    assert await store.read_subject(S, "m1") == log[:1]
    assert await store.find_request(REQUEST) == RecordedRequest(b"f", b"r")
    labelled = SessionFilter("acme", "ann", (("x", "y"),))
    assert (await store.list_sessions(labelled, None, 9)).rows == (b"s1",)
    assert (await store.list_interactions(labelled, None, 9)).rows == (b"i",)
    assert [work.token for work in await store.claim(WorkKind.RUN, "b1", 10, 9)] == [5]
    await store.commit(write(event("c"), at=2))
    await store.close()


async def test_a_closed_store_leaves_one_whole_file(path: Path) -> None:
    """A copy of it is a backup."""
    store = open_sqlite(path)
    await store.commit(write(event()))
    await store.load(S)
    await store.close()
    assert sorted(os.listdir(path.parent)) == ["store.db", "store.db.lock"]
    copy = path.with_name("copy.db")
    shutil.copy(path, copy)
    store = open_sqlite(copy)
    assert await store.last_position(S) == 1
    await store.close()


async def test_closing_ends_all_threads(path: Path) -> None:
    before = threading.active_count()
    store = open_sqlite(path)
    await store.commit(write(event()))
    await store.load(S)
    await store.close()
    # The event loop's own pool keeps a thread of the close itself.
    names = [thread.name for thread in threading.enumerate() if "sqlite" in thread.name]
    assert names == []
    assert threading.active_count() <= before + 1


async def test_a_newer_schema_is_refused_by_its_version(path: Path) -> None:
    await open_sqlite(path).close()
    newer = sqlite3.connect(path)
    newer.execute("PRAGMA user_version = 99")
    newer.close()
    refused(path, f"version 99, this broker knows versions up to {sqlite_schema.VERSION}")


async def test_the_database_of_another_program_is_refused(path: Path) -> None:
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE sessions (id)")
    other.close()
    refused(path, "another program")


async def test_a_file_that_is_no_database_is_refused(path: Path) -> None:
    await open_sqlite(path).close()
    garble(path, start=0)
    refused(path, "damaged or no database")


async def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    missing = tmp_path / "none" / "store.db"
    refused(missing, f"the folder {missing.parent} does not exist")
    assert not missing.parent.exists()


async def test_a_folder_is_no_store(tmp_path: Path) -> None:
    refused(tmp_path, "it is a folder")


async def test_a_lock_that_cannot_be_taken_is_named(path: Path) -> None:
    os.mkdir(f"{path}.lock")
    refused(path, r"store\.db\.lock")


async def fails_as_damaged(store: Store) -> None:
    for _ in range(2):  # the writer is still there, and says so again
        with pytest.raises(StoreUnusable, match="damaged"):
            await store.commit(write(event("x" * 10_000), at=40))
        with pytest.raises(StoreUnusable, match="damaged"):
            await everything(store)


async def test_damage_inside_the_file_is_named_by_writes_and_reads(path: Path) -> None:
    store = open_sqlite(path)
    for version in range(40):
        await store.commit(write(event("x" * 1_000, "r1", "m1"), at=version))
    await store.close()
    garble(path, start=4096)
    store = open_sqlite(path)
    await fails_as_damaged(store)
    await store.close()


@pytest.mark.parametrize("step", range(sqlite_schema.VERSION))
async def test_a_file_of_an_older_version_is_brought_up(path: Path, step: int) -> None:
    older = sqlite3.connect(path, isolation_level=None)
    for statements in sqlite_schema.STEPS[:step]:
        for statement in statements:
            older.execute(statement)
    older.execute(f"PRAGMA user_version = {step}")
    if step:
        older.execute(f"PRAGMA application_id = {sqlite_schema.APPLICATION_ID}")
    older.close()
    store = open_sqlite(path)
    await store.commit(write(event()))
    await store.close()
    now = sqlite3.connect(path)
    assert now.execute("PRAGMA user_version").fetchone() == (sqlite_schema.VERSION,)
    now.close()


async def test_commits_are_synced_and_reads_run_beside_them(path: Path) -> None:
    """E4: in WAL mode, where the writer's own connection waits for the disk at each commit."""
    writer = connect(path)
    assert writer.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL
    writer.close()
    store = open_sqlite(path)
    outside = sqlite3.connect(path)
    assert outside.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    outside.execute("BEGIN")
    outside.execute("SELECT * FROM sessions").fetchall()
    await store.commit(write(event()))  # an open read keeps no commit waiting
    outside.close()
    await store.close()


async def test_after_a_defect_of_the_writer_nobody_waits_for_ever(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported: list[str] = []
    monkeypatch.setattr(
        threading, "excepthook", lambda defect: reported.append(str(defect.exc_value))
    )

    def broken(transaction: Transaction) -> None:
        raise RuntimeError("a defect")

    store = open_sqlite(path)
    with monkeypatch.context() as patched:
        patched.setattr(Transaction, "finish", broken)
        with pytest.raises(StoreUnavailable, match="stopped writing"):
            await store.commit(write(event()))
    with pytest.raises(StoreUnavailable):
        await store.commit(write(event()))
    await store.close()
    assert reported == ["a defect"]
    store = open_sqlite(path)
    assert await store.last_position(S) is None
    await store.close()
