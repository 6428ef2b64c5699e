"""A group of writes as rows: each is held against what is stored, and against those before it.

A `Group` begins with what `postgres_sql.read` found (under locks, so that it stays true until the
transaction ends), takes write by write, and ends as the rows that `postgres_sql.store` stores.
Each write is checked in full before its first row is noted: a refused one leaves nothing behind.
No I/O here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import assert_never

from broker_service.storage.checks import check_fence, check_snapshot, check_version, placed
from broker_service.storage.port import (
    Committed,
    DeleteDeltas,
    DeleteInteraction,
    DeleteWork,
    Effect,
    EraseSession,
    PutInteraction,
    PutSession,
    PutSnapshot,
    PutWork,
    RememberRequest,
    RequestAlreadyRecorded,
    RequestKey,
    SessionKey,
    StoredEntry,
    WorkKey,
    Write,
)


@dataclass(frozen=True, slots=True)
class Keys:
    """What writes have to know, each in the one order in which all replicas lock it."""

    sessions: tuple[SessionKey, ...]
    works: tuple[WorkKey, ...]
    requests: tuple[RequestKey, ...]
    rows: tuple[SessionKey, ...]


def keys_of(writes: Iterable[Write]) -> Keys:
    """Everything that the writes look at or replace."""
    sessions: set[SessionKey] = set()
    works: set[WorkKey] = set()
    requests: set[RequestKey] = set()
    rows: set[SessionKey] = set()
    for write in writes:
        for append in write.appends:
            sessions.add(append.session)
            if append.fence is not None:
                works.add(append.fence.work)
        for effect in write.effects:
            match effect:
                case PutSnapshot() | EraseSession() | DeleteDeltas():
                    sessions.add(effect.session)
                case PutWork() | DeleteWork():
                    works.add(effect.work)
                case RememberRequest():
                    requests.add(effect.key)
                case PutSession():
                    rows.add(effect.session)
                case PutInteraction() | DeleteInteraction():
                    pass  # replaced unseen
                case _:
                    assert_never(effect)
    return Keys(
        tuple(sorted(sessions)),
        tuple(sorted(works, key=lambda work: (work.kind.value, work.session, work.work_id))),
        tuple(sorted(requests)),
        tuple(sorted(rows)),
    )


@dataclass(slots=True)
class Head:
    """Where a session stands; `number` is spare for one that does not exist (`version` 0)."""

    number: int
    version: int
    position: int


@dataclass(slots=True)
class Found:
    """What is stored: heads of sessions, owner and token of works, until when requests are
    remembered (None: as long as the session lives), and what session rows are found by."""

    heads: dict[SessionKey, Head] = field(default_factory=dict)
    works: dict[WorkKey, tuple[str | None, int]] = field(default_factory=dict)
    requests: dict[RequestKey, int | None] = field(default_factory=dict)
    rows: dict[SessionKey, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A list row with what it is found by. `known`: it is there, found by something else."""

    put: PutSession
    members: tuple[str, ...]
    labels: tuple[tuple[str, str], ...]
    found_by: str
    changed: bool
    known: bool


@dataclass(slots=True)
class Rows:
    """What a group stores; of rows that are written twice the last."""

    created: dict[SessionKey, Head] = field(default_factory=dict)
    moved: dict[SessionKey, Head] = field(default_factory=dict)
    entries: list[tuple[int, StoredEntry]] = field(default_factory=list)
    snapshots: dict[int, PutSnapshot] = field(default_factory=dict)
    works: dict[WorkKey, PutWork | None] = field(default_factory=dict)  # None: deleted
    requests: dict[RequestKey, RememberRequest] = field(default_factory=dict)
    interactions: dict[tuple[SessionKey, str], PutInteraction | None] = field(default_factory=dict)
    sessions: dict[SessionKey, SessionRow] = field(default_factory=dict)
    erased: dict[SessionKey, tuple[int, int]] = field(default_factory=dict)
    """Sessions by number whose content goes, but for entries from this position on; it goes before
    anything here is stored."""
    compacted: list[tuple[int, str]] = field(default_factory=list)
    """Sessions by number, with subjects whose deltas go."""

    def __bool__(self) -> bool:
        return any(
            (
                self.entries,
                self.snapshots,
                self.works,
                self.requests,
                self.interactions,
                self.sessions,
                self.erased,
                self.compacted,
            )
        )


