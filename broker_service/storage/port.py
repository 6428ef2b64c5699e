"""The storage port: everything the broker asks of a store, and nothing else.

Two ideas carry it (docs/decisions/0003-storage-port.md):

* **One commit.** `Store.commit` writes log entries of any number of sessions together with all the
  private bookkeeping that belongs to them (request ledger, due work, inbox and list rows,
  snapshots), all or nothing. A store may join concurrent writes into one transaction ("group
  commit"), but a conflict in one write never fails another. When `commit` returns, the write is
  durable (E4).
* **One claim.** Whatever somebody has to take up later (a pending run, a timer, a webhook) is a
  row of *work*, due at an instant, held by at most one owner under a lease, with a fence that
  grows with every hand-over. `Store.claim` is the only way to take work that another owner may
  hold.

The log of a session has two kinds of entries. An *event* moves the session's version, which
optimistic appends are checked against. A *delta* (streamed text) does not, so that a stop never
loses against the stream that it wants to stop. Both share one *position*, given by the store at
commit, growing without gap from 1 within a session: that is what watchers read by and cursors name
(W1).

Entries are opaque bytes to a store: the public event, encoded once, without its position.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple, Protocol, TypeAlias


class SessionKey(NamedTuple):
    """Where a session lives. The tenant is part of every key from the start (P2)."""

    tenant_id: str
    session_id: str


class EntryKind(Enum):
    EVENT = 1
    DELTA = 2


@dataclass(frozen=True, slots=True)
class Entry:
    """A log entry to append.

    `node_id` is the prompt or run that it belongs to ("" for the session itself) and `subject_id`
    the message whose content it is ("" for none): what `read_nodes` and compaction go by.
    """

    kind: EntryKind
    payload: bytes
    node_id: str = ""
    subject_id: str = ""


@dataclass(frozen=True, slots=True)
class StoredEntry:
    """A log entry with its place: `position` counts all entries, `version` the events so far."""

    position: int
    version: int
    kind: EntryKind
    payload: bytes
    node_id: str
    subject_id: str


class WorkKind(Enum):
    """What can fall due. The id of a work row is unique within its session and kind."""

    RUN = 1  # a run that waits for, or is held by, a broker's dispatcher; id: the run's
    TIMER = 2  # an instant at which a command is due (expiry, grace, ...); id: the timer's
    COMPACTION = 3  # a message is finished, its deltas are to be removed (W3); id: the message's
    WEBHOOK = 4  # a target is to be told of something (P3); id: the webhook's and the target's


class WorkKey(NamedTuple):
    kind: WorkKind
    session: SessionKey
    work_id: str


@dataclass(frozen=True, slots=True)
class Fence:
    """A condition on a write: `work` is still held by `owner` under exactly this `token` (R3, S2).

    A stalled broker that wakes up after its lease was taken over can therefore write nothing. A
    lease that has run out but was not taken over still holds.
    """

    work: WorkKey
    owner: str
    token: int


@dataclass(frozen=True, slots=True)
class Append:
    """Entries for one session.

    `expected_version`: the session's version that the decision was made from; 0 creates the
    session; None only for writes of deltas alone, which have to carry a `fence`. The append that
    creates a session holds at least one event. Without entries it stores nothing and only makes
    the rest of its write conditional on version and fence.
    """

    session: SessionKey
    entries: tuple[Entry, ...]
    expected_version: int | None
    fence: Fence | None = None


@dataclass(frozen=True, slots=True)
class PutWork:
    """Create or replace a row of work. With an `owner` it is born claimed under lease
    `lease_until`.

    The whole row is replaced, its token included: a writer that replaces work which was handed over
    before goes on counting from the token that it knows (R3).
    """

    work: WorkKey
    due_at: int
    token: int = 0
    owner: str | None = None
    lease_until: int | None = None
    payload: bytes = b""


@dataclass(frozen=True, slots=True)
class DeleteWork:
    work: WorkKey


class RequestKey(NamedTuple):
    """What a request id is unique within (E1). `session_id` is "" for `CreateSession`."""

    tenant_id: str
    session_id: str
    principal: str
    method: str
    request_id: str


@dataclass(frozen=True, slots=True)
class RememberRequest:
    """Remember the first answer to a request id. Fails the write if the key is already there (E1).

    `fingerprint` identifies the request's meaning, `response` is the encoded answer, `keep_until`
    is None for as long as the session lives. One that has run out (`keep_until` <= now) is not
    there.
    """

    key: RequestKey
    fingerprint: bytes
    response: bytes
    keep_until: int | None = None


@dataclass(frozen=True, slots=True)
class PutInteraction:
    """The inbox row of an open interaction (I5); `payload` is the encoded public `Interaction`."""

    session: SessionKey
    interaction_id: str
    opened_at: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class DeleteInteraction:
    session: SessionKey
    interaction_id: str


@dataclass(frozen=True, slots=True)
class PutSession:
    """The list row of a session; `payload` is the encoded public `Session`."""

    session: SessionKey
    owner: str
    created_at: int
    updated_at: int
    payload: bytes
    participants: tuple[str, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class DeleteDeltas:
    """Remove the deltas of these subjects: finished messages, which an event of theirs has whole
    (W3).

    Events stay, those of the same subjects too, and so do all positions, versions, and the
    session's last position: the log has a gap in its positions then. Nothing is told to listeners.
    Deltas are gone that were stored by commits which were answered before this one was asked for;
    of others, some may stay. What is not there is no error.
    """

    session: SessionKey
    subject_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EraseSession:
    """Remove the content of a session for good; a tombstone stays.

    Gone are all its entries but the newest one (which says that the session was deleted, in the
    same write), its snapshot, work, open interactions, list row, and remembered requests, also
    those that the same write has put *before* this effect. What stays is its key with version and
    position, so that its id is taken for ever and cursors keep their meaning.

    Listeners are told all entries of the write. Once `commit` has returned, no read finds the
    content; a store keeps no copy of it in its files for longer than it must (SQLite: the bytes
    are overwritten, and the write-ahead log is cut as soon as no read needs it).
    """

    session: SessionKey


@dataclass(frozen=True, slots=True)
class PutSnapshot:
    """The folded state at `version`, so that a cold session need not be folded from its start.

    A store keeps the newest one only; an older one than that changes nothing.
    """

    session: SessionKey
    version: int
    payload: bytes


Effect: TypeAlias = (
    PutWork
    | DeleteWork
    | RememberRequest
    | PutInteraction
    | DeleteInteraction
    | PutSession
    | PutSnapshot
    | DeleteDeltas
    | EraseSession
)


@dataclass(frozen=True, slots=True)
class Write:
    """What one `commit` stores, all or nothing: appends, then effects in their order. A session
    is in `appends` once at most."""

    appends: tuple[Append, ...] = ()
    effects: tuple[Effect, ...] = ()


@dataclass(frozen=True, slots=True)
class Committed:
    """The stored entries by session, in the order of `Write.appends`."""

    entries: tuple[tuple[StoredEntry, ...], ...]


@dataclass(frozen=True, slots=True)
class Loaded:
    """What is needed to fold a session: the newest snapshot, if any, and the events after it."""

    snapshot: bytes | None
    snapshot_version: int
    events: tuple[StoredEntry, ...]
    version: int
    position: int


@dataclass(frozen=True, slots=True)
class Work:
    """A claimed row of work."""

    work: WorkKey
    due_at: int
    token: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    fingerprint: bytes
    response: bytes


@dataclass(frozen=True, slots=True)
class SessionListing:
    """A page of session rows, newest first. `next_after` is the last row's place, None on the last
    page."""

    rows: tuple[bytes, ...]
    next_after: tuple[int, str] | None


@dataclass(frozen=True, slots=True)
class SessionFilter:
    """Which sessions to list. `principal` limits to those that it owns or takes part in (P1)."""

    tenant_id: str
    principal: str | None = None
    labels: tuple[tuple[str, str], ...] = field(default=())


@dataclass(frozen=True, slots=True)
class InteractionListing:
    """A page of open interactions, oldest first."""

    rows: tuple[bytes, ...]
    next_after: tuple[int, str] | None


class StoreError(Exception):
    """Base of what a store raises on purpose."""


class VersionConflict(StoreError):
    """The session is not at the expected version: fold what is new and decide again."""

    def __init__(self, session: SessionKey) -> None:
        super().__init__(f"session {session.session_id} has moved on")
        self.session = session


class FenceLost(StoreError):
    """The work of the fence is held by another owner, under another token, or gone."""

    def __init__(self, fence: Fence) -> None:
        super().__init__(f"{fence.work.kind.name.lower()} {fence.work.work_id} was taken over")
        self.fence = fence


class RequestAlreadyRecorded(StoreError):
    """Another write remembered the same request id first: read it and answer with it (E1)."""

    def __init__(self, key: RequestKey) -> None:
        super().__init__(f"request id {key.request_id} is already recorded")
        self.key = key


class StoreUnavailable(StoreError):
    """The store cannot be reached or does not take writes at the moment. Nothing was stored."""


class StoreUnusable(StoreUnavailable):
    """The store cannot be served before a person has acted: damaged, of a newer schema, folder
    missing."""


class UnsupportedStore(StoreError):
    """There is no store for this address."""


class StoreHeld(StoreError):
    """The store belongs to another broker that is running (SQLite serves exactly one)."""


CommitListener: TypeAlias = Callable[[SessionKey, int, tuple[StoredEntry, ...]], None]
"""Called on the event loop after each durable commit, in order of position within a session, with
the session, its last position, and the new entries; entries are empty when the commit was another
replica's, then a reader reads them. A listener must not block."""


