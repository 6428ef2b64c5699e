"""A runner that does what a test tells it, step by step: nothing happens by itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any, TypeVar

from google.protobuf.message import Message as Proto
from grpc import aio

from broker_service.domain import reports
from broker_service.domain.reports import RunnerEvent
from broker_service.domain.starts import Verdict
from broker_service.encoding import to_proto
from turngate.v1 import runner_pb2, runner_pb2_grpc
from turngate.v1.message_pb2 import Message, RenderHint, ToolResult
from turngate.v1.run_pb2 import RunFailure
from turngate_core.errors import Reason, Refusal
from turngate_serving.errors import wire_status

DEADLINE_SECONDS = 20.0
P = TypeVar("P", bound=Proto)


class Hand:
    """One attempt that the broker has handed over."""

    def __init__(self, start: runner_pb2.ExecuteStart) -> None:
        self.start = start
        self.verdicts: dict[str, Verdict] = {}
        self.waited = False
        self.instructions: asyncio.Queue[runner_pb2.ExecuteResponse | Refusal | None]
        self.instructions = asyncio.Queue()
        self._said = 0
        self._through = 0
        self._cancel_told = False
        self._over = False
        self._news = asyncio.Condition()

    async def say(self, *events: RunnerEvent) -> list[Verdict]:
        """Report, and answer the verdicts of the broker once it has acknowledged all that."""
        response = runner_pb2.ExecuteResponse()
        for event in events:
            self._said += 1
            response.events.add(number=self._said).MergeFrom(event_to_proto(event))
        self.instructions.put_nowait(response)
        said = self._said
        await self._until(lambda: self._through >= said, f"to acknowledge {events}")
        proposed = [event for event in events if isinstance(event, reports.Proposed)]
        return [self.verdicts[tool.call_id] for event in proposed for tool in event.tools]

    def beat(self) -> None:
        """A sign of life, which begins nothing."""
        self._said += 1
        response = runner_pb2.ExecuteResponse()
        response.events.add(number=self._said, heartbeat=runner_pb2.Heartbeat())
        self.instructions.put_nowait(response)

    def break_the_protocol(self) -> None:
        """Say something with a number that cannot be."""
        response = runner_pb2.ExecuteResponse()
        response.events.add(number=self._said + 7, completed=runner_pb2.RunCompleted())
        self.instructions.put_nowait(response)

    def babble(self) -> None:
        """Go on after the end, and close (R3)."""
        response = runner_pb2.ExecuteResponse()
        started = runner_pb2.RunnerMessageStarted(message_id="late")
        response.events.add(number=self._said + 1, message_started=started)
        self.instructions.put_nowait(response)
        self.leave(None)

    def leave(self, refusal: Refusal | None) -> None:
        """Close the stream, with an error or without."""
        self.instructions.put_nowait(refusal)

    async def verdict_other_than_wait(self, call_id: str) -> None:
        """S1: until the broker has decided on a call that waits for another run's."""
        decided = f"to decide on {call_id} of run {self.start.run_id} (S1)"
        await self._until(lambda: self.verdicts[call_id] is not Verdict.WAIT, decided)

    async def told_to_cancel(self) -> None:
        """C1: until the attempt is told."""
        await self._until(lambda: self._cancel_told, f"to cancel run {self.start.run_id} (C1)")

    async def hear(self, event: runner_pb2.BrokerEvent) -> None:
        """What the broker says goes to who waits for it."""
        async with self._news:
            self._cancel_told |= event.HasField("cancel")
            if event.HasField("acknowledgement"):
                said = event.acknowledgement
                self._through = max(self._through, said.through)
                self.verdicts |= {v.call_id: Verdict(v.verdict) for v in said.verdicts}
                self.waited |= Verdict.WAIT in self.verdicts.values()
            self._news.notify_all()

    async def end(self) -> None:
        """Nothing comes any more."""
        async with self._news:
            self._over = True
            self._news.notify_all()

    async def _until(self, there: Callable[[], bool], what: str) -> None:
        async with self._news:
            try:
                async with asyncio.timeout(DEADLINE_SECONDS):
                    await self._news.wait_for(lambda: self._over or there())
            except TimeoutError:
                raise AssertionError(
                    f"waited {DEADLINE_SECONDS:g} s for the broker {what}"
                ) from None
            assert there(), f"the broker has ended the stream; it had {what}"


