"""One attempt of one run: goes on where the history ends, step by step, to one of four ends (R3).

The order of things is the head comment of `runner.proto`. A step has two phases: a message is
written and may still be withdrawn; once it is complete it stays, and only then tools start.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncGenerator, Container, Coroutine
from typing import TypeVar

import structlog

from runner_service.acknowledgements import Acknowledgements
from runner_service.agents.protocol import Agent, AgentFailure, ServerTool, Turn
from runner_service.alone import verdicts_alone
from runner_service.limits import AttemptLimits, error_result
from runner_service.minting import IdMint
from runner_service.opening import Opening
from runner_service.outbox import Outbox, RunnerEvent
from runner_service.pairing import PairedHistory, calls_of, pair, results_in
from runner_service.tool_calls import ToolCalls, end_tasks
from runner_service.toolbox import hint_of, offered_tools, proposal_of, refusal
from runner_service.writing import MessageWriter
from turngate.v1 import message_pb2, run_pb2, runner_pb2

log = structlog.stdlib.get_logger(__name__)

Message = message_pb2.Message
ToolCall = message_pb2.ToolCall

_T = TypeVar("_T")


class Attempt:
    """One attempt. `run` drives it; what it says goes through the outbox."""

    def __init__(
        self,
        opening: Opening,
        agent: Agent,
        outbox: Outbox,
        acknowledgements: Acknowledgements,
        limits: AttemptLimits,
    ) -> None:
        start = opening.start
        self._start = start
        self._agent = agent
        self._outbox = outbox
        self._acknowledgements = acknowledgements
        self._cancelled = acknowledgements.cancelled
        self._limits = limits
        self._steps = start.completed_steps
        self._ids = IdMint(start.used_call_ids)
        self._tools = offered_tools((), start.client_tools)
        self._results = results_in(opening.history)
        self._hinted = _hinted(opening.history)
        self._step = _open_step(opening, self._results)
        self._done = [message for message in opening.history if message is not self._step]
        self._turn_start = opening.turn_start
        self._paired: PairedHistory | None = None
        # Events of one moment, which the broker decides in one commit.
        self._joined: list[RunnerEvent] = []

    async def run(self) -> None:
        """To the end, and until the broker has acknowledged it.

        Raises `Refusal` if the broker breaks the protocol. When it is cancelled, everything that
        it has begun is cancelled with it.
        """
        end = await self._until_end()
        number = self._outbox.put(*self._joined, end)
        self._outbox.end()
        await self._acknowledgements.durable(number)

    async def _until_end(self) -> RunnerEvent:
        try:
            return await self._steps_until_end()
        except AgentFailure as failure:
            return _failed(failure)

    async def _steps_until_end(self) -> RunnerEvent:
        if self._step is not None:
            await self._unless_cancelled(self._ask_for_tools())
        while not self._cancelled.is_set():
            if self._step is None:
                self._step = await self._write()
                if self._step is None:
                    break
            await self._finish(self._step)
            if self._cancelled.is_set():
                break
            calls = calls_of(self._step)
            if not calls:
                return RunnerEvent(completed=runner_pb2.RunCompleted())
            if any(call.call_id not in self._results for call in calls):
                return RunnerEvent(
                    parked=runner_pb2.RunParked(waiting_tools=self._proposals(self._step))
                )
            self._done.append(self._step)
            self._step = None
        return RunnerEvent(cancelled=runner_pb2.RunCancelled())

    async def _write(self) -> Message | None:
        """The next message, reported when what follows it is known; `None` if a cancel came."""
        self._steps += 1
        if self._steps > self._limits.max_steps:
            raise AgentFailure(
                run_pb2.RUN_FAILURE_REASON_STEP_LIMIT,
                f"the run is over its limit of {self._limits.max_steps} steps",
            )
        self._outbox.put(*self._joined)
        self._joined = []
        writer = MessageWriter(self._outbox, self._ids)
        try:
            message = await self._unless_cancelled(self._take_pieces(writer))
        except AgentFailure:
            self._withdraw(writer)
            raise
        if message is None:
            self._withdraw(writer)
            return None
        completed = runner_pb2.RunnerMessageCompleted(message=message)
        self._joined.append(RunnerEvent(message_completed=completed))
        return message

    def _withdraw(self, writer: MessageWriter) -> None:
        withdrawn = runner_pb2.RunnerMessageWithdrawn(message_id=writer.message_id)
        self._joined.append(RunnerEvent(message_withdrawn=withdrawn))

    async def _unless_cancelled(self, work: Coroutine[object, object, _T]) -> _T | None:
        """What the agent's work comes to; `None` if a cancel came. Raises only `AgentFailure`."""
        task = asyncio.ensure_future(work)
        cancel = asyncio.ensure_future(self._cancelled.wait())
        try:
            await asyncio.wait({task, cancel}, return_when=asyncio.FIRST_COMPLETED)
            return None if self._cancelled.is_set() else _result_of(task)
        finally:
            await end_tasks({task, cancel}, self._limits.cancel_grace_seconds)

    async def _ask_for_tools(self) -> None:
        """The agent's own tools join the session's and the built-in ones."""
        client_tools = self._start.client_tools
        self._tools = offered_tools((), client_tools)
        self._tools = offered_tools(await self._agent.tools(self._turn()), client_tools)

    async def _take_pieces(self, writer: MessageWriter) -> Message:
        await self._ask_for_tools()
        writer.tools = self._tools
        pieces = self._agent.next_step(self._turn())
        try:
            async for piece in pieces:
                writer.take(piece)
                await self._outbox.room()
        finally:
            if isinstance(pieces, AsyncGenerator):
                await pieces.aclose()
        return writer.message()

    def _history(self) -> PairedHistory:
        """All steps that are over, well paired (T4).

        Made when it is needed first: by then the broker knows that a message begins.
        """
        if self._paired is None:
            self._paired = pair(self._done, self._turn_start, self._results)
        else:
            added = pair(self._done, 0, self._results).messages
            self._paired = PairedHistory((*self._paired.messages, *added), self._paired.turn_start)
        self._done = []
        return self._paired

    def _turn(self) -> Turn:
        start = self._start
        history = self._history()
        return Turn(
            session_id=start.session_id,
            run_id=start.run_id,
            attempt=start.attempt,
            tenant_id=start.tenant_id,
            principal=start.principal,
            history=history.messages,
            turn_start=history.turn_start,
            starts_with_branch=start.history_offset == 0,
            tools=self._tools,
            approval_policy=start.approval_policy,
            trace_context=start.trace_context,
            cancelled=self._cancelled,
        )

    async def _finish(self, step: Message) -> None:
        """Hint, refuse, propose and run what of the step has no result yet (H1, R4)."""
        proposed: dict[str, ToolCall] = {}
        waits_for_client = False
        for call in calls_of(step):
            if call.call_id in self._results:
                continue
            tool = self._tools.get(call.name)
            problem = refusal(call, tool, self._tools)
            if problem is not None:
                self._refuse(call, problem)
            elif isinstance(tool, ServerTool):
                proposed[call.call_id] = call
            else:
                waits_for_client = True
                if call.call_id not in self._hinted:
                    self._joined.append(RunnerEvent(render_hint=hint_of(tool, call)))
        if not proposed:
            return
        proposals = self._proposals(step)
        self._joined.append(RunnerEvent(tools_proposed=runner_pb2.ToolsProposed(tools=proposals)))
        self._outbox.put(*self._joined)
        self._joined = []
        self._acknowledgements.propose(
            proposals, functools.partial(verdicts_alone, self._start, step, waits_for_client)
        )
        running = ToolCalls(
            self._agent,
            self._turn(),
            proposed,
            self._outbox,
            self._acknowledgements,
            self._limits,
        )
        await running.run()
        self._results.update(running.results)
        if running.failure is not None:
            raise running.failure

    def _proposals(self, step: Message) -> list[runner_pb2.ProposedTool]:
        """One for each server call of the step that has no result."""
        return [
            proposal_of(tool, call.call_id)
            for call in calls_of(step)
            if call.call_id not in self._results
            and isinstance(tool := self._tools.get(call.name), ServerTool)
        ]

    def _refuse(self, call: ToolCall, problem: str) -> None:
        result = error_result(call.call_id, problem, message_pb2.RESULT_KIND_CALL_REFUSED)
        self._results[call.call_id] = result
        self._joined.append(RunnerEvent(tool_result=runner_pb2.RunnerToolResult(result=result)))


