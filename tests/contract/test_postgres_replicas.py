"""PostgreSQL's own: two brokers on one store."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from broker_service.storage.port import (
    Append,
    Committed,
    FenceLost,
    PutWork,
    RecordedRequest,
    RememberRequest,
    RequestAlreadyRecorded,
    SessionKey,
    VersionConflict,
    WorkKey,
    WorkKind,
    Write,
)
from broker_service.storage.postgres import PostgresStore, open_postgres
from tests.contract.postgres_server import PostgresServer
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

SESSIONS = [SessionKey("acme", f"s{n}") for n in range(20)]


@pytest.fixture
def url(postgres: PostgresServer) -> str:
    return postgres.new_schema()


@pytest.fixture
async def one(url: str) -> AsyncIterator[PostgresStore]:
    store = await open_postgres(url, migrate=True)
    yield store
    await store.close()


@pytest.fixture
async def two(url: str, one: PostgresStore) -> AsyncIterator[PostgresStore]:
    store = await open_postgres(url)
    yield store
    await store.close()


async def test_of_writers_on_two_replicas_one_wins_a_version(
    one: PostgresStore, two: PostgresStore
) -> None:
    for version in range(5):
        outcomes = await asyncio.gather(
            *(
                store.commit(write(event(f"{version}/{n}"), session=session, at=version))
                for n in range(4)
                for session in SESSIONS
                for store in (one, two)
            ),
            return_exceptions=True,
        )
        assert sum(isinstance(outcome, Committed) for outcome in outcomes) == 20
        assert sum(isinstance(outcome, VersionConflict) for outcome in outcomes) == 140
    for session in SESSIONS:
        entries = await everything(one, session)
        assert [entry.position for entry in entries] == [1, 2, 3, 4, 5]
        assert entries == await everything(two, session)


async def test_writes_over_the_same_sessions_in_any_order_end(
    one: PostgresStore, two: PostgresStore
) -> None:
    """Locks are taken in one order by all: no deadlock, all or nothing."""
    pairs = [(SESSIONS[n], SESSIONS[(n + step) % 20]) for n in range(20) for step in (1, 7, 19)]
    outcomes: list[Committed | BaseException] = []
    for at in range(3):
        outcomes += await asyncio.gather(
            *(
                store.commit(
                    Write(
                        tuple(Append(key, (event(f"{at}/{n}/{name}"),), at) for key in (a, b)),
                        effects=(row(a.session_id, n), row(b.session_id, n)),
                    )
                )
                for n, (a, b) in enumerate(pairs)
                for name, store in (("one", one), ("two", two))
            ),
            return_exceptions=True,
        )
    assert {type(outcome) for outcome in outcomes} == {Committed, VersionConflict}
    stored = [text for session in SESSIONS for text in texts(await everything(one, session))]
    assert len(stored) == 2 * len(set(stored))  # each in both of its sessions


async def test_a_session_that_two_create_at_once_is_created_once(
    one: PostgresStore, two: PostgresStore
) -> None:
    for n in range(20):
        session = SessionKey("acme", f"new{n}")
        outcomes = await asyncio.gather(
            *(store.commit(write(event(), session=session)) for store in (one, two)),
            return_exceptions=True,
        )
        assert {type(outcome) for outcome in outcomes} == {Committed, VersionConflict}


async def test_a_request_that_two_remember_at_once_is_remembered_once(
    one: PostgresStore, two: PostgresStore
) -> None:
    """E1: a client that repeats a request at another broker."""
    for n in range(20):
        key = REQUEST._replace(request_id=f"r{n}")
        outcomes = await asyncio.gather(
            *(
                store.commit(Write(effects=(RememberRequest(key, b"f", name),)))
                for name, store in ((b"one", one), (b"two", two))
            ),
            return_exceptions=True,
        )
        assert {type(outcome) for outcome in outcomes} == {Committed, RequestAlreadyRecorded}
        winner = b"one" if isinstance(outcomes[0], Committed) else b"two"
        assert await one.find_request(key) == RecordedRequest(b"f", winner)


async def test_a_repeated_request_is_told_as_that_by_the_other_replica(
    one: PostgresStore, two: PostgresStore
) -> None:
    """Both with the same version: the ledger is looked at first."""
    for version in range(20):
        key = REQUEST._replace(request_id=f"r{version}")
        outcomes = await asyncio.gather(
            *(
                store.commit(
                    write(event(), at=version, effects=(RememberRequest(key, b"f", b"r"),))
                )
                for store in (one, two)
            ),
            return_exceptions=True,
        )
        assert {type(outcome) for outcome in outcomes} == {Committed, RequestAlreadyRecorded}


async def test_the_other_replica_is_woken_without_entries(
    one: PostgresStore, two: PostgresStore
) -> None:
    heard = Recorder()
    two.listen(heard)
    await one.commit(write(event("a"), event("b")))
    await one.commit(Write((Append(S, (event(),), 2), Append(OTHER, (event(),), 0))))
    await heard.until(lambda: len(heard.calls) >= 3, "two commits")
    assert heard.positions(OTHER) == [1]
    assert heard.positions(S) == [2, 3]
    assert all(entries == () for _, _, entries in heard.calls)
    assert [e.position for e in await two.read(S, 0, 10, 1_000)] == [1, 2, 3]


async def test_a_commit_of_very_many_sessions_wakes_for_each(
    one: PostgresStore, two: PostgresStore
) -> None:
    """More than one notification can name."""
    heard = Recorder()
    two.listen(heard)
    keys = [SessionKey("acme", f"{n:04}" + "é" * 40) for n in range(500)]
    await one.commit(Write(tuple(Append(key, (event(),), 0) for key in keys)))
    await heard.until(lambda: len(heard.calls) >= 500, "500 sessions")
    assert sorted(heard.calls) == [(key, 1, ()) for key in keys]


async def test_listeners_hear_in_order_when_two_replicas_write_one_session(
    one: PostgresStore, two: PostgresStore
) -> None:
    """W1: by position, own entries once, and nothing is left out."""
    recorders = {one: Recorder(), two: Recorder()}
    for store, recorder in recorders.items():
        store.listen(recorder)
    own: dict[PostgresStore, list[int]] = {one: [], two: []}

    async def append(store: PostgresStore) -> None:
        for n in range(60):
            while True:
                loaded = await store.load(S)
                try:
                    done = await store.commit(
                        write(event(f"{n}"), at=loaded.version if loaded else 0)
                    )
                except VersionConflict:
                    continue
                own[store].append(done.entries[0][0].position)
                break

    await asyncio.gather(append(one), append(two))
    assert sorted([*own[one], *own[two]]) == list(range(1, 121))
    for store, recorder in recorders.items():
        await recorder.until_at(S, 120)
        positions = recorder.positions(S)
        assert positions == sorted(set(positions))
        with_entries = [entry.position for *_, entries in recorder.calls for entry in entries]
        assert with_entries == own[store]
        # Own entries are never told before what comes before them.
        known = 0
        for _, position, entries in recorder.calls:
            assert not entries or entries[0].position == known + 1
            known = position


async def test_two_replicas_never_claim_the_same_work(
    one: PostgresStore, two: PostgresStore
) -> None:
    works = [WorkKey(WorkKind.RUN, S, f"r{n:03}") for n in range(200)]
    await one.commit(Write(effects=tuple(PutWork(work, due_at=n) for n, work in enumerate(works))))
    lease = one.now() + 60_000
    claims = await asyncio.gather(
        *(store.claim(WorkKind.RUN, f"b{n}", lease, 7) for n in range(20) for store in (one, two))
    )
    taken = [work.work for claimed in claims for work in claimed]
    assert sorted(taken) == works
    assert all(work.token == 1 for claimed in claims for work in claimed)


async def test_a_claim_does_not_wait_for_what_another_is_writing(
    one: PostgresStore, two: PostgresStore
) -> None:
    """G5, S2: SKIP LOCKED."""
    busy, free = WorkKey(WorkKind.RUN, S, "busy"), WorkKey(WorkKind.RUN, OTHER, "free")
    await one.commit(Write(effects=(PutWork(busy, due_at=0), PutWork(free, due_at=1))))
    async with one._pool.connection() as connection:
        await connection.execute("BEGIN")
        await connection.execute("SELECT * FROM work WHERE work_id = 'busy' FOR UPDATE")
        async with asyncio.timeout(5):
            claimed = await two.claim(WorkKind.RUN, "b2", two.now() + 10_000, 9)
        await connection.execute("COMMIT")
    assert [work.work for work in claimed] == [free]


async def test_a_lease_taken_over_by_the_other_replica_fences_the_first(
    one: PostgresStore, two: PostgresStore
) -> None:
    """R3, S2"""
    await one.commit(write(event("a"), effects=(held("b1", 1, lease_until=one.now()),)))
    await one.commit(write(delta("b"), at=None, fence=fence("b1", 1)))
    (taken,) = await two.claim(WorkKind.RUN, "b2", two.now() + 60_000, 5)
    assert (taken.work, taken.token) == (RUN, 2)
    with pytest.raises(FenceLost):
        await one.commit(write(delta("late"), at=None, fence=fence("b1", 1)))
    await two.commit(write(delta("c"), at=None, fence=fence("b2", 2)))
    assert texts(await everything(one)) == ["a", "b", "c"]


async def test_both_read_the_database_clock(one: PostgresStore, two: PostgresStore) -> None:
    """I4: one clock for all replicas."""
    async with one._pool.connection() as connection:
        for store in (one, two):
            before = store.now()
            theirs: int = await connection.fetchval(
                "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint"
            )
            assert before - 250 <= theirs <= store.now() + 250  # half a slow round trip
