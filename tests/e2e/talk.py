"""A session in a test: what is said in it, and waits for what comes of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import pytest
from grpc import aio
from grpc.aio import AioRpcError

from runner_service.agents.effects import wait_for_file
from turngate.v1 import run_pb2
from turngate.v1.broker_pb2 import WatchSessionRequest
from turngate.v1.event_pb2 import SessionEvent
from turngate.v1.interaction_pb2 import Interaction
from turngate.v1.session_pb2 import SessionConfig
from turngate_client import (
    FollowedSession,
    SessionClient,
    SessionView,
    TurngateClient,
    TurngateError,
)
from turngate_client.interactions import PlainJson
from turngate_client.session_view import RunView

T = TypeVar("T")

DEADLINE_SECONDS = 20.0
FINAL = (
    run_pb2.RUN_STATE_COMPLETED,
    run_pb2.RUN_STATE_FAILED,
    run_pb2.RUN_STATE_CANCELLED,
)
VISBY: PlainJson = {"action": "accept", "content": {"city": "Visby", "nights": 3}}


class Talk:
    """A session that is followed from its start."""

    def __init__(self, session: SessionClient, followed: FollowedSession) -> None:
        self.session = session
        self.followed = followed

    @property
    def id(self) -> str:
        """The session's id."""
        return self.session.id

    @property
    def view(self) -> SessionView:
        """What the events came to so far."""
        return self.followed.view

    async def until(self, predicate: Callable[[SessionView], T | None], what: str) -> T:
        """What the predicate finds. Fails by name after `DEADLINE_SECONDS`."""
        return await self.followed.until(predicate, DEADLINE_SECONDS, what)

    async def unplaced(self, run_id: str) -> None:
        """Until a run says that no runner takes it."""

        def found(view: SessionView) -> bool:
            return run_id in view.runs and view.runs[run_id].run.unplaced

        await self.until(found, f"run {run_id} to say that no runner takes it")

    async def start(self, text: str = "Go") -> str:
        """Send a message that enters at once; its run."""
        sent = await self.session.send(text)
        assert sent.run_id, f"held instead: {sent.held}"
        return sent.run_id

    async def parked(self, run_id: str) -> list[Interaction]:
        """What a run waits for once it is parked."""

        def found(view: SessionView) -> list[Interaction] | None:
            if state_of(view, run_id) != run_pb2.RUN_STATE_PARKED:
                return None
            return view.open_interactions(run_id)

        return await self.until(found, f"run {run_id} to park")

    async def start_parked(self, text: str = "Go") -> tuple[str, list[Interaction]]:
        """Send a message; its run once it is parked, and what it waits for."""
        run_id = await self.start(text)
        return run_id, await self.parked(run_id)

    async def ended(self, run_id: str) -> RunView:
        """The run once it is completed, failed or cancelled."""

        def found(view: SessionView) -> RunView | None:
            return view.runs[run_id] if state_of(view, run_id) in FINAL else None

        return await self.until(found, f"run {run_id} to end")

    async def completed(self, run_id: str) -> str:
        """The reply of a run, once it is completed: the text of all its messages."""
        run = (await self.ended(run_id)).run
        assert run.state == run_pb2.RUN_STATE_COMPLETED, run
        return self.view.text(run_id)

    async def text_came(self, run_id: str, text: str) -> None:
        """Until this text has come of a run that is being written."""
        await self.until(
            lambda view: run_id in view.runs and text in view.text(run_id),
            f"the text {text!r} of run {run_id}",
        )


@asynccontextmanager
async def talk(
    client: TurngateClient,
    agent: str,
    *,
    config: SessionConfig | None = None,
    participants: Iterable[str] = ("bob",),
) -> AsyncIterator[Talk]:
    """A new session of this agent, followed."""
    session = await client.create_session(agent=agent, config=config, participants=participants)
    async with session.follow() as followed:
        yield Talk(session, followed)


