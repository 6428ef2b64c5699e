"""PostgreSQL's own: brokers that die, a database that goes away, connections that break."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import TypeVar, cast

import pytest

from broker_service.storage import postgres_connect
from broker_service.storage.port import (
    SessionKey,
    StoreUnavailable,
    VersionConflict,
    WorkKind,
    Write,
)
from broker_service.storage.postgres import PostgresStore, migrate, open_postgres
from broker_service.storage.postgres_connect import back_off, open_connection
from broker_service.storage.postgres_driver import Connection
from broker_service.storage.postgres_group import Group
from tests.contract.crash import check_what_is_left, child, kill_after
from tests.contract.postgres_server import PostgresServer, ask, start
from tests.contract.recorder import DEADLINE_S, Recorder
from tests.contract.samples import OTHER, S, event, everything, row, texts, write

T = TypeVar("T")


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """One of its own: it is stopped, and its connections are broken."""
    server = start()
    yield server
    server.control("stop")


@pytest.fixture
async def url(server: PostgresServer) -> str:
    url = server.new_schema()
    await migrate(url)
    return url


@pytest.fixture
async def one(url: str) -> AsyncIterator[PostgresStore]:
    store = await open_postgres(url)
    yield store
    await store.close()


@pytest.fixture
async def two(url: str) -> AsyncIterator[PostgresStore]:
    store = await open_postgres(url)
    yield store
    await store.close()


async def until_available(ask_once: Callable[[], Awaitable[T]]) -> T:
    """Ask until the store can be reached again; fails by name."""
    for _ in range(int(DEADLINE_S / 0.05)):
        try:
            return await ask_once()
        except StoreUnavailable:
            await back_off(0.05)
    raise AssertionError("the store did not recover in time")


def break_all_connections(server: PostgresServer) -> None:
    ask(
        server.url,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE application_name = 'turngate'",
    )


async def append(store: PostgresStore, session: SessionKey, text: str) -> None:
    """As a broker does it: whatever came in between, load and decide again."""

    async def once() -> None:
        loaded = await store.load(session)
        if loaded is not None and text.encode() in [entry.payload for entry in loaded.events]:
            return
        await store.commit(write(event(text), session=session, at=loaded.version if loaded else 0))

    for _ in range(100):
        try:
            await until_available(once)
        except VersionConflict:
            continue
        return
    raise AssertionError("never stored")


@pytest.mark.parametrize("acknowledged", [1, 200])
async def test_after_kill_9_of_a_broker_the_other_goes_on_with_its_sessions(
    url: str, one: PostgresStore, acknowledged: int
) -> None:
    """E4, S2"""
    with child("tests.contract.postgres_child", url) as process:
        newest = kill_after(process, acknowledged)
    await check_what_is_left(one, newest)


async def test_broken_connections_come_back_by_themselves(
    server: PostgresServer, one: PostgresStore, two: PostgresStore
) -> None:
    recorder = Recorder()
    two.listen(recorder)
    await append(one, S, "before")
    await two.last_position(S)
    for n in range(3):
        break_all_connections(server)
        await append(one, S, f"{n}")
        assert await until_available(lambda: two.last_position(S)) == n + 2
    await recorder.until_at(S, 4)
    assert texts(await everything(one)) == ["before", "0", "1", "2"]
    await append(two, S, "after")
    await recorder.until_at(S, 5)
    assert recorder.positions(S) == sorted(set(recorder.positions(S)))


async def test_a_database_that_is_away_is_named_and_comes_back(
    server: PostgresServer, one: PostgresStore, two: PostgresStore
) -> None:
    """Everything fails by name while it is away; afterwards all goes on where it was."""
    recorder = Recorder()
    two.listen(recorder)
    await append(one, S, "before")
    await recorder.until_at(S, 1)
    server.control("down")
    for _ in range(2):
        with pytest.raises(StoreUnavailable):
            await one.commit(write(event("lost"), at=1))
        with pytest.raises(StoreUnavailable):
            await one.last_position(S)
        with pytest.raises(StoreUnavailable):
            await one.claim(WorkKind.RUN, "b1", one.now() + 1, 1)
    before = one.now()
    server.control("up")
    await append(one, S, "after")
    await append(two, OTHER, "too")
    assert one.now() >= before
    await recorder.until_at(S, 2)
    assert texts(await everything(two)) == ["before", "after"]


async def test_what_was_acknowledged_survives_a_crash_of_the_database(
    server: PostgresServer, one: PostgresStore
) -> None:
    """E4; and of what was not, each write is whole or not there."""
    acknowledged: list[tuple[SessionKey, str]] = []
    enough = asyncio.Event()

    async def write_until_it_fails(session: SessionKey) -> None:
        version = 0
        while True:
            await one.commit(write(event(f"{version}"), event("b"), session=session, at=version))
            acknowledged.append((session, f"{version}"))
            version += 2
            if len(acknowledged) > 200:
                enough.set()

    sessions = [SessionKey("acme", f"w{n}") for n in range(8)]
    tasks = [asyncio.create_task(write_until_it_fails(session)) for session in sessions]
    async with asyncio.timeout(DEADLINE_S):
        await enough.wait()
    await asyncio.to_thread(server.control, "restart")
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert {type(outcome) for outcome in outcomes} == {StoreUnavailable}
    await until_available(lambda: one.last_position(S))
    for session in sessions:
        log = texts(await everything(one, session))
        told = [text for key, text in acknowledged if key == session]
        assert log[0::2][: len(told)] == told
        assert log[1::2] == ["b"] * len(log[0::2])


class Cut:
    """A connection that breaks when it has passed on a COMMIT: before the answer is there."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def __getattr__(self, name: str) -> object:
        return getattr(self._connection, name)

    async def execute(self, query: str, *values: object) -> str:
        done = await self._connection.execute(query, *values)
        if query == "COMMIT":
            self._connection.terminate()
            raise ConnectionResetError("cut by the test")
        return done


