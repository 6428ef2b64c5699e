"""SQLite's own: what is left when a process dies or the disk fills up (E4, S2)."""

from pathlib import Path

import pytest

from broker_service.storage.port import StoreHeld
from broker_service.storage.sqlite import open_sqlite
from tests.contract.crash import check_what_is_left, child, kill_after, line
from tests.contract.samples import S, event, everything, texts, write

CHILD = "tests.contract.sqlite_child"


@pytest.mark.parametrize("acknowledged", [1, 40, 400])
async def test_after_kill_9_every_acknowledged_commit_is_there(
    tmp_path: Path, acknowledged: int
) -> None:
    path = tmp_path / "store.db"
    with child(CHILD, str(path), "commit_all_the_time") as process:
        newest = kill_after(process, acknowledged)
    store = open_sqlite(path)
    await check_what_is_left(store, newest)
    await store.close()


@pytest.mark.parametrize("damage", ["cut", "garbled"])
async def test_a_torn_tail_of_the_wal_costs_the_torn_commit_only(
    tmp_path: Path, damage: str
) -> None:
    """What a loss of power leaves of a commit that was never acknowledged."""
    path = tmp_path / "store.db"
    with child(CHILD, str(path), "commit_twenty") as process:
        assert line(process) == "done"
    wal = tmp_path / "store.db-wal"
    content = wal.read_bytes()
    wal.write_bytes(content[:-10] + (b"" if damage == "cut" else b"\xff" * 10))
    store = open_sqlite(path)
    assert texts(await everything(store)) == [f"{n}" for n in range(19)]
    await store.commit(write(event("on"), at=19))
    assert await store.last_position(S) == 20
    await store.close()


async def test_a_full_disk_fails_by_name_stores_nothing_and_passes(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with child(CHILD, str(path), "run_out_of_space") as process:
        output, _ = process.communicate(timeout=60)
    said = output.splitlines()
    assert said[:2] == ["stored", "at 1"]
    failures = [text for text in said[2:8] if not text.startswith("at")]
    assert len(failures) == 3
    for failure in failures:
        assert failure.startswith("StoreUnavailable: the store is unavailable: ")
        assert "I/O error" in failure or "full" in failure
        assert str(tmp_path) not in failure  # E2
    assert [text for text in said[2:8] if text.startswith("at")] == ["at 1"] * 3
    assert said[8:] == ["stored", "at 2"]
    store = open_sqlite(path)
    assert await store.last_position(S) == 2
    await store.close()


async def test_a_second_broker_is_refused_by_name_until_the_first_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    link = tmp_path / "link.db"
    with child(CHILD, str(path), "hold") as process:
        assert line(process) == "open"
        link.symlink_to(path)
        for name in (path, link):
            with pytest.raises(StoreHeld) as refused:
                open_sqlite(name)
            assert str(path) in str(refused.value)
        process.kill()  # -9: nobody tidies up
        process.communicate(timeout=30)
    store = open_sqlite(path)
    await store.commit(write(event()))
    with pytest.raises(StoreHeld):
        open_sqlite(path)
    await store.close()
    await open_sqlite(path).close()
