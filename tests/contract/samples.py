"""Short ways to say what a test writes."""

from __future__ import annotations

from broker_service.storage.port import (
    Append,
    Effect,
    Entry,
    EntryKind,
    Fence,
    PutSession,
    PutWork,
    RequestKey,
    SessionKey,
    Store,
    StoredEntry,
    WorkKey,
    WorkKind,
    Write,
)

S = SessionKey("acme", "s1")
OTHER = SessionKey("acme", "s2")
RUN = WorkKey(WorkKind.RUN, S, "run1")
REQUEST = RequestKey("acme", "s1", "ann", "SendMessage", "req-1")


def event(text: str = "e", node_id: str = "", subject_id: str = "") -> Entry:
    return Entry(EntryKind.EVENT, text.encode(), node_id, subject_id)


def delta(text: str = "d", node_id: str = "run1", subject_id: str = "m1") -> Entry:
    return Entry(EntryKind.DELTA, text.encode(), node_id, subject_id)


def write(
    *entries: Entry,
    session: SessionKey = S,
    at: int | None = 0,
    fence: Fence | None = None,
    effects: tuple[Effect, ...] = (),
) -> Write:
    """A write of one append to `session`, which is expected at version `at`."""
    return Write((Append(session, entries, at, fence),), effects)


def held(owner: str = "b1", token: int = 1, lease_until: int = 2_000_000) -> PutWork:
    """The work RUN, held from the start."""
    return PutWork(RUN, due_at=0, token=token, owner=owner, lease_until=lease_until)


def fence(owner: str = "b1", token: int = 1) -> Fence:
    return Fence(RUN, owner, token)


def row(
    name: str,
    created_at: int,
    owner: str = "ann",
    participants: tuple[str, ...] = (),
    labels: tuple[tuple[str, str], ...] = (),
    tenant: str = "acme",
    payload: str | None = None,
) -> PutSession:
    return PutSession(
        SessionKey(tenant, name),
        owner,
        created_at,
        created_at,
        (payload or name).encode(),
        participants,
        labels,
    )


def texts(entries: tuple[StoredEntry, ...]) -> list[str]:
    return [entry.payload.decode() for entry in entries]


async def everything(store: Store, session: SessionKey = S) -> tuple[StoredEntry, ...]:
    """The whole log of a session, which has to be small."""
    return await store.read(session, 0, max_entries=100_000, max_bytes=100_000_000)
