"""Which policies a run is judged by (A1, R7): the session's and the operator's, as they were when
it started; and today's of the operator, as far as that denies.
"""

from __future__ import annotations

from broker_service.domain.decision import Decision
from broker_service.domain.events import OperatorPolicyRecorded
from broker_service.domain.model import ApprovalPolicy, GrantScope, Permission, PolicyRule
from broker_service.domain.state import RunNode, SessionState
from turngate_core import policy


def policy_for(decision: Decision, run: RunNode) -> policy.Policy:
    """What holds for a start of this run now."""
    today = decision.operator_policy
    return policy.together(
        _of_session(decision.state),
        _of_start(decision.state, run),
        policy.denials(_core_policy(today.policy if today else None)),
    )


def policy_of_start(state: SessionState, run: RunNode) -> ApprovalPolicy | None:
    """What the run was started with, as one policy of the contract; None if nobody has set any."""
    if state.config.approval_policy is None and not run.operator_policy_id:
        return None
    joined = policy.together(_of_session(state), _of_start(state, run))
    return ApprovalPolicy(
        default_permission=_permission(joined.default),
        rules=tuple(PolicyRule(rule.pattern, _permission(rule.setting)) for rule in joined.rules),
        grant_scope=grant_scope(state, run),
    )


def record_for_start(decision: Decision) -> str:
    """The id of today's policy of the operator, for a run that starts; "" if there is none.

    Recorded once a session: a policy may be large, and a run only names it.
    """
    today = decision.operator_policy
    if today is None:
        return ""
    if today.id not in decision.state.operator_policies:
        decision.emit(OperatorPolicyRecorded(today))
    return today.id


def grant_scope(state: SessionState, run: RunNode, *scopes: GrantScope | None) -> GrantScope:
    """The stricter of these and of what the policies say about the scope of a grant (A3, E3)."""
    given = (state.config.approval_policy, state.operator_policies.get(run.operator_policy_id))
    every = (*scopes, *(policy.grant_scope for policy in given if policy))
    return GrantScope.ONCE if GrantScope.ONCE in every else GrantScope.SESSION


def setting_of(permission: Permission | None) -> policy.Setting | None:
    """A permission as the rule of A1 knows it."""
    return None if permission is None else _SETTINGS[permission]


def _of_session(state: SessionState) -> policy.Policy:
    return _core_policy(state.config.approval_policy)


def _of_start(state: SessionState, run: RunNode) -> policy.Policy:
    recorded = state.operator_policies.get(run.operator_policy_id)
    if recorded is None and run.operator_policy_id:
        return policy.UNKNOWN_POLICY  # a log that lacks it: what is not understood asks (A1)
    return _core_policy(recorded)


def _core_policy(given: ApprovalPolicy | None) -> policy.Policy:
    if given is None:
        return policy.Policy(default=policy.Setting.ALLOW)
    return policy.Policy(
        default=setting_of(given.default_permission) or policy.Setting.ALLOW,
        rules=tuple(
            policy.PolicyRule(
                rule.pattern, setting_of(rule.permission) or policy.Setting.NOT_UNDERSTOOD
            )
            for rule in given.rules
        ),
    )


_SETTINGS = {
    Permission.ALLOW: policy.Setting.ALLOW,
    Permission.ASK: policy.Setting.ASK,
    Permission.DENY: policy.Setting.DENY,
    Permission.ALLOW_READS: policy.Setting.ALLOW_READS,
}
_PERMISSIONS = {setting: permission for permission, setting in _SETTINGS.items()}


def _permission(setting: policy.Setting) -> Permission:
    return _PERMISSIONS.get(setting, Permission.ASK)