class Group:
    """Writes that share a transaction."""

    def __init__(self, found: Found, now: int) -> None:
        self._found = found
        self._now = now
        self.rows = Rows()
        self.published: list[tuple[SessionKey, int, tuple[StoredEntry, ...]]] = []

    def take(self, write: Write) -> Committed:
        """Check a write, then note its rows. Raises what `Store.commit` raises for a refusal."""
        for append in write.appends:
            if append.fence is not None:
                check_fence(append.fence, self._found.works.get(append.fence.work))
        for effect in write.effects:
            if isinstance(effect, RememberRequest) and self._is_remembered(effect.key):
                raise RequestAlreadyRecorded(effect.key)
        for append in write.appends:
            check_version(append, self._version(append.session))
        for effect in write.effects:
            if isinstance(effect, PutSnapshot):
                check_snapshot(effect, self._version(effect.session), write)
        entries: list[tuple[StoredEntry, ...]] = []
        for append in write.appends:
            head = self._found.heads[append.session]
            stored = placed(append, head.version, head.position)
            entries.append(stored)
            if stored:
                self._move(append.session, head, stored)
        for effect in write.effects:
            self._note(effect)
        return Committed(tuple(entries))

    def _version(self, session: SessionKey) -> int | None:
        return self._found.heads[session].version or None

    def _is_remembered(self, key: RequestKey) -> bool:
        if key not in self._found.requests:
            return False
        keep_until = self._found.requests[key]
        return keep_until is None or keep_until > self._now

    def _move(self, session: SessionKey, head: Head, stored: tuple[StoredEntry, ...]) -> None:
        if head.version == 0:
            self.rows.created[session] = head
        elif session not in self.rows.created:
            self.rows.moved[session] = head
        head.version, head.position = stored[-1].version, stored[-1].position
        self.rows.entries += [(head.number, entry) for entry in stored]
        self.published.append((session, head.position, stored))

    def _note(self, effect: Effect) -> None:
        match effect:
            case PutWork():
                self._found.works[effect.work] = (effect.owner, effect.token)
                self.rows.works[effect.work] = effect
            case DeleteWork():
                self._found.works.pop(effect.work, None)
                self.rows.works[effect.work] = None
            case RememberRequest():
                self._found.requests[effect.key] = effect.keep_until
                self.rows.requests[effect.key] = effect
            case PutInteraction():
                self.rows.interactions[effect.session, effect.interaction_id] = effect
            case DeleteInteraction():
                self.rows.interactions[effect.session, effect.interaction_id] = None
            case PutSession():
                self._note_session(effect)
            case PutSnapshot():
                number = self._found.heads[effect.session].number
                newest = self.rows.snapshots.get(number)
                if newest is None or effect.version >= newest.version:
                    self.rows.snapshots[number] = effect
            case EraseSession():
                self._erase(effect.session)
            case DeleteDeltas():
                head = self._found.heads.get(effect.session)
                if head is not None:
                    self.rows.compacted += [(head.number, s) for s in effect.subject_ids]
            case _:
                assert_never(effect)

    def _erase(self, session: SessionKey) -> None:
        """Forget what the group has noted of a session so far; what is stored goes, too."""
        head, found, rows = self._found.heads[session], self._found, self.rows
        rows.erased[session] = (head.number, head.position)
        rows.entries = [
            (number, entry)
            for number, entry in rows.entries
            if number != head.number or entry.position >= head.position
        ]
        rows.snapshots.pop(head.number, None)
        rows.sessions.pop(session, None)
        found.rows.pop(session, None)
        for work in [work for work in found.works if work.session == session]:
            del found.works[work]
        for work in [work for work in rows.works if work.session == session]:
            del rows.works[work]
        for place in [place for place in rows.interactions if place[0] == session]:
            del rows.interactions[place]
        for key in [key for key in found.requests if (key.tenant_id, key.session_id) == session]:
            del found.requests[key]
            rows.requests.pop(key, None)

    def _note_session(self, put: PutSession) -> None:
        members = tuple(sorted({put.owner, *put.participants}))
        labels = tuple(sorted(set(put.labels)))
        found_by = json.dumps([put.created_at, members, labels])
        known = self._found.rows.get(put.session)
        self.rows.sessions[put.session] = SessionRow(
            put, members, labels, found_by, changed=known != found_by, known=known is not None
        )
