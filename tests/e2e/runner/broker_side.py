"""The broker's side of `Execute`, for tests: start and history, acknowledgements, verdicts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from grpc import aio

from runner_service.agents.protocol import Agent
from runner_service.limits import AttemptLimits
from turngate.v1 import message_pb2, runner_pb2, runner_pb2_grpc, session_pb2

DEADLINE_SECONDS = 20.0
ENDS = ("parked", "completed", "failed", "cancelled")

Stub: TypeAlias = "runner_pb2_grpc.RunnerServiceAsyncStub"  # a type only, says the generator
Message = message_pb2.Message
ToolResult = message_pb2.ToolResult
Verdict = runner_pb2.ToolVerdict
# By the name of the tool; what is not named is granted.
Verdicts: TypeAlias = Mapping[str, runner_pb2.Verdict.ValueType]


def user(text: str, message_id: str = "p1") -> Message:
    """A prompt."""
    part = message_pb2.Part(text=message_pb2.TextPart(text=text))
    return Message(id=message_id, role=message_pb2.ROLE_USER, parts=[part])


def answered(message: Message, *results: ToolResult) -> Message:
    """A message with results right after their calls, as a broker sends it."""
    by_call = {result.call_id: result for result in results}
    shown = Message()
    shown.CopyFrom(message)
    del shown.parts[:]
    for part in message.parts:
        shown.parts.append(part)
        if part.tool_call.call_id in by_call:
            shown.parts.add(tool_result=by_call[part.tool_call.call_id])
    return shown


def client_output(call_id: str, output_json: str) -> ToolResult:
    """A client's answer."""
    return ToolResult(call_id=call_id, output_json=output_json, kind=message_pb2.RESULT_KIND_CLIENT)


def calls(message: Message) -> list[message_pb2.ToolCall]:
    """The calls of a message."""
    return [part.tool_call for part in message.parts if part.HasField("tool_call")]


def text_of(message: Message) -> str:
    """The text of a message."""
    return "".join(part.text.text for part in message.parts)


def start(agent: str, history: Iterable[Message], **fields: Any) -> runner_pb2.ExecuteStart:
    """A start as a broker would send it for this history."""
    messages = list(history)
    turn_start = max(i for i, m in enumerate(messages) if m.role == message_pb2.ROLE_USER)
    defaults: dict[str, Any] = {
        "session_id": "s1",
        "run_id": "r1",
        "attempt": 1,
        "agent": agent,
        "branch_message_count": len(messages),
        "turn_start": turn_start,
        "principal": "ada",
        "approval_policy": session_pb2.ApprovalPolicy(),
        "protocol_revision": 1,
    }
    return runner_pb2.ExecuteStart(**{**defaults, **fields})


@dataclass
class Heard:
    """What the runner said: `events` in order, `batches` as they were joined (kinds)."""

    events: list[runner_pb2.RunnerEvent] = field(default_factory=list)
    batches: list[list[str]] = field(default_factory=list)

    def all(self, kind: str) -> list[Any]:
        """All events of one kind."""
        return [getattr(e, kind) for e in self.events if e.WhichOneof("event") == kind]

    @property
    def kinds(self) -> list[str]:
        """The kinds, without deltas and heartbeats."""
        found = [str(event.WhichOneof("event")) for event in self.events]
        return [kind for kind in found if kind not in ("text_delta", "heartbeat")]

    @property
    def messages(self) -> list[Message]:
        """The complete messages."""
        return [completed.message for completed in self.all("message_completed")]

    @property
    def results(self) -> dict[str, ToolResult]:
        """The results that were reported, by call id."""
        return {reported.result.call_id: reported.result for reported in self.all("tool_result")}

    @property
    def deltas(self) -> str:
        """The text that a watcher folds from the deltas."""
        return "".join(delta.text for delta in self.all("text_delta"))

    @property
    def end(self) -> str:
        """The last event's kind."""
        return str(self.events[-1].WhichOneof("event"))


