"""Reads: by position, by version, by node, by message, and what a cold session is folded from."""

import pytest

from broker_service.storage.port import (
    Loaded,
    PutSnapshot,
    SessionKey,
    Store,
    Write,
)
from tests.contract.samples import S, delta, event, everything, fence, held, texts, write


async def fill(store: Store) -> None:
    """Positions 1-8: a prompt, a run with two messages of three and one deltas, another run."""
    await store.commit(write(event("p", "p1", "m0"), event("r", "r1"), effects=(held(),)))
    await store.commit(
        write(
            delta("a", "r1", "m1"),
            delta("b", "r1", "m1"),
            delta("x", "r1", "m2"),
            delta("c", "r1", "m1"),
            at=None,
            fence=fence(),
        )
    )
    await store.commit(write(event("end", "r1", "m1"), event("q", "r2", "m3"), at=2))


async def test_read_goes_on_after_a_position(store: Store) -> None:
    """W1: from any cursor, without gap and without duplicate."""
    await fill(store)
    whole = await everything(store)
    assert texts(whole) == ["p", "r", "a", "b", "x", "c", "end", "q"]
    for after in range(10):
        assert await store.read(S, after, 100, 1_000) == whole[after:]


async def test_read_ends_at_so_many_entries(store: Store) -> None:
    await fill(store)
    assert texts(await store.read(S, 2, 3, 1_000)) == ["a", "b", "x"]
    with pytest.raises(ValueError, match="limit"):
        await store.read(S, 0, 0, 1_000)


async def test_read_ends_before_so_many_bytes_but_gives_at_least_one(store: Store) -> None:
    await store.commit(write(event("1234"), event("5678"), event("x" * 50), event("9")))
    assert texts(await store.read(S, 0, 100, 8)) == ["1234", "5678"]
    assert texts(await store.read(S, 0, 100, 7)) == ["1234"]
    assert texts(await store.read(S, 2, 100, 8)) == ["x" * 50]
    assert texts(await store.read(S, 0, 100, 0)) == ["1234"]
    assert texts(await store.read(S, 0, 100, 59)) == ["1234", "5678", "x" * 50, "9"]


async def test_read_of_an_unknown_session_is_empty(store: Store) -> None:
    assert await everything(store) == ()
    assert await store.last_position(S) is None
    assert await store.read_events(S, 0) == ()
    assert await store.read_nodes(S, ["r1"]) == ()
    assert await store.read_subject(S, "m1") == ()


async def test_read_events_leaves_the_deltas_out(store: Store) -> None:
    await fill(store)
    assert texts(await store.read_events(S, 0)) == ["p", "r", "end", "q"]
    assert [entry.version for entry in await store.read_events(S, 2)] == [3, 4]
    assert await store.read_events(S, 4) == ()


async def test_read_nodes_gives_all_entries_of_these_nodes_in_order(store: Store) -> None:
    """F3: a fork reads its origin's entries, whatever else the session holds."""
    await fill(store)
    assert texts(await store.read_nodes(S, ["r1"])) == ["r", "a", "b", "x", "c", "end"]
    assert texts(await store.read_nodes(S, ["r2", "p1", "r2", "none"])) == ["p", "q"]
    assert await store.read_nodes(S, []) == ()
    assert len(await store.read_nodes(S, ["r1", *(f"none{n}" for n in range(3_000))])) == 6


async def test_read_subject_gives_its_content_in_order(store: Store) -> None:
    await fill(store)
    assert texts(await store.read_subject(S, "m1")) == ["a", "b", "c", "end"]
    assert texts(await store.read_subject(S, "m2")) == ["x"]
    assert await store.read_subject(S, "none") == ()


async def test_entries_of_no_node_or_message_are_nobodys(store: Store) -> None:
    await store.commit(write(event("of the session")))
    assert await store.read_nodes(S, [""]) == ()
    assert await store.read_subject(S, "") == ()


async def test_nodes_and_messages_of_other_sessions_are_not_seen(store: Store) -> None:
    await fill(store)
    for other in (SessionKey("acme", "s9"), SessionKey("umbra", "s1")):
        await store.commit(write(event("theirs", "r1", "m1"), session=other))
        assert texts(await store.read_nodes(other, ["r1"])) == ["theirs"]
        assert texts(await store.read_subject(other, "m1")) == ["theirs"]
    assert len(await store.read_nodes(S, ["r1"])) == 6


async def test_load_without_a_snapshot_gives_all_events(store: Store) -> None:
    assert await store.load(S) is None
    await fill(store)
    events = await store.read_events(S, 0)
    assert await store.load(S) == Loaded(None, 0, events, version=4, position=8)


async def test_load_gives_the_newest_snapshot_and_the_events_after_it(store: Store) -> None:
    await fill(store)
    await store.commit(Write(effects=(PutSnapshot(S, 2, b"at 2"),)))
    events = await store.read_events(S, 2)
    assert await store.load(S) == Loaded(b"at 2", 2, events, version=4, position=8)
    await store.commit(write(event("new"), at=4, effects=(PutSnapshot(S, 5, b"at 5"),)))
    assert await store.load(S) == Loaded(b"at 5", 5, (), version=5, position=9)


async def test_an_older_snapshot_does_not_replace_a_newer_one(store: Store) -> None:
    """Two that fold the same session may store their snapshots in any order."""
    await fill(store)
    await store.commit(Write(effects=(PutSnapshot(S, 3, b"at 3"),)))
    await store.commit(Write(effects=(PutSnapshot(S, 2, b"at 2"),)))
    loaded = await store.load(S)
    assert loaded is not None
    assert (loaded.snapshot, loaded.snapshot_version, len(loaded.events)) == (b"at 3", 3, 1)


@pytest.mark.parametrize("version", [0, 5])
async def test_a_snapshot_of_a_version_that_is_not_there_fails_its_write(
    store: Store, version: int
) -> None:
    """It would hide the events between."""
    await fill(store)
    with pytest.raises(ValueError, match="no version"):
        await store.commit(write(at=4, effects=(PutSnapshot(S, version, b"?"),)))
    with pytest.raises(ValueError, match="no version"):
        await store.commit(Write(effects=(PutSnapshot(SessionKey("acme", "none"), 1, b"?"),)))
    loaded = await store.load(S)
    assert loaded is not None
    assert loaded.snapshot is None


async def test_reads_see_what_was_committed_before_them(store: Store) -> None:
    """E4: whoever has an answer finds it in whatever is asked next."""
    for version in range(50):
        await store.commit(write(event(), at=version))
        assert await store.last_position(S) == version + 1
