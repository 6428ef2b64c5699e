"""Fences: a broker that lost its lease writes nothing (R3, S2)."""

import pytest

from broker_service.storage.port import (
    Append,
    DeleteWork,
    Fence,
    FenceLost,
    PutWork,
    SessionKey,
    Store,
    VersionConflict,
    WorkKey,
    WorkKind,
    Write,
)
from tests.contract.harness import Harness
from tests.contract.samples import RUN, S, delta, event, everything, fence, held, texts, write


async def refused(store: Store, lost: Fence) -> None:
    """Neither deltas nor events of this fence are stored."""
    before = await everything(store)
    for stale in (write(delta("x"), at=None, fence=lost), write(event("x"), at=1, fence=lost)):
        with pytest.raises(FenceLost) as error:
            await store.commit(stale)
        assert error.value.fence == lost
    assert await everything(store) == before


async def test_a_fence_that_holds_lets_the_write_pass(store: Store) -> None:
    await store.commit(write(event("a"), effects=(held(),)))
    await store.commit(write(delta("b"), at=None, fence=fence()))
    await store.commit(write(event("c"), at=1, fence=fence()))
    assert texts(await everything(store)) == ["a", "b", "c"]


async def test_another_owner_under_the_same_token_is_refused(store: Store) -> None:
    await store.commit(write(event(), effects=(held("b1", 1),)))
    await refused(store, fence("b2", 1))


@pytest.mark.parametrize("token", [0, 2])
async def test_the_owner_under_another_token_is_refused(store: Store, token: int) -> None:
    await store.commit(write(event(), effects=(held("b1", 1),)))
    await refused(store, fence("b1", token))


async def test_work_that_nobody_holds_or_that_is_gone_is_refused(store: Store) -> None:
    await store.commit(write(event(), effects=(PutWork(RUN, due_at=0, token=1),)))
    await refused(store, fence("b1", 1))
    await store.commit(Write(effects=(held(),)))
    await store.commit(Write(effects=(DeleteWork(RUN),)))
    await refused(store, fence())


async def test_the_fence_is_of_this_work_only(store: Store) -> None:
    """Same id under another kind, session or tenant is other work."""
    await store.commit(write(event(), effects=(held(),)))
    for other in (
        WorkKey(WorkKind.TIMER, S, "run1"),
        WorkKey(WorkKind.RUN, SessionKey("acme", "s2"), "run1"),
        WorkKey(WorkKind.RUN, SessionKey("umbra", "s1"), "run1"),
        WorkKey(WorkKind.RUN, S, "run2"),
    ):
        await refused(store, Fence(other, "b1", 1))


async def test_a_lease_that_ran_out_still_holds_until_it_is_taken_over(
    store: Store, harness: Harness
) -> None:
    await store.commit(write(event("a"), effects=(held("b1", 1, harness.clock.instant + 10),)))
    harness.clock.advance(1_000)
    await store.commit(write(delta("late"), at=None, fence=fence("b1", 1)))
    (taken,) = await store.claim(WorkKind.RUN, "b2", harness.clock.instant + 10, 5)
    assert taken.token == 2
    await refused(store, fence("b1", 1))
    await store.commit(write(delta("new owner"), at=None, fence=fence("b2", 2)))
    assert texts(await everything(store)) == ["a", "late", "new owner"]


async def test_a_lost_fence_is_told_before_a_version_that_moved(store: Store) -> None:
    """Who has lost the work need not fold anything to learn it."""
    await store.commit(write(event(), effects=(held(),)))
    with pytest.raises(FenceLost):
        await store.commit(write(event(), at=9, fence=fence("b2", 1)))
    with pytest.raises(VersionConflict):
        await store.commit(write(event(), at=9, fence=fence("b1", 1)))


async def test_a_write_sees_the_fence_as_it_was_before_its_own_effects(store: Store) -> None:
    """The last write of an attempt deletes the work that it was made under."""
    await store.commit(write(event("a"), effects=(held(),)))
    await store.commit(Write((Append(S, (event("end"),), 1, fence()),), effects=(DeleteWork(RUN),)))
    assert texts(await everything(store)) == ["a", "end"]
    assert await store.next_due(WorkKind.RUN) is None


@pytest.mark.parametrize("kind", list(WorkKind))
async def test_a_fence_without_entries_guards_what_else_is_written(
    store: Store, harness: Harness, kind: WorkKind
) -> None:
    """S2: who was taken over neither removes the work nor puts it off."""
    work = WorkKey(kind, S, "one/ops")
    await store.commit(write(event(), effects=(PutWork(work, 0, payload=b"first"),)))
    now = harness.clock.instant
    (mine,) = await store.claim(kind, "b1", now + 10, 5)
    harness.clock.advance(10)
    (theirs,) = await store.claim(kind, "b2", now + 100, 5)
    stale = Append(S, (), None, Fence(work, "b1", mine.token))
    for effect in (DeleteWork(work), PutWork(work, now + 50, mine.token, payload=b"stale")):
        with pytest.raises(FenceLost):
            await store.commit(Write((stale,), (effect,)))
    held_by_them = Append(S, (), None, Fence(work, "b2", theirs.token))
    later = PutWork(work, now + 50, theirs.token, payload=b"again")
    await store.commit(Write((held_by_them,), (later,)))
    harness.clock.advance(40)
    (again,) = await store.claim(kind, "b1", now + 200, 5)
    assert (again.payload, again.token) == (b"again", theirs.token + 1)
    done = Append(S, (), None, Fence(work, "b1", again.token))
    await store.commit(Write((done,), (DeleteWork(work),)))
    assert await store.next_due(kind) is None
