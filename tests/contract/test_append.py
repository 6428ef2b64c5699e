"""Appends: versions, positions, and all or nothing."""

import pytest

from broker_service.storage.port import (
    Append,
    EntryKind,
    PutInteraction,
    PutWork,
    RememberRequest,
    SessionFilter,
    SessionKey,
    Store,
    StoredEntry,
    VersionConflict,
    WorkKind,
    Write,
)
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


async def test_a_commit_answers_with_the_places_that_it_gave(store: Store) -> None:
    done = await store.commit(write(event("a", "p1", "m1"), delta("b", "r1", "m2"), event("c")))
    assert done.entries == (
        (
            StoredEntry(1, 1, EntryKind.EVENT, b"a", "p1", "m1"),
            StoredEntry(2, 1, EntryKind.DELTA, b"b", "r1", "m2"),
            StoredEntry(3, 2, EntryKind.EVENT, b"c", "", ""),
        ),
    )
    assert await everything(store) == done.entries[0]
    assert await store.last_position(S) == 3


async def test_positions_have_no_gap_over_commits_and_refusals(store: Store) -> None:
    """W1: a reader that counts positions sees at once whether it missed something."""
    await store.commit(write(event("a"), effects=(held(),)))
    with pytest.raises(VersionConflict):
        await store.commit(write(event("lost"), at=0))
    await store.commit(write(delta("b"), at=None, fence=fence()))
    await store.commit(write(event("c"), delta("d"), at=1))
    found = await everything(store)
    assert [entry.position for entry in found] == [1, 2, 3, 4]
    assert [entry.version for entry in found] == [1, 1, 2, 2]


async def test_deltas_do_not_move_the_version(store: Store) -> None:
    """A stop never loses against the stream that it wants to stop."""
    await store.commit(write(event(), effects=(held(),)))
    for _ in range(3):
        await store.commit(write(delta(), at=None, fence=fence()))
    await store.commit(write(event("stop"), at=1))
    assert texts(await store.read_events(S, 1)) == ["stop"]


@pytest.mark.parametrize("at", [0, 1, 3])
async def test_an_append_at_another_version_is_refused_by_name(store: Store, at: int) -> None:
    await store.commit(write(event("a"), event("b")))
    with pytest.raises(VersionConflict) as refused:
        await store.commit(write(event("c"), at=at))
    assert refused.value.session == S
    assert texts(await everything(store)) == ["a", "b"]


async def test_an_append_to_a_session_that_is_not_there_is_refused(store: Store) -> None:
    with pytest.raises(VersionConflict):
        await store.commit(write(event(), at=1))
    assert await store.last_position(S) is None
    assert await store.load(S) is None


async def test_a_conflict_in_one_session_stores_nothing_of_the_write(store: Store) -> None:
    """E4: several sessions and every kind of effect, all or nothing."""
    await store.commit(write(event("there"), session=OTHER))
    refused = Write(
        appends=(Append(S, (event("a"),), 0), Append(OTHER, (event("b"),), 7)),
        effects=(
            PutWork(RUN, due_at=0),
            RememberRequest(REQUEST, b"f", b"r"),
            PutInteraction(S, "i1", 1, b"i"),
            row("s1", 1),
        ),
    )
    with pytest.raises(VersionConflict) as conflict:
        await store.commit(refused)
    assert conflict.value.session == OTHER
    assert await store.last_position(S) is None
    assert await store.next_due(WorkKind.RUN) is None
    assert await store.find_request(REQUEST) is None
    assert await store.find_session(S) is None
    assert (await store.list_interactions(SessionFilter("acme"), None, 9)).rows == ()
    # The same write with the right version is stored whole.
    await store.commit(
        Write((refused.appends[0], Append(OTHER, (event("b"),), 1)), refused.effects)
    )
    assert texts(await everything(store)) == ["a"]
    assert texts(await everything(store, OTHER)) == ["there", "b"]
    assert await store.next_due(WorkKind.RUN) == 0
    assert await store.find_request(REQUEST) is not None
    assert await store.find_session(S) == b"s1"
    assert (await store.list_interactions(SessionFilter("acme"), None, 9)).rows == (b"i",)


async def test_sessions_of_two_tenants_share_nothing_but_the_name(store: Store) -> None:
    """P2: the tenant is part of every key."""
    theirs = SessionKey("umbra", "s1")
    await store.commit(write(event("ours")))
    assert await store.load(theirs) is None
    await store.commit(write(event("theirs"), session=theirs))
    assert texts(await everything(store)) == ["ours"]
    assert texts(await everything(store, theirs)) == ["theirs"]


async def test_bytes_come_back_as_they_were(store: Store) -> None:
    payload = bytes(range(256)) * 1024
    entry = event()
    await store.commit(write(type(entry)(EntryKind.EVENT, payload), event("")))
    found = await everything(store)
    assert found[0].payload == payload
    assert found[1].payload == b""


async def test_an_append_without_entries_only_makes_the_write_conditional(store: Store) -> None:
    await store.commit(write(event(), effects=(held(),)))
    with pytest.raises(VersionConflict):
        await store.commit(write(at=0, effects=(row("s1", 1),)))
    assert await store.find_session(S) is None
    done = await store.commit(write(at=1, fence=fence(), effects=(row("s1", 1),)))
    assert done.entries == ((),)
    assert await store.find_session(S) == b"s1"
    await store.commit(write(session=OTHER, at=0))
    assert await store.last_position(OTHER) is None


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (write(delta(), at=None), "need a fence"),
        (write(delta(), at=1), "need a fence"),
        (write(event(), at=None, fence=fence()), "needs a version"),
        (write(at=None), "needs a version"),
        (write(delta(), at=0, fence=fence()), "cannot begin with deltas"),
        (Write((Append(S, (event(),), 0), Append(S, (event(),), 1))), "once at most"),
        (
            Write(
                effects=(RememberRequest(REQUEST, b"f", b"r"), RememberRequest(REQUEST, b"g", b"s"))
            ),
            "once at most",
        ),
        (Write(effects=(PutWork(RUN, due_at=0, owner="b1"),)), "owner and a lease"),
        (Write(effects=(PutWork(RUN, due_at=0, lease_until=5),)), "owner and a lease"),
    ],
)
async def test_writes_that_nobody_may_make_are_refused(
    store: Store, wrong: Write, why: str
) -> None:
    with pytest.raises(ValueError, match=why):
        await store.commit(wrong)
    assert await store.last_position(S) is None


async def test_deltas_cannot_create_a_session(store: Store) -> None:
    await store.commit(Write(effects=(held(),)))
    with pytest.raises(VersionConflict):
        await store.commit(write(delta(), at=None, fence=fence()))
    assert await store.last_position(S) is None
