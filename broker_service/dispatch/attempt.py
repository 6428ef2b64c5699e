"""One attempt of one run: the broker's side of `Execute` (R3, A1).

What the runner sends is gathered while a commit is under way, and decided and stored together; each
gathering is acknowledged once it is durable. Deltas do not move the session's version (W3).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum

import grpc
from grpc import aio

from broker_service.dispatch.history import opening
from broker_service.dispatch.placement import Placed
from broker_service.dispatch.runner_events import delta_entry, domain_event, is_delta
from broker_service.domain import reports
from broker_service.domain.decision import RUNNER, Decision
from broker_service.domain.model import ProposedTool, RunState
from broker_service.domain.reports import Reported
from broker_service.domain.starts import ToolVerdict, Verdict
from broker_service.encoding import enum_to_proto, to_proto
from broker_service.sessions import NO_DELTAS, Deltas, Sessions
from broker_service.storage.port import Append, Entry, Fence, SessionKey, Write
from turngate.v1 import message_pb2, runner_pb2
from turngate_core.errors import Reason, Refusal
from turngate_serving.errors import refused_with

GATHERED_AT_MOST = 512
"""Runner events that wait while a commit is under way; then the stream is not read on, and the
runner's own flow control holds it."""

LAST_WORDS_S = 2.0
"""How long a runner may take to close the stream after its last event was acknowledged."""

Call = aio.StreamStreamCall[runner_pb2.ExecuteRequest, runner_pb2.ExecuteResponse]


class Outcome(Enum):
    """How an attempt went."""

    ENDED = "ended"  # parked, completed, failed or cancelled, and stored
    LOST = "lost"  # the runner is gone, or silent for too long
    HANDED_OVER = "handed over"  # the runner stops, and lets go on purpose
    NOT_TAKEN = "not taken"  # the runner could not take it; nothing has begun
    STALE = "stale"  # somebody else decided on the run meanwhile


@dataclass(frozen=True, slots=True)
class Ended:
    outcome: Outcome
    detail: str = ""
    retry_after_ms: int | None = None


@dataclass(slots=True)
class _Gathered:
    """Deltas round the events of one commit."""

    before: list[runner_pb2.RunnerEvent] = field(default_factory=list)
    events: list[runner_pb2.RunnerEvent] = field(default_factory=list)
    after: list[runner_pb2.RunnerEvent] = field(default_factory=list)


class _StreamBroken(Exception):
    """The stream takes no more requests; how it ended is for its reader to tell."""


