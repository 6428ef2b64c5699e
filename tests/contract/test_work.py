"""Due work: one claim at a time, leases, hand-over (R3, S2)."""

import asyncio

import pytest

from broker_service.storage.port import (
    DeleteWork,
    PutWork,
    SessionKey,
    Store,
    Work,
    WorkKey,
    WorkKind,
    Write,
)
from tests.contract.harness import Harness
from tests.contract.samples import RUN, S


def run(name: str) -> WorkKey:
    return WorkKey(WorkKind.RUN, S, name)


async def put(store: Store, *works: PutWork) -> None:
    await store.commit(Write(effects=works))


def names(works: tuple[Work, ...]) -> list[str]:
    return [work.work.work_id for work in works]


async def test_a_claim_brings_the_row_and_a_token_one_higher(
    store: Store, harness: Harness
) -> None:
    await put(store, PutWork(RUN, due_at=5, token=3, payload=b"p"))
    assert await store.claim(WorkKind.RUN, "b1", harness.clock.instant + 10, 5) == (
        Work(RUN, due_at=5, token=4, payload=b"p"),
    )


async def test_work_is_taken_only_when_it_is_due(store: Store, harness: Harness) -> None:
    now = harness.clock.instant
    await put(store, PutWork(RUN, due_at=now + 10))
    harness.clock.advance(9)
    assert await store.claim(WorkKind.RUN, "b1", now + 99, 5) == ()
    harness.clock.advance(1)
    assert names(await store.claim(WorkKind.RUN, "b1", now + 99, 5)) == ["run1"]


async def test_two_owners_never_hold_the_same_work(store: Store, harness: Harness) -> None:
    await put(store, *(PutWork(run(f"r{n:02}"), due_at=n) for n in range(40)))
    lease = harness.clock.instant + 10
    claims = await asyncio.gather(
        *(store.claim(WorkKind.RUN, f"b{n}", lease, 3) for n in range(20))
    )
    taken = [name for works in claims for name in names(works)]
    assert sorted(taken) == [f"r{n:02}" for n in range(40)]


async def test_the_owner_does_not_get_its_own_work_again(store: Store, harness: Harness) -> None:
    await put(store, PutWork(RUN, due_at=0))
    lease = harness.clock.instant + 10
    assert names(await store.claim(WorkKind.RUN, "b1", lease, 5)) == ["run1"]
    assert await store.claim(WorkKind.RUN, "b1", lease, 5) == ()


async def test_a_lease_that_ran_out_is_taken_over_under_the_next_token(
    store: Store, harness: Harness
) -> None:
    """S2: the work of a broker that died is taken up within a bounded time."""
    await put(store, PutWork(RUN, due_at=0))
    (first,) = await store.claim(WorkKind.RUN, "b1", harness.clock.instant + 10, 5)
    harness.clock.advance(9)
    assert await store.claim(WorkKind.RUN, "b2", harness.clock.instant + 10, 5) == ()
    harness.clock.advance(1)
    (second,) = await store.claim(WorkKind.RUN, "b2", harness.clock.instant + 10, 5)
    assert (first.token, second.token) == (1, 2)


async def test_work_born_claimed_is_held_from_the_start(store: Store, harness: Harness) -> None:
    now = harness.clock.instant
    await put(store, PutWork(RUN, due_at=now, token=1, owner="b1", lease_until=now + 10))
    assert await store.claim(WorkKind.RUN, "b2", now + 99, 5) == ()
    harness.clock.advance(10)
    (taken,) = await store.claim(WorkKind.RUN, "b2", now + 99, 5)
    assert taken.token == 2


async def test_a_lease_that_ends_does_not_make_work_due_early(
    store: Store, harness: Harness
) -> None:
    """R6: a retry waits for its pause, whoever held the run before."""
    now = harness.clock.instant
    await put(store, PutWork(RUN, due_at=now + 50, owner="b1", lease_until=now + 10))
    harness.clock.advance(49)
    assert await store.claim(WorkKind.RUN, "b2", now + 99, 5) == ()
    harness.clock.advance(1)
    assert names(await store.claim(WorkKind.RUN, "b2", now + 99, 5)) == ["run1"]


async def test_the_longest_due_comes_first_up_to_the_limit(store: Store, harness: Harness) -> None:
    await put(store, *(PutWork(run(f"r{due}"), due_at=due) for due in (30, 10, 50, 20, 40)))
    lease = harness.clock.instant + 10
    assert names(await store.claim(WorkKind.RUN, "b1", lease, 2)) == ["r10", "r20"]
    assert names(await store.claim(WorkKind.RUN, "b1", lease, 9)) == ["r30", "r40", "r50"]


