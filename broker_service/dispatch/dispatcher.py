"""Hands pending runs to runners, holds their leases, and takes over what others have lost (S2)."""

from __future__ import annotations

import asyncio
import time

import structlog

from broker_service.config import BrokerSettings
from broker_service.dispatch.attempt import Attempt, Ended, Outcome
from broker_service.dispatch.placement import Placement
from broker_service.domain import runs
from broker_service.domain.decision import BROKER, Decision
from broker_service.domain.events import RunStateChanged, ToolResultAdded
from broker_service.domain.model import RunFailure, RunFailureReason, RunState
from broker_service.sessions import Committed, Sessions
from broker_service.storage.port import (
    Fence,
    FenceLost,
    PutWork,
    SessionKey,
    StoreUnavailable,
    WorkKey,
    WorkKind,
    Write,
)
from turngate_core.errors import Reason, Refusal

log = structlog.stdlib.get_logger(__name__)

CLAIMS_AT_ONCE = 100

LONGEST_LOOK_S = 2.0
"""The longest pause before a runner is looked for again: one may have come up."""

RUNNING_STATES = (RunState.RUNNING, RunState.CANCELLING)

_RUN_IS_GONE = (Reason.STALE_ATTEMPT, Reason.SESSION_NOT_FOUND, Reason.SESSION_DELETED)


