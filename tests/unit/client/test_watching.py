"""A watch survives what happens to streams, and loses or doubles no event (W1, W2, W4)."""

from __future__ import annotations

import asyncio

import grpc
import pytest

from tests.unit.client.fake_broker import Failure, FakeBroker, Watch, frame, serving
from tests.unit.client.logs import Log, answered_session
from turngate.v1 import broker_pb2 as pb
from turngate.v1.event_pb2 import SessionDeleted, SessionEvent
from turngate.v1.session_pb2 import Session
from turngate_client import RetryPolicy, SessionWatch, TurngateClient, TurngateError
from turngate_client.connection import Connection
from turngate_client.watching import SILENCE

QUICK = RetryPolicy(timeout=5.0, first_pause=0.001, longest_pause=0.01)
LOG = answered_session().events


def watch_of(
    broker: FakeBroker,
    request: pb.WatchSessionRequest,
    *,
    policy: RetryPolicy = QUICK,
    silence: float = SILENCE,
) -> SessionWatch:
    connection = Connection(broker.address, user="", client_name="", credentials=None, retry=QUICK)
    return SessionWatch(connection.stub.WatchSession, request, policy=policy, silence=silence)


async def positions(watch: SessionWatch, count: int) -> list[int]:
    """The positions of the next events."""
    found: list[int] = []
    async with asyncio.timeout(10):
        while len(found) < count:
            found.append((await anext(aiter(watch))).position)
    return found


def at(*numbers: int) -> list[SessionEvent]:
    return [LOG[number - 1] for number in numbers]


BREAKS = [
    Failure(grpc.StatusCode.UNAVAILABLE, "SHUTTING_DOWN", metadata={"cursor": "x-99"}),
    Failure(grpc.StatusCode.UNAVAILABLE),
    Failure(grpc.StatusCode.INTERNAL),
    Failure(grpc.StatusCode.UNKNOWN),
    Failure(grpc.StatusCode.CANCELLED),
    Failure(grpc.StatusCode.RESOURCE_EXHAUSTED, "WATCH_TOO_SLOW", metadata={"cursor": "x-99"}),
]


@pytest.mark.parametrize("broken", BREAKS, ids=lambda one: f"{one.code.name}-{one.reason}")
async def test_W1_a_watch_resumes_from_its_last_frame(broken: Failure) -> None:
    watches: list[Watch] = [
        ([frame("x-2", at(1, 2)), frame("x-3", at(3))], broken),
        ([frame("x-5", at(4, 5))], None),
    ]
    async with serving(FakeBroker(watches=watches)) as broker:
        async with watch_of(broker, pb.WatchSessionRequest(session_id="s-1")) as watch:
            assert await positions(watch, 5) == [1, 2, 3, 4, 5]
        assert [one.after for one in broker.watch_requests] == ["", "x-3"]


async def test_W1_events_that_come_again_are_given_once() -> None:
    watches: list[Watch] = [
        ([frame("x-3", at(1, 2, 3))], BREAKS[1]),
        ([frame("x-4", at(2, 3, 4)), frame("x-4b", at(3, 4)), frame("x-6", at(5, 6))], None),
    ]
    async with (
        serving(FakeBroker(watches=watches)) as broker,
        watch_of(broker, pb.WatchSessionRequest(session_id="s-1")) as watch,
    ):
        assert await positions(watch, 6) == [1, 2, 3, 4, 5, 6]


async def test_W1_many_breaks_in_a_row_and_frames_without_events() -> None:
    watches: list[Watch] = [
        ([], BREAKS[1]),
        ([frame("x-1", at(1))], BREAKS[1]),
        ([frame("x-1b")], BREAKS[2]),
        ([], BREAKS[3]),
        ([frame("x-2", at(2))], None),
    ]
    async with serving(FakeBroker(watches=watches)) as broker:
        async with watch_of(broker, pb.WatchSessionRequest(session_id="s-1")) as watch:
            assert await positions(watch, 2) == [1, 2]
        assert [one.after for one in broker.watch_requests] == ["", "", "x-1", "x-1b", "x-1b"]


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (grpc.StatusCode.INVALID_ARGUMENT, "CURSOR_INVALID"),
        (grpc.StatusCode.INVALID_ARGUMENT, "CURSOR_FOREIGN"),
        (grpc.StatusCode.OUT_OF_RANGE, "CURSOR_FUTURE"),
        (grpc.StatusCode.NOT_FOUND, "SESSION_NOT_FOUND"),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, "LIMIT_EXCEEDED"),
    ],
)
async def test_W2_what_a_resume_cannot_mend_is_raised_by_name(
    code: grpc.StatusCode, reason: str
) -> None:
    watches: list[Watch] = [([frame("x-1", at(1))], Failure(code, reason))]
    async with (
        serving(FakeBroker(watches=watches)) as broker,
        watch_of(broker, pb.WatchSessionRequest(session_id="s-1", after="x-0")) as watch,
    ):
        assert await positions(watch, 1) == [1]
        with pytest.raises(TurngateError) as caught:
            await positions(watch, 1)
    assert caught.value.reason == reason


