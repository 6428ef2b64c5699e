"""Tells targets what is in the outbox: at least once, with growing pauses, each target by itself.

A row is claimed under a lease, like all work, and every write about it is fenced: a broker that was
slow may send a webhook twice, but does not undo what another has done. Rows that are waited for are
few; those beyond are put off, so that the memory of a broker is bounded.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import httpx2
import structlog

from broker_service.storage.port import (
    Append,
    DeleteWork,
    Fence,
    FenceLost,
    PutWork,
    Store,
    StoreUnavailable,
    Work,
    WorkKey,
    WorkKind,
    Write,
)
from broker_service.sweep import Sweep
from broker_service.webhooks.outbox import Webhook, decode_webhook
from broker_service.webhooks.posting import Delivered, Failed, Gone, Outcome, new_client, post
from broker_service.webhooks.schedule import pause_s
from broker_service.webhooks.targets import Target

log = structlog.stdlib.get_logger(__name__)

CLAIMED_AT_ONCE = 100
REQUESTS_A_TARGET = 8
WAITING_A_TARGET = 200
"""Rows of one target that are held in memory until it is their turn; others are put off."""

LAST_WORDS_S = 2.0
"""What requests under way have to end at a stop. Those that are cut off are sent again."""


@dataclass(frozen=True, slots=True)
class Pace:
    """`retry_s`: the first pause after a failure; `timeout_s`: of one attempt over all; `draw`: a
    chance from 0 to 1.
    """

    retry_s: float
    timeout_s: float
    draw: Callable[[], float] = random.random


@dataclass(slots=True)
class _Lane:
    """What one target has to do. `rests_until`: as the target asked; `failures`: in a row."""

    target: Target
    waiting: deque[tuple[Work, Webhook]] = field(default_factory=deque)
    sending: set[asyncio.Task[None]] = field(default_factory=set)
    rests_until: int = 0
    failures: int = 0
    gone: bool = False


class Delivery:
    """`owner`: under which name work is claimed, with leases of `lease_ms`."""

    def __init__(
        self,
        store: Store,
        owner: str,
        lease_ms: int,
        targets: Sequence[Target],
        pace: Pace,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self._store = store
        self._owner = owner
        self._lease_ms = lease_ms
        self._lanes = {target.name: _Lane(target) for target in targets}
        self._pace = pace
        self._client = new_client(pace.timeout_s, transport)
        self._held: dict[WorkKey, int] = {}
        self._sweep = Sweep(self.look)
        self._closing = False

    def start(self, interval_s: float) -> None:
        """Look for what is due every so many seconds, until `close`."""
        self._sweep.start(interval_s)

    async def close(self) -> None:
        """Let requests under way end, for a short time. Rows of others stay. Idempotent."""
        self._closing = True
        await self._sweep.close()
        if sending := [task for lane in self._lanes.values() for task in lane.sending]:
            _, late = await asyncio.wait(sending, timeout=LAST_WORDS_S)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late)
        await self._client.aclose()

    async def look(self) -> bool:
        """Take up what is due and hand it to its target; answers if more may be due.

        Waits for no target. Raises StoreUnavailable.
        """
        until = self._store.now() + self._lease_ms
        await self._renew(until)
        due = await self._store.claim(WorkKind.WEBHOOK, self._owner, until, CLAIMED_AT_ONCE)
        for work in due:
            self._held[work.work] = work.token
        taken = await asyncio.gather(*(self._take(work) for work in due), return_exceptions=True)
        for work, error in zip(due, taken, strict=True):
            if error is not None:  # one row must not keep the others
                log.error("webhook not taken up", webhook=work.work.work_id, exc_info=error)
                self._release(work)
        for lane in self._lanes.values():
            self._fill(lane)
        return len(due) == CLAIMED_AT_ONCE

    async def _renew(self, until: int) -> None:
        if self._held:
            kept = await self._store.renew(self._owner, list(self._held), until)
            for lost in self._held.keys() - kept:
                self._held.pop(lost, None)

    def _release(self, work: Work) -> None:
        """Its lease is not prolonged any more."""
        if self._held.get(work.work) == work.token:
            del self._held[work.work]

    async def _take(self, work: Work) -> None:
        webhook = decode_webhook(work.payload)
        lane = self._lanes.get(webhook.target)
        if lane is None:
            # Another broker may have been given this target already: it is not dropped at once.
            await self._try_later(work, webhook, Failed("no such target is configured"))
        elif len(lane.waiting) < WAITING_A_TARGET:
            lane.waiting.append((work, webhook))
        else:
            times = min(lane.failures, 1) + 1
            pause = pause_s(times, self._pace.retry_s, self._pace.draw()) or 0.0
            await self._put_off(work, webhook, self._in(pause))

    def _fill(self, lane: _Lane) -> None:
        """Begin with as many requests as the target may have at once."""
        while lane.waiting and len(lane.sending) < REQUESTS_A_TARGET and not self._closing:
            work, webhook = lane.waiting.popleft()
            if self._held.get(work.work) != work.token:
                continue  # taken over
            task = asyncio.create_task(self._send(lane, work, webhook))
            lane.sending.add(task)
            task.add_done_callback(lambda ended: self._sent(lane, ended))

    def _sent(self, lane: _Lane, task: asyncio.Task[None]) -> None:
        lane.sending.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            # It is tried again when the lease of its claim has ended.
            log.error("webhook failed unexpectedly", target=lane.target.name, exc_info=error)
        self._fill(lane)

    async def _send(self, lane: _Lane, work: Work, webhook: Webhook) -> None:
        try:
            now = self._store.now()
            if lane.gone:
                await self._store_fenced(work, DeleteWork(work.work))
            elif now < lane.rests_until:
                await self._put_off(work, webhook, lane.rests_until)
            else:
                await self._conclude(lane, work, webhook, await self._post(lane, webhook, now))
        finally:
            self._release(work)

    async def _post(self, lane: _Lane, webhook: Webhook, now: int) -> Outcome:
        posting = post(self._client, lane.target, webhook, now, self._pace.timeout_s)
        (sent,) = await asyncio.gather(posting, return_exceptions=True)
        if isinstance(sent, BaseException):
            log.error("webhook not sent by a mistake", target=webhook.target, exc_info=sent)
            return Failed("a mistake of the broker")
        return sent

    async def _conclude(self, lane: _Lane, work: Work, webhook: Webhook, sent: Outcome) -> None:
        match sent:
            case Delivered():
                lane.failures = 0
                log.debug("webhook delivered", target=webhook.target, webhook=webhook.id)
                await self._store_fenced(work, DeleteWork(work.work))
            case Gone():
                if not lane.gone:
                    lane.gone = True
                    log.error(
                        "webhook target is gone (410): it is told nothing until a restart",
                        target=webhook.target,
                    )
                await self._store_fenced(work, DeleteWork(work.work))
            case Failed():
                lane.failures += 1
                if sent.retry_after_s:
                    lane.rests_until = max(lane.rests_until, self._in(sent.retry_after_s))
                await self._try_later(work, webhook, sent)

    async def _try_later(self, work: Work, webhook: Webhook, failed: Failed) -> None:
        failures = webhook.failures + 1
        place = log.bind(
            target=webhook.target, webhook=webhook.id, problem=failed.problem, attempts=failures
        )
        pause = pause_s(failures, self._pace.retry_s, self._pace.draw())
        if pause is None:
            place.error("webhook given up")
            await self._store_fenced(work, DeleteWork(work.work))
            return
        pause = max(pause, failed.retry_after_s)
        place.warning("webhook not delivered", retry_in_s=round(pause, 1))
        again = Webhook(webhook.target, webhook.id, webhook.body, failures)
        await self._put_off(work, again, self._in(pause))

    def _in(self, seconds: float) -> int:
        return self._store.now() + round(seconds * 1000)

    async def _put_off(self, work: Work, webhook: Webhook, due_at: int) -> None:
        later = PutWork(work.work, due_at, work.token, payload=webhook.encode())
        await self._store_fenced(work, later)

    async def _store_fenced(self, work: Work, effect: PutWork | DeleteWork) -> None:
        fence = Fence(work.work, self._owner, work.token)
        held = Append(work.work.session, (), None, fence)
        try:
            await self._store.commit(Write((held,), (effect,)))
        except FenceLost:
            log.info("webhook was taken over, or its session is gone", webhook=work.work.work_id)
        except StoreUnavailable as error:
            # It is told again when the lease of this claim has ended.
            log.warning("store unavailable", error=str(error))
        finally:
            self._release(work)
