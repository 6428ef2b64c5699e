"""What is stored beside the events of a decision: list rows, inbox rows, due work.

Derived from the events and the state after them, in one place, so that no decision can forget it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from broker_service.domain.deadlines import next_deadline
from broker_service.domain.decision import Decision
from broker_service.domain.events import (
    AnswerAdded,
    Event,
    InteractionClosed,
    InteractionOpened,
    MessageCompleted,
    MessageStarted,
    MessageWithdrawn,
    NoticeAdded,
    PromptAdded,
    RenderHintAdded,
    RunCreated,
    RunStateChanged,
    SessionCreated,
    ToolResultAdded,
    ToolStarted,
)
from broker_service.domain.limits import Limits
from broker_service.domain.model import Interaction, InteractionState, RunState, Session
from broker_service.domain.state import SessionState
from broker_service.encoding import encode_event, to_proto
from broker_service.retention import retention_timer
from broker_service.storage.port import (
    DeleteInteraction,
    DeleteWork,
    Effect,
    Entry,
    EntryKind,
    EraseSession,
    PutInteraction,
    PutSession,
    PutWork,
    SessionKey,
    WorkKey,
    WorkKind,
)
from broker_service.webhooks.outbox import outbox
from broker_service.webhooks.targets import Target


def session_key(state: SessionState) -> SessionKey:
    return SessionKey(state.session.tenant_id, state.session.id)


def entries_of(decision: Decision) -> tuple[Entry, ...]:
    """The decision's events as log entries."""
    entries = []
    for event in decision.events:
        node_id, subject_id = place_of(decision.state, event.event)
        entries.append(Entry(EntryKind.EVENT, encode_event(event), node_id, subject_id))
    return tuple(entries)


def place_of(state: SessionState, event: Event) -> tuple[str, str]:
    """The node that an event belongs to, and the message, call or interaction it is about."""
    match event:
        case PromptAdded():
            return event.message.id, event.message.id
        case RunCreated():
            return event.run.id, ""
        case RunStateChanged():
            return event.run_id, ""
        case MessageCompleted():
            return event.message.run_id, event.message.id
        case MessageStarted() | MessageWithdrawn() | RenderHintAdded():
            return event.run_id, event.message_id
        case ToolStarted():
            return event.run_id, event.call_id
        case ToolResultAdded():
            return event.run_id, event.result.call_id
        case InteractionOpened():
            return event.interaction.run_id, event.interaction.id
        case AnswerAdded() | InteractionClosed() | NoticeAdded():
            return state.interactions[event.interaction_id].run_id, event.interaction_id
        case _:
            return "", ""


DEADLINES = "deadlines"
"""The timer of a session's next deadline; one for each session."""

GRACE = "grace:"
"""The timer of a run that is being cancelled; the run's id follows."""


def effects_of(
    decision: Decision,
    owner: str,
    lease_until: int,
    cancel_grace_ms: int,
    targets: Sequence[Target] = (),
) -> tuple[Effect, ...]:
    """All that a decision's events ask for. `targets`: who is told when questions open and close.

    A run that becomes pending is claimed for this broker at once, in the same commit; the token of
    that claim is the number of the attempt (R3).
    """
    state = decision.state
    key = session_key(state)
    if state.deleted:
        return (EraseSession(key),)
    runs: set[str] = set()
    interactions: set[str] = set()
    finished: list[str] = []
    for entry in decision.events:
        event = entry.event
        if isinstance(event, RunCreated):
            runs.add(event.run.id)
        elif isinstance(event, RunStateChanged):
            if not event.unplaced:  # it is still held as before
                runs.add(event.run_id)
        elif isinstance(event, MessageCompleted):
            finished.append(event.message.id)
        elif isinstance(event, MessageWithdrawn):
            finished.append(event.message_id)
        elif isinstance(event, InteractionOpened):
            interactions.add(event.interaction.id)
        elif isinstance(event, AnswerAdded | InteractionClosed | NoticeAdded):
            interactions.add(event.interaction_id)
    effects: list[Effect] = []
    if isinstance(decision.events[0].event, SessionCreated) and state.config.retention:
        effects.append(retention_timer(state, decision.now))
    for run_id in sorted(runs):
        run = state.runs[run_id]
        work = WorkKey(WorkKind.RUN, key, run_id)
        if run.state is RunState.PENDING and run.live:
            token = run.attempt + 1
            effects.append(PutWork(work, decision.now, token, owner, lease_until))
        elif run.state not in (RunState.RUNNING, RunState.CANCELLING):
            effects.append(DeleteWork(work))
        grace = WorkKey(WorkKind.TIMER, key, GRACE + run_id)
        if run.state is RunState.CANCELLING:
            effects.append(PutWork(grace, decision.now + cancel_grace_ms))
        elif run.state is RunState.CANCELLED:
            effects.append(DeleteWork(grace))
    for interaction_id in sorted(interactions):
        interaction = state.interactions[interaction_id]
        if interaction.state is InteractionState.OPEN:
            opened_at = interaction.create_time or decision.now
            payload = to_proto(interaction).SerializeToString()
            effects.append(PutInteraction(key, interaction_id, opened_at, payload))
        else:
            effects.append(DeleteInteraction(key, interaction_id))
    for message_id in finished:  # its deltas have served (W3)
        compaction = WorkKey(WorkKind.COMPACTION, key, message_id)
        effects.append(PutWork(compaction, decision.now + decision.limits.compact_after_ms))
    if interactions:
        effects.append(deadline_timer(state, decision.limits))
        if targets:
            effects += outbox(decision, targets)
    effects.append(session_row(state))
    return tuple(effects)


def deadline_timer(state: SessionState, limits: Limits) -> PutWork | DeleteWork:
    """The session's timer, set to its next deadline (I4, D1)."""
    work = WorkKey(WorkKind.TIMER, session_key(state), DEADLINES)
    deadline = next_deadline(state, limits.unclaimed_after_ms)
    return DeleteWork(work) if deadline is None else PutWork(work, deadline)


def session_row(state: SessionState) -> PutSession:
    """The list row of the session as it is now."""
    session = session_view(state)
    return PutSession(
        session=session_key(state),
        owner=session.owner,
        created_at=session.create_time or 0,
        updated_at=state.update_time,
        payload=to_proto(session).SerializeToString(),
        participants=session.participants,
        labels=tuple(sorted(state.config.labels.items())),
    )


def session_view(state: SessionState) -> Session:
    """The public session, counters included."""
    return replace(
        state.session,
        update_time=state.update_time,
        selected_node_id=state.selected,
        open_interaction_count=len(state.open_interactions),
        held_message_count=len(state.held),
        active_run_count=sum(1 for run_id in state.live_runs if state.runs[run_id].active),
        queue_pause=state.queue_pause,
    )


def interaction_view(state: SessionState, interaction: Interaction) -> Interaction:
    """The public interaction with what only reads fill in (I5)."""
    waiting = state.waiting_runs(interaction.id)
    return replace(
        interaction,
        waiting_run_ids=tuple(run.id for run in waiting),
        on_selected_branch=any(state.on_selected_branch(run.id) for run in waiting),
    )
