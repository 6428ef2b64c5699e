"""`Execute`: one attempt over one stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any

import structlog

from runner_service.acknowledgements import Acknowledgements, protocol_violation
from runner_service.agents.protocol import Agent
from runner_service.execution import Attempt
from runner_service.limits import AttemptLimits
from runner_service.opening import Opening, broker_events, read_opening
from runner_service.outbox import Outbox
from runner_service.tool_calls import end_tasks
from turngate.v1 import runner_pb2
from turngate_core.errors import Reason, Refusal

log = structlog.stdlib.get_logger(__name__)

DEFAULT_HEARTBEAT_SECONDS = 1.0
# Nobody sends a start and then nothing for so long.
OPENING_TIMEOUT_SECONDS = 60.0
RETRY_AFTER_MS = 500
# After its end an attempt has nothing to wait for; what was cut has this long to unwind.
_UNWIND_SECONDS = 2.0


class Executions:
    """The attempts that this runner executes, and how many it takes (0: no limit)."""

    def __init__(
        self, agents: Mapping[str, Agent], limits: AttemptLimits, max_concurrent_runs: int
    ) -> None:
        self._agents = agents
        self._limits = limits
        self._max_concurrent_runs = max_concurrent_runs
        self._active = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._stopping = asyncio.Event()

    async def execute(
        self, requests: AsyncIterator[runner_pb2.ExecuteRequest]
    ) -> AsyncGenerator[runner_pb2.ExecuteResponse, None]:
        """One attempt: its messages for the broker, until the end is acknowledged.

        Raises `Refusal`. Whatever ends the stream ends all that the attempt has begun.
        """
        if self._stopping.is_set():
            raise _shutting_down()
        if self._max_concurrent_runs and self._active >= self._max_concurrent_runs:
            raise Refusal(
                Reason.RUNNER_BUSY,
                f"this runner executes {self._max_concurrent_runs} runs at once, and does",
                retry_after_ms=RETRY_AFTER_MS,
            )
        self._active += 1
        self._idle.clear()
        try:
            events = broker_events(requests)
            opening = await self._opening(events)
            async with aclosing(self._attempt(opening, events)) as batches:
                async for batch in batches:
                    yield batch
        finally:
            self._active -= 1
            if not self._active:
                self._idle.set()

    async def drain(self, timeout_seconds: float) -> None:
        """Let attempts end by themselves for a while; then end them, so that others take over."""
        try:
            async with asyncio.timeout(timeout_seconds):
                await self._idle.wait()
        except TimeoutError:
            log.warning("attempts are handed over", count=self._active)
        self._stopping.set()
        await self._idle.wait()

    async def _opening(self, events: AsyncIterator[runner_pb2.BrokerEvent]) -> Opening:
        try:
            async with asyncio.timeout(OPENING_TIMEOUT_SECONDS):
                return await read_opening(events)
        except TimeoutError as error:
            raise protocol_violation(
                f"no complete history within {OPENING_TIMEOUT_SECONDS:g} s"
            ) from error

    async def _attempt(
        self, opening: Opening, events: AsyncIterator[runner_pb2.BrokerEvent]
    ) -> AsyncGenerator[runner_pb2.ExecuteResponse, None]:
        start = opening.start
        agent = self._agents.get(start.agent)
        if agent is None:
            raise Refusal(
                Reason.AGENT_NOT_FOUND,
                f"this runner serves no agent {start.agent!r}",
                {"agent": start.agent[:128].encode("ascii", "backslashreplace").decode()},
            )
        outbox = Outbox(_heartbeat_seconds(start))
        acknowledgements = Acknowledgements(outbox, by_hand=start.protocol_revision == 0)
        if opening.cancelled:
            acknowledgements.cancel()
        attempt = Attempt(opening, agent, outbox, acknowledgements, self._limits)
        bound = log.bind(session_id=start.session_id, run_id=start.run_id, attempt=start.attempt)
        bound.debug("attempt begins", agent=start.agent)

        work = asyncio.ensure_future(attempt.run())
        reader = asyncio.ensure_future(_read(events, acknowledgements))
        stop = asyncio.ensure_future(self._stopping.wait())
        tasks: set[asyncio.Future[Any]] = {work, reader, stop}

        def closed_by(task: asyncio.Future[Any]) -> None:
            # The reader also ends when the caller closes its side: then the attempt goes on.
            if task is not reader or task.cancelled() or task.exception() is not None:
                outbox.close()

        for task in tasks:
            task.add_done_callback(closed_by)
        try:
            async for batch in outbox.batches():
                yield batch
            if work.done():
                work.result()
            elif reader.done():
                reader.result()
            else:
                raise _shutting_down()
            bound.debug("attempt ended")
        finally:
            await end_tasks(tasks, _UNWIND_SECONDS)


async def _read(
    events: AsyncIterator[runner_pb2.BrokerEvent], acknowledgements: Acknowledgements
) -> None:
    """Take what the broker says after the opening. Raises `Refusal` for what makes no sense."""
    async for event in events:
        kind = event.WhichOneof("event")
        if kind == "acknowledgement":
            acknowledgements.receive(event.acknowledgement)
        elif kind == "cancel":
            acknowledgements.cancel()
        elif kind is not None:  # an event that this build does not know is skipped
            raise protocol_violation(f"{kind} came after the end of the history")
    acknowledgements.half_closed()


def _heartbeat_seconds(start: runner_pb2.ExecuteStart) -> float:
    if not start.HasField("heartbeat_interval"):
        return DEFAULT_HEARTBEAT_SECONDS
    # A broker may ask for few, but not for so many that nothing else gets through.
    return max(0.02, start.heartbeat_interval.ToMilliseconds() / 1000)


def _shutting_down() -> Refusal:
    return Refusal(Reason.SHUTTING_DOWN, "the runner is stopping")