def _open_step(opening: Opening, results: Container[str]) -> Message | None:
    """The message whose step is not over yet (R3): it is not asked for again.

    A complete message without calls was the end of the reply.
    """
    for message in reversed(opening.history[opening.turn_start :]):
        if message.role != message_pb2.ROLE_ASSISTANT:
            return None
        if message.parts and all(part.HasField("render_hint") for part in message.parts):
            continue
        calls = calls_of(message)
        is_over = bool(calls) and all(call.call_id in results for call in calls)
        return None if is_over else message
    return None


def _hinted(history: tuple[Message, ...]) -> frozenset[str]:
    """Calls whose hint the history shows; after a crash one may be missing (H1)."""
    return frozenset(
        part.render_hint.tool_call_id
        for message in history
        for part in message.parts
        if part.WhichOneof("content") == "render_hint"
    )


def _result_of(work: asyncio.Future[_T]) -> _T:
    """What it came to, or `AgentFailure`: no exception of an agent's own leaves the runner (E2)."""
    error = work.exception()
    if error is None:
        return work.result()
    if isinstance(error, AgentFailure):
        raise error
    log.error("the agent failed", exc_info=error)
    raise AgentFailure(
        run_pb2.RUN_FAILURE_REASON_AGENT_ERROR, "the agent failed unexpectedly"
    ) from error


def _failed(failure: AgentFailure) -> RunnerEvent:
    told = run_pb2.RunFailure(
        reason=failure.reason,
        message=failure.message,
        retry_after_ms=failure.retry_after_ms,
    )
    return RunnerEvent(failed=runner_pb2.RunFailed(failure=told))