class Attempt:
    """`fence`: of the claim under which everything is written."""

    def __init__(
        self,
        sessions: Sessions,
        key: SessionKey,
        run_id: str,
        fence: Fence,
        *,
        silent_after_s: float,
        heartbeat_ms: int,
    ) -> None:
        self._sessions = sessions
        self._key = key
        self._run_id = run_id
        self._fence = fence
        self._silent_after_s = silent_after_s
        self._heartbeat_ms = heartbeat_ms
        self._inbox: deque[runner_pb2.RunnerEvent] = deque()
        self._arrived = asyncio.Event()
        self._room = asyncio.Event()
        self._stream_end: Ended | None = None
        self._taken = False
        self._last_number = 0
        self._open_message_id = ""
        self._cancel_asked = False
        self._cancel_told = False
        # Calls that run in another run, by id (S1).
        self._waiting: dict[str, ProposedTool] = {}
        self._recheck = False

    @property
    def number(self) -> int:
        """The attempt's number is the token of its claim."""
        return self._fence.token

    async def execute(self, placed: Placed) -> Ended:
        """Hand the run over, and take in what comes until the attempt is over.

        Raises FenceLost when the claim was taken over, and Refusal (PROTOCOL_VIOLATION).
        """
        async with self._sessions.reading(self._key) as state:
            run = state.runs[self._run_id]
            if run.state is not RunState.PENDING or not run.live:
                return Ended(Outcome.STALE, "the run waits for no runner any more")
            start = await opening(
                self._sessions.store,
                state,
                run,
                self.number,
                placed.history_window,
                self._heartbeat_ms,
            )
        call = placed.stub.Execute(wait_for_ready=False)
        reading = asyncio.create_task(self._read(call))
        try:
            return await self._work(call, start)
        finally:
            reading.cancel()
            call.cancel()
            await asyncio.wait((reading,))

    async def _let_runner_close(self, call: Call) -> None:
        """The last acknowledgement has to arrive before the call is torn down."""
        try:
            async with asyncio.timeout(LAST_WORDS_S):
                await call.done_writing()
                await self._end_of_stream()
        except (TimeoutError, aio.AioRpcError, asyncio.InvalidStateError):
            return

    async def _work(self, call: Call, start: list[runner_pb2.BrokerEvent]) -> Ended:
        try:
            for event in start:
                await self._send(call, runner_pb2.ExecuteRequest(events=[event]))
            return await self._converse(call)
        except _StreamBroken:
            return await self._end_of_stream()

    async def _converse(self, call: Call) -> Ended:
        while True:
            await self._say_what_others_decided(call)
            if not self._inbox:
                if self._stream_end is not None:
                    return self._stream_end
                self._arrived.clear()
                if not self._has_news():
                    await self._arrived.wait()
                continue
            gathered = list(self._inbox)
            self._inbox.clear()
            self._room.set()
            try:
                reported = await self._take_in(gathered)
            except Refusal as refusal:
                if refusal.reason is Reason.STALE_ATTEMPT:
                    return Ended(Outcome.STALE, refusal.message)
                raise
            if not reported.ended:
                await self._send(call, self._acknowledgement(reported.verdicts))
                continue
            with suppress(_StreamBroken):  # what it has reported is stored, whether it hears of it
                await self._send(call, self._acknowledgement(reported.verdicts))
                await self._let_runner_close(call)
            return Ended(Outcome.ENDED)

    async def _send(self, call: Call, request: runner_pb2.ExecuteRequest) -> None:
        """Write, within a bound: a runner that takes nothing is as good as gone."""
        try:
            async with asyncio.timeout(self._silent_after_s):
                await call.write(request)
        except TimeoutError as error:
            lost = Ended(Outcome.LOST, "the runner takes in nothing")
            self._stream_end = self._stream_end or lost
            raise _StreamBroken from error
        except (aio.AioRpcError, asyncio.InvalidStateError) as error:
            raise _StreamBroken from error
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            # Nobody cancelled this task: gRPC cancels a write whose call has ended.
            raise _StreamBroken from error

    def cancel(self) -> None:
        """The run is being cancelled: the runner is told (C1). It reports its end, or the grace
        ends it.
        """
        self._cancel_asked = True
        self._arrived.set()

    def give_up(self) -> None:
        """The run is over without this attempt: a runner that has not closed the stream by now is
        cut off. Idempotent.
        """
        self._stream_end = self._stream_end or Ended(Outcome.STALE, "the run was cancelled")
        self._arrived.set()

    def look_again(self) -> None:
        """Something was decided in the session: a call that waits may have its result (S1)."""
        if self._waiting:
            self._recheck = True
            self._arrived.set()

    def _has_news(self) -> bool:
        return bool(self._inbox) or self._recheck or (self._cancel_asked and not self._cancel_told)

    async def _say_what_others_decided(self, call: Call) -> None:
        if self._cancel_asked and not self._cancel_told:
            self._cancel_told = True
            event = runner_pb2.BrokerEvent(cancel=runner_pb2.CancelAttempt(detail="cancelled"))
            await self._send(call, runner_pb2.ExecuteRequest(events=[event]))
        if self._recheck:
            self._recheck = False
            reported = await self._report((reports.Proposed(tuple(self._waiting.values())),))
            settled = [v for v in reported.verdicts if v.verdict is not Verdict.WAIT]
            if settled:
                await self._send(call, self._acknowledgement(settled))

    async def _end_of_stream(self) -> Ended:
        """How the stream ended. What is still gathered counts for nothing: it makes room, so that
        the reader comes to the end.
        """
        while self._stream_end is None:
            self._inbox.clear()
            self._room.set()
            self._arrived.clear()
            await self._arrived.wait()
        return self._stream_end

    async def _read(self, call: Call) -> None:
        """Gather what the runner sends; silence for too long is the loss of the attempt (R3)."""
        try:
            while True:
                async with asyncio.timeout(self._silent_after_s):
                    response = await call.read()
                if not isinstance(response, runner_pb2.ExecuteResponse):
                    break  # EOF
                self._taken = True
                self._inbox.extend(response.events)
                self._arrived.set()
                while len(self._inbox) >= GATHERED_AT_MOST:
                    self._room.clear()
                    await self._room.wait()
            self._stream_end = Ended(Outcome.LOST, "the runner closed the stream")
        except TimeoutError:
            self._stream_end = Ended(Outcome.LOST, "the runner fell silent")
        except aio.AioRpcError as error:
            self._stream_end = self._broken(error)
        finally:
            self._arrived.set()

    def _broken(self, error: aio.AioRpcError) -> Ended:
        detail = f"the stream broke: {error.code().name}"
        if self._taken and refused_with(error) is Reason.SHUTTING_DOWN:
            return Ended(Outcome.HANDED_OVER, "the runner stops")
        if self._taken:
            return Ended(Outcome.LOST, detail)
        retry = 1000 if error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED else None
        return Ended(Outcome.NOT_TAKEN, detail, retry)

    async def _take_in(self, gathered: list[runner_pb2.RunnerEvent]) -> Reported:
        reported = Reported()
        for event in gathered:
            if event.number != self._last_number + 1:
                problem = f"event {event.number} follows event {self._last_number}"
                raise Refusal(Reason.PROTOCOL_VIOLATION, problem, {"problem": problem})
            self._last_number = event.number
        for group in _grouped(gathered):
            step = await self._store(group)
            reported.verdicts.extend(step.verdicts)
            reported.ended = reported.ended or step.ended
        return reported

    async def _store(self, group: _Gathered) -> Reported:
        before = self._deltas(group.before)
        events = []
        for proto in group.events:
            event = domain_event(proto)
            if event is None:
                continue
            if isinstance(event, reports.Began):
                self._open_message_id = event.message_id
            elif isinstance(event, reports.Finished | reports.Withdrew):
                self._open_message_id = ""
            events.append(event)
        after = self._deltas(group.after)
        if not events:
            await self._store_deltas(before + after)
            return Reported()
        return await self._report(tuple(events), Deltas(before, after))

    async def _report(
        self, events: tuple[reports.RunnerEvent, ...], deltas: Deltas = NO_DELTAS
    ) -> Reported:
        def act(decision: Decision) -> Reported:
            return reports.report(decision, self._run_id, self.number, events)

        reported, _ = await self._sessions.execute(
            self._key, RUNNER, act, fence=self._fence, deltas=deltas
        )
        proposed = {
            tool.call_id: tool
            for event in events
            if isinstance(event, reports.Proposed)
            for tool in event.tools
        }
        for verdict in reported.verdicts:
            self._waiting.pop(verdict.call_id, None)
            if verdict.verdict is Verdict.WAIT:
                self._waiting[verdict.call_id] = proposed[verdict.call_id]
        return reported

    async def _store_deltas(self, entries: tuple[Entry, ...]) -> None:
        if entries:
            append = Append(self._key, entries, None, self._fence)
            await self._sessions.store.commit(Write((append,)))

    def _deltas(self, events: list[runner_pb2.RunnerEvent]) -> tuple[Entry, ...]:
        now = self._sessions.store.now()
        return tuple(
            delta_entry(event, self._run_id, self._open_message_id, now, self._key.tenant_id)
            for event in events
        )

    def _acknowledgement(self, verdicts: list[ToolVerdict]) -> runner_pb2.ExecuteRequest:
        acknowledgement = runner_pb2.Acknowledgement(
            through=self._last_number,
            verdicts=[self._verdict(verdict) for verdict in verdicts],
        )
        event = runner_pb2.BrokerEvent(acknowledgement=acknowledgement)
        return runner_pb2.ExecuteRequest(events=[event])

    def _verdict(self, verdict: ToolVerdict) -> runner_pb2.ToolVerdict:
        proto = runner_pb2.ToolVerdict(
            call_id=verdict.call_id,
            verdict=runner_pb2.Verdict.ValueType(enum_to_proto(verdict.verdict)),
            # The same for every start of the call, over all runs and forks (S1).
            idempotency_key=f"{self._key.session_id}:{verdict.call_id}",
        )
        if verdict.result is not None:
            result = to_proto(verdict.result)
            assert isinstance(result, message_pb2.ToolResult)
            proto.result.CopyFrom(result)
        return proto


def _grouped(events: list[runner_pb2.RunnerEvent]) -> Iterator[_Gathered]:
    """Runs of deltas and other events, three to a commit: deltas, events, deltas."""
    group = _Gathered()
    for event in events:
        if not is_delta(event):
            if group.after:
                yield group
                group = _Gathered()
            group.events.append(event)
        elif group.events:
            group.after.append(event)
        else:
            group.before.append(event)
    yield group
