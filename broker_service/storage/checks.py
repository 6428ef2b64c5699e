"""What every store refuses: writes that no caller may make, and writes whose conditions do not
hold. Here are the rules; what they are held against, a store looks up by itself."""

from __future__ import annotations

from dataclasses import astuple

from broker_service.storage.port import (
    Append,
    EntryKind,
    Fence,
    FenceLost,
    PutSnapshot,
    PutWork,
    RememberRequest,
    StoredEntry,
    VersionConflict,
    Write,
)

_INTEGERS = range(-(2**63), 2**63)


def check_write(write: Write) -> None:
    """Raise ValueError for a write that breaks the rules of the port."""
    if len({append.session for append in write.appends}) != len(write.appends):
        raise ValueError("a write appends to each session once at most")
    for append in write.appends:
        _check_append(append)
    remembered = [effect.key for effect in write.effects if isinstance(effect, RememberRequest)]
    if len(set(remembered)) != len(remembered):
        raise ValueError("a write remembers each request once at most")
    for effect in write.effects:
        if isinstance(effect, PutWork) and (effect.owner is None) != (effect.lease_until is None):
            raise ValueError(f"work {effect.work.work_id} needs an owner and a lease, or neither")
    for append in write.appends:
        for text in append.session:
            _check_text(text)
        for entry in append.entries:
            _check_text(entry.node_id)
            _check_text(entry.subject_id)
    for effect in write.effects:
        _check_values(astuple(effect))


def check_limit(limit: int) -> None:
    """Raise ValueError for a page or batch that could hold nothing."""
    if limit < 1:
        raise ValueError(f"limit must be at least 1, not {limit}")


def check_fence(fence: Fence, held: tuple[str | None, int] | None) -> None:
    """Raise FenceLost unless the work is held as the fence says; `held`: owner and token of its
    row, None if there is no row."""
    if held != (fence.owner, fence.token):
        raise FenceLost(fence)


def check_version(append: Append, version: int | None) -> None:
    """Raise VersionConflict unless the session is where the append expects it; `version`: where it
    is, None if it does not exist."""
    if append.expected_version is None:
        if version is None and append.entries:
            raise VersionConflict(append.session)  # only an event creates a session
    elif append.expected_version != (version or 0):
        raise VersionConflict(append.session)


def check_snapshot(effect: PutSnapshot, version: int | None, write: Write) -> None:
    """Raise ValueError for a snapshot of a version that is not there, once `write` is stored:
    it would hide the events between. `version`: where the session is before."""
    newest = version or 0
    for append in write.appends:
        if append.session == effect.session:
            newest += sum(entry.kind is EntryKind.EVENT for entry in append.entries)
    if not 0 < effect.version <= newest:
        raise ValueError(f"session {effect.session.session_id} has no version {effect.version}")


def placed(append: Append, version: int, position: int) -> tuple[StoredEntry, ...]:
    """The entries of an append with their places, in a session that is at `version` and
    `position`."""
    stored: list[StoredEntry] = []
    for entry in append.entries:
        position += 1
        if entry.kind is EntryKind.EVENT:
            version += 1
        stored.append(
            StoredEntry(
                position, version, entry.kind, entry.payload, entry.node_id, entry.subject_id
            )
        )
    return tuple(stored)


def storable(text: str) -> bool:
    """Whether every store can hold this text: PostgreSQL holds no NUL, none holds half a surrogate
    pair. What is not storable is nowhere to be found."""
    if "\0" in text:
        return False
    return text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)


def _check_text(text: str) -> None:
    if not storable(text):
        raise ValueError(f"text with NUL or half a surrogate pair: {text!r:.100}")


def _check_values(value: object) -> None:
    """Raise ValueError for a value in an effect that some store cannot hold."""
    match value:
        case str():
            _check_text(value)
        case int():
            if value not in _INTEGERS:
                raise ValueError(f"integer beyond 64 bits: {value}")
        case tuple():
            for part in value:
                _check_values(part)
        case _:
            pass


def _check_append(append: Append) -> None:
    events = any(entry.kind is EntryKind.EVENT for entry in append.entries)
    if not events and append.entries and append.fence is None:
        # Deltas are not checked against the version: only the fence stops a stalled broker (R3,
        # S2).
        raise ValueError(f"deltas alone for session {append.session.session_id} need a fence")
    if append.expected_version is None and (events or append.fence is None):
        raise ValueError(f"append to session {append.session.session_id} needs a version")
    if append.expected_version == 0 and append.entries and not events:
        raise ValueError(f"session {append.session.session_id} cannot begin with deltas alone")