async def test_a_broker_that_stays_away_ends_the_watch_with_its_error() -> None:
    policy = RetryPolicy(timeout=0.2, first_pause=0.01, longest_pause=0.02)
    gone: list[Watch] = [([], Failure(grpc.StatusCode.UNAVAILABLE, "STORE_UNAVAILABLE"))]
    async with serving(FakeBroker(watches=gone * 100)) as broker:
        watch = watch_of(broker, pb.WatchSessionRequest(session_id="s-1"), policy=policy)
        with pytest.raises(TurngateError, match="STORE_UNAVAILABLE"):
            await positions(watch, 1)
        assert len(broker.watch_requests) > 2


async def test_a_silent_connection_is_taken_for_dead_and_replaced() -> None:
    watches: list[Watch] = [([frame("x-1", at(1))], None), ([frame("x-2", at(2))], None)]
    broker = FakeBroker(watches=watches[:1])
    async with serving(broker):
        async with watch_of(broker, pb.WatchSessionRequest(session_id="s-1"), silence=0.1) as watch:
            assert await positions(watch, 1) == [1]
            broker.watches.append(watches[1])
            assert await positions(watch, 1) == [2]
        assert [one.after for one in broker.watch_requests] == ["", "x-1"]


async def test_a_watch_ends_after_the_session_was_deleted() -> None:
    log = Log()
    log.add(session_deleted=SessionDeleted())
    watches: list[Watch] = [([frame("x-2", log.events)], Failure(grpc.StatusCode.UNAVAILABLE))]
    async with (
        serving(FakeBroker(watches=watches)) as broker,
        watch_of(broker, pb.WatchSessionRequest(session_id="s-1")) as watch,
    ):
        async with asyncio.timeout(10):
            assert [event.position async for event in watch] == [1, 2]
    assert watch.cursor == "x-2"


async def test_the_cursor_never_passes_an_event_that_was_not_handed_out() -> None:
    watches: list[Watch] = [([frame("x-2", at(1, 2)), frame("x-3", at(3))], None)]
    async with (
        serving(FakeBroker(watches=watches)) as broker,
        watch_of(broker, pb.WatchSessionRequest(session_id="s-1", after="x-0")) as watch,
    ):
        assert await positions(watch, 1) == [1]
        assert watch.cursor == "x-0", "event 2 would be lost otherwise"
        assert await positions(watch, 2) == [2, 3]
        assert watch.cursor == "x-2"


async def test_W2_a_broken_snapshot_is_asked_for_again_from_its_start() -> None:
    first = pb.SessionSnapshot(session=Session(id="s-1"))
    last = pb.SessionSnapshot(complete=True)
    begun = pb.WatchSessionResponse(snapshot=first, cursor="half")
    done = pb.WatchSessionResponse(snapshot=last, cursor="x-9", live=True)
    watches: list[Watch] = [([begun], BREAKS[1]), ([begun, done], BREAKS[1]), ([], None)]
    async with serving(FakeBroker(watches=watches)) as broker:
        request = pb.WatchSessionRequest(session_id="s-1", snapshot=True)
        watch = watch_of(broker, request)
        frames = watch.frames()
        for _ in range(3):
            await asyncio.wait_for(anext(frames), 10)
        waiting = asyncio.ensure_future(anext(frames))
        for _ in range(3):
            await asyncio.wait_for(broker.watched.acquire(), 10)
        await watch.aclose()
        with pytest.raises(StopAsyncIteration):
            await waiting
        assert [(one.after, one.snapshot) for one in broker.watch_requests] == [
            ("", True),
            ("", True),
            ("x-9", False),
        ]


async def test_closing_ends_a_reader_in_another_task() -> None:
    async with serving(FakeBroker(watches=[([], None)])) as broker:
        watch = watch_of(broker, pb.WatchSessionRequest(session_id="s-1"))
        reader = asyncio.ensure_future(anext(aiter(watch)))
        await asyncio.wait_for(broker.watched.acquire(), 10)
        await watch.aclose()
        with pytest.raises(StopAsyncIteration):
            await asyncio.wait_for(reader, 10)


async def test_a_client_that_is_closed_ends_its_watches_by_name() -> None:
    async with serving(FakeBroker(watches=[([], None)])) as broker:
        client = TurngateClient(broker.address)
        reader = asyncio.ensure_future(anext(aiter(client.session("s-1").watch())))
        await asyncio.wait_for(broker.watched.acquire(), 10)
        await client.close()
        with pytest.raises(TurngateError, match="client was closed"):
            await asyncio.wait_for(reader, 10)