class BrokerSide:
    """One attempt, step by step."""

    def __init__(
        self,
        stub: Stub,
        opening: runner_pb2.ExecuteStart,
        history: Iterable[Message],
    ) -> None:
        self.heard = Heard()
        self._history = list(history)
        self._start = opening
        self._call: aio.StreamStreamCall[runner_pb2.ExecuteRequest, runner_pb2.ExecuteResponse] = (
            stub.Execute()
        )
        self._names = {call.call_id: call.name for m in self._history for call in calls(m)}
        self._looked_at = 0
        self._answered = 0

    async def open(self) -> BrokerSide:
        """Send start and history."""
        await self.send(
            runner_pb2.BrokerEvent(start=self._start),
            runner_pb2.BrokerEvent(
                history=runner_pb2.HistoryChunk(messages=self._history, last=True)
            ),
        )
        return self

    async def send(self, *events: runner_pb2.BrokerEvent) -> None:
        """Send events, joined."""
        await self._call.write(runner_pb2.ExecuteRequest(events=events))

    async def half_close(self) -> None:
        """Say nothing more."""
        await self._call.done_writing()

    async def acknowledge(
        self, *verdicts: Verdict, through: int | None = None, after_cancel: bool = False
    ) -> None:
        """All that was heard is durable, and verdicts; in one message behind a cancel, if asked."""
        number = self.heard.events[-1].number if through is None else through
        self._answered = len(self.heard.events)
        said = runner_pb2.Acknowledgement(through=number, verdicts=verdicts)
        events = [runner_pb2.BrokerEvent(acknowledgement=said)]
        if after_cancel:
            events.insert(0, runner_pb2.BrokerEvent(cancel=runner_pb2.CancelAttempt()))
        await self.send(*events)

    async def cancel(self) -> None:
        """Tell the runner that the run is being cancelled."""
        await self.send(runner_pb2.BrokerEvent(cancel=runner_pb2.CancelAttempt()))

    def drop(self) -> None:
        """The connection to the runner is lost."""
        self._call.cancel()

    async def listen(self) -> bool:
        """Take the runner's next message; False at the end of the stream."""
        async with asyncio.timeout(DEADLINE_SECONDS):
            response = await self._call.read()
        if not isinstance(response, runner_pb2.ExecuteResponse):
            return False
        for event in response.events:
            assert event.number == len(self.heard.events) + 1, "numbers rise without gaps"
            self.heard.events.append(event)
            for call in calls(event.message_completed.message):
                self._names[call.call_id] = call.name
        self.heard.batches.append([str(e.WhichOneof("event")) for e in response.events])
        return True

    async def until(self, kind: str) -> Any:
        """Listen until the next event of a kind, and return it."""
        while True:
            while self._looked_at < len(self.heard.events):
                event = self.heard.events[self._looked_at]
                self._looked_at += 1
                if event.WhichOneof("event") == kind:
                    return getattr(event, kind)
            if not await self.listen():
                raise AssertionError(f"the stream ended before {kind}: {self.heard.kinds}")

    async def until_closed(self) -> None:
        """Listen until the runner closes the stream. Raises `AioRpcError` if it fails."""
        while await self.listen():
            pass
        code = await self._call.code()
        if code.name != "OK":
            raise aio.AioRpcError(
                code,
                await self._call.initial_metadata(),
                await self._call.trailing_metadata(),
                await self._call.details(),
            )

    def verdicts_on(self, proposed: Any, by_name: Verdicts) -> list[Verdict]:
        """A verdict for each proposed call, by the name of its tool."""
        found = []
        for tool in proposed.tools:
            word = by_name.get(self._names[tool.call_id], runner_pb2.VERDICT_GRANTED)
            verdict = Verdict(call_id=tool.call_id, verdict=word)
            if word == runner_pb2.VERDICT_GRANTED:
                verdict.idempotency_key = f"s1:{tool.call_id}"
            elif word == runner_pb2.VERDICT_DENIED:
                verdict.result.CopyFrom(
                    ToolResult(
                        call_id=tool.call_id,
                        kind=message_pb2.RESULT_KIND_DENIED,
                        error_text="not today",
                    )
                )
            found.append(verdict)
        return found

    async def run(self, by_name: Verdicts | None = None) -> Heard:
        """Acknowledge all and give verdicts until the runner closes the stream."""
        more = True
        while more:
            verdicts: list[Verdict] = []
            for event in self.heard.events[self._answered :]:
                if event.WhichOneof("event") == "tools_proposed":
                    verdicts += self.verdicts_on(event.tools_proposed, by_name or {})
            if self._answered < len(self.heard.events):
                await self.acknowledge(*verdicts)
            more = await self.listen()
        await self.until_closed()
        return self.heard


class Serve(Protocol):
    """Serves a script's text on a real port."""

    async def __call__(
        self, text: str, *, max_concurrent_runs: int = 0, limits: AttemptLimits | None = None
    ) -> Stub: ...


class ServeAgents(Protocol):
    """Serves agents on a real port."""

    async def __call__(
        self,
        agents: Mapping[str, Agent],
        *,
        max_concurrent_runs: int = 0,
        limits: AttemptLimits | None = None,
    ) -> Stub: ...


class Open(Protocol):
    """Opens an attempt of the agent `a`, for what a test does step by step."""

    async def __call__(
        self, stub: Stub, history: Iterable[Message], **fields: Any
    ) -> BrokerSide: ...


class Run(Protocol):
    """An attempt of the agent `a` from the opening to its end."""

    async def __call__(
        self,
        stub: Stub,
        history: Iterable[Message],
        verdicts: Verdicts | None = None,
        **fields: Any,
    ) -> Heard: ...
