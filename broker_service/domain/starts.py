"""Starts of server tools: the runner proposes, the broker grants (A1, S1, R4).

Policy, decision, grant and ledger are checked in one decision; the grant is the durable start.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from broker_service.domain.decision import Decision
from broker_service.domain.events import ToolStarted
from broker_service.domain.grants import is_granted
from broker_service.domain.interactions import built_in_kind
from broker_service.domain.model import (
    GrantScope,
    InteractionState,
    ProposedTool,
    ResultKind,
    RunState,
    ToolCall,
    ToolExecutor,
    ToolResult,
)
from broker_service.domain.policies import grant_scope, policy_for, setting_of
from broker_service.domain.results import synthetic_result
from broker_service.domain.runs import add_result, share_result
from broker_service.domain.state import RunNode, SessionState
from turngate_core import connection, forms, policy
from turngate_core.json_text import JsonTextError, parse

DENIED_BY_POLICY = "the policy does not allow this tool"
"""The reason that the model is told."""


class Verdict(Enum):
    GRANTED = 1
    ASK = 2
    DENIED = 3
    REUSE = 4
    WAIT = 5
    DEFERRED = 6
    CANCELLED = 7


@dataclass(frozen=True, slots=True)
class ToolVerdict:
    call_id: str
    verdict: Verdict
    result: ToolResult | None = None


def propose_tools(
    decision: Decision, run: RunNode, tools: tuple[ProposedTool, ...]
) -> list[ToolVerdict]:
    """A verdict for each proposed server call of the run's step.

    Tools that run after answers are judged last: whether they are deferred depends on the others
    (R4).
    """
    verdicts: dict[str, ToolVerdict] = {}
    allowed = policy_for(decision, run)
    at_once = [tool for tool in tools if not runs_after_answers(tool)]
    later = [tool for tool in tools if runs_after_answers(tool)]
    for tool in at_once:
        verdicts[tool.call_id] = _verdict(decision, run, tool, allowed)
    asked = {v.call_id for v in verdicts.values() if v.verdict is Verdict.ASK}
    asked |= {t.call_id for t in later if asks(decision.state, run, t, allowed)}
    for tool in later:
        others_open = bool(asked - {tool.call_id}) or _has_open_client_call(decision.state, run)
        verdicts[tool.call_id] = _verdict(decision, run, tool, allowed, others_open=others_open)
    return [verdicts[tool.call_id] for tool in tools]


def runs_after_answers(tool: ProposedTool) -> bool:
    """R4: by its own mark, else if it destroys something."""
    return tool.destructive if tool.after_answers is None else tool.after_answers


def _verdict(
    decision: Decision,
    run: RunNode,
    tool: ProposedTool,
    allowed: policy.Policy,
    *,
    others_open: bool = False,
) -> ToolVerdict:
    state = decision.state
    record = state.calls[tool.call_id]
    if known := run.results.get(tool.call_id):
        return ToolVerdict(tool.call_id, Verdict.REUSE, known)
    if run.state is RunState.CANCELLING:
        return ToolVerdict(tool.call_id, Verdict.CANCELLED)
    if record.started and not (record.idempotent and record.started_by == run.id):
        return _started_elsewhere(decision, run, tool.call_id)
    if is_denied(state, tool, allowed):
        return deny(decision, run, tool.call_id)
    if asks(state, run, tool, allowed):
        return ToolVerdict(tool.call_id, Verdict.ASK)
    if runs_after_answers(tool):
        if others_open:
            return ToolVerdict(tool.call_id, Verdict.DEFERRED)
        if _answered_badly(state, run):
            return deny(
                decision, run, tool.call_id, "another question of this step was not accepted"
            )
    decision.emit(ToolStarted(tool.call_id, run.id, run.attempt, tool.idempotent))
    return ToolVerdict(tool.call_id, Verdict.GRANTED)


def deny(
    decision: Decision, run: RunNode, call_id: str, detail: str = DENIED_BY_POLICY
) -> ToolVerdict:
    """The call may not start, and the model is told so.

    One that was started before a crash may have had its effect, though it may not be repeated now:
    nobody can say that it was denied (S1).
    """
    if decision.state.calls[call_id].started:
        result = synthetic_result(call_id, ResultKind.OUTCOME_UNKNOWN, decision.now)
    else:
        result = synthetic_result(call_id, ResultKind.DENIED, decision.now, detail=detail)
    add_result(decision, run, result)
    return ToolVerdict(call_id, Verdict.DENIED, result)


def _started_elsewhere(decision: Decision, run: RunNode, call_id: str) -> ToolVerdict:
    """S1: the first run to reach a call starts it; another takes the recorded result, or waits."""
    record = decision.state.calls[call_id]
    if record.result is None:
        return ToolVerdict(call_id, Verdict.WAIT)
    share_result(decision, run, record.result, record.result_run)
    return ToolVerdict(call_id, Verdict.REUSE, record.result)


def permission(
    state: SessionState, tool: ProposedTool, allowed: policy.Policy
) -> policy.Permission:
    """What policies, tool and server say about the start (A1)."""
    return policy.permission_for(
        state.calls[tool.call_id].call.name,
        allowed,
        tool_setting=setting_of(tool.tool_permission),
        server_setting=setting_of(tool.server_permission),
        read_only=tool.read_only,
    )


def is_denied(state: SessionState, tool: ProposedTool, allowed: policy.Policy) -> bool:
    """Whether somebody's `DENY` keeps the call from starting, whoever has approved it (A1, R7)."""
    return permission(state, tool, allowed) is policy.Permission.DENY


