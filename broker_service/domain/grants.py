"""Grants (A3): approvals that let identical later calls of their branch pass."""

from __future__ import annotations

from broker_service.domain.decision import Decision
from broker_service.domain.events import GrantRevoked
from broker_service.domain.model import Grant, ToolCall
from broker_service.domain.state import GrantRecord, RunNode, SessionState
from turngate_core.canonical_arguments import canonical_key_of_text
from turngate_core.errors import Reason, Refusal


def is_granted(state: SessionState, run: RunNode, call: ToolCall) -> bool:
    """An approval of scope SESSION on this branch, whose own call was started and was identical."""
    wanted = _identity(run.agent, call)
    if wanted is None:
        return False
    matching = [
        grant
        for grant in state.grants.values()
        if not grant.revoked
        and state.calls[grant.call_id].started
        and _identity(state.runs[grant.run_id].agent, state.calls[grant.call_id].call) == wanted
    ]
    if not matching:
        return False
    # The call has to be one of this branch, whichever of its forks started it (S1).
    history = runs_of_branch(state, run.id)
    return any(state.calls[grant.call_id].run_id in history for grant in matching)


def grants_of_branch(state: SessionState, node_id: str) -> list[Grant]:
    """The grants whose question was asked on the branch that ends at this node, oldest first."""
    if not state.grants:
        return []  # most branches have none: do not walk them
    history = runs_of_branch(state, node_id)
    return [
        _public(state, grant)
        for grant in state.grants.values()
        if not grant.revoked and state.calls[grant.call_id].run_id in history
    ]


def revoke_grant(decision: Decision, grant_id: str) -> None:
    """No later call passes by it; calls that were started stay started. Refuses with
    GRANT_NOT_FOUND; one that is revoked already is OK (C5).
    """
    grant = decision.state.grants.get(grant_id)
    if grant is None:
        raise Refusal(
            Reason.GRANT_NOT_FOUND, f"no grant {grant_id} in this session", {"grant_id": grant_id}
        )
    if not grant.revoked:
        decision.emit(GrantRevoked(grant_id))


def runs_of_branch(state: SessionState, node_id: str) -> set[str]:
    """The runs of a branch, with those that they are copies of."""
    return {
        ancestor.id
        for node in state.path_to(node_id)
        if node in state.runs
        for ancestor in state.origin_chain(node)
    }


def _identity(agent: str, call: ToolCall) -> tuple[str, str, str, str] | None:
    """Identical means: same agent, origin, name and canonical arguments, strings not unwrapped."""
    key = canonical_key_of_text(call.arguments_json or "{}", unwrap_strings=False)
    return None if key is None else (agent, call.tool_origin, call.name, key)


def _public(state: SessionState, grant: GrantRecord) -> Grant:
    record = state.calls[grant.call_id]
    return Grant(
        id=grant.interaction_id,
        tool_name=record.call.name,
        tool_origin=record.call.tool_origin,
        agent=state.runs[grant.run_id].agent,
        arguments_json=record.call.arguments_json,
        granted_by=grant.granted_by,
        create_time=grant.create_time,
        effective=record.started,
    )
