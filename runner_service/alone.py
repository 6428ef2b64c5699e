"""Verdicts for a caller who sends start and history and closes its side (grpcurl).

Such a caller grants what needs no approval; what needs one parks (A1).
"""

from __future__ import annotations

from collections.abc import Sequence

from runner_service.limits import error_result
from turngate.v1 import message_pb2, runner_pb2, session_pb2
from turngate_core.policy import Permission, Policy, PolicyRule, Setting, permission_for
from turngate_core.synthetic import SyntheticReason, text_for_model

_SETTINGS = {
    session_pb2.PERMISSION_ALLOW: Setting.ALLOW,
    session_pb2.PERMISSION_ASK: Setting.ASK,
    session_pb2.PERMISSION_DENY: Setting.DENY,
    session_pb2.PERMISSION_ALLOW_READS: Setting.ALLOW_READS,
}


def verdicts_alone(
    start: runner_pb2.ExecuteStart,
    message: message_pb2.Message,
    has_open_client_call: bool,
    proposed: Sequence[runner_pb2.ProposedTool],
) -> list[runner_pb2.ToolVerdict]:
    """A verdict for each proposed call: from the policy and the start's own decisions.

    Tools that run after answers are deferred while a call of the step is open (R4).
    """
    names = {
        part.tool_call.call_id: part.tool_call.name
        for part in message.parts
        if part.WhichOneof("content") == "tool_call"
    }
    decisions = {decision.call_id: decision for decision in start.turn_decisions}
    policy = policy_of(start.approval_policy)
    permissions = {}
    for tool in proposed:
        permission = permission_for(
            names.get(tool.call_id, ""),
            policy,
            tool_setting=setting_of(tool.tool_permission),
            server_setting=setting_of(tool.server_permission),
            read_only=tool.read_only,
        )
        decision = decisions.get(tool.call_id)
        if permission is Permission.ASK and decision is not None:
            permission = Permission.ALLOW if decision.approved else Permission.DENY
        permissions[tool.call_id] = permission
    is_open = has_open_client_call or Permission.ASK in permissions.values()
    return [
        _verdict(start, tool, permissions[tool.call_id], is_open, decisions.get(tool.call_id))
        for tool in proposed
    ]


def policy_of(policy: session_pb2.ApprovalPolicy) -> Policy:
    """The policy of the contract as the core reads it; what is not understood asks (A1)."""
    rules = (
        PolicyRule(rule.pattern, setting_of(rule.permission) or Setting.NOT_UNDERSTOOD)
        for rule in policy.rules
    )
    return Policy(setting_of(policy.default_permission) or Setting.ALLOW, tuple(rules))


def setting_of(permission: session_pb2.Permission.ValueType) -> Setting | None:
    """A permission of the contract as the core reads it; `None` if it is not set."""
    if permission == session_pb2.PERMISSION_UNSPECIFIED:
        return None
    return _SETTINGS.get(permission, Setting.NOT_UNDERSTOOD)


def _verdict(
    start: runner_pb2.ExecuteStart,
    tool: runner_pb2.ProposedTool,
    permission: Permission,
    is_open: bool,
    decision: message_pb2.ApprovalDecision | None,
) -> runner_pb2.ToolVerdict:
    if permission is Permission.DENY:
        text = text_for_model(SyntheticReason.DENIED, decision.reason if decision else "")
        denied = error_result(tool.call_id, text, message_pb2.RESULT_KIND_DENIED)
        return runner_pb2.ToolVerdict(
            call_id=tool.call_id, verdict=runner_pb2.VERDICT_DENIED, result=denied
        )
    if permission is Permission.ASK:
        return runner_pb2.ToolVerdict(call_id=tool.call_id, verdict=runner_pb2.VERDICT_ASK)
    waits = tool.after_answers if tool.HasField("after_answers") else tool.destructive
    if waits and is_open:
        return runner_pb2.ToolVerdict(call_id=tool.call_id, verdict=runner_pb2.VERDICT_DEFERRED)
    return runner_pb2.ToolVerdict(
        call_id=tool.call_id,
        verdict=runner_pb2.VERDICT_GRANTED,
        idempotency_key=f"{start.session_id}:{tool.call_id}",
    )
