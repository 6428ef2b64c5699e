"""The one writer of a replica: a task that commits everything queued as one transaction.

A transaction waits for the database's disk, so what arrives meanwhile shares the next one (group
commit). While the database cannot be reached, writes fail at once, and the writer connects again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

import structlog

from broker_service.storage.listeners import settle
from broker_service.storage.port import (
    Committed,
    RememberRequest,
    StoreError,
    StoreUnavailable,
    VersionConflict,
    Write,
)
from broker_service.storage.postgres_connect import STATEMENT_TIMEOUT_S, connect_again, hang_up
from broker_service.storage.postgres_driver import DRIVER_ERRORS, Connection
from broker_service.storage.postgres_errors import (
    FAILURES,
    LostRace,
    concerns_values,
    is_race,
    store_error,
)
from broker_service.storage.postgres_group import Group, keys_of
from broker_service.storage.postgres_notices import Announcements
from broker_service.storage.postgres_sql import read, store

_GROUP = 1_000  # writes a transaction at most, so that none waits for a very long one
_RACES = 20  # lost in a row before a group fails: far beyond what replicas do to each other

log = structlog.stdlib.get_logger(__name__)


@dataclass(slots=True)
class _Job:
    """A write and its caller."""

    write: Write
    future: asyncio.Future[Committed]
    outcome: Committed | Exception | None = None


class Writer:
    """Owns the writing connection. To be made, used and closed on one event loop."""

    def __init__(
        self,
        connection: Connection,
        connect_once: Callable[[], Awaitable[Connection]],
        now: Callable[[], int],
        announcements: Announcements,
    ) -> None:
        self._connect_once = connect_once
        self._now = now
        self._announcements = announcements
        self._queue: deque[_Job] = deque()
        self._awake = asyncio.Event()
        self._closing = False
        self._away: StoreUnavailable | None = None  # why there is no connection
        self._connection = connection
        connection.add_termination_listener(self._wake)
        self._task = asyncio.create_task(self._serve())
        self._task.add_done_callback(_report)

    async def commit(self, write: Write) -> Committed:
        """Store the write with others, and answer once that is durable."""
        if self._closing:
            raise StoreUnavailable("the store is closed")
        if self._task.done():
            raise StoreUnavailable("the store has stopped writing")
        if self._away is not None:
            raise StoreUnavailable(str(self._away))
        job = _Job(write, asyncio.get_running_loop().create_future())
        self._queue.append(job)
        self._awake.set()
        return await job.future

    async def close(self) -> None:
        """Finish what is queued, then end the task."""
        self._closing = True
        self._awake.set()
        if self._away is not None:
            self._task.cancel()
        await asyncio.wait([self._task])
        await hang_up(self._connection)

    def _wake(self, _: object) -> None:
        self._awake.set()

    async def _serve(self) -> None:
        try:
            while self._queue or not self._closing:
                if self._connection.is_closed():
                    if self._closing:
                        return
                    await self._reconnect()
                jobs = [self._queue.popleft() for _ in range(min(_GROUP, len(self._queue)))]
                if jobs:
                    await self._commit(jobs)
                else:
                    self._awake.clear()
                    await self._awake.wait()
        finally:  # by its end, by a cancel or by a defect: nobody goes on waiting
            self._fail_queued(StoreUnavailable("the store has stopped writing"))

    async def _reconnect(self) -> None:
        self._lose(StoreUnavailable("the store is unavailable: the database went away"))
        self._connection = await connect_again(self._connect_once, self._lose)
        self._connection.add_termination_listener(self._wake)
        self._away = None
        log.info("the writer is connected to the database again")

    def _lose(self, why: StoreUnavailable) -> None:
        if self._away is None or str(why) != str(self._away):
            log.warning("no connection to the database for writing", error=str(why))
        self._away = why
        self._fail_queued(why)

    def _fail_queued(self, why: StoreUnavailable) -> None:
        while self._queue:
            settle(self._queue.popleft().future, StoreUnavailable(str(why)))

    async def _commit(self, jobs: list[_Job]) -> None:
        """Commit a group and answer its callers."""
        try:
            async with asyncio.timeout(STATEMENT_TIMEOUT_S):
                await self._commit_until_told(jobs)
        except FAILURES as error:
            if concerns_values(error) and await self._rolled_back():
                if len(jobs) > 1:  # each gets its own transaction, so that it fails alone
                    for job in jobs:
                        await self._commit([job])
                    return
                jobs[0].outcome = ValueError("a value of the write cannot be stored")
            else:
                self._connection.terminate()
                failure = store_error(error)
                log.warning("a group of writes failed", writes=len(jobs), error=str(failure))
                for job in jobs:
                    job.outcome = StoreUnavailable(str(failure))
        except BaseException:
            self._connection.terminate()
            for job in jobs:
                settle(job.future, StoreUnavailable("the store has stopped writing"))
            raise
        for job in jobs:
            assert job.outcome is not None
            settle(job.future, job.outcome)

    async def _commit_until_told(self, jobs: list[_Job]) -> None:
        """Once, and again as long as other replicas come in between."""
        for lost in range(_RACES):
            try:
                await self._transact(jobs, may_look_again=lost == 0)
            except FAILURES as error:
                if not is_race(error) or not await self._rolled_back():
                    raise
            else:
                return
        raise LostRace

    async def _transact(self, jobs: list[_Job], may_look_again: bool) -> None:
        """One transaction. Afterwards each job has its outcome, and listeners are being told."""
        connection = self._connection
        await connection.execute("BEGIN")
        now = self._now()
        group = Group(await read(connection, keys_of(job.write for job in jobs)), now)
        for job in jobs:
            try:
                job.outcome = group.take(job.write)
            except (StoreError, ValueError) as refusal:
                job.outcome = refusal
        if may_look_again and any(map(_may_be_repeated, jobs)):
            # It waited for a lock and saw the version as it is now, but the ledger as it was.
            raise LostRace
        if not group.rows:
            await connection.execute("ROLLBACK")
            return
        await store(connection, group.rows, now)
        with self._announcements.held():
            await connection.execute("COMMIT")
            self._announcements.own(group.published)

    async def _rolled_back(self) -> bool:
        """Whether the connection is fit for the next transaction."""
        with suppress(*DRIVER_ERRORS):
            if not self._connection.is_closed():
                await self._connection.execute("ROLLBACK")
                return True
        return False


def _report(task: asyncio.Task[None]) -> None:
    """A defect ends the writer; whoever reads the log learns of it at once."""
    if not task.cancelled() and task.exception() is not None:
        log.error("the writer of the store has failed", exc_info=task.exception())


def _may_be_repeated(job: _Job) -> bool:
    """Whether a conflict may be that with the twin of a request, which is told first (E1)."""
    return isinstance(job.outcome, VersionConflict) and any(
        isinstance(effect, RememberRequest) for effect in job.write.effects
    )
