"""The queue gate (G1 to G3): what may enter the conversation now, and what has to wait.

Decided from the stored state alone (G3). `release` is called at the end of every decision; nothing
else lets a held message enter.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from broker_service.domain.branches import leave_branch
from broker_service.domain.cancel import stop
from broker_service.domain.decision import BROKER, Actor, Decision
from broker_service.domain.events import (
    HeldMessageRemoved,
    HoldChanged,
    MessageHeld,
    PromptAdded,
    QueuePaused,
    QueueResumed,
)
from broker_service.domain.model import (
    HeldMessage,
    HoldReason,
    Message,
    OnBusy,
    Part,
    QueuePause,
    QueuePauseReason,
    Role,
    RunCause,
    RunChangeCause,
    TraceContext,
)
from broker_service.domain.nodes import find_node
from broker_service.domain.runs import create_run
from broker_service.domain.state import SessionState, content_digest
from turngate_core.errors import Code, Reason, Refusal

FAILURES_THAT_PAUSE = 2
"""Runs that fail in a row before the queue is paused (G2)."""


@dataclass(frozen=True, slots=True)
class SendMessage:
    """`message`: a user's, complete but for its time. `branch_node_id`: a node of the branch that
    was named, or "". `on_busy`: of the message; None for the session's.
    """

    message: Message
    branch_node_id: str = ""
    on_busy: OnBusy | None = None
    trace_context: TraceContext | None = None


@dataclass(frozen=True, slots=True)
class EditMessage:
    """`prompt_id`: the user message that is edited. `keep_running`: do not cancel the pending or
    running run of the branch that is left.
    """

    message: Message
    prompt_id: str
    on_busy: OnBusy | None = None
    keep_running: bool = False
    trace_context: TraceContext | None = None


@dataclass(frozen=True, slots=True)
class Sent:
    """`run_id`: of the run that started, if the message entered; else `held`."""

    message_id: str
    run_id: str = ""
    held: HeldMessage | None = None


def send_message(decision: Decision, command: SendMessage) -> Sent:
    """G1: the message enters at the end of its branch, or is held.

    The same message sent again under its own id gets the present state of the first (C5).
    """
    state = decision.state
    message = command.message
    if sent := _sent_before(state, message):
        return sent
    branch = command.branch_node_id or state.selected
    if command.branch_node_id:
        branch = find_node(state, command.branch_node_id)
    tip = state.end_of_branch(branch) if branch else ""
    block = _block(state, tip)
    on_busy = command.on_busy or state.config.on_busy or OnBusy.HOLD
    interrupting = on_busy is OnBusy.INTERRUPT
    if interrupting and block:
        stop(decision, state.runs[block.run_id], RunChangeCause.INTERRUPTED)
        block = _block(state, tip)
    # An interrupting message goes in front of the queue, behind earlier interrupting ones (G4).
    behind = any(
        _tip_of(state, held) == tip and (held.interrupting or not interrupting)
        for held in state.held
    )
    if on_busy is OnBusy.REJECT and (block or behind):
        reason = block.reason if block else HoldReason.QUEUED_BEHIND
        raise Refusal(
            Reason.SESSION_BUSY,
            "the branch is busy",
            {"reason": reason.name, "run_id": block.run_id if block else ""},
        )
    if not block and not behind:
        _end_pause(decision)
        run_id = enter(decision, message, tip, trace_context=command.trace_context)
        return Sent(message.id, run_id)
    if len(state.held) >= decision.limits.held_messages:
        raise Refusal(
            Reason.LIMIT_EXCEEDED,
            "too many messages are held in this session",
            {
                "limit": "held_messages",
                "maximum": str(decision.limits.held_messages),
                "actual": str(len(state.held) + 1),
            },
            code=Code.RESOURCE_EXHAUSTED,
        )
    _end_pause(decision)
    held = HeldMessage(
        message=message,
        reason=HoldReason.QUEUED_BEHIND,
        branch_node_id=tip,
        # Sent to another branch on purpose: only such a message enters unseen (G2).
        branch_named=bool(command.branch_node_id) and tip != state.selected,
        interrupting=interrupting,
        create_time=decision.now,
        trace_context=command.trace_context,
    )
    decision.emit(MessageHeld(_placed(state, held, behind=behind)))
    release(decision)
    return _sent_before(state, message) or Sent(message.id)


def edit_message(decision: Decision, command: EditMessage) -> Sent:
    """C2: a new prompt beside the old one, and selected; it waits for nothing.

    Refuses with MESSAGE_NOT_FOUND and NOT_A_PROMPT.
    """
    state = decision.state
    if sent := _sent_before(state, command.message):
        return sent
    prompt = state.prompts.get(command.prompt_id)
    if prompt is None or prompt.role is not Role.USER:
        known = command.prompt_id in state.message_nodes
        raise Refusal(
            Reason.NOT_A_PROMPT if known else Reason.MESSAGE_NOT_FOUND,
            f"message {command.prompt_id} is no user message of this session",
            {"message_id": command.prompt_id},
        )
    on_busy = command.on_busy or state.config.on_busy
    leave_branch(
        decision,
        keep_running=command.keep_running,
        stop_parked=on_busy is OnBusy.INTERRUPT,
    )
    _end_pause(decision)
    run_id = enter(
        decision,
        command.message,
        prompt.parent_id,
        edits=prompt.id,
        trace_context=command.trace_context,
    )
    return Sent(command.message.id, run_id)


def enter(
    decision: Decision,
    message: Message,
    tip: str,
    *,
    was_held: bool = False,
    edits: str = "",
    trace_context: TraceContext | None = None,
    actor: Actor | None = None,
) -> str:
    """The message becomes the prompt after `tip`, and its run is created. Answers the run's id.

    `edits`: the prompt beside which it stands; an edit selects what it creates (C2).
    """
    selected = bool(edits) or tip == decision.state.selected
    stored = replace(message, create_time=decision.now)
    decision.emit(
        PromptAdded(
            stored,
            parent_node_id=tip,
            edits_prompt_id=edits,
            selected=selected,
            was_held=was_held,
        ),
        actor=actor,
    )
    return create_run(
        decision,
        message.id,
        RunCause.PROMPT,
        selected=selected,
        trace_context=trace_context,
        actor=actor,
    )


def release(decision: Decision) -> None:
    """Let enter what may enter, and tell what the others wait for now (G2)."""
    state = decision.state
    failed_too_often = state.failures_in_row >= FAILURES_THAT_PAUSE
    if state.held and failed_too_often and not state.queue_pause:
        pause = QueuePause(QueuePauseReason.FAILURES, state.last_failed_run, decision.now)
        decision.emit(QueuePaused(pause), actor=BROKER)
    tips_with_held: set[str] = set()
    for held in list(state.held):
        tip = _tip_of(state, held)
        placed = _placed(state, held, behind=tip in tips_with_held)
        if placed.reason is None:
            enter(
                decision,
                held.message,
                tip,
                was_held=True,
                trace_context=held.trace_context,
                actor=BROKER,
            )
            continue
        tips_with_held.add(tip)
        if placed != held:
            decision.emit(
                HoldChanged(
                    message_id=placed.message.id,
                    reason=placed.reason,
                    waits_for_run_id=placed.waits_for_run_id,
                    waits_for_interaction_ids=placed.waits_for_interaction_ids,
                    branch_node_id=placed.branch_node_id,
                ),
                actor=BROKER,
            )


def _end_pause(decision: Decision) -> None:
    """A new send ends a pause of the queue (G2)."""
    if decision.state.queue_pause:
        decision.emit(QueueResumed())


@dataclass(frozen=True, slots=True)
class _Block:
    reason: HoldReason
    run_id: str
    interaction_ids: tuple[str, ...] = ()


def _block(state: SessionState, tip: str) -> _Block | None:
    """What keeps messages from entering after this node. A run that is live has nothing after it,
    so that only the last node of a branch can block it.
    """
    run = state.runs.get(tip)
    if run is None or not run.live:
        return None
    if run.waits:
        return _Block(HoldReason.INTERACTION_OPEN, run.id, tuple(run.waits))
    return _Block(HoldReason.RUN_ACTIVE, run.id)


def _placed(state: SessionState, held: HeldMessage, *, behind: bool) -> HeldMessage:
    """The held message with what it waits for now; reason None: it may enter."""
    tip = _tip_of(state, held)
    block = _block(state, tip)
    reason: HoldReason | None = None
    if block:
        reason = block.reason
    elif behind:
        reason = HoldReason.QUEUED_BEHIND
    elif state.queue_pause:
        reason = HoldReason.QUEUE_PAUSED
    elif tip != state.selected and not held.branch_named:
        reason = HoldReason.BRANCH_NOT_SELECTED
    return replace(
        held,
        reason=reason,
        branch_node_id=tip,
        waits_for_run_id=block.run_id if block else "",
        waits_for_interaction_ids=block.interaction_ids if block else (),
    )


def _tip_of(state: SessionState, held: HeldMessage) -> str:
    """The end of the branch that a held message is bound to; it follows forks and retries (G1)."""
    return state.end_of_branch(held.branch_node_id)


def _sent_before(state: SessionState, message: Message) -> Sent | None:
    """The present state of a message with this id and content. Another content is refused."""
    for held in state.held:
        if held.message.id == message.id:
            if (held.message.parts, held.message.author) == (message.parts, message.author):
                return Sent(message.id, held=held)
            raise _taken(message.id)
    if message.id not in state.message_nodes:
        if state.has_node(message.id):
            raise _taken(message.id)  # prompts and runs share one space of ids
        return None
    prompt = state.prompts.get(message.id)
    same = prompt is not None and (prompt.digest, prompt.author) == (
        content_digest(message.parts),
        message.author,
    )
    if not same:
        raise _taken(message.id)
    runs = [child for child in state.children.get(message.id, ()) if child in state.runs]
    return Sent(message.id, run_id=state.successor(runs[0]) if runs else "")


def _taken(message_id: str) -> Refusal:
    return Refusal(
        Reason.MESSAGE_ID_TAKEN,
        f"message id {message_id} is taken in this session",
        {"message_id": message_id},
    )


def update_held(decision: Decision, message_id: str, parts: tuple[Part, ...]) -> HeldMessage:
    """Replace the content of a held message, by its author; its place stays (G3)."""
    held = _find_held(decision.state, message_id)
    if held.message.author != decision.actor.name:
        raise Refusal(
            Reason.NOT_THE_AUTHOR,
            "only its author may edit a held message",
            {"message_id": message_id},
        )
    changed = replace(held, message=replace(held.message, parts=parts))
    if changed != held:
        decision.emit(MessageHeld(changed))
    return changed


def remove_held(decision: Decision, message_id: str) -> None:
    """Remove a held message; this never sends anything (G3)."""
    _find_held(decision.state, message_id)
    decision.emit(HeldMessageRemoved(message_id))


def resume_queue(decision: Decision) -> str:
    """End a pause (G2). Answers the run of the message that entered, or ""."""
    if not decision.state.queue_pause:
        return ""
    decision.emit(QueueResumed())
    before = set(decision.state.runs)
    release(decision)
    entered = [run_id for run_id in decision.state.runs if run_id not in before]
    return entered[0] if entered else ""


def _find_held(state: SessionState, message_id: str) -> HeldMessage:
    for held in state.held:
        if held.message.id == message_id:
            return held
    raise Refusal(
        Reason.HELD_MESSAGE_NOT_FOUND,
        f"no message {message_id} is held; it may have entered already",
        {"message_id": message_id},
    )
