"""Forks: the run that goes on with a client's answer (F2 to F4).

A fork is a copy by reference (F3): it names its origin and how far it copies, and brings along the
results of the current step. Its cost does not depend on the length of the origin.
"""

from __future__ import annotations

from collections.abc import Mapping

from broker_service.domain.decision import Decision
from broker_service.domain.events import InheritedResult, RunCreated
from broker_service.domain.interactions import first_answer_metadata
from broker_service.domain.model import ConflictPolicy, Interaction, Run, RunCause, RunState
from broker_service.domain.state import RunNode, SessionState
from turngate_core.errors import Reason, Refusal
from turngate_core.ids import copy_message_id


def open_fork(decision: Decision, origin: RunNode, fork_id: str, answered: Interaction) -> RunNode:
    """The first answer to `origin` opens its fork: a sibling that supersedes it, waits for what
    else is open, and takes its place wherever it is selected (F2). `answered` is closed already.
    """
    return _copy(
        decision,
        origin,
        fork_id,
        answered,
        cause=RunCause.ANSWER,
        waits=tuple(origin.waits),
        holders=origin.result_runs,
        selected=decision.state.selected == origin.id,
    )


def open_second_fork(
    decision: Decision, addressed: RunNode, fork_id: str, answered: Interaction
) -> RunNode:
    """A second answer to the same call opens a sibling branch, which is never selected by it (F5).

    It has what the run that was addressed has of that step's answers, and waits for what that one
    still waits for there; nothing that it produced later.
    """
    still_there = addressed.collecting and addressed.live
    return _copy(
        decision,
        decision.state.runs[answered.run_id],
        fork_id,
        answered,
        cause=RunCause.SECOND_ANSWER,
        waits=tuple(addressed.waits) if still_there else (),
        holders=addressed.result_runs if addressed.collecting else addressed.fork_result_runs,
        selected=False,
    )


def fork_for_second_answer(
    state: SessionState, interaction: Interaction, named_run_id: str, max_forks: int
) -> RunNode:
    """The fork that a second answer is addressed to: R means its first one, the interaction alone
    the one that took the first answer.

    Refuses with ALREADY_SETTLED where no second answer is accepted (F5), and with RUN_CANCELLED
    what comes too late (F6).
    """
    first = state.runs[interaction.answers[0].run_id]
    addressed = first
    if named_run_id == interaction.run_id:
        addressed = state.runs[state.runs[named_run_id].superseded_by]
    elif named_run_id:
        for ancestor in state.origin_chain(named_run_id):
            if ancestor.origin_id == interaction.run_id:
                addressed = ancestor
    named = state.runs[named_run_id] if named_run_id else addressed
    for run in (*_successors(state, first), *_successors(state, addressed), named):
        if run.state in (RunState.CANCELLING, RunState.CANCELLED):
            raise Refusal(
                Reason.RUN_CANCELLED,
                f"run {run.id}, which goes on with the first answer, was cancelled",
                {"run_id": run.id},
            )
    goes_on = bool(state.children.get(state.successor(first.id)))
    first_wins = interaction.conflict_policy is ConflictPolicy.FIRST_WINS
    if first_wins or goes_on or len(interaction.answers) >= max_forks:
        raise Refusal(
            Reason.ALREADY_SETTLED,
            "another answer came first",
            first_answer_metadata(interaction),
        )
    return addressed


def _successors(state: SessionState, run: RunNode) -> list[RunNode]:
    chain = [run]
    while chain[-1].superseded_by:
        chain.append(state.runs[chain[-1].superseded_by])
    return chain


def _copy(
    decision: Decision,
    origin: RunNode,
    fork_id: str,
    answered: Interaction,
    *,
    cause: RunCause,
    waits: tuple[str, ...],
    holders: Mapping[str, str],
    selected: bool,
) -> RunNode:
    """`holders`: by call of the step, the run whose event holds the result to bring along."""
    run = Run(
        id=fork_id,
        session_id=decision.state.session.id,
        prompt_id=origin.prompt_id,
        state=RunState.PARKED if waits else RunState.PENDING,
        cause=cause,
        origin_run_id=origin.id,
        supersedes_run_id=origin.id,
        waits_for_interaction_ids=waits,
        agent=origin.agent,
        operator_policy_id=origin.operator_policy_id,
        create_time=decision.now,
        update_time=decision.now,
        trace_context=origin.trace_context,
    )
    decision.emit(
        RunCreated(
            run=run,
            selected=selected,
            origin_through_message_id=origin.step_message_id,
            inherited_results=tuple(
                InheritedResult(call_id, holders[call_id])
                for call_id in origin.step_calls
                if call_id in holders and call_id != answered.call_id
            ),
            answered_message_id=copy_message_id(answered.message_id, fork_id),
        )
    )
    return decision.state.runs[fork_id]
