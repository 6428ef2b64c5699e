"""How long sessions are kept after their last event (`SessionConfig.retention`).

One timer a session, set when the session begins and looked at when it fires. Not with each event:
that would be one row more to write each time, and most timers would never fire.
"""

from __future__ import annotations

from broker_service.domain.deletion import expires_at
from broker_service.domain.state import SessionState
from broker_service.storage.port import DeleteWork, PutWork, SessionKey, WorkKey, WorkKind

RETENTION = "retention"
"""The timer's id."""


def retention_timer(state: SessionState, now: int) -> PutWork | DeleteWork:
    """The session's timer, set to the earliest instant at which retention may remove it."""
    key = SessionKey(state.session.tenant_id, state.session.id)
    work = WorkKey(WorkKind.TIMER, key, RETENTION)
    due = expires_at(state, now)
    return DeleteWork(work) if due is None else PutWork(work, due)