class ToldRunner(runner_pb2_grpc.RunnerServiceServicer):
    """Takes every run of the agent `travel`, and holds it until a test takes it up by its id."""

    def __init__(self) -> None:
        self.hands: dict[str, Hand] = {}
        self._came = asyncio.Condition()

    async def hand(self, run_id: str, newer_than: int) -> Hand:
        """The attempt that the broker has begun after this one. Fails by name if none comes."""

        def found() -> bool:
            return run_id in self.hands and self.hands[run_id].start.attempt > newer_than

        async with self._came:
            try:
                async with asyncio.timeout(DEADLINE_SECONDS):
                    await self._came.wait_for(found)
            except TimeoutError:
                raise AssertionError(
                    f"run {run_id} was not handed over within {DEADLINE_SECONDS:g} s (S2)"
                ) from None
        return self.hands[run_id]

    async def DescribeAgents(
        self, request: runner_pb2.DescribeAgentsRequest, context: Any
    ) -> runner_pb2.DescribeAgentsResponse:
        agent = runner_pb2.AgentDescription(name="travel", history_window=100)
        return runner_pb2.DescribeAgentsResponse(agents=[agent])

    async def ExtractToolResults(
        self, request: runner_pb2.ExtractToolResultsRequest, context: Any
    ) -> runner_pb2.ExtractToolResultsResponse:
        return runner_pb2.ExtractToolResultsResponse()

    async def Execute(
        self,
        request_iterator: AsyncIterator[runner_pb2.ExecuteRequest],
        context: aio.ServicerContext[Any, Any],
    ) -> AsyncIterator[runner_pb2.ExecuteResponse]:
        events = (event async for request in request_iterator for event in request.events)
        first = await anext(events)
        hand = Hand(first.start)
        async for event in events:
            if event.history.last:
                break
        hearing = asyncio.create_task(self._hear(hand, events))
        hand.beat()
        async with self._came:
            self.hands[hand.start.run_id] = hand
            self._came.notify_all()
        try:
            while (instruction := await hand.instructions.get()) is not None:
                if isinstance(instruction, Refusal):
                    status = wire_status(instruction)
                    await context.abort(status.code, status.message, status.trailers)
                yield instruction
        finally:
            hearing.cancel()
            await hand.end()

    async def _hear(self, hand: Hand, events: AsyncIterator[runner_pb2.BrokerEvent]) -> None:
        async for event in events:
            await hand.hear(event)


def stopping() -> Refusal:
    """With which a runner hands over on purpose."""
    return Refusal(Reason.SHUTTING_DOWN, "the runner stops")


def gone() -> Refusal:
    """As from a runner that is gone."""
    return Refusal(Reason.INTERNAL, "the runner is gone")


def event_to_proto(event: RunnerEvent) -> runner_pb2.RunnerEvent:
    """As the contract has it; without its number."""
    say = runner_pb2.RunnerEvent
    match event:
        case reports.Began(message_id):
            return say(message_started=runner_pb2.RunnerMessageStarted(message_id=message_id))
        case reports.Finished(message):
            completed = runner_pb2.RunnerMessageCompleted(message=proto_of(Message, message))
            return say(message_completed=completed)
        case reports.Withdrew(message_id):
            return say(message_withdrawn=runner_pb2.RunnerMessageWithdrawn(message_id=message_id))
        case reports.Hinted():
            hint = proto_of(RenderHint, event.hint)
            return say(render_hint=runner_pb2.RunnerRenderHint(hint=hint))
        case reports.Proposed(tools):
            return say(tools_proposed=runner_pb2.ToolsProposed(tools=protos_of(tools)))
        case reports.Resulted(result):
            resulted = runner_pb2.RunnerToolResult(result=proto_of(ToolResult, result))
            return say(tool_result=resulted)
        case reports.Parked(tools):
            return say(parked=runner_pb2.RunParked(waiting_tools=protos_of(tools)))
        case reports.Completed():
            return say(completed=runner_pb2.RunCompleted())
        case reports.Failed(failure):
            return say(failed=runner_pb2.RunFailed(failure=proto_of(RunFailure, failure)))
        case reports.Cancelled():
            return say(cancelled=runner_pb2.RunCancelled())


def proto_of(kind: type[P], value: object) -> P:
    return kind.FromString(to_proto(value).SerializeToString())


def protos_of(tools: Iterable[object]) -> list[runner_pb2.ProposedTool]:
    return [proto_of(runner_pb2.ProposedTool, tool) for tool in tools]
