"""What a client makes of the same log: its fold, and its predicates of gate and resume.

Held against the broker's own state: a client that shows something else than the broker decides on
would let people wait for nothing, or send into a closed gate (G1, F10, A4).
"""

from __future__ import annotations

from broker_service.domain.events import SessionEvent
from broker_service.domain.model import (
    FINAL_STATES,
    InteractionKind,
    InteractionState,
    ResultKind,
    RunState,
    ToolExecutor,
)
from broker_service.domain.state import RunNode, SessionState
from broker_service.encoding import encode_event
from turngate.v1 import event_pb2
from turngate.v1.interaction_pb2 import InteractionState as ProtoInteractionState
from turngate.v1.run_pb2 import RunState as ProtoRunState
from turngate_client.folding import apply_event
from turngate_client.session_view import SessionView
from turngate_client.showing import display_message
from turngate_core.client_tools import BUILT_IN, ClientTools
from turngate_core.display import DisplayMessage, DisplayTextPart
from turngate_core.gate import ERROR, READY, awaiting_user, gate_open
from turngate_core.resume import resume_due

STATUS = {
    RunState.PENDING: "submitted",
    RunState.RUNNING: "streaming",
    RunState.CANCELLING: "streaming",
    RunState.FAILED: ERROR,
}


class Client:
    """A client that has folded the log so far. `tools`: client tools that it knows by name."""

    def __init__(self, tools: frozenset[str]) -> None:
        self.view = SessionView()
        self.known: ClientTools = BUILT_IN.with_declared(names=tools)

    def check(self, state: SessionState, log: list[SessionEvent]) -> None:
        """Fold what is new, and compare."""
        for position in range(self.view.position, len(log)):
            event = event_pb2.SessionEvent.FromString(encode_event(log[position]))
            event.position = position + 1
            apply_event(self.view, event)
        self._check_fold(state)
        if state.selected in state.runs:
            self._check_predicates(state, state.runs[state.selected])

    def _check_fold(self, state: SessionState) -> None:
        view = self.view
        assert view.selected_node_id == state.selected
        assert view.node_ids == state.nodes
        assert set(view.runs) == set(state.runs)
        for run in state.runs.values():
            shown = view.runs[run.id].run
            assert ProtoRunState.Name(shown.state) == f"RUN_STATE_{run.state.name}"
            assert shown.superseded_by_run_id == run.superseded_by, run.id
            if run.live:
                assert set(shown.waits_for_interaction_ids) == set(run.waits), run.id
        for interaction in state.interactions.values():
            assert interaction.state is not None
            name = ProtoInteractionState.Name(view.interactions[interaction.id].state)
            assert name == f"INTERACTION_STATE_{interaction.state.name}"
        held = [held.message.id for held in view.held_messages]
        assert held == [other.message.id for other in state.held]
        assert (view.queue_pause is not None) == (state.queue_pause is not None)

    def _check_predicates(self, state: SessionState, tip: RunNode) -> None:
        messages = self._messages(state)
        status = STATUS.get(tip.state, READY)
        stopped = tip.state is RunState.CANCELLED
        # A question that a sibling asked is not in the lineage that a client shows.
        lineage = {run.id for run in state.origin_chain(tip.id)}
        if any(state.interactions[waited].run_id not in lineage for waited in tip.waits):
            return
        waits = awaiting_user(status, messages, stopped=stopped, known=self.known)
        assert waits == bool(tip.waits), "G1: somebody is waited for"
        due = resume_due(messages, self.known)
        if tip.state is RunState.PARKED:
            assert not due, "F10: something is open"
        elif tip.state is RunState.PENDING and tip.step_calls and not tip.open_message_id:
            assert due == _settled_by_a_client(state, tip), "F10, A4"
            # Also for a client that has not heard of the resume yet (G1).
            assert not (due and gate_open(READY, messages, known=self.known)), "G1"
        if tip.state in FINAL_STATES and tip.step_calls and not stopped and status != ERROR:
            return  # it has ended without a word about the answer: the shape cannot tell
        assert gate_open(status, messages, stopped=stopped, known=self.known) == (not tip.live)

    def _messages(self, state: SessionState) -> tuple[DisplayMessage, ...]:
        return tuple(
            display_message(self.view, node_id)
            if node_id in state.runs
            else DisplayMessage("user", (DisplayTextPart(""),))
            for node_id in state.path_to(state.selected)
        )


def _settled_by_a_client(state: SessionState, run: RunNode) -> bool:
    """By record: a client's result or an approval that was not taken up, and nothing is open."""
    by_client = False
    for call_id in run.step_calls:
        record, result = state.calls[call_id], run.results.get(call_id)
        asked = state.interactions.get(record.interaction_id)
        if result is None:
            approved = asked is not None and asked.state is InteractionState.APPROVED
            if not approved:
                return False
            by_client = True
        elif record.call.executor is ToolExecutor.CLIENT:
            by_client = by_client or result.kind is not ResultKind.DENIED
        elif asked is not None:
            assert asked.kind is InteractionKind.APPROVAL
    return by_client