def asks(state: SessionState, run: RunNode, tool: ProposedTool, allowed: policy.Policy) -> bool:
    """Whether a person still has to approve: not decided for this call, covered by no grant."""
    record = state.calls[tool.call_id]
    if tool.call_id in run.results or record.started:
        return False
    if permission(state, tool, allowed) is not policy.Permission.ASK:
        return False
    if record.interaction_id:
        decided = state.interactions[record.interaction_id]
        if decided.state is InteractionState.APPROVED:
            return decided.answers[-1].imported  # history grants nothing (P3)
        return True
    return not is_granted(state, run, record.call)


def _has_open_client_call(state: SessionState, run: RunNode) -> bool:
    return any(
        state.calls[call_id].call.executor is ToolExecutor.CLIENT and call_id not in run.results
        for call_id in run.step_calls
    )


def _answered_badly(state: SessionState, run: RunNode) -> bool:
    """R4: an interaction of the step was declined, denied, cancelled, expired or settled by the
    broker.
    """
    for call_id in run.step_calls:
        result = run.results.get(call_id)
        if result is None:
            continue
        by_kind = result.kind in _BAD_KINDS and (
            result.interaction_id or state.calls[call_id].call.executor is ToolExecutor.CLIENT
        )
        if by_kind or _declined(run, state.calls[call_id].call, result):
            return True
    return False


_BAD_KINDS = frozenset(
    {
        ResultKind.DENIED,
        ResultKind.CANCELLED_BY_USER,
        ResultKind.EXPIRED,
        ResultKind.NOT_HANDLED,
        ResultKind.UNSUPPORTED_PAYLOAD,
        ResultKind.QUESTION_LIMIT,
    }
)


def _declined(run: RunNode, call: ToolCall, result: ToolResult) -> bool:
    """A form that was declined or cancelled, or a connection that was not made (B1, B2): what was
    shown, and checked, as one.
    """
    if result.kind is not ResultKind.CLIENT or result.output_json is None:
        return False
    try:
        output = parse(result.output_json)
    except JsonTextError:
        return False
    if not isinstance(output, dict):
        return False
    kind = built_in_kind(call.name, run.hints.get(call.call_id))
    if kind == forms.KIND:
        return output.get("action") in ("decline", "cancel")
    return kind == connection.KIND and output.get("connected") is False


def approval_scope(state: SessionState, run: RunNode, tool: ProposedTool) -> GrantScope:
    """What an approval of this call will cover (A3): of tool and policy the stricter; `ONCE` by
    default for destructive tools.
    """
    own = tool.grant_scope or (GrantScope.ONCE if tool.destructive else None)
    return grant_scope(state, run, own)
