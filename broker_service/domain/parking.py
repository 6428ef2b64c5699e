"""The end of a step that waits: its open calls become questions (R4), or are settled (D2, D3)."""

from __future__ import annotations

from broker_service.domain import runs
from broker_service.domain.decision import Decision
from broker_service.domain.events import RenderHintAdded, RunStateChanged
from broker_service.domain.interactions import hint_for, open_interaction
from broker_service.domain.model import (
    InteractionKind,
    InteractionNotice,
    ProposedTool,
    ResultKind,
    RunFailure,
    RunFailureReason,
    RunState,
    ToolExecutor,
    ToolResult,
)
from broker_service.domain.policies import policy_for
from broker_service.domain.starts import approval_scope, asks, deny, is_denied, runs_after_answers
from broker_service.domain.state import RunNode
from broker_service.domain.step_checks import check_server_call, check_sound, violation
from turngate_core.degradation import ParkedCall, ParkedStep, park_step
from turngate_core.policy import Policy, denies_client_tool


def park(decision: Decision, run: RunNode, waiting: tuple[ProposedTool, ...]) -> None:
    """Every open call of the step becomes an interaction, in call order, in the write that parks.

    `waiting`: the step's server calls without a result, as they were proposed. Refuses with
    PROTOCOL_VIOLATION.
    """
    state = decision.state
    proposals = {tool.call_id: tool for tool in waiting}
    for call_id in proposals:
        check_server_call(decision, run, call_id)
    unresolved = [call_id for call_id in run.step_calls if call_id not in run.results]
    if not unresolved:
        raise violation("parked, but every call of the step has its result")
    allowed = policy_for(decision, run)
    step = _park_client_calls(decision, run, unresolved, allowed)
    for proposed in waiting:
        # The operator may have denied it since its verdict (R7).
        call_id = proposed.call_id
        if not state.calls[call_id].started and is_denied(state, proposed, allowed):
            deny(decision, run, call_id)
    asked = [
        call_id
        for call_id in unresolved
        if call_id in step.open
        or ((tool := proposals.get(call_id)) and asks(state, run, tool, allowed))
    ]
    over = _over_limit(decision, run, asked)
    if over and run.over_limit_step and run.over_limit_step == run.step - 1:
        limit = RunFailure(RunFailureReason.QUESTION_LIMIT, "too many questions, twice in a row")
        runs.fail_run(decision, run, limit)
        return
    for settlement in step.settlements:
        result = ToolResult(
            call_id=settlement.call_id,
            error_text=settlement.error_text,
            kind=ResultKind.UNSUPPORTED_PAYLOAD,
            create_time=decision.now,
        )
        runs.add_result(decision, run, result)
    for call_id in over:
        result = ToolResult(
            call_id=call_id,
            error_text=_TOO_MANY_QUESTIONS,
            kind=ResultKind.QUESTION_LIMIT,
            create_time=decision.now,
        )
        runs.add_result(decision, run, result)
    waits: list[str] = []
    for call_id in unresolved:
        call = state.calls[call_id].call
        if call_id in run.results:
            continue
        if call_id in step.open:
            notice = InteractionNotice.UNSUPPORTED_PAYLOAD if call_id in step.notices else None
            kind = InteractionKind.CLIENT_TOOL
            waits.append(open_interaction(decision, run, call, kind, notice=notice))
        if call.executor is ToolExecutor.CLIENT:
            continue
        tool = proposals.get(call_id)
        if tool is None:
            raise violation(f"parked without a word about the server call {call_id}")
        if asks(state, run, tool, allowed):
            scope = approval_scope(state, run, tool)
            asked_by_other = state.calls[call_id].interaction_id
            if asked_by_other in state.open_interactions:
                waits.append(asked_by_other)  # a call is one question, whichever fork asks it (F4)
                continue
            waits.append(
                open_interaction(decision, run, call, InteractionKind.APPROVAL, grant_scope=scope)
            )
        elif not runs_after_answers(tool):
            raise violation(f"parked though the server call {call_id} could run")
    decision.emit(
        RunStateChanged(
            run.id, RunState.PARKED, run.attempt, waits_for_interaction_ids=tuple(waits)
        )
    )
    runs.resume_if_free(decision, run)


_TOO_MANY_QUESTIONS = "Too many questions were asked in this turn. Go on without this one."


def _over_limit(decision: Decision, run: RunNode, asked: list[str]) -> list[str]:
    """The calls that are over the limit of questions a step or turn (D3), the last ones first."""
    limits = decision.limits
    room = min(limits.questions_a_step, max(0, limits.questions_a_turn - run.questions))
    return asked[room:]


def _park_client_calls(
    decision: Decision, run: RunNode, unresolved: list[str], allowed: Policy
) -> ParkedStep:
    """The client calls of the step, each with a hint (H1), and what becomes of them (A1, D2)."""
    state = decision.state
    parked = []
    for call_id in unresolved:
        call = state.calls[call_id].call
        check_sound(call)
        if call.executor is not ToolExecutor.CLIENT:
            continue
        if denies_client_tool(call.name, allowed):
            deny(decision, run, call_id)
            continue
        if call_id not in run.hints:
            hint = hint_for(state, run, call)
            decision.emit(RenderHintAdded(decision.mint("msg"), run.id, hint))
        kind = run.hints[call_id].kind
        parked.append(ParkedCall(call_id, call.name, kind, call.arguments_json or "{}"))
    return park_step(parked, degraded_earlier=run.degraded)
