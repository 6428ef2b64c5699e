"""Many at once: one winner a version, and nobody pays for another's refusal."""

import asyncio

import pytest

from broker_service.storage.port import (
    Append,
    Committed,
    FenceLost,
    PutWork,
    SessionKey,
    Store,
    StoreUnavailable,
    VersionConflict,
    WorkKind,
    Write,
)
from tests.contract.harness import Harness
from tests.contract.samples import RUN, S, delta, event, everything, fence, held, texts, write

SESSIONS = [SessionKey("acme", f"s{n}") for n in range(20)]


async def test_of_ten_writers_a_version_exactly_one_wins(store: Store) -> None:
    """200 commits over 20 sessions, for five versions."""
    for version in range(5):
        outcomes = await asyncio.gather(
            *(
                store.commit(write(event(f"{version}/{writer}"), session=session, at=version))
                for writer in range(10)
                for session in SESSIONS
            ),
            return_exceptions=True,
        )
        won = [outcome for outcome in outcomes if isinstance(outcome, Committed)]
        lost = [outcome for outcome in outcomes if isinstance(outcome, VersionConflict)]
        assert (len(won), len(lost)) == (20, 180)
        assert {conflict.session for conflict in lost} == set(SESSIONS)
    for session in SESSIONS:
        entries = await everything(store, session)
        assert [entry.position for entry in entries] == [1, 2, 3, 4, 5]
        assert [text.split("/")[0] for text in texts(entries)] == ["0", "1", "2", "3", "4"]


async def test_writes_over_the_same_sessions_in_any_order_are_whole(store: Store) -> None:
    """All or nothing over several sessions, while others write to them."""
    pairs = [(SESSIONS[n], SESSIONS[(n + step) % 20]) for n in range(20) for step in (1, 7, 19)]
    outcomes = await asyncio.gather(
        *(
            store.commit(Write((Append(a, (event(f"{n}"),), 0), Append(b, (event(f"{n}"),), 0))))
            for n, (a, b) in enumerate(pairs)
        ),
        return_exceptions=True,
    )
    won = {str(n) for n, outcome in enumerate(outcomes) if isinstance(outcome, Committed)}
    stored = [text for session in SESSIONS for text in texts(await everything(store, session))]
    assert len(won) > 1
    assert sorted(stored) == sorted([*won, *won])


async def test_refusals_do_not_touch_the_writes_beside_them(store: Store) -> None:
    """Good writes, conflicts, lost fences and impossible values, all in flight at once."""
    await store.commit(Write(effects=(held("b1", 1),)))
    impossible = Write(effects=(PutWork(RUN, due_at=2**70),))
    half_a_pair = write(event("x", node_id="\ud800"), session=SessionKey("acme", "bad"))
    pending = []
    for session in SESSIONS:
        pending += [
            store.commit(write(event("good"), session=session)),
            store.commit(write(event("no such version"), session=session, at=9)),
            store.commit(write(event("no such lease"), session=session, fence=fence("b2"))),
            store.commit(impossible),
            store.commit(half_a_pair),
        ]
    outcomes = await asyncio.gather(*pending, return_exceptions=True)
    kinds = [type(outcome) for outcome in outcomes]
    assert kinds[0::5] == [Committed] * 20
    assert kinds[1::5] == [VersionConflict] * 20
    assert kinds[2::5] == [FenceLost] * 20
    assert all(isinstance(outcome, (ValueError, OverflowError)) for outcome in outcomes[3::5])
    assert all(isinstance(outcome, ValueError) for outcome in outcomes[4::5])
    for session in SESSIONS:
        assert texts(await everything(store, session)) == ["good"]
    assert await store.last_position(SessionKey("acme", "bad")) is None
    assert await store.next_due(WorkKind.RUN) == 2_000_000  # as `held` left it


async def test_a_cancelled_caller_takes_nobody_along(store: Store) -> None:
    """Its write is stored whole or not at all; all others get their answer."""
    tasks = [
        asyncio.create_task(
            store.commit(write(event("a"), event("b"), session=SessionKey("acme", f"c{n}")))
        )
        for n in range(60)
    ]
    # All are handed to the store, none can be answered yet: answers come through the loop.
    started = asyncio.Event()
    asyncio.get_running_loop().call_soon(started.set)
    await started.wait()
    for task in tasks[::3]:
        task.cancel()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    for n, outcome in enumerate(outcomes):
        position = await store.last_position(SessionKey("acme", f"c{n}"))
        if n % 3:
            assert isinstance(outcome, Committed)
            assert position == 2
        else:
            assert isinstance(outcome, asyncio.CancelledError)
            assert position in (None, 2)
    await store.commit(write(event("after")))
    assert texts(await everything(store)) == ["after"]


async def test_a_cancelled_caller_is_heard_of_if_its_write_was_stored(store: Store) -> None:
    """W1: watchers miss nothing of what is in the log."""
    heard: list[int] = []
    store.listen(lambda session, position, entries: heard.append(position))
    await store.commit(write(event(), effects=(held(),)))
    for n in range(30):
        task = asyncio.create_task(store.commit(write(delta(str(n)), at=None, fence=fence())))
        started = asyncio.Event()
        asyncio.get_running_loop().call_soon(started.set)
        await started.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    last = await store.commit(write(event("last"), at=1))
    assert heard == list(range(1, last.entries[0][0].position + 1))


async def test_reads_go_on_while_much_is_written(store: Store) -> None:
    await store.commit(write(event("x" * 1_000)))

    async def fill(session: SessionKey) -> None:
        for version in range(20):
            await store.commit(write(*[event("y" * 200)] * 20, session=session, at=20 * version))

    writers = [asyncio.create_task(fill(SessionKey("acme", f"w{n}"))) for n in range(10)]
    reads = 0
    while not all(task.done() for task in writers):
        assert await store.last_position(S) == 1
        loaded = await store.load(SessionKey("acme", "w0"))
        if loaded is not None:  # one state of the log, never half of a commit
            assert loaded.version == len(loaded.events)
            assert loaded.version % 20 == 0
        reads += 1
    await asyncio.gather(*writers)
    assert reads > 1


async def test_close_finishes_what_is_being_written(harness: Harness) -> None:
    """E4"""
    store = await harness.open()
    pending = [
        asyncio.create_task(store.commit(write(event(), session=session))) for session in SESSIONS
    ]
    started = asyncio.Event()
    asyncio.get_running_loop().call_soon(started.set)
    await started.wait()
    await asyncio.gather(store.close(), store.close())
    assert len(await asyncio.gather(*pending)) == 20
    with pytest.raises(StoreUnavailable, match="closed"):
        await store.commit(write(event()))
    with pytest.raises(StoreUnavailable, match="closed"):
        await store.last_position(S)
    await store.close()  # once more is no error
    again = await harness.open()
    for session in SESSIONS:
        assert await again.last_position(session) == 1
    await again.close()