class Recorder:
    """A client of its own making that resumes by cursor: what came, with all repetitions.

    The client of the project leaves out what it has seen; this one would show it.
    """

    def __init__(self, client: TurngateClient, session_id: str) -> None:
        self.events: list[SessionEvent] = []
        self.cursor = ""
        self.breaks: list[AioRpcError] = []
        self._came = asyncio.Event()
        self._client = client
        self._session_id = session_id
        self._task = asyncio.create_task(self._record())

    async def _record(self) -> None:
        while True:
            request = WatchSessionRequest(session_id=self._session_id, after=self.cursor)
            try:
                async for frame in self._client.stub.WatchSession(request, wait_for_ready=True):
                    self.events.extend(frame.events)
                    self.cursor = frame.cursor
                    self._came.set()
            except AioRpcError as error:
                self.breaks.append(error)

    async def until(self, count: int) -> None:
        """Wait until it has recorded so many events."""
        try:
            async with asyncio.timeout(DEADLINE_SECONDS):
                while len(self.events) < count:
                    self._came.clear()
                    await self._came.wait()
        except TimeoutError:
            raise AssertionError(f"{len(self.events)} of {count} events recorded") from None

    async def stop(self) -> None:
        """Leave the watch."""
        self._task.cancel()
        await asyncio.wait([self._task])


@asynccontextmanager
async def recorded(client: TurngateClient, session_id: str) -> AsyncIterator[Recorder]:
    """A session that is recorded over all breaks."""
    recorder = Recorder(client, session_id)
    try:
        yield recorder
    finally:
        await recorder.stop()


def state_of(view: SessionView, run_id: str) -> run_pb2.RunState.ValueType | None:
    """The state of a run; None while there is none of that id."""
    return view.runs[run_id].run.state if run_id in view.runs else None


async def log_of(session: SessionClient, after: str = "") -> list[SessionEvent]:
    """All events of a session up to now."""
    events: list[SessionEvent] = []
    async with asyncio.timeout(DEADLINE_SECONDS), session.watch(after=after) as watch:
        async for frame in watch.frames():
            events.extend(frame.events)
            if frame.live:
                break
    return events


def of_kind(events: Iterable[SessionEvent], kind: str) -> list[SessionEvent]:
    """The events of one kind."""
    return [event for event in events if event.WhichOneof("event") == kind]


def states(events: Iterable[SessionEvent], run_id: str) -> list[str]:
    """The states that a run went through, in order, each as often as it came to it."""
    found: list[str] = []
    for event in of_kind(events, "run_state_changed"):
        changed = event.run_state_changed
        if changed.run_id == run_id:
            found.append(run_pb2.RunState.Name(changed.state).removeprefix("RUN_STATE_"))
    return found


def attempts(log: list[SessionEvent], run_id: str) -> list[int]:
    """The numbers of the attempts that began to work on a run."""
    return [
        event.run_state_changed.attempt
        for event in of_kind(log, "run_state_changed")
        if event.run_state_changed.run_id == run_id
        and event.run_state_changed.state == run_pb2.RUN_STATE_RUNNING
    ]


def the(interactions: Iterable[Interaction], tool: str) -> Interaction:
    """The one question about this tool."""
    (found,) = [one for one in interactions if one.tool_name == tool]
    return found


def raw_unary(channel: aio.Channel, path: str) -> Callable[[bytes], Awaitable[bytes]]:
    """A method that takes and gives bytes as they are."""
    stub: aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(
        path, request_serializer=bytes, response_deserializer=bytes
    )
    return stub


def raw_stream(channel: aio.Channel, path: str) -> Callable[[bytes], Awaitable[bytes]]:
    """A method that streams: its first message."""
    stub: aio.UnaryStreamMultiCallable[bytes, bytes] = channel.unary_stream(
        path, request_serializer=bytes, response_deserializer=bytes
    )

    async def first(request: bytes) -> bytes:
        async for message in stub(request):
            return message
        raise AssertionError("the stream ended")

    return first


async def file_came(path: Path) -> None:
    """Until a scripted tool has made its file. Fails by name after `DEADLINE_SECONDS`."""
    try:
        async with asyncio.timeout(DEADLINE_SECONDS):
            await wait_for_file(path, asyncio.Event())
    except TimeoutError:
        pytest.fail(f"the file {path.name} did not come within {DEADLINE_SECONDS:g} s")


async def refusal(call: Awaitable[object], reason: str) -> TurngateError:
    """The error with which a call is refused; fails if it is not, or for another reason."""
    with pytest.raises(TurngateError) as caught:
        await call
    assert caught.value.reason == reason, caught.value
    return caught.value
