"""The end of a session: what is open is cancelled first, then nothing comes any more."""

from __future__ import annotations

from broker_service.domain.cancel import end_of_grace, stop
from broker_service.domain.decision import Decision
from broker_service.domain.events import HeldMessageRemoved, SessionDeleted
from broker_service.domain.model import RunChangeCause, RunState
from broker_service.domain.state import SessionState


def delete_session(decision: Decision) -> None:
    """Cancel all that is open, and end the log with `session_deleted` (W2).

    A running run is over at once, without the grace of C1: nothing that its attempt could still
    report would be kept. The attempt is told, and whatever it sends is refused.
    """
    state = decision.state
    for held in list(state.held):  # before the runs that they wait for end: none may enter (G2)
        decision.emit(HeldMessageRemoved(held.message.id))
    for run_id in list(state.live_runs):
        run = state.runs[run_id]
        stop(decision, run, RunChangeCause.SESSION_DELETED)
        if run.state is RunState.CANCELLING:
            end_of_grace(decision, run_id)
    decision.emit(SessionDeleted())


def is_open(state: SessionState) -> bool:
    """Whether something is still to come: a live run, a question, a held message."""
    return bool(state.live_runs or state.open_interactions or state.held)


def expires_at(state: SessionState, now: int) -> int | None:
    """When retention may remove the session, judged at `now`; None: never.

    Counted from the last event. While something is open its end, an event, is still to come: so it
    is never sooner than a whole retention from now.
    """
    retention = state.config.retention
    if retention is None:
        return None
    if is_open(state) and not state.config.expire_while_open:
        return now + retention
    return state.update_time + retention


def expire_session(decision: Decision) -> None:
    """Delete the session if its retention has run out; else nothing happens."""
    at = expires_at(decision.state, decision.now)
    if at is not None and at <= decision.now:
        delete_session(decision)