class Store(Protocol):
    """The port. All instants are milliseconds since the Unix epoch, by the store's own clock."""

    def now(self) -> int:
        """The store's clock (I4): one clock for all replicas, never running backwards."""
        ...

    def listen(self, listener: CommitListener) -> None:
        """Register a listener for durable commits. It is never called before the commit is durable
        (W1)."""
        ...

    async def commit(self, write: Write) -> Committed:
        """Store the write, durably, all or nothing.

        Raises FenceLost, RequestAlreadyRecorded, VersionConflict (looked at in this order),
        ValueError for a write that breaks the rules above, or StoreUnavailable; then nothing of
        this write was stored. If the caller is cancelled, the write may have been stored or not,
        but never in part.
        """
        ...

    async def load(self, session: SessionKey) -> Loaded | None:
        """The newest snapshot and all events after it, or None for a session that does not
        exist."""
        ...

    async def read_events(self, session: SessionKey, after_version: int) -> tuple[StoredEntry, ...]:
        """All events (no deltas) with a version greater than `after_version`, in order."""
        ...

    async def read(
        self, session: SessionKey, after: int, max_entries: int, max_bytes: int
    ) -> tuple[StoredEntry, ...]:
        """Entries with a position greater than `after`, in order; at least one if there is one."""
        ...

    async def read_nodes(
        self, session: SessionKey, node_ids: Sequence[str]
    ) -> tuple[StoredEntry, ...]:
        """All entries of these prompts and runs, in order of position. Served by an index: its
        cost does not depend on the length of the session (F3, scenario 12)."""
        ...

    async def read_subject(self, session: SessionKey, subject_id: str) -> tuple[StoredEntry, ...]:
        """All entries whose `subject_id` is this one, in order of position (index, as above)."""
        ...

    async def last_position(self, session: SessionKey) -> int | None:
        """The position of the newest entry, or None for a session that does not exist."""
        ...

    async def find_request(self, key: RequestKey) -> RecordedRequest | None:
        """The remembered answer to a request id, unless it has run out."""
        ...

    async def find_session(self, session: SessionKey) -> bytes | None:
        """The payload of the session's list row."""
        ...

    async def list_sessions(
        self, where: SessionFilter, after: tuple[int, str] | None, limit: int
    ) -> SessionListing:
        """A page of sessions, newest `created_at` first (ties: by id, descending); stable while
        others are added."""
        ...

    async def list_interactions(
        self, where: SessionFilter, after: tuple[int, str] | None, limit: int
    ) -> InteractionListing:
        """A page of open interactions over the sessions that `where` selects, oldest first."""
        ...

    async def claim(
        self, kind: WorkKind, owner: str, lease_until: int, limit: int
    ) -> tuple[Work, ...]:
        """Take work that is due and that nobody holds, or whose lease has run out.

        What could be taken for longest comes first: since it was due or, if later, its lease's end.
        Each taken row gets this owner and lease, and a token one higher than before. Work that this
        owner itself holds under a running lease is not returned again.
        """
        ...

    async def renew(self, owner: str, works: Sequence[WorkKey], lease_until: int) -> set[WorkKey]:
        """Prolong leases that `owner` still holds; answers which those are (a missing one is
        lost)."""
        ...

    async def next_due(self, kind: WorkKind) -> int | None:
        """The earliest instant at which `claim` would find something (due or lease end), if any."""
        ...

    async def close(self) -> None:
        """Finish what is being written, then release all resources. Idempotent."""
        ...