async def test_a_commit_whose_answer_is_lost_is_unavailable_and_still_heard_of(
    one: PostgresStore,
) -> None:
    """Its caller loads again; watchers miss nothing of what is in the log (W1)."""
    recorder = Recorder()
    one.listen(recorder)
    one._writer._connection = cast(Connection, Cut(one._writer._connection))
    with pytest.raises(StoreUnavailable):
        await one.commit(write(event("in doubt")))
    await recorder.until_at(S, 1)
    assert recorder.calls == [(S, 1, ())]
    await append(one, S, "in doubt")  # found when it is loaded: not stored twice
    await append(one, S, "next")
    assert texts(await everything(one)) == ["in doubt", "next"]
    assert recorder.positions(S) == [1, 2]


async def test_what_was_committed_while_nobody_listened_is_told_afterwards(
    one: PostgresStore, two: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W1: also of a session that this replica never heard of before."""
    recorder = Recorder()
    two.listen(recorder)
    await append(one, S, "before")
    await recorder.until_at(S, 1)
    recorder.calls.clear()
    again = asyncio.Event()
    tried = asyncio.Event()
    connect_once = two._listener._connect_once

    async def held_up() -> Connection:
        tried.set()
        await again.wait()
        return await connect_once()

    monkeypatch.setattr(two._listener, "_connect_once", held_up)
    # Only the connection that listens; the others of this replica stay.
    ask(
        one_url(two),
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE application_name = 'turngate' AND query LIKE '%clock_timestamp%'",
    )
    async with asyncio.timeout(DEADLINE_S):
        await tried.wait()
    await append(one, S, "missed")
    await append(one, OTHER, "missed, too")
    assert recorder.calls == []
    again.set()
    await recorder.until(lambda: len(recorder.calls) >= 2, "what was missed")
    assert sorted(recorder.calls) == [(S, 2, ()), (OTHER, 1, ())]
    await append(one, OTHER, "heard")
    await recorder.until_at(OTHER, 2)


def one_url(store: PostgresStore) -> str:
    return store._pool._url


async def test_the_locks_of_a_broker_that_stalls_are_taken_from_it(
    url: str, one: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S2: one that is stopped in the middle of a commit holds up nobody for long."""
    await append(one, S, "before")
    settings = {**postgres_connect.SETTINGS, "idle_in_transaction_session_timeout": "300"}
    monkeypatch.setattr(postgres_connect, "SETTINGS", settings)
    stalled = await open_connection(url)
    await stalled.execute("BEGIN")
    await stalled.execute("SELECT * FROM sessions FOR UPDATE")
    async with asyncio.timeout(DEADLINE_S):
        await one.commit(write(event("after"), at=1))
    stalled.terminate()


async def test_each_connection_may_stall_in_a_transaction_for_a_moment_only(
    one: PostgresStore,
) -> None:
    allowed = await one._writer._connection.fetchval("SHOW idle_in_transaction_session_timeout")
    assert allowed == "5s"


async def test_a_value_that_no_index_takes_fails_alone(one: PostgresStore) -> None:
    """Writes beside it in the same group are stored."""
    long = "".join(chr(0x4E00 + n * 7919 % 20_000) for n in range(9_000))
    outcomes = await asyncio.gather(
        one.commit(write(event("a"))),
        one.commit(Write(effects=(row("s9", 1, labels=(("note", long),)),))),
        one.commit(write(event("b"), session=OTHER)),
        return_exceptions=True,
    )
    assert isinstance(outcomes[1], ValueError)
    assert texts(await everything(one)) == ["a"]
    assert texts(await everything(one, OTHER)) == ["b"]
    assert await one.find_session(SessionKey("acme", "s9")) is None


async def test_after_a_defect_of_the_writer_nobody_waits_for_ever(
    one: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(group: Group, write: Write) -> None:
        raise LookupError("a defect")

    monkeypatch.setattr(Group, "take", broken)
    for _ in range(2):
        with pytest.raises(StoreUnavailable, match="stopped writing"):
            await one.commit(write(event()))


async def test_a_store_can_be_closed_while_the_database_is_away(server: PostgresServer) -> None:
    url = server.new_schema()
    store = await open_postgres(url, migrate=True)
    await store.commit(write(event()))
    server.control("down")
    try:
        with pytest.raises(StoreUnavailable):
            await store.commit(write(event(), at=1))
        async with asyncio.timeout(DEADLINE_S):
            await store.close()
    finally:
        server.control("up")
