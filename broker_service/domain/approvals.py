"""Deciding approvals (A2, A5): typed decisions of people, never text."""

from __future__ import annotations

from dataclasses import dataclass

from broker_service.domain.decision import Decision
from broker_service.domain.events import AnswerAdded
from broker_service.domain.interactions import (
    InteractionRef,
    addressed_run,
    find_interaction,
    instant,
    refuse_if_closed_without_answer,
    refuse_kind,
    refuse_other_closer,
)
from broker_service.domain.model import (
    Answer,
    GrantScope,
    Interaction,
    InteractionKind,
    InteractionState,
    ResultKind,
    RunState,
)
from broker_service.domain.policies import grant_scope
from broker_service.domain.results import synthetic_result
from broker_service.domain.runs import add_result, resume_if_free
from broker_service.domain.state import RunNode, SessionState
from turngate_core.errors import Reason, Refusal


@dataclass(frozen=True, slots=True)
class DecideApproval:
    """`reason`: for the model. `grant_scope`: how far an approval reaches; the stricter setting
    wins.
    """

    ref: InteractionRef
    approve: bool
    reason: str = ""
    grant_scope: GrantScope | None = None
    client_ref: str = ""


@dataclass(frozen=True, slots=True)
class Decided:
    interaction_id: str
    answer_id: str
    acted_on_run_id: str
    client_ref: str


def decide_approval(decision: Decision, command: DecideApproval) -> Decided:
    """Approve or deny. Never forks; the run goes on when nothing that it waits for is open (A2)."""
    state = decision.state
    interaction = find_interaction(state, command.ref)
    refuse_kind(interaction, InteractionKind.APPROVAL)
    refuse_other_closer(decision, interaction)
    refuse_if_closed_without_answer(interaction)
    to = InteractionState.APPROVED if command.approve else InteractionState.DENIED
    if interaction.state is to:
        # The effect holds already (C5).
        last = interaction.answers[-1]
        return Decided(interaction.id, last.id, last.run_id, command.client_ref)
    if interaction.state is not InteractionState.OPEN and not (
        to is InteractionState.DENIED and _not_in_effect(state, interaction)
    ):
        last = interaction.answers[-1]
        raise Refusal(
            Reason.ALREADY_DECIDED,
            "another decision came first",
            {
                "interaction_id": interaction.id,
                "state": interaction.state.name if interaction.state else "",
                "decided_by": last.author,
                "decided_at": instant(last.create_time),
            },
        )
    runs = _runs_at(state, interaction)
    run = addressed_run(state, runs, command.ref.run_id)
    scope = grant_scope(state, run, command.grant_scope, interaction.grant_scope)
    answer = Answer(
        id=decision.mint("ans"),
        author=decision.actor.name,
        client=decision.client,
        create_time=decision.now,
        approved=command.approve,
        reason=command.reason,
        grant_scope=scope if command.approve else None,
        run_id=run.id,
        client_ref=command.client_ref,
    )
    decision.emit(AnswerAdded(interaction.id, interaction.call_id, answer, to, run.id))
    for at in runs:
        if not command.approve:
            denied = synthetic_result(
                interaction.call_id,
                ResultKind.DENIED,
                decision.now,
                detail=command.reason,
                interaction_id=interaction.id,
            )
            add_result(decision, at, denied)
        resume_if_free(decision, at)
    return Decided(interaction.id, answer.id, run.id, command.client_ref)


def _runs_at(state: SessionState, interaction: Interaction) -> list[RunNode]:
    """The live runs that are parked at the step of this call: those whom the decision concerns."""
    return [
        run
        for run in (state.runs[run_id] for run_id in state.live_runs)
        if run.state is RunState.PARKED and interaction.call_id in run.step_calls
    ]


def _not_in_effect(state: SessionState, interaction: Interaction) -> bool:
    """An approval takes effect when nothing the run waits for is open (A2)."""
    return bool(_runs_at(state, interaction)) and not state.calls[interaction.call_id].started
