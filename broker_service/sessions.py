"""Sessions in memory: load, decide, commit. The shell round the pure core.

Commands on one session are serial (E1): each decides on the state that the one before left. What a
decision changed is answered only when it is durable (E4). Should another broker have written
meanwhile, the state is folded anew and the decision made again.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from broker_service.domain import fold, gate
from broker_service.domain.deadlines import act_on_deadlines, next_deadline
from broker_service.domain.decision import BROKER, Actor, Decision
from broker_service.domain.events import SessionDeleted, SessionEvent
from broker_service.domain.importing import ImportSession, import_session
from broker_service.domain.limits import Limits
from broker_service.domain.model import OperatorPolicy
from broker_service.domain.sessions import CreateSession, create_session
from broker_service.domain.state import SessionState
from broker_service.effects import effects_of, entries_of, session_key
from broker_service.encoding import UnknownEventKind, decode_event
from broker_service.storage.port import (
    Append,
    Effect,
    Entry,
    Fence,
    PutWork,
    RememberRequest,
    RequestAlreadyRecorded,
    RequestKey,
    SessionKey,
    Store,
    StoredEntry,
    VersionConflict,
    WorkKind,
    Write,
)
from broker_service.webhooks.targets import Target
from turngate_core.errors import Reason, Refusal

T = TypeVar("T")

HOT_SESSIONS = 10_000
"""Sessions whose state is kept in memory; others are folded again when they are needed."""

CONFLICTS_IN_A_ROW = 50
"""Decisions made again before the broker gives up: far beyond what real contention makes."""

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


_last_minted = 0


def mint(prefix: str) -> str:
    """A fresh id (T3): 20 characters, 35 random bits beside the milliseconds. Ids of one process
    rise, so that what was opened together keeps its order.
    """
    global _last_minted
    drawn = (time.time_ns() // 1_000_000 % (1 << 45) << 35) | secrets.randbits(35)
    number = _last_minted = max(drawn, _last_minted + 1)
    text = ""
    for _ in range(16):
        number, digit = divmod(number, 32)
        text = _ALPHABET[digit] + text
    return f"{prefix}_{text}"


@dataclass(frozen=True, slots=True)
class Committed:
    """What a commit changed: told to the listener of `Sessions` after it is durable."""

    key: SessionKey
    state: SessionState
    events: tuple[SessionEvent, ...]
    claimed: tuple[PutWork, ...]


Listener = Callable[[Committed], None]


@dataclass(frozen=True, slots=True)
class Request(Generic[T]):
    """A request that is to be remembered (E1). `fingerprint`: what it means; `answer`: the encoded
    response, which must not depend on anything but the reply and the state after it.
    `keep_ms`: how long; None for as long as the session lives.
    """

    key: RequestKey
    fingerprint: bytes
    answer: Callable[[T, SessionState], bytes]
    keep_ms: int | None = None

    def remembered(self, reply: T, state: SessionState, now: int) -> RememberRequest:
        keep_until = None if self.keep_ms is None else now + self.keep_ms
        return RememberRequest(self.key, self.fingerprint, self.answer(reply, state), keep_until)


@dataclass(frozen=True, slots=True)
class Deltas:
    """Streamed text that belongs before and after the events of a decision."""

    before: tuple[Entry, ...] = ()
    after: tuple[Entry, ...] = ()


NO_DELTAS = Deltas()


class AnsweredBefore(Exception):
    """The request was answered before, with this (E1)."""

    def __init__(self, response: bytes) -> None:
        super().__init__("answered before")
        self.response = response


@dataclass(slots=True)
class _Hot:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    state: SessionState | None = None
    users: int = 0
    foreign_writes: int = 0


class Sessions:
    """The sessions that this broker knows. `owner`: under which name it claims work; `targets`: who
    is told of questions."""

    def __init__(
        self,
        store: Store,
        limits: Limits,
        owner: str,
        lease_ms: int,
        cancel_grace_ms: int = 10_000,
        targets: Sequence[Target] = (),
    ) -> None:
        self.store = store
        self.limits = limits
        self.owner = owner
        self.lease_ms = lease_ms
        self.cancel_grace_ms = cancel_grace_ms
        self._targets = targets
        self._operator_policy: OperatorPolicy | None = None
        self._hot: OrderedDict[SessionKey, _Hot] = OrderedDict()
        self._listeners: list[Listener] = []
        self._tasks: set[asyncio.Task[Any]] = set()
        store.listen(self._on_stored)

    def listen(self, listener: Listener) -> None:
        """Be told of each commit of this broker, on the event loop, in order within a session."""
        self._listeners.append(listener)

    @property
    def operator_policy(self) -> OperatorPolicy | None:
        """The operator's policy of today; None: there is none (R7)."""
        return self._operator_policy

    def set_operator_policy(self, policy: OperatorPolicy | None) -> None:
        """From the next decision on this policy holds."""
        self._operator_policy = policy

    async def create(
        self,
        command: CreateSession,
        actor: Actor,
        request: Request[str] | None = None,
    ) -> tuple[str, SessionState]:
        """Create a session; answers the run that started, if one did, and the session's state.

        Refuses with SESSION_ID_TAKEN and REQUEST_ID_REUSED. Raises AnsweredBefore.
        """
        await self._check_ledger(request)
        decision, run_id = create_session(
            command, self.store.now(), actor, mint, self.limits, self._operator_policy
        )
        await self._begin(decision, run_id, request)
        return run_id, decision.state

    async def import_log(
        self, command: ImportSession, actor: Actor, request: Request[int] | None = None
    ) -> SessionState:
        """Begin a session with its history (P3). Refuses with INVALID_FIELD, SESSION_ID_TAKEN and
        REQUEST_ID_REUSED. Raises AnsweredBefore.
        """
        await self._check_ledger(request)
        now = self.store.now()
        # Long logs take their time: others go on meanwhile.
        decision = await asyncio.to_thread(import_session, command, now, actor, mint, self.limits)
        await self._begin(decision, len(command.log), request)
        return decision.state

    async def _begin(self, decision: Decision, reply: T, request: Request[T] | None) -> None:
        """Store the first decision of a session."""
        key = session_key(decision.state)

        async def commit() -> None:
            hot = self._enter(key)
            try:
                async with hot.lock:
                    try:
                        await self._commit(hot, decision, 0, reply, request, None, NO_DELTAS)
                    except VersionConflict:
                        await self._check_ledger(request)
                        raise Refusal(
                            Reason.SESSION_ID_TAKEN,
                            f"session id {key.session_id} is taken",
                            {"session_id": key.session_id},
                        ) from None
            finally:
                hot.users -= 1

        await self._to_the_end(commit())

    async def execute(
        self,
        key: SessionKey,
        actor: Actor,
        act: Callable[[Decision], T],
        *,
        client: str = "",
        request: Request[T] | None = None,
        fence: Fence | None = None,
        deltas: Deltas = NO_DELTAS,
    ) -> tuple[T, SessionState]:
        """Decide and store. Answers what `act` answered, and the state after it.

        `act` is a function of the core; the queue gate is asked after each. `deltas` are stored in
        the same commit. A caller that goes away does not stop what has begun.

        Refuses with SESSION_NOT_FOUND, SESSION_DELETED and whatever
        `act` refuses with, REQUEST_ID_REUSED. Raises AnsweredBefore, FenceLost, StoreUnavailable.
        """

        async def run() -> tuple[T, SessionState]:
            hot = self._enter(key)
            try:
                async with hot.lock:
                    return await self._decide(hot, key, actor, act, client, request, fence, deltas)
            finally:
                hot.users -= 1

        return await self._to_the_end(run())

    @asynccontextmanager
    async def reading(self, key: SessionKey) -> AsyncIterator[SessionState]:
        """The present, durable state, for as long as the block lasts; commands wait for its end.

        Never to be changed. Refuses with SESSION_NOT_FOUND and SESSION_DELETED.
        """
        hot = self._enter(key)
        try:
            async with hot.lock:
                yield await self._state(hot, key)
        finally:
            hot.users -= 1

    def _on_stored(self, key: SessionKey, _position: int, entries: tuple[StoredEntry, ...]) -> None:
        """Another broker has written: what is in memory is old. Without this a read could show it;
        a decision would find out by its version.
        """
        hot = self._hot.get(key)
        if hot is not None and not entries:
            hot.state = None
            hot.foreign_writes += 1

    async def close(self) -> None:
        """Wait until what has begun is stored."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def _decide(
        self,
        hot: _Hot,
        key: SessionKey,
        actor: Actor,
        act: Callable[[Decision], T],
        client: str,
        request: Request[T] | None,
        fence: Fence | None,
        deltas: Deltas,
    ) -> tuple[T, SessionState]:
        await self._check_ledger(request)
        for _ in range(CONFLICTS_IN_A_ROW):
            state = await self._state(hot, key)
            if self._is_due(state) and await self._act_on_deadlines(hot, state):
                continue
            decision = self._decision(state, actor, client)
            version = state.version
            try:
                reply = act(decision)
                gate.release(decision)
            except BaseException:
                if decision.events:
                    hot.state = None  # half a decision is none
                raise
            if not decision.events:
                return reply, state
            try:
                await self._commit(hot, decision, version, reply, request, fence, deltas)
            except VersionConflict:
                await self._check_ledger(request)
                continue
            return reply, state
        raise Refusal(
            Reason.STORE_UNAVAILABLE,
            "the session is written to faster than a decision can be made",
            retry_after_ms=100,
        )

    def _decision(self, state: SessionState, actor: Actor, client: str = "") -> Decision:
        now, policy = self.store.now(), self._operator_policy
        return Decision(state, now, actor, mint, self.limits, client, policy)

    def _is_due(self, state: SessionState) -> bool:
        """Deadlines are instants, judged in each command, whether or not a sweep came by (I4)."""
        deadline = next_deadline(state, self.limits.unclaimed_after_ms)
        return deadline is not None and deadline <= self.store.now()

    async def _act_on_deadlines(self, hot: _Hot, state: SessionState) -> bool:
        """In a commit of its own: what a command then refuses is refused on the new state. False
        if there was nothing to do.
        """
        decision = self._decision(state, BROKER)
        version = state.version
        try:
            act_on_deadlines(decision)
            gate.release(decision)
        except BaseException:
            hot.state = None
            raise
        if not decision.events:
            return False
        try:
            await self._commit(hot, decision, version, None, None, None, NO_DELTAS)
        except VersionConflict:
            return True
        return True

    async def _commit(
        self,
        hot: _Hot,
        decision: Decision,
        version: int,
        reply: T,
        request: Request[T] | None,
        fence: Fence | None,
        deltas: Deltas,
    ) -> None:
        key = session_key(decision.state)
        lease_until = decision.now + self.lease_ms
        effects: tuple[Effect, ...] = effects_of(
            decision, self.owner, lease_until, self.cancel_grace_ms, self._targets
        )
        if request:
            effects = (*effects, request.remembered(reply, decision.state, decision.now))
        entries = (*deltas.before, *entries_of(decision), *deltas.after)
        append = Append(key, entries, version, fence)
        # Until it is durable nobody may decide on it: should the commit fail, it never was.
        hot.state = None
        foreign_writes = hot.foreign_writes
        try:
            await self.store.commit(Write((append,), effects))
        except RequestAlreadyRecorded:
            await self._check_ledger(request)
            raise
        if hot.foreign_writes == foreign_writes and not decision.state.deleted:
            hot.state = decision.state
        claimed = tuple(
            e for e in effects if isinstance(e, PutWork) and e.work.kind is WorkKind.RUN
        )
        committed = Committed(key, decision.state, tuple(decision.events), claimed)
        for listener in self._listeners:
            listener(committed)

    async def _check_ledger(self, request: Request[T] | None) -> None:
        recorded = await self.store.find_request(request.key) if request else None
        if request is None or recorded is None:
            return
        if recorded.fingerprint != request.fingerprint:
            raise Refusal(
                Reason.REQUEST_ID_REUSED,
                "this request id was used for another request",
                {"request_id": request.key.request_id},
            )
        raise AnsweredBefore(recorded.response)

    async def _state(self, hot: _Hot, key: SessionKey) -> SessionState:
        if hot.state is not None:
            return hot.state
        foreign_writes = hot.foreign_writes
        loaded = await self.store.load(key)
        if loaded is None or not loaded.events:
            raise not_found(key.session_id)
        try:
            first = decode_event(loaded.events[0].payload)
            if isinstance(first.event, SessionDeleted):  # the tombstone
                raise deleted(key.session_id)
            state = fold.begin(first)
            for stored in loaded.events[1:]:
                fold.apply(state, decode_event(stored.payload))
        except UnknownEventKind as error:
            raise too_new(key.session_id) from error
        if hot.foreign_writes == foreign_writes:
            hot.state = state
        return state

    def _enter(self, key: SessionKey) -> _Hot:
        hot = self._hot.get(key)
        if hot is None:
            hot = self._hot[key] = _Hot()
            self._forget_cold()
        self._hot.move_to_end(key)
        hot.users += 1
        return hot

    def _forget_cold(self) -> None:
        while len(self._hot) > HOT_SESSIONS:
            coldest = next(iter(self._hot))
            if self._hot[coldest].users:
                return
            del self._hot[coldest]

    async def _to_the_end(self, work: Coroutine[object, object, T]) -> T:
        """Go on even if the caller is cancelled: what is committed has to be told to listeners."""
        task: asyncio.Task[T] = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return await asyncio.shield(task)


def not_found(session_id: str) -> Refusal:
    """Unknown sessions and those of another tenant look the same (E2)."""
    return Refusal(Reason.SESSION_NOT_FOUND, f"no session {session_id}", {"session_id": session_id})


def too_new(session_id: str) -> Refusal:
    """A log with events that this version does not know is not served, rather than misread."""
    return Refusal(
        Reason.SESSION_TOO_NEW,
        f"session {session_id} was written by a newer version",
        {"session_id": session_id},
    )


def deleted(session_id: str) -> Refusal:
    """What every call on a deleted session is answered with."""
    return Refusal(
        Reason.SESSION_DELETED, f"session {session_id} was deleted", {"session_id": session_id}
    )
