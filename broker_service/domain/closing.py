"""Closing questions without an answer, in place (R5): cancelled, expired, settled by the broker."""

from __future__ import annotations

from dataclasses import dataclass

from broker_service.domain.decision import Decision
from broker_service.domain.events import InteractionClosed
from broker_service.domain.interactions import (
    InteractionRef,
    addressed_run,
    find_interaction,
    first_answer_metadata,
    refuse_if_closed_without_answer,
)
from broker_service.domain.model import Interaction, InteractionState, ResultKind, ToolResult
from broker_service.domain.results import synthetic_result
from broker_service.domain.runs import add_result, resume_if_free, share_result
from turngate_core.errors import Reason, Refusal


@dataclass(frozen=True, slots=True)
class Closed:
    interaction_id: str
    acted_on_run_id: str


def close_in_place(
    decision: Decision,
    interaction: Interaction,
    to: InteractionState,
    result: ToolResult,
) -> None:
    """Close a question for every run that waits for it (F4); each goes on when it is free (R5)."""
    waiting = decision.state.waiting_runs(interaction.id)
    decision.emit(InteractionClosed(interaction.id, interaction.call_id, to, result.kind))
    for run in waiting:
        if run is waiting[0]:
            add_result(decision, run, result)
        else:
            share_result(decision, run, result, waiting[0].id)
        resume_if_free(decision, run)


def cancel_interaction(decision: Decision, ref: InteractionRef) -> Closed:
    """C4: one question is closed with `cancelled_by_user`; the run goes on in place.

    Refuses with ALREADY_SETTLED, ALREADY_DECIDED, INTERACTION_EXPIRED or INTERACTION_NOT_HANDLED.
    """
    state = decision.state
    interaction = find_interaction(state, ref)
    if interaction.state is InteractionState.CANCELLED:
        return Closed(interaction.id, state.successor(interaction.run_id))  # C5
    refuse_if_closed_without_answer(interaction)
    if interaction.state is InteractionState.ANSWERED:
        raise Refusal(
            Reason.ALREADY_SETTLED,
            "the question was answered",
            first_answer_metadata(interaction),
        )
    if interaction.state is not InteractionState.OPEN:
        last = interaction.answers[-1]
        raise Refusal(
            Reason.ALREADY_DECIDED,
            "the approval was decided",
            {
                "interaction_id": interaction.id,
                "state": interaction.state.name if interaction.state else "",
                "decided_by": last.author,
            },
        )
    acted_on = addressed_run(state, state.waiting_runs(interaction.id), ref.run_id).id
    result = synthetic_result(
        interaction.call_id,
        ResultKind.CANCELLED_BY_USER,
        decision.now,
        interaction_id=interaction.id,
    )
    close_in_place(decision, interaction, InteractionState.CANCELLED, result)
    return Closed(interaction.id, acted_on)
