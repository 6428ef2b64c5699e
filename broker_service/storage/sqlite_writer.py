"""The one writer of the SQLite store: a thread that commits everything queued as one transaction.

A transaction waits for the disk (`synchronous=FULL`), so what arrives meanwhile shares the next one
(group commit). Results go back to the event loop with one call for the whole group.
"""

from __future__ import annotations

import asyncio
import queue
import sqlite3
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Generic, Protocol, TypeVar

from broker_service.storage.listeners import Listeners, settle
from broker_service.storage.port import CommitListener, StoreError, StoreUnavailable
from broker_service.storage.sqlite_errors import concerns_one_write, store_error
from broker_service.storage.sqlite_file import cut_log
from broker_service.storage.sqlite_writes import Heads, Transaction

T = TypeVar("T")

_GROUP = 1_000  # jobs a transaction at most, so that none waits for a very long one
_SESSIONS_KNOWN = 10_000
_SWEEP_EVERY = 60_000  # ms between two looks for remembered requests that have run out


class Job(Protocol):
    """Something to do within a transaction, for a caller that waits on the event loop."""

    def run(self, transaction: Transaction) -> None: ...

    def fail(self, error: Exception) -> None: ...

    def settle(self) -> None: ...


@dataclass(slots=True)
class WriteJob(Generic[T]):
    """A job and its caller. `run` and `fail` are the writer's, then `settle` is the loop's."""

    apply: Callable[[Transaction], T]
    future: asyncio.Future[T]
    outcome: T | Exception | None = None

    def run(self, transaction: Transaction) -> None:
        try:
            self.outcome = self.apply(transaction)
        except StoreError as refusal:  # raised before anything of this job was stored
            self.outcome = refusal

    def fail(self, error: Exception) -> None:
        self.outcome = error

    def settle(self) -> None:
        assert self.outcome is not None
        settle(self.future, self.outcome)


class Writer:
    """Owns the writing connection. To be made, used and closed on the event loop `loop`."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        now: Callable[[], int],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._connection = connection
        self._now = now
        self._loop = loop
        self._listeners = Listeners(loop)
        self._heads = Heads(_SESSIONS_KNOWN)
        self._next_sweep = 0
        self._log_holds_erased = False
        self._queue: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._closing = False
        self._ended = asyncio.Event()
        self._thread = threading.Thread(target=self._serve, name="sqlite-writer", daemon=True)
        self._thread.start()

    def listen(self, listener: CommitListener) -> None:
        self._listeners.add(listener)

    async def do(self, apply: Callable[[Transaction], T]) -> T:
        """Run `apply` in a transaction and answer with its result once that is durable."""
        if self._closing:
            raise StoreUnavailable("the store is closed")
        future: asyncio.Future[T] = self._loop.create_future()
        self._queue.put(WriteJob(apply, future))
        return await future

    async def close(self) -> None:
        """Finish what is queued, then end the thread."""
        if not self._closing:
            self._closing = True
            self._queue.put(None)
        await self._ended.wait()
        self._thread.join()

    def _serve(self) -> None:
        more = True
        jobs: list[Job] = []
        try:
            while more:
                jobs, more = self._take()
                if jobs:
                    self._heads.trim()
                    self._commit(jobs)
                jobs = []
        finally:
            # With jobs only after a defect, which the interpreter reports when the thread has
            # ended.
            self._on_loop(partial(self._end, jobs))

    def _end(self, jobs: list[Job]) -> None:
        """On the event loop: nobody goes on waiting for the thread that has ended."""
        self._closing = True
        while not self._queue.empty():
            job = self._queue.get_nowait()
            if job is not None:
                jobs.append(job)
        for job in jobs:
            job.fail(StoreUnavailable("the store has stopped writing"))
            job.settle()
        self._ended.set()

    def _take(self) -> tuple[list[Job], bool]:
        """Wait for a job, take what else is queued; the flag is False when the end was queued."""
        jobs: list[Job] = []
        job = self._queue.get()
        while job is not None:
            jobs.append(job)
            if len(jobs) == _GROUP or self._queue.empty():  # nobody else takes from this queue
                return jobs, True
            job = self._queue.get()
        return jobs, False

    def _on_loop(self, call: Callable[[], object]) -> None:
        try:
            self._loop.call_soon_threadsafe(call)
        except RuntimeError:  # the loop was closed: nobody waits any more
            return

    def _commit(self, jobs: list[Job]) -> None:
        transaction = Transaction(self._connection, self._heads, self._now)
        try:
            self._transact(transaction, jobs)
        except sqlite3.Error as error:
            if concerns_one_write(error):
                self._commit_apart(jobs, error)
            else:
                self._undo(jobs, store_error(error))
        except MemoryError:
            self._undo(
                jobs, StoreUnavailable("the store is unavailable: there is not enough memory")
            )
        except (ArithmeticError, TypeError, ValueError) as error:
            # A write with values that cannot be stored: an integer over 64 bits, half a surrogate
            # pair.
            self._commit_apart(jobs, error)
        else:
            self._on_loop(partial(self._deliver, jobs, transaction))
            self._log_holds_erased |= transaction.erased
            if self._log_holds_erased:
                self._cut_log()

    def _cut_log(self) -> None:
        """What was erased is still in older pages of the write-ahead log: cut it to nothing. A
        read that needs it puts that off to the next commit; there is one with every heartbeat."""
        try:
            self._log_holds_erased = not cut_log(self._connection)
        except sqlite3.Error:
            return  # such as a disk that is full: tried again

    def _transact(self, transaction: Transaction, jobs: list[Job]) -> None:
        if self._connection.in_transaction:  # the last roll-back failed, too
            self._connection.execute("ROLLBACK")
        self._connection.execute("BEGIN IMMEDIATE")
        for job in jobs:
            job.run(transaction)
        now = self._now()
        if now >= self._next_sweep:
            more = transaction.sweep()
            self._next_sweep = now if more else now + _SWEEP_EVERY
        transaction.finish()
        self._connection.execute("COMMIT")

    def _commit_apart(self, jobs: list[Job], error: Exception) -> None:
        """One of the group cannot be stored: each gets its own transaction, so that it fails
        alone."""
        if len(jobs) == 1:
            self._undo(jobs, error)
            return
        self._roll_back()
        for job in jobs:
            self._commit([job])

    def _undo(self, jobs: list[Job], error: Exception) -> None:
        self._roll_back()
        for job in jobs:
            job.fail(error)
        self._on_loop(partial(self._deliver, jobs, None))

    def _roll_back(self) -> None:
        self._heads.forget()
        if self._connection.in_transaction:
            try:
                self._connection.execute("ROLLBACK")
            except sqlite3.Error:
                return  # tried again before the next transaction, whose callers get the error

    def _deliver(self, jobs: list[Job], transaction: Transaction | None) -> None:
        """On the event loop: tell the listeners, then the callers."""
        if transaction is not None:
            for session, position, entries in transaction.published:
                self._listeners.tell(session, position, entries)
        for job in jobs:
            job.settle()