async def test_kinds_and_tenants_do_not_mix(store: Store, harness: Harness) -> None:
    timer = WorkKey(WorkKind.TIMER, S, "run1")
    theirs = WorkKey(WorkKind.RUN, SessionKey("umbra", "s1"), "run1")
    await put(store, PutWork(RUN, 1), PutWork(timer, 2, payload=b"t"), PutWork(theirs, 3))
    lease = harness.clock.instant + 10
    assert await store.claim(WorkKind.TIMER, "b1", lease, 5) == (Work(timer, 2, 1, b"t"),)
    taken = await store.claim(WorkKind.RUN, "b1", lease, 5)
    assert [work.work for work in taken] == [RUN, theirs]


async def test_put_replaces_the_whole_row_and_delete_removes_it(
    store: Store, harness: Harness
) -> None:
    lease = harness.clock.instant + 10
    await put(store, PutWork(RUN, due_at=0, payload=b"old"))
    await store.claim(WorkKind.RUN, "b1", lease, 5)
    await put(store, PutWork(RUN, due_at=7, token=1, payload=b"new"))
    assert await store.renew("b1", [RUN], lease) == set()
    assert await store.claim(WorkKind.RUN, "b2", lease, 5) == (Work(RUN, 7, 2, b"new"),)
    await store.commit(Write(effects=(DeleteWork(RUN),)))
    harness.clock.advance(99)
    assert await store.claim(WorkKind.RUN, "b2", lease, 5) == ()
    await store.commit(Write(effects=(DeleteWork(RUN),)))  # deleting what is gone is no error


async def test_renew_prolongs_what_is_still_held_and_names_it(
    store: Store, harness: Harness
) -> None:
    now = harness.clock.instant
    await put(store, *(PutWork(run(name), due_at=0) for name in ("kept", "taken", "deleted")))
    await store.claim(WorkKind.RUN, "b1", now + 10, 5)
    await store.commit(Write(effects=(DeleteWork(run("deleted")),)))
    harness.clock.advance(10)
    assert await store.renew("b1", [run("kept")], now + 100) == {run("kept")}  # late, not too late
    assert names(await store.claim(WorkKind.RUN, "b2", now + 100, 5)) == ["taken"]
    asked = [run("kept"), run("taken"), run("deleted"), run("never")]
    assert await store.renew("b1", asked, now + 100) == {run("kept")}
    harness.clock.advance(89)
    assert await store.claim(WorkKind.RUN, "b3", now + 200, 5) == ()
    harness.clock.advance(1)
    assert names(await store.claim(WorkKind.RUN, "b3", now + 200, 5)) == ["kept", "taken"]


async def test_next_due_is_the_instant_at_which_a_claim_would_find_something(
    store: Store, harness: Harness
) -> None:
    now = harness.clock.instant
    assert await store.next_due(WorkKind.RUN) is None
    await put(store, PutWork(run("a"), due_at=now + 70), PutWork(run("b"), due_at=now + 40))
    assert await store.next_due(WorkKind.RUN) == now + 40
    assert await store.next_due(WorkKind.TIMER) is None
    harness.clock.advance(40)
    await store.claim(WorkKind.RUN, "b1", now + 60, 1)
    assert await store.next_due(WorkKind.RUN) == now + 60
    await store.renew("b1", [run("b")], now + 90)
    assert await store.next_due(WorkKind.RUN) == now + 70


async def test_a_claim_of_nothing_is_refused(store: Store) -> None:
    with pytest.raises(ValueError, match="limit"):
        await store.claim(WorkKind.RUN, "b1", 1, 0)


async def test_the_clock_never_runs_backwards(store: Store, harness: Harness) -> None:
    """I4: deadlines are judged by it."""
    before = store.now()
    harness.clock.advance(-500)
    assert store.now() == before
    harness.clock.advance(600)
    assert store.now() == before + 100


@pytest.mark.parametrize("kind", list(WorkKind))
async def test_each_kind_is_claimed_by_itself(
    store: Store, harness: Harness, kind: WorkKind
) -> None:
    await put(store, *(PutWork(WorkKey(each, S, "same/id"), 5) for each in WorkKind))
    lease = harness.clock.instant + 10
    assert await store.claim(kind, "b1", lease, 5) == (
        Work(WorkKey(kind, S, "same/id"), due_at=5, token=1, payload=b""),
    )
    for each in WorkKind:
        assert await store.next_due(each) == (lease if each is kind else 5)
