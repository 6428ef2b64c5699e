"""Moving between branches: edit, regenerate, select (C2, C3)."""

from __future__ import annotations

from broker_service.domain.cancel import stop
from broker_service.domain.decision import Decision
from broker_service.domain.events import BranchSelected
from broker_service.domain.model import RunCause, RunChangeCause, TraceContext
from broker_service.domain.nodes import find_node
from broker_service.domain.runs import create_run, find_run
from broker_service.domain.state import RunNode
from turngate_core.ids import split_message_id


def leave_branch(decision: Decision, *, keep_running: bool, stop_parked: bool = False) -> None:
    """The selected branch is about to be left: by default a pending or running run of it is
    cancelled, a parked one is kept (C2).
    """
    run = decision.state.runs.get(decision.state.selected)
    if run is None or not run.live:
        return
    if (run.active and not keep_running) or (stop_parked and not run.active):
        stop(decision, run, RunChangeCause.BRANCH_LEFT)


def regenerate_run(
    decision: Decision,
    run_or_message_id: str,
    *,
    keep_running: bool,
    trace_context: TraceContext | None,
) -> tuple[str, str]:
    """A new run beside one, under the same prompt, and selected; answers it and the run that was
    acted on (C2, F8). Refuses with RUN_NOT_FOUND.
    """
    run = _run_named(decision, run_or_message_id)
    leave_branch(decision, keep_running=keep_running)
    created = create_run(
        decision,
        run.prompt_id,
        RunCause.REGENERATE,
        selected=True,
        trace_context=trace_context,
    )
    return created, run.id


def _run_named(decision: Decision, run_or_message_id: str) -> RunNode:
    """The run of that id, or the one that has that message; its successor if superseded (F8)."""
    state = decision.state
    base, copy_of = split_message_id(run_or_message_id)
    run_id = copy_of or state.message_nodes.get(base, base)
    return state.runs[state.successor(find_run(state, run_id).id)]


def select_branch(decision: Decision, node_or_message_id: str) -> str:
    """Select the branch through a node, down to its newest leaf; answers that (C3).

    Refuses with NODE_NOT_FOUND.
    """
    state = decision.state
    tip = state.end_of_branch(find_node(state, node_or_message_id))
    if tip != state.selected:
        decision.emit(BranchSelected(tip))
    return tip
