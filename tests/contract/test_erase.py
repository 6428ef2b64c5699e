"""Erasing a session: its content is gone for good, a tombstone stays (`EraseSession`)."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker_service.storage.port import (
    EraseSession,
    FenceLost,
    PutInteraction,
    PutSnapshot,
    PutWork,
    RememberRequest,
    RequestAlreadyRecorded,
    SessionFilter,
    SessionKey,
    Store,
    VersionConflict,
    WorkKey,
    WorkKind,
)
from broker_service.storage.sqlite import open_sqlite
from tests.contract.harness import Harness, ManualClock
from tests.contract.recorder import Recorder
from tests.contract.samples import (
    OTHER,
    REQUEST,
    RUN,
    S,
    delta,
    event,
    everything,
    fence,
    held,
    row,
    texts,
    write,
)

ERASE = EraseSession(S)
TIMER = WorkKey(WorkKind.TIMER, S, "deadlines")


async def fill(store: Store, session: SessionKey = S, secret: str = "secret") -> None:
    """A session with a row of every kind, all of which hold the secret; it is at version 2."""
    work = WorkKey(WorkKind.RUN, session, "run1")
    tenant, name = session
    request = REQUEST._replace(tenant_id=tenant, session_id=name)
    await store.commit(
        write(
            event(f"created {secret}"),
            delta(f"delta {secret}"),
            event(f"said {secret}", "run1", "m1"),
            session=session,
            effects=(
                PutWork(work, 0, 1, "b1", 2_000_000, secret.encode()),
                *(
                    PutWork(WorkKey(kind, session, "deadlines"), 0, payload=secret.encode())
                    for kind in WorkKind
                ),
                RememberRequest(request, secret.encode(), secret.encode()),
                PutInteraction(session, "i1", 1, secret.encode()),
                row(name, 1, labels=(("title", secret),), tenant=tenant, payload=secret),
                PutSnapshot(session, 2, secret.encode()),
            ),
        )
    )


async def test_the_newest_entry_stays_and_nothing_else_does(store: Store) -> None:
    await fill(store)
    await store.commit(write(event("cancelled"), event("deleted"), at=2, effects=(ERASE,)))
    assert texts(await everything(store)) == ["deleted"]
    [stone] = await everything(store)
    assert (stone.position, stone.version) == (5, 4)
    loaded = await store.load(S)
    assert loaded is not None
    assert (loaded.snapshot, loaded.version, loaded.position) == (None, 4, 5)
    assert texts(loaded.events) == ["deleted"]
    assert await store.read_nodes(S, ["run1"]) == ()
    assert await store.read_subject(S, "m1") == ()
    assert await store.find_request(REQUEST) is None
    assert await store.find_session(S) is None
    for where in (SessionFilter("acme"), SessionFilter("acme", "ann")):
        assert (await store.list_sessions(where, None, 10)).rows == ()
        assert (await store.list_interactions(where, None, 10)).rows == ()
    for kind in WorkKind:
        assert await store.next_due(kind) is None


async def test_its_id_is_taken_for_ever(store: Store) -> None:
    await fill(store)
    await store.commit(write(event("deleted"), at=2, effects=(ERASE,)))
    with pytest.raises(VersionConflict):
        await store.commit(write(event("again"), at=0))
    assert await store.last_position(S) == 4


async def test_who_held_its_work_can_write_nothing_any_more(store: Store) -> None:
    """R3: not even deltas, which know no version."""
    await fill(store)
    await store.commit(write(event("deleted"), at=2, effects=(ERASE,)))
    with pytest.raises(FenceLost):
        await store.commit(write(delta("late"), at=None, fence=fence()))
    assert await store.renew("b1", [RUN], 3_000_000) == set()
    assert texts(await everything(store)) == ["deleted"]


async def test_listeners_are_told_all_entries_of_the_write(store: Store) -> None:
    """W1: who watches sees how the session ends."""
    heard = Recorder()
    store.listen(heard)
    await fill(store)
    await store.commit(write(event("cancelled"), event("deleted"), at=2, effects=(ERASE,)))
    await heard.until_at(S, 5)
    assert texts(heard.calls[-1][2]) == ["cancelled", "deleted"]


async def test_what_is_put_after_it_stays(store: Store) -> None:
    """E1: the request that deletes is remembered by the same write."""
    await fill(store)
    request = REQUEST._replace(method="DeleteSession")
    await store.commit(
        write(
            event("deleted"),
            at=2,
            effects=(held(), ERASE, RememberRequest(request, b"same", b"", 2_000_000)),
        )
    )
    assert await store.find_request(request) is not None
    assert await store.claim(WorkKind.RUN, "b2", 9, 10) == ()


async def test_a_refused_write_erases_nothing(store: Store) -> None:
    await fill(store)
    with pytest.raises(VersionConflict):
        await store.commit(write(event("deleted"), at=1, effects=(ERASE,)))
    again = RememberRequest(REQUEST, b"", b"")
    with pytest.raises(RequestAlreadyRecorded):
        await store.commit(write(event("deleted"), at=2, effects=(ERASE, again)))
    assert len(await everything(store)) == 3
    assert await store.find_session(S) == b"secret"


async def test_other_sessions_stay_as_they_are(store: Store) -> None:
    """P2: those of another tenant under the same id, too."""
    theirs = SessionKey("umbra", "s1")
    for session in (S, OTHER, theirs):
        await fill(store, session)
    before = [(await everything(store, s), await store.load(s)) for s in (OTHER, theirs)]
    await store.commit(write(event("deleted"), at=2, effects=(ERASE,)))
    assert [(await everything(store, s), await store.load(s)) for s in (OTHER, theirs)] == before
    inbox = await store.list_interactions(SessionFilter("acme"), None, 10)
    assert inbox.rows == (b"secret",)
    assert await store.find_session(theirs) == b"secret"
    assert len(await store.claim(WorkKind.TIMER, "b2", 9, 10)) == 2


async def test_it_is_erased_also_if_it_began_in_the_same_group(store: Store) -> None:
    """Writes that share a transaction: what the one before put is not in the tables yet."""
    done = await asyncio.gather(
        fill(store),
        store.commit(write(event("deleted"), at=2, effects=(ERASE,))),
        fill(store, OTHER),
    )
    assert len(done) == 3
    assert texts(await everything(store)) == ["deleted"]
    assert len(await everything(store, OTHER)) == 3


async def test_after_a_restart_it_is_still_gone(harness: Harness) -> None:
    store = await harness.open()
    await fill(store)
    await store.commit(write(event("deleted"), at=2, effects=(ERASE,)))
    await store.close()
    store = await harness.open()
    assert texts(await everything(store)) == ["deleted"]
    await store.close()


# --- the bytes of the SQLite file ---


def files(path: Path) -> Iterator[Path]:
    """The file and what SQLite keeps beside it."""
    return path.parent.glob(f"{path.name}*")


def holds(path: Path, text: str) -> list[str]:
    """The files that hold the text."""
    return [file.name for file in files(path) if text.encode() in file.read_bytes()]


@pytest.mark.parametrize("size", [1, 700, 5_000, 100_000])
async def test_no_byte_of_it_is_in_the_file_or_its_log(tmp_path: Path, size: int) -> None:
    """Whether it fits into a page of the file, or lies on many."""
    path = tmp_path / "store.db"
    store = open_sqlite(path, ManualClock())
    await fill(store, OTHER, "of others")
    await fill(store, secret="secret" + size * "x" + "secret")
    assert holds(path, "secret")
    await store.commit(write(event("deleted"), at=2, effects=(ERASE,)))
    await store.claim(WorkKind.TIMER, "b1", 9, 1)  # as with every heartbeat
    assert holds(path, "secret") == []
    assert holds(path, "xxxx" * min(size, 100)) == []
    assert holds(path, "of others")
    await store.close()
    assert holds(path, "secret") == []


async def test_a_read_that_is_under_way_puts_it_off_and_no_more(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store = open_sqlite(path, ManualClock())
    await fill(store)
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM entries").fetchone()
    await store.commit(write(event("deleted"), at=2, effects=(ERASE,)))
    assert holds(path, "secret"), "the read still needs it"
    reader.execute("COMMIT")
    await store.claim(WorkKind.TIMER, "b1", 9, 1)
    await store.claim(WorkKind.TIMER, "b1", 9, 1)
    assert holds(path, "secret") == []
    reader.close()
    await store.close()


async def test_what_a_killed_broker_left_in_the_log_is_gone_at_the_next_start(
    tmp_path: Path,
) -> None:
    """The broker died between the commit and the end of its log."""
    path = tmp_path / "store.db"
    store = open_sqlite(path, ManualClock())
    await fill(store)
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM entries").fetchone()
    await store.commit(write(event("deleted"), at=2, effects=(ERASE,)))
    killed = tmp_path / "killed"
    killed.mkdir()
    for file in files(path):
        if not file.name.endswith(("-shm", ".lock")):
            shutil.copy(file, killed)
    reader.close()
    await store.close()
    assert holds(killed / "store.db", "secret")
    store = open_sqlite(killed / "store.db", ManualClock())
    await store.claim(WorkKind.TIMER, "b1", 9, 1)
    assert texts(await everything(store)) == ["deleted"]
    assert holds(killed / "store.db", "secret") == []
    await store.close()