class Dispatcher:
    """One task for each run that this broker holds."""

    def __init__(self, sessions: Sessions, placement: Placement, settings: BrokerSettings) -> None:
        self._sessions = sessions
        self._store = sessions.store
        self._placement = placement
        self._settings = settings
        self._held: dict[WorkKey, tuple[int, asyncio.Task[None]]] = {}
        self._attempts: dict[WorkKey, Attempt] = {}
        self._closing = asyncio.Event()
        self._loop_task: asyncio.Task[None] | None = None
        sessions.listen(self._on_committed)

    def start(self) -> None:
        """Begin to prolong leases and to take over lost work."""
        self._loop_task = asyncio.create_task(self._beat())

    async def close(self) -> None:
        """Stop all attempts and let go of their runs, so that another broker can go on at once."""
        self._closing.set()
        if self._loop_task is not None:
            self._loop_task.cancel()
            await asyncio.wait((self._loop_task,))
        held = list(self._held.items())
        for _, (_, task) in held:
            task.cancel()
        if held:
            await asyncio.wait([task for _, (_, task) in held])
        for work, (token, _) in held:
            await self._let_go(work, token)

    def _on_committed(self, committed: Committed) -> None:
        if self._closing.is_set():
            return
        for work in committed.claimed:
            self._hold(work.work, work.token)
        for entry in committed.events:
            event = entry.event
            if isinstance(event, RunStateChanged):
                attempt = self._attempts.get(WorkKey(WorkKind.RUN, committed.key, event.run_id))
                if attempt is None:
                    continue
                if event.state is RunState.CANCELLING:
                    attempt.cancel()
                elif event.state is RunState.CANCELLED:  # it may still close in peace
                    loop = asyncio.get_running_loop()
                    loop.call_later(self._settings.cancel_grace, attempt.give_up)
            elif isinstance(event, ToolResultAdded):
                for work_key, attempt in self._attempts.items():
                    if work_key.session == committed.key:
                        attempt.look_again()

    def _hold(self, work: WorkKey, token: int) -> None:
        """Execute a run under this claim, unless that is under way."""
        before = self._held.get(work)
        if before is not None and before[0] >= token:
            return
        task = asyncio.create_task(self._execute(work, token))
        self._held[work] = (token, task)

        def done(ended: asyncio.Task[None]) -> None:
            if not ended.cancelled() and (error := ended.exception()) is not None:
                # The run is taken up again when its lease has ended.
                log.error("attempt failed unexpectedly", run=work.work_id, exc_info=error)
            if self._held.get(work) == (token, task):
                del self._held[work]

        task.add_done_callback(done)

    async def _execute(self, work: WorkKey, token: int) -> None:
        """Bring a held run to the end of an attempt. Every way out is named here."""
        fence = Fence(work, self._sessions.owner, token)
        key, run_id = work.session, work.work_id
        log_run = log.bind(session=key.session_id, run=run_id, attempt=token)
        try:
            await self._hand_out(key, run_id, fence)
        except FenceLost:
            log_run.info("run taken over by another broker")
        except StoreUnavailable:
            log_run.warning("store unavailable; the run is taken up again when its lease ends")
        except Refusal as refusal:
            if refusal.reason is Reason.PROTOCOL_VIOLATION:
                log_run.error("runner broke the protocol", problem=refusal.message)
                await self._fail(key, run_id, fence, refusal.message)
            elif refusal.reason not in _RUN_IS_GONE:
                raise

    async def _hand_out(self, key: SessionKey, run_id: str, fence: Fence) -> None:
        async with self._sessions.reading(key) as state:
            run = state.runs[run_id]
            taken_over = run.state in RUNNING_STATES and run.attempt < fence.token
            attempt, lost, agent = run.attempt, run.lost_attempts, run.agent
        if taken_over:
            # Whoever had it is gone. The run is pending again after this, under another claim.
            await self._lose(key, run_id, attempt, fence, "the broker that held the run is gone")
            return
        if lost:
            await self._pause(self._backoff_s(lost))
        not_taken = 0
        began = time.monotonic()
        while not self._closing.is_set():
            ended = await self._attempt(key, run_id, agent, fence)
            match ended.outcome:
                case Outcome.ENDED | Outcome.STALE:
                    return
                case Outcome.LOST:
                    log.warning("attempt lost", run=run_id, detail=ended.detail)
                    await self._lose_or_wait(key, run_id, fence, ended.detail)
                    return
                case Outcome.HANDED_OVER:
                    await self._hand_over(key, run_id, fence)
                    return
                case Outcome.NOT_TAKEN:
                    not_taken += 1
            waited = time.monotonic() - began
            if waited > self._settings.unplaced_limit:
                await self._fail_unplaced(key, run_id, fence)
                return
            if waited > self._settings.unplaced_after:
                await self._mark_unplaced(key, run_id, fence)
            await self._pause(min(self._backoff_s(not_taken), LONGEST_LOOK_S))

    async def _attempt(self, key: SessionKey, run_id: str, agent: str, fence: Fence) -> Ended:
        placed = await self._placement.place(agent)
        if placed is None:
            return Ended(Outcome.NOT_TAKEN, f"no runner serves the agent {agent}")
        attempt = Attempt(
            self._sessions,
            key,
            run_id,
            fence,
            silent_after_s=self._settings.silent_runner,
            heartbeat_ms=round(self._settings.heartbeat * 1000),
        )
        self._attempts[fence.work] = attempt
        try:
            ended = await attempt.execute(placed)
        finally:
            if self._attempts.get(fence.work) is attempt:
                del self._attempts[fence.work]
        if ended.outcome is Outcome.NOT_TAKEN:
            self._placement.refused(placed.address)
        return ended

    async def _lose_or_wait(self, key: SessionKey, run_id: str, fence: Fence, detail: str) -> None:
        """The runner was there, but may have been lost before it reported anything."""
        async with self._sessions.reading(key) as state:
            run = state.runs[run_id]
            unreported = run.state is RunState.PENDING and run.live
        if unreported:
            await self._begin(key, run_id, fence)
        await self._lose(key, run_id, fence.token, fence, detail)

    async def _begin(self, key: SessionKey, run_id: str, fence: Fence) -> None:
        def act(decision: Decision) -> None:
            runs.begin_attempt(decision, run_id, fence.token)

        await self._sessions.execute(key, BROKER, act, fence=fence)

    async def _lose(
        self, key: SessionKey, run_id: str, attempt: int, fence: Fence, detail: str
    ) -> None:
        def act(decision: Decision) -> None:
            runs.lose_attempt(decision, run_id, attempt, detail)

        await self._sessions.execute(key, BROKER, act, fence=fence)

    async def _fail(self, key: SessionKey, run_id: str, fence: Fence, problem: str) -> None:
        failure = RunFailure(RunFailureReason.PROTOCOL, f"the runner broke the protocol: {problem}")

        def act(decision: Decision) -> None:
            run = decision.state.runs[run_id]
            if run.state is RunState.PENDING:
                runs.begin_attempt(decision, run_id, fence.token)
            run = runs.check_attempt(decision.state, run_id, fence.token)
            runs.fail_run(decision, run, failure)

        try:
            await self._sessions.execute(key, BROKER, act, fence=fence)
        except (FenceLost, StoreUnavailable):
            log.warning("a run that broke the protocol could not be failed", run=run_id)

    async def _fail_unplaced(self, key: SessionKey, run_id: str, fence: Fence) -> None:
        failure = RunFailure(RunFailureReason.UNPLACED, "no runner took the run in time")

        def act(decision: Decision) -> None:
            runs.fail_unplaced(decision, run_id, failure)

        await self._sessions.execute(key, BROKER, act, fence=fence)

    async def _mark_unplaced(self, key: SessionKey, run_id: str, fence: Fence) -> None:
        def act(decision: Decision) -> None:
            runs.mark_unplaced(decision, run_id)

        await self._sessions.execute(key, BROKER, act, fence=fence)

    def _backoff_s(self, times: int) -> float:
        """R6: a growing pause, half a second doubling to half a minute."""
        pause = self._settings.retry_pause * 2.0 ** min(times - 1, 16)
        return min(pause, self._settings.retry_pause_limit)

    async def _pause(self, seconds: float) -> None:
        """Wait, but not beyond the stop of this broker."""
        try:
            async with asyncio.timeout(seconds):
                await self._closing.wait()
        except TimeoutError:
            return

    async def _beat(self) -> None:
        """Prolong what is held, and take up what is due and held by nobody."""
        while True:
            for step in (self._renew, self._take_up):
                (error,) = await asyncio.gather(step(), return_exceptions=True)
                if isinstance(error, StoreUnavailable):
                    log.warning("store unavailable", error=str(error))
                elif isinstance(error, BaseException):
                    # Leases have to be prolonged whatever else goes wrong.
                    log.error("heartbeat failed", step=step.__name__, exc_info=error)
            await self._pause(self._settings.heartbeat)

    async def _renew(self) -> None:
        """What was taken over meanwhile needs no care here: its fence refuses all writes."""
        if self._held:
            until = self._store.now() + self._sessions.lease_ms
            await self._store.renew(self._sessions.owner, list(self._held), until)

    async def _take_up(self) -> None:
        until = self._store.now() + self._sessions.lease_ms
        owner = self._sessions.owner
        for work in await self._store.claim(WorkKind.RUN, owner, until, CLAIMS_AT_ONCE):
            self._hold(work.work, work.token)

    async def _let_go(self, work: WorkKey, token: int) -> None:
        """A clean stop: the run goes to another broker at once, not only when the lease ends."""
        fence = Fence(work, self._sessions.owner, token)
        try:
            async with self._sessions.reading(work.session) as state:
                run = state.runs[work.work_id]
                running = run.state in RUNNING_STATES and run.attempt == token
            if running:
                await self._hand_over(work.session, work.work_id, fence)
            async with self._sessions.reading(work.session) as state:
                run = state.runs[work.work_id]
                if run.state is RunState.PENDING and run.live:
                    free = PutWork(work, self._store.now(), run.attempt)
                    await self._store.commit(Write(effects=(free,)))
        except (FenceLost, StoreUnavailable, Refusal) as error:
            log.warning("a run could not be handed over", run=work.work_id, error=str(error))

    async def _hand_over(self, key: SessionKey, run_id: str, fence: Fence) -> None:
        def act(decision: Decision) -> None:
            runs.hand_over(decision, run_id, fence.token)

        await self._sessions.execute(key, BROKER, act, fence=fence)
