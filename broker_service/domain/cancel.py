"""Stopping runs (C1): at once what waits, by way of CANCELLING what runs."""

from __future__ import annotations

from dataclasses import dataclass

from broker_service.domain.decision import BROKER, Decision
from broker_service.domain.events import InteractionClosed, QueuePaused, RunStateChanged
from broker_service.domain.model import (
    InteractionState,
    QueuePause,
    QueuePauseReason,
    ResultKind,
    RunChangeCause,
    RunState,
)
from broker_service.domain.runs import close_attempt, close_starts, find_run
from broker_service.domain.state import RunNode
from turngate_core.errors import Reason, Refusal


@dataclass(frozen=True, slots=True)
class CancelRun:
    """`keep_held`: the queue is paused, instead of going on with the next message."""

    run_id: str
    keep_held: bool = False


def cancel_run(decision: Decision, command: CancelRun) -> str:
    """Stop a run, or the successor of one that is superseded (F8); answers which.

    Refuses with RUN_NOT_FOUND, and with RUN_STATE one that has ended otherwise (C5).
    """
    state = decision.state
    run = state.runs[state.successor(find_run(state, command.run_id).id)]
    if run.state is RunState.CANCELLED:
        return run.id
    if not run.live:
        raise run_state_refusal(run, "is over")
    if command.keep_held and not state.queue_pause:
        pause = QueuePause(QueuePauseReason.CANCELLED, run.id, decision.now)
        decision.emit(QueuePaused(pause))
    stop(decision, run, RunChangeCause.CANCELLED_BY_USER)
    return run.id


def stop(decision: Decision, run: RunNode, cause: RunChangeCause) -> None:
    """A run that waits ends at once, with the questions that no other live run waits for; one that
    is running becomes CANCELLING, and nothing is granted to it any more.
    """
    if run.state is RunState.RUNNING:
        decision.emit(RunStateChanged(run.id, RunState.CANCELLING, run.attempt, cause=cause))
        return
    if run.state is RunState.CANCELLING:
        return
    waits = list(run.waits)
    close_starts(decision, run)
    decision.emit(RunStateChanged(run.id, RunState.CANCELLED, run.attempt, cause=cause))
    expired = cause is RunChangeCause.EXPIRED
    reason = ResultKind.EXPIRED if expired else ResultKind.CANCELLED_BY_USER
    for interaction_id in waits:
        interaction = decision.state.interactions[interaction_id]
        still_open = interaction.state is InteractionState.OPEN
        if still_open and not decision.state.waiting_runs(interaction_id):
            decision.emit(
                InteractionClosed(
                    interaction_id, interaction.call_id, InteractionState.CANCELLED, reason
                )
            )


def end_of_grace(decision: Decision, run_id: str) -> None:
    """The attempt has not reported its end within the grace: the run is over all the same (C1)."""
    run = find_run(decision.state, run_id)
    if run.state is RunState.CANCELLING:
        close_attempt(decision, run)
        close_starts(decision, run)
        decision.emit(RunStateChanged(run.id, RunState.CANCELLED, run.attempt), actor=BROKER)


def run_state_refusal(run: RunNode, what: str) -> Refusal:
    """A command that would need the run to be in another state is refused by name (C5)."""
    return Refusal(
        Reason.RUN_STATE,
        f"run {run.id} {what}: it is {run.state.name}",
        {"run_id": run.id, "state": run.state.name},
    )
