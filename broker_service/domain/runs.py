"""The life of a run (R1 to R3): created, handed over, lost, ended."""

from __future__ import annotations

from dataclasses import replace

from broker_service.domain.decision import BROKER, Actor, Decision
from broker_service.domain.events import (
    MessageWithdrawn,
    RunCreated,
    RunStateChanged,
    ToolResultAdded,
)
from broker_service.domain.model import (
    ResultKind,
    Run,
    RunCause,
    RunChangeCause,
    RunFailure,
    RunFailureReason,
    RunState,
    ToolResult,
    TraceContext,
)
from broker_service.domain.policies import record_for_start
from broker_service.domain.results import synthetic_result
from broker_service.domain.state import RunNode, SessionState
from turngate_core.errors import Reason, Refusal


def create_run(
    decision: Decision,
    prompt_id: str,
    cause: RunCause,
    *,
    selected: bool,
    trace_context: TraceContext | None = None,
    actor: Actor | None = None,
) -> str:
    """A fresh run that replies to a prompt; it waits for a runner."""
    run_id = decision.mint("run")
    state = decision.state
    run = Run(
        id=run_id,
        session_id=state.session.id,
        prompt_id=prompt_id,
        state=RunState.PENDING,
        cause=cause,
        agent=state.config.agent,
        create_time=decision.now,
        update_time=decision.now,
        trace_context=trace_context,
        operator_policy_id=record_for_start(decision),
    )
    decision.emit(RunCreated(run, selected=selected), actor=actor)
    return run_id


def find_run(state: SessionState, run_id: str) -> RunNode:
    """The run itself, superseded or not. Refuses with RUN_NOT_FOUND."""
    run = state.runs.get(run_id)
    if run is None:
        raise Refusal(Reason.RUN_NOT_FOUND, f"no run {run_id} in this session", {"run_id": run_id})
    return run


def begin_attempt(decision: Decision, run_id: str, attempt: int) -> None:
    """A runner has taken the run: PENDING → RUNNING (R3). Refuses an attempt that is not due."""
    run = find_run(decision.state, run_id)
    if run.superseded_by or run.state is not RunState.PENDING or attempt <= run.attempt:
        raise _stale(run, attempt)
    decision.emit(RunStateChanged(run_id, RunState.RUNNING, attempt=attempt))


def check_attempt(state: SessionState, run_id: str, attempt: int) -> RunNode:
    """The run, if this is its running attempt; events of any other are refused (R3)."""
    run = find_run(state, run_id)
    running = run.state in (RunState.RUNNING, RunState.CANCELLING)
    if run.superseded_by or not running or attempt != run.attempt:
        raise _stale(run, attempt)
    return run


def _stale(run: RunNode, attempt: int) -> Refusal:
    return Refusal(
        Reason.STALE_ATTEMPT,
        f"attempt {attempt} of run {run.id} is over",
        {"run_id": run.id, "attempt": str(attempt)},
    )


def hand_over(decision: Decision, run_id: str, attempt: int) -> None:
    """The broker lets go of a running attempt on purpose, as it stops; counts towards no cap."""
    lose_attempt(decision, run_id, attempt, "handed over", RunChangeCause.HANDED_OVER)


def lose_attempt(
    decision: Decision,
    run_id: str,
    attempt: int,
    detail: str,
    cause: RunChangeCause = RunChangeCause.ATTEMPT_LOST,
) -> None:
    """The attempt's runner or broker is gone (R3, S1).

    Text of the message that was being written is withdrawn; a started call without a result becomes
    `outcome_unknown`, unless its tool is idempotent; then the run waits for another runner, or
    fails once this has happened too often in a row (R6).
    """
    run = check_attempt(decision.state, run_id, attempt)
    close_attempt(decision, run)
    close_starts(decision, run, repeatable_ones=False)
    if run.state is RunState.CANCELLING:
        close_starts(decision, run)
        decision.emit(RunStateChanged(run_id, RunState.CANCELLED, attempt, detail=detail))
    elif cause is RunChangeCause.ATTEMPT_LOST and run.lost_attempts + 1 >= decision.limits.attempts:
        failure = RunFailure(
            RunFailureReason.ATTEMPTS_EXHAUSTED,
            f"the run was lost {decision.limits.attempts} times in a row",
        )
        fail_run(decision, run, failure)
    else:
        decision.emit(
            RunStateChanged(run_id, RunState.PENDING, attempt, detail=detail, cause=cause)
        )


def close_attempt(decision: Decision, run: RunNode) -> None:
    """Withdraw what the attempt was writing (R3); the end of content precedes the run's (W5)."""
    if run.open_message_id:
        decision.emit(MessageWithdrawn(run.open_message_id, run.id))


def close_starts(decision: Decision, run: RunNode, *, repeatable_ones: bool = True) -> None:
    """Calls that the run started and that have no result get `outcome_unknown` (S1): nobody may
    wait for them for ever. `repeatable_ones`: those of idempotent tools too.
    """
    for call_id in run.step_calls:
        record = decision.state.calls[call_id]
        is_lost = record.started_by == run.id and call_id not in run.results
        if is_lost and (repeatable_ones or not record.idempotent):
            unknown = synthetic_result(call_id, ResultKind.OUTCOME_UNKNOWN, decision.now)
            decision.emit(ToolResultAdded(run.id, unknown))


def fail_run(decision: Decision, run: RunNode, failure: RunFailure) -> None:
    """The run has failed; it keeps every answer (R6)."""
    close_attempt(decision, run)
    close_starts(decision, run)
    decision.emit(RunStateChanged(run.id, RunState.FAILED, run.attempt, failure=failure))


def fail_unplaced(decision: Decision, run_id: str, failure: RunFailure) -> None:
    """No runner could take a pending run (S2)."""
    run = find_run(decision.state, run_id)
    if run.state is RunState.PENDING and run.live:
        fail_run(decision, run, failure)


def mark_unplaced(decision: Decision, run_id: str) -> None:
    """Say that no runner takes a pending run (S2)."""
    run = find_run(decision.state, run_id)
    if run.state is RunState.PENDING and run.live and not run.unplaced:
        decision.emit(RunStateChanged(run_id, RunState.PENDING, unplaced=True))


def resume_if_free(decision: Decision, run: RunNode) -> bool:
    """PARKED → PENDING when the last thing that the run waits for has closed, however (R1)."""
    if run.state is RunState.PARKED and run.live and not run.waits:
        decision.emit(RunStateChanged(run.id, RunState.PENDING, run.attempt), actor=BROKER)
        return True
    return False


def share_result(decision: Decision, run: RunNode, result: ToolResult, holder_id: str) -> None:
    """The run has the same result of a call as another, whose event holds it (F4, S1)."""
    if result.call_id not in run.results:
        without = replace(result, output_json=None, error_text=None)
        decision.emit(ToolResultAdded(run.id, without, same_as_run_id=holder_id))


def add_result(decision: Decision, run: RunNode, result: ToolResult) -> None:
    """A call of the run's step has its result in this run, unless it has one already."""
    if result.call_id not in run.results:
        decision.emit(ToolResultAdded(run.id, result))
