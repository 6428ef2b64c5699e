"""Sessions that were exported elsewhere and go on here (P3)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from broker_service.domain import fold, gate
from broker_service.domain.cancel import end_of_grace
from broker_service.domain.decision import Actor, Decision
from broker_service.domain.events import (
    AnswerAdded,
    BranchSelected,
    Event,
    PromptAdded,
    QueuePaused,
    RunCreated,
    RunStateChanged,
    SessionCreated,
    SessionDeleted,
    SessionEvent,
    SessionImported,
    ToolResultAdded,
)
from broker_service.domain.limits import Limits
from broker_service.domain.model import (
    QueuePause,
    QueuePauseReason,
    RunFailure,
    RunFailureReason,
    RunState,
    Session,
)
from broker_service.domain.runs import fail_run
from broker_service.domain.state import SessionState
from turngate_core.errors import Refusal, invalid_field
from turngate_core.ids import is_message_id

_DOES_NOT_FIT = (LookupError, AssertionError, ValueError, TypeError, Refusal)
"""What folding makes of a log that never was one."""

UNDER_WAY = RunFailure(
    RunFailureReason.IMPORTED, "the run was under way when its session was exported"
)


@dataclass(frozen=True, slots=True)
class ImportSession:
    """`log`: the exported events in order, the first one `session_created`. `session_id`: of the
    new session; empty: as it was.
    """

    log: tuple[SessionEvent, ...]
    tenant_id: str
    session_id: str = ""


def import_session(
    command: ImportSession,
    now: int,
    actor: Actor,
    mint: Callable[[str], str],
    limits: Limits,
) -> Decision:
    """The decision that begins a session with its history. Starts nothing.

    Parked runs stay so, and their questions open. Runs that were under way are over: what they had
    begun may go on elsewhere. Refuses with INVALID_FIELD, naming the line.
    """
    source = _source(command.log)
    session_id = command.session_id or source.id
    if not is_message_id(session_id):
        raise does_not_fit(2, "has no session id")
    log = [_as_history(entry, session_id, command.tenant_id) for entry in command.log]
    decision = Decision(fold.begin(log[0]), now, actor, mint, limits, events=log)
    for line, entry in enumerate(log[1:], 3):
        try:
            _check_place(decision.state, entry)
            fold.apply(decision.state, entry)
        except _DOES_NOT_FIT as error:
            raise does_not_fit(line, "does not fit what comes before it") from error
    _end_what_was_under_way(decision)
    decision.emit(SessionImported(source.id, source.tenant_id))
    return decision


def does_not_fit(line: int, problem: str) -> Refusal:
    """The refusal of a file, with the line that is wrong."""
    return invalid_field("data", f"line {line}: {problem}")


def _source(log: tuple[SessionEvent, ...]) -> Session:
    if not log or not isinstance(log[0].event, SessionCreated):
        raise does_not_fit(2, "is not the event session_created")
    if not log[0].create_time:
        raise does_not_fit(2, "has no time")
    return log[0].event.session


def _check_place(state: SessionState, entry: SessionEvent) -> None:
    """Raise ValueError for an event that cannot come here, where folding would not notice."""
    if not entry.create_time:
        raise ValueError("an event without a time")
    named: tuple[str, ...] = ()
    match entry.event:
        case SessionCreated() | SessionDeleted():
            raise ValueError("the first or the last event of a session, in the middle")
        case PromptAdded(message, parent_node_id=parent_id):
            _check_new(state, message.id)
            named = (parent_id,) if parent_id else ()
        case RunCreated(run):
            _check_new(state, run.id)
            named = (run.prompt_id,)
        case BranchSelected(node_id):
            named = (node_id,)
        case RunStateChanged(waits_for_interaction_ids=waits):
            if not set(waits) <= state.open_interactions.keys():
                raise ValueError("a run that waits for what is not open")
        case _:
            pass
    if not all(state.has_node(node_id) for node_id in named):
        raise ValueError("a node that is not there")


def _check_new(state: SessionState, node_id: str) -> None:
    if not is_message_id(node_id) or state.has_node(node_id):
        raise ValueError("a node whose id is none, or is taken")


def _as_history(entry: SessionEvent, session_id: str, tenant_id: str) -> SessionEvent:
    """The same event in its new place; answers and results in it fulfil nothing (P3)."""
    event: Event = entry.event
    match event:
        case SessionCreated():
            moved = replace(event.session, id=session_id, tenant_id=tenant_id)
            event = SessionCreated(moved)
        case RunCreated():
            event = replace(event, run=replace(event.run, session_id=session_id))
        case ToolResultAdded():
            event = replace(event, result=replace(event.result, imported=True))
        case AnswerAdded():
            event = replace(event, answer=replace(event.answer, imported=True))
        case _:
            pass
    return replace(entry, event=event, tenant_id=tenant_id)


def _end_what_was_under_way(decision: Decision) -> None:
    """Messages that a run held stay so, until somebody lets the queue go on: nothing starts."""
    state = decision.state
    under_way = [run for run in map(state.runs.get, state.live_runs) if run and run.active]
    for run in under_way:
        if run.state is RunState.CANCELLING:
            end_of_grace(decision, run.id)
        else:
            fail_run(decision, run, UNDER_WAY)
    if under_way and state.held:
        if not state.queue_pause:
            pause = QueuePause(QueuePauseReason.IMPORTED, under_way[-1].id, decision.now)
            decision.emit(QueuePaused(pause))
        gate.release(decision)
