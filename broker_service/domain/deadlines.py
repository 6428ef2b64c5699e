"""What falls due by itself: expiry (I4), calls that nobody claims (D1).

Judged by the store's clock in each command, whether or not a sweep has come by.
"""

from __future__ import annotations

from broker_service.domain.cancel import stop
from broker_service.domain.closing import close_in_place
from broker_service.domain.decision import Decision
from broker_service.domain.degradation import degrade
from broker_service.domain.events import InteractionClosed
from broker_service.domain.model import (
    ExpiryPolicy,
    Interaction,
    InteractionKind,
    InteractionState,
    ResultKind,
    RunChangeCause,
)
from broker_service.domain.results import synthetic_result
from broker_service.domain.state import SessionState


def next_deadline(state: SessionState, unclaimed_after_ms: int) -> int | None:
    """The earliest instant at which something of this session falls due by itself."""
    instants = [
        instant
        for interaction_id in state.open_interactions
        for instant in _instants(state, state.interactions[interaction_id], unclaimed_after_ms)
    ]
    return min(instants, default=None)


def act_on_deadlines(decision: Decision) -> None:
    """Expire what has expired, and settle what nobody has claimed in time.

    Nobody asked for it: the decision is one of the broker itself.
    """
    state = decision.state
    for interaction_id in list(state.open_interactions):
        interaction = state.interactions[interaction_id]
        if interaction.state is not InteractionState.OPEN:
            continue  # it has closed together with another one
        if interaction.expire_time is not None and interaction.expire_time <= decision.now:
            _expire(decision, interaction)
            continue
        unclaimed_at = _unclaimed_at(state, interaction, decision.limits.unclaimed_after_ms)
        if unclaimed_at is not None and unclaimed_at <= decision.now:
            degrade(decision, interaction)


def _instants(state: SessionState, interaction: Interaction, unclaimed_after_ms: int) -> list[int]:
    both = (interaction.expire_time, _unclaimed_at(state, interaction, unclaimed_after_ms))
    return [instant for instant in both if instant is not None]


def _unclaimed_at(
    state: SessionState, interaction: Interaction, unclaimed_after_ms: int
) -> int | None:
    """D1: an undeclared call that nobody answers or reports; one with any notice stays open."""
    is_client_tool = interaction.kind is InteractionKind.CLIENT_TOOL
    if not is_client_tool or interaction.declared or interaction.create_time is None:
        return None
    if interaction.notice is not None:
        return None
    after = state.config.unclaimed_after
    return interaction.create_time + (unclaimed_after_ms if after is None else after)


def _expire(decision: Decision, interaction: Interaction) -> None:
    """By the nearest policy. Expiry is never recorded as a person's denial (I4)."""
    policy = interaction.on_expiry
    if policy is None:
        is_approval = interaction.kind is InteractionKind.APPROVAL
        policy = ExpiryPolicy.DENY if is_approval else ExpiryPolicy.FAIL_CALL
    if policy is ExpiryPolicy.CANCEL_RUN:
        waiting = decision.state.waiting_runs(interaction.id)
        decision.emit(
            InteractionClosed(
                interaction.id,
                interaction.call_id,
                InteractionState.EXPIRED,
                ResultKind.EXPIRED,
            )
        )
        for run in waiting:
            stop(decision, run, RunChangeCause.EXPIRED)
        return
    denies = policy is ExpiryPolicy.DENY
    result = synthetic_result(
        interaction.call_id,
        ResultKind.DENIED if denies else ResultKind.EXPIRED,
        decision.now,
        detail="nobody decided in time" if denies else "",
        interaction_id=interaction.id,
    )
    close_in_place(decision, interaction, InteractionState.EXPIRED, result)
