"""The server calls of one step: started when granted, reported as they end (A1, R4)."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from typing import Any

import structlog

from runner_service.acknowledgements import Acknowledgements, protocol_violation
from runner_service.agents.protocol import (
    Agent,
    AgentFailure,
    GrantedCall,
    Output,
    ToolAbandoned,
    ToolError,
    ToolOutcome,
    Turn,
)
from runner_service.limits import AttemptLimits, error_result, tool_result
from runner_service.outbox import Outbox, RunnerEvent
from turngate.v1 import message_pb2, runner_pb2

log = structlog.stdlib.get_logger(__name__)

ToolResult = message_pb2.ToolResult

_EFFECT = "it may have had its effect."
_PARKING = frozenset({runner_pb2.VERDICT_ASK, runner_pb2.VERDICT_DEFERRED})


class ToolCalls:
    """Runs the proposed calls of a step until every one has a result, waits for people, or is void.

    `results` holds what they have, by call id; `failure`, if set, why the run cannot go on.
    """

    def __init__(
        self,
        agent: Agent,
        turn: Turn,
        calls: Mapping[str, message_pb2.ToolCall],
        outbox: Outbox,
        acknowledgements: Acknowledgements,
        limits: AttemptLimits,
    ) -> None:
        self.results: dict[str, ToolResult] = {}
        self.failure: AgentFailure | None = None
        self._agent = agent
        self._turn = turn
        self._calls = calls
        self._outbox = outbox
        self._acknowledgements = acknowledgements
        self._cancel_grace_seconds = limits.cancel_grace_seconds
        self._timeout_seconds = limits.tool_timeout_seconds
        self._undecided = set(calls)
        self._parking: set[str] = set()
        self._running: dict[asyncio.Task[ToolOutcome], str] = {}
        self._ended: asyncio.Queue[asyncio.Task[ToolOutcome]] = asyncio.Queue()

    async def run(self) -> None:
        """Returns when no call is undecided and none is running, or after a cancel.

        Raises `Refusal` if the broker breaks the protocol. Whatever ends this ends the tools.
        """
        try:
            await self._until_decided_and_ended()
        finally:
            await end_tasks(self._running, self._cancel_grace_seconds)

    async def _until_decided_and_ended(self) -> None:
        verdict = asyncio.ensure_future(self._acknowledgements.verdicts.get())
        ended = asyncio.ensure_future(self._ended.get())
        deadline: float | None = None
        loop = asyncio.get_running_loop()
        try:
            while self._undecided or self._running:
                if self._turn.cancelled.is_set():
                    self._undecided.clear()
                    deadline = deadline or loop.time() + self._cancel_grace_seconds
                    if not self._running:
                        return
                remaining = None if deadline is None else deadline - loop.time()
                if remaining is not None and remaining <= 0:
                    log.warning("tools were cut short by a cancel", count=len(self._running))
                    return
                done, _ = await asyncio.wait(
                    {verdict, ended}, timeout=remaining, return_when=asyncio.FIRST_COMPLETED
                )
                if ended in done:
                    self._report(ended.result())
                    ended = asyncio.ensure_future(self._ended.get())
                if verdict in done:
                    self._take_all(verdict.result())
                    verdict = asyncio.ensure_future(self._acknowledgements.verdicts.get())
        finally:
            verdict.cancel()
            ended.cancel()

    def _take_all(self, verdict: runner_pb2.ToolVerdict | None) -> None:
        queue = self._acknowledgements.verdicts
        while True:
            if verdict is not None:
                self._take(verdict)
            if queue.empty():
                return
            verdict = queue.get_nowait()

    def _take(self, verdict: runner_pb2.ToolVerdict) -> None:
        call_id = verdict.call_id
        word = verdict.verdict
        # A second verdict may follow `DEFERRED` and `WAIT`; any other one is the last.
        if call_id not in self._undecided and call_id not in self._parking:
            raise protocol_violation("a second verdict on a call that was decided")
        if word == runner_pb2.VERDICT_WAIT:
            return
        self._undecided.discard(call_id)
        self._parking.discard(call_id)
        if word == runner_pb2.VERDICT_GRANTED:
            self._start(self._calls[call_id], verdict.idempotency_key)
        elif word in (runner_pb2.VERDICT_DENIED, runner_pb2.VERDICT_REUSE):
            if not verdict.HasField("result"):
                raise protocol_violation("a verdict that brings a result came without one")
            self.results[call_id] = verdict.result
        elif word in _PARKING:
            self._parking.add(call_id)
        elif word != runner_pb2.VERDICT_CANCELLED:
            raise protocol_violation("a verdict that this runner does not know")

    def _start(self, call: message_pb2.ToolCall, idempotency_key: str) -> None:
        if self._turn.cancelled.is_set():
            return
        granted = GrantedCall(
            call_id=call.call_id,
            name=call.name,
            arguments=call.arguments_json or "{}",
            idempotency_key=idempotency_key,
            turn=self._turn,
        )
        task = asyncio.ensure_future(self._execute(granted))
        self._running[task] = call.call_id
        task.add_done_callback(self._ended.put_nowait)

    async def _execute(self, call: GrantedCall) -> ToolOutcome:
        timeout = asyncio.timeout(self._timeout_seconds)
        try:
            async with timeout:
                return await self._agent.execute(call)
        except TimeoutError:
            if not timeout.expired():
                raise
            log.warning("a tool ran into its time-out", call_id=call.call_id, tool=call.name)
            text = f"The tool did not end within {self._timeout_seconds:g} s; {_EFFECT}"
            return ToolError(text)

    def _report(self, task: asyncio.Task[ToolOutcome]) -> None:
        while True:
            result = self._result_of(task)
            if result is not None:
                self.results[result.call_id] = result
                reported = runner_pb2.RunnerToolResult(result=result)
                self._outbox.put(RunnerEvent(tool_result=reported))
            if self._ended.empty():
                return
            task = self._ended.get_nowait()

    def _result_of(self, task: asyncio.Task[ToolOutcome]) -> ToolResult | None:
        call_id = self._running.pop(task)
        error = None if task.cancelled() else task.exception()
        if task.cancelled() or isinstance(error, ToolAbandoned):
            if self._turn.cancelled.is_set():
                return None  # nobody knows how it ended (S1)
            return error_result(call_id, f"The tool was cut short; {_EFFECT}")
        if isinstance(error, AgentFailure):
            self.failure = error
            return error_result(call_id, error.message)
        if error is not None:
            log.error("a tool failed", call_id=call_id, exc_info=error)
            return error_result(call_id, "The tool failed unexpectedly.")
        outcome = task.result()
        if isinstance(outcome, Output):
            return tool_result(call_id, outcome.json)
        return error_result(call_id, outcome.text)


async def end_tasks(tasks: Collection[asyncio.Future[Any]], grace_seconds: float) -> None:
    """Cancel tasks and wait until they have ended; one that will not end is left, and logged."""
    for task in tasks:
        task.cancel()
    if not tasks:
        return
    _, left = await asyncio.wait(tasks, timeout=grace_seconds)
    if left:
        log.error("tasks did not end after their cancel", count=len(left))
