"""Trying a failed run again (R6): a run beside it that keeps all that it had."""

from __future__ import annotations

from broker_service.domain.cancel import run_state_refusal
from broker_service.domain.decision import Decision
from broker_service.domain.events import HoldChanged, InheritedResult, QueueResumed, RunCreated
from broker_service.domain.model import Run, RunCause, RunState
from broker_service.domain.runs import find_run
from broker_service.domain.state import RunNode, SessionState


def retry_run(decision: Decision, run_id: str) -> tuple[str, str]:
    """Open the run that tries again; answers it, and the run that was acted on (F8).

    A second retry gets the first one's run, unless that has failed too (then it is retried) or was
    cancelled (then the failed run is retried afresh). Refuses with RUN_NOT_FOUND and RUN_STATE.
    """
    state = decision.state
    run = _failed_or_last(state, find_run(state, run_id))
    while (retry := _retry_of(state, run)) and retry.state not in _STOPPED:
        if retry.state is not RunState.FAILED:
            return retry.id, run.id
        run = retry
    if run.state is not RunState.FAILED:
        raise run_state_refusal(run, "has not failed")
    return _open_retry(decision, run), run.id


_STOPPED = (RunState.CANCELLING, RunState.CANCELLED)


def _retry_of(state: SessionState, run: RunNode) -> RunNode | None:
    """The newest run that tries this one again, or what became of it (F8)."""
    for node_id in reversed(state.children.get(run.prompt_id, [])):
        other = state.runs.get(node_id)
        if other and other.cause is RunCause.RETRY and other.origin_id == run.id:
            return _failed_or_last(state, other)
    return None


def _failed_or_last(state: SessionState, run: RunNode) -> RunNode:
    """The run, or the first one that has failed along the chain of its successors, or the last."""
    while run.state is not RunState.FAILED and run.superseded_by:
        run = state.runs[run.superseded_by]
    return run


def _open_retry(decision: Decision, failed: RunNode) -> str:
    """By reference, as a fork (F3). If nothing follows the failed run, the retry supersedes it and
    takes its place wherever that is selected; else it is an unselected sibling.
    """
    state = decision.state
    # An earlier retry, which was stopped, may have its place.
    in_place = state.successor(failed.id)
    nothing_follows = not state.children.get(failed.id) and not state.children.get(in_place)
    retry_id = decision.mint("run")
    run = Run(
        id=retry_id,
        session_id=state.session.id,
        prompt_id=failed.prompt_id,
        state=RunState.PENDING,
        cause=RunCause.RETRY,
        origin_run_id=failed.id,
        supersedes_run_id=failed.id if nothing_follows else "",
        agent=failed.agent,
        operator_policy_id=failed.operator_policy_id,
        create_time=decision.now,
        update_time=decision.now,
        trace_context=failed.trace_context,
    )
    if state.queue_pause and nothing_follows:
        decision.emit(QueueResumed())  # a retry of the branch's last run ends the pause (G2)
    decision.emit(
        RunCreated(
            run=run,
            selected=nothing_follows and state.selected in (failed.id, in_place),
            origin_through_message_id=failed.step_message_id,
            inherited_results=tuple(
                InheritedResult(call_id, failed.result_runs[call_id])
                for call_id in failed.step_calls
                if call_id in failed.results
            ),
        )
    )
    for held in list(state.held):
        if nothing_follows and held.branch_node_id == in_place:
            # A held message follows the retry of the run that it waits for (G1).
            decision.emit(HoldChanged(held.message.id, held.reason, branch_node_id=retry_id))
    return retry_id
