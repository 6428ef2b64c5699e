"""What every store refuses before it stores anything: writes that no caller may make."""

from __future__ import annotations

from broker_service.storage.port import Append, EntryKind, PutWork, RememberRequest, Write


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


def check_limit(limit: int) -> None:
    """Raise ValueError for a page or batch that could hold nothing."""
    if limit < 1:
        raise ValueError(f"limit must be at least 1, not {limit}")


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
