"""What must hold after every command, whatever came before. Each check cites its rule."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from broker_service.domain import fold
from broker_service.domain.events import (
    AnswerAdded,
    HeldMessageRemoved,
    HoldChanged,
    InteractionClosed,
    InteractionOpened,
    MessageCompleted,
    MessageHeld,
    MessageStarted,
    MessageWithdrawn,
    PromptAdded,
    RunCreated,
    RunStateChanged,
    SessionEvent,
    ToolResultAdded,
    ToolStarted,
)
from broker_service.domain.model import (
    FINAL_STATES,
    HeldMessage,
    HoldReason,
    InteractionKind,
    InteractionState,
    ResultKind,
    RunState,
    ToolCall,
    ToolResult,
)
from broker_service.domain.state import SessionState
from broker_service.domain.transcript import Transcript
from broker_service.effects import place_of
from broker_service.encoding import decode_event, encode_event

S = RunState
TRANSITIONS = {
    S.PENDING: {S.RUNNING, S.CANCELLED, S.FAILED, S.PENDING},
    S.RUNNING: {S.PARKED, S.COMPLETED, S.FAILED, S.CANCELLING, S.PENDING},
    S.CANCELLING: {S.CANCELLED},
    S.PARKED: {S.PENDING, S.CANCELLED},
}
"""R1; a pending run may be marked as unplaced (S2)."""


def check(state: SessionState, log: list[SessionEvent], *, new: int) -> None:
    """`new`: how many entries at the end of the log the last command has made."""
    for entry in log[len(log) - new :]:
        assert decode_event(encode_event(entry)) == entry, "what is stored is what was decided"
        assert entry.actor_kind is not None
        assert entry.tenant_id == state.session.tenant_id, "P2"
    check_unchanged(state, log)
    _check_tree(state)
    _check_waits(state)
    _check_holds(state)
    _check_history(log)
    _check_results(state, log)


def check_unchanged(state: SessionState, log: list[SessionEvent]) -> None:
    """The state is what its log folds to, and nothing but that."""
    folded = fold.begin(log[0])
    for entry in log[1:]:
        fold.apply(folded, entry)
    assert folded == state
    assert list(folded.live_runs) == list(state.live_runs)
    assert list(folded.open_interactions) == list(state.open_interactions)


def leaves(state: SessionState) -> list[str]:
    nodes = [*state.prompts, *state.runs]
    return [node_id for node_id in nodes if not state.children.get(node_id)]


def _check_tree(state: SessionState) -> None:
    for leaf in leaves(state):
        active = [n for n in state.path_to(leaf) if n in state.runs and state.runs[n].active]
        assert len(active) <= 1, f"R2: {active} are active on one branch"
    for node_id in state.path_to(state.selected):
        run = state.runs.get(node_id)
        assert run is None or not run.superseded_by, f"F8: superseded {node_id} is selected"
    for run in state.runs.values():
        if run.superseded_by:
            assert run.state in (S.PARKED, S.FAILED), f"F8: {run.id} is {run.state}"
            successor = state.runs[run.superseded_by]
            assert successor.prompt_id == run.prompt_id, "F8: supersession is scoped"
            assert all(run.id not in state.siblings(other) for other in state.runs.values()), "F8"
        assert (run.id in state.live_runs) == run.live
        at_work = run.state in (S.RUNNING, S.CANCELLING)
        assert at_work or not run.open_message_id, f"W5: {run.id}"


def _check_waits(state: SessionState) -> None:
    waited_for: set[str] = set()
    for run in state.runs.values():
        if run.live:
            assert (run.state is S.PARKED) == bool(run.waits), f"R1: {run.id} {run.waits}"
            assert set(run.waits) <= set(state.open_interactions), f"F4: {run.id}"
            assert len(set(run.waits)) == len(run.waits)
            waited_for |= set(run.waits)
        else:
            assert not run.waits, f"R1: {run.id} waits for nothing"
    assert waited_for == set(state.open_interactions), "an open question is waited for"
    for interaction in state.interactions.values():
        is_open = interaction.state is InteractionState.OPEN
        assert is_open == (interaction.id in state.open_interactions), "I1"


def _check_holds(state: SessionState) -> None:
    tips: Counter[str] = Counter()
    for held in state.held:
        assert held.reason is not None, "G2: what may enter has entered"
        tip = state.end_of_branch(held.branch_node_id)
        assert tip == held.branch_node_id, "G1: a held message follows its branch"
        run = state.runs.get(held.waits_for_run_id)
        if held.reason is HoldReason.RUN_ACTIVE:
            assert run is not None
            assert run.active, "G1"
        elif held.reason is HoldReason.INTERACTION_OPEN:
            assert run is not None
            assert run.live
            assert held.waits_for_interaction_ids == tuple(run.waits), "G1"
        elif held.reason is HoldReason.QUEUED_BEHIND:
            assert tips[tip], "G1: older messages are held"
        elif held.reason is HoldReason.QUEUE_PAUSED:
            assert state.queue_pause is not None, "G2"
        else:
            assert tip != state.selected, "G2"
        tips[tip] += 1


@dataclass
class _History:
    """A second, naive reading of the log."""

    runs: dict[str, RunState] = field(default_factory=dict)
    attempts: dict[str, int] = field(default_factory=dict)
    superseded: set[str] = field(default_factory=set)
    open_messages: dict[str, str] = field(default_factory=dict)
    message_ids: set[str] = field(default_factory=set)
    interactions: dict[str, InteractionState] = field(default_factory=dict)
    approval_of: dict[str, str] = field(default_factory=dict)
    starts: dict[str, list[ToolStarted]] = field(default_factory=dict)
    results: dict[tuple[str, str], ResultKind | None] = field(default_factory=dict)
    answers: dict[str, AnswerAdded] = field(default_factory=dict)
    # Held messages in their order, with their branches; those that interrupt stand first (G4).
    queue: dict[str, str] = field(default_factory=dict)
    interrupting: set[str] = field(default_factory=set)
    entered: set[str] = field(default_factory=set)


def _check_history(log: list[SessionEvent]) -> None:
    history = _History()
    for entry in log[1:]:
        _next(history, entry)
    results = {result for result, kind in history.results.items() if kind is ResultKind.CLIENT}
    for answer in history.answers.values():
        if answer.answer.approved is None:
            assert (answer.answer.run_id, answer.call_id) in results, "no answer is lost"


def _next(history: _History, entry: SessionEvent) -> None:
    match entry.event:
        case RunCreated(run=run):
            assert run.state is not None
            history.runs[run.id] = run.state
            if run.supersedes_run_id:
                history.superseded.add(run.supersedes_run_id)
        case RunStateChanged() as changed:
            _run_changed(history, changed)
        case MessageStarted() as started:
            assert started.message_id not in history.message_ids, "R3: a message id is used once"
            assert started.run_id not in history.open_messages
            history.message_ids.add(started.message_id)
            history.open_messages[started.run_id] = started.message_id
        case MessageCompleted(message=message):
            assert history.open_messages.pop(message.run_id) == message.id, "W5"
        case MessageWithdrawn() as withdrawn:
            assert history.open_messages.pop(withdrawn.run_id) == withdrawn.message_id, "W5"
        case InteractionOpened(interaction=interaction):
            assert interaction.id not in history.interactions, "I2"
            history.interactions[interaction.id] = InteractionState.OPEN
            if interaction.kind is InteractionKind.APPROVAL:
                history.approval_of[interaction.call_id] = interaction.id
        case AnswerAdded() as added:
            history.answers[added.answer.id] = added
            _closed(history, added.interaction_id, added.state)
        case InteractionClosed() as closed:
            _closed(history, closed.interaction_id, closed.state)
        case ToolStarted() as started_tool:
            _started(history, started_tool)
        case ToolResultAdded() as result:
            key = (result.run_id, result.result.call_id)
            assert key not in history.results, f"{key} has a second result"
            history.results[key] = result.result.kind
        case MessageHeld(held=held):
            _held(history, held)
            assert held.message.id not in history.entered, "G3"
        case HoldChanged() as changed_hold:
            history.queue[changed_hold.message_id] = changed_hold.branch_node_id
        case HeldMessageRemoved(message_id=message_id):
            del history.queue[message_id]
        case PromptAdded() as prompt:
            _entered(history, prompt)
        case _:
            pass


def _held(history: _History, held: HeldMessage) -> None:
    if held.message.id in history.queue:
        return  # its content was edited
    others = list(history.queue.items())
    place = len(others)
    if held.interrupting:
        place = len(history.interrupting & set(history.queue))
        history.interrupting.add(held.message.id)
    others.insert(place, (held.message.id, held.branch_node_id))
    history.queue = dict(others)


def _run_changed(history: _History, changed: RunStateChanged) -> None:
    before = history.runs[changed.run_id]
    assert changed.run_id not in history.superseded, "R1: a superseded run keeps its state"
    assert before not in FINAL_STATES, f"R1: {changed.run_id} was {before}"
    assert changed.state in TRANSITIONS[before], f"R1: {before} to {changed.state}"
    if changed.state is S.RUNNING:
        assert changed.attempt > history.attempts.get(changed.run_id, 0), "R3: attempts grow"
        history.attempts[changed.run_id] = changed.attempt
    elif changed.state is not S.CANCELLING:
        assert changed.run_id not in history.open_messages, "W5: content ends before the run"
    history.runs[changed.run_id] = changed.state


def _closed(history: _History, interaction_id: str, state: InteractionState) -> None:
    before = history.interactions[interaction_id]
    allowed = before is InteractionState.OPEN or state is before
    replaced = (before, state) == (InteractionState.APPROVED, InteractionState.DENIED)
    assert allowed or replaced, f"I1: {before} to {state}"
    assert state is not InteractionState.OPEN
    history.interactions[interaction_id] = state


def _started(history: _History, started: ToolStarted) -> None:
    assert history.runs[started.run_id] is S.RUNNING, "A1"
    assert history.attempts[started.run_id] == started.attempt, "R3"
    assert (started.run_id, started.call_id) not in history.results, "S1: it has its result"
    earlier = history.starts.setdefault(started.call_id, [])
    for start in earlier:
        assert start.idempotent, "S1: a call starts once"
        assert (start.run_id, start.attempt) < (started.run_id, started.attempt), "S1"
    earlier.append(started)
    if asked := history.approval_of.get(started.call_id):
        assert history.interactions[asked] is InteractionState.APPROVED, "A1: nobody approved it"


def _entered(history: _History, prompt: PromptAdded) -> None:
    message_id = prompt.message.id
    assert message_id not in history.entered, "G2: a message enters once"
    history.entered.add(message_id)
    assert prompt.was_held == (message_id in history.queue), "G2"
    if prompt.was_held:
        order = list(history.queue)
        ahead = order[: order.index(message_id)]
        branch = history.queue.pop(message_id)
        assert branch not in [history.queue[other] for other in ahead], "G2: first in, first out"
    else:
        waiting = [i for i, branch in history.queue.items() if branch == prompt.parent_node_id]
        assert set(waiting).isdisjoint(history.interrupting) or prompt.edits_prompt_id, "G4"


def _check_results(state: SessionState, log: list[SessionEvent]) -> None:
    events = [(place_of(state, entry.event)[0], entry.event) for entry in log]
    transcript = Transcript(state, events)
    for leaf in leaves(state):
        messages = transcript.messages(state.path_to(leaf), with_hints=True)
        ids = Counter(message.id for message in messages)
        assert not [i for i, count in ids.items() if count > 1], "T3"
        for message in messages:
            calls = [p.content.call_id for p in message.parts if isinstance(p.content, ToolCall)]
            results = [
                p.content.call_id for p in message.parts if isinstance(p.content, ToolResult)
            ]
            assert len(set(results)) == len(results), f"T4: {results}"
            assert [c for c in calls if c in results] == results, "T4: in call order"
            run = state.runs.get(message.run_id)
            if run is None or run.superseded_by:
                continue
            if run.state in FINAL_STATES or message.id.partition("@")[0] != run.step_message_id:
                assert calls == results, f"T4: {calls} have {results}"
