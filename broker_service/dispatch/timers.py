"""Fires timers: deadlines of sessions (I4, D1), the grace of runs that are cancelled (C1), and the
end of retention.
"""

from __future__ import annotations

import asyncio

import structlog

from broker_service.domain.cancel import end_of_grace
from broker_service.domain.decision import BROKER, Decision
from broker_service.domain.deletion import expire_session
from broker_service.effects import DEADLINES, GRACE, deadline_timer
from broker_service.retention import RETENTION, retention_timer
from broker_service.sessions import Sessions
from broker_service.storage.port import (
    Append,
    DeleteWork,
    PutWork,
    StoreUnavailable,
    VersionConflict,
    Work,
    WorkKind,
    Write,
)
from broker_service.sweep import Sweep
from turngate_core.errors import Reason, Refusal

log = structlog.stdlib.get_logger(__name__)

TIMERS_AT_ONCE = 100


class Timers:
    """Looks for due timers every `interval_s` seconds. Commands do not wait for it (I4)."""

    def __init__(self, sessions: Sessions, interval_s: float) -> None:
        self._sessions = sessions
        self._interval_s = interval_s
        self._sweep = Sweep(self._fire_due)

    def start(self) -> None:
        self._sweep.start(self._interval_s)

    async def close(self) -> None:
        await self._sweep.close()

    async def _fire_due(self) -> bool:
        """Fire some timers that are due; answers if more may be. Raises StoreUnavailable."""
        until = self._sessions.store.now() + self._sessions.lease_ms
        owner = self._sessions.owner
        due = await self._sessions.store.claim(WorkKind.TIMER, owner, until, TIMERS_AT_ONCE)
        for work in due:
            await self._fire_safely(work)
        return len(due) == TIMERS_AT_ONCE

    async def _fire_safely(self, work: Work) -> None:
        """A mistake about one session must not end the timers of all others."""
        fired = await asyncio.gather(self._fire(work), return_exceptions=True)
        error = fired[0]
        if isinstance(error, StoreUnavailable):
            raise error
        if isinstance(error, BaseException):
            log.error("timer failed", session=work.work.session.session_id, exc_info=error)

    async def _fire(self, work: Work) -> None:
        key = work.work.session
        try:
            if work.work.work_id.startswith(GRACE):
                run_id = work.work.work_id.removeprefix(GRACE)

                def end(decision: Decision) -> None:
                    end_of_grace(decision, run_id)

                await self._sessions.execute(key, BROKER, end)
            elif work.work.work_id == DEADLINES:
                # A command that asks for nothing: deadlines are acted on before each.
                await self._sessions.execute(key, BROKER, lambda _: None)
            elif work.work.work_id == RETENTION:
                await self._sessions.execute(key, BROKER, expire_session)
            await self._put_off(work)
        except Refusal as refusal:
            if refusal.reason in (Reason.SESSION_NOT_FOUND, Reason.SESSION_DELETED):
                await self._sessions.store.commit(Write(effects=(DeleteWork(work.work),)))
            else:
                # It is tried again when the lease of this claim has ended.
                log.warning("timer not fired", session=key.session_id, problem=refusal.message)

    async def _put_off(self, work: Work) -> None:
        """Set the timer to what is due next. Guarded by the version: a command may have set it."""
        key = work.work.session
        async with self._sessions.reading(key) as state:
            timer: PutWork | DeleteWork = DeleteWork(work.work)
            if work.work.work_id == DEADLINES:
                timer = deadline_timer(state, self._sessions.limits)
            elif work.work.work_id == RETENTION:
                timer = retention_timer(state, self._sessions.store.now())
            guarded = Write((Append(key, (), state.version),), (timer,))
            try:
                await self._sessions.store.commit(guarded)
            except VersionConflict:
                return
