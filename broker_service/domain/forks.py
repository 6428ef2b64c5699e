"""Forks: the run that goes on with a client's answer (F2 to F4).

A fork is a copy by reference (F3): it names its origin and how far it copies, and brings along the
results of the current step. Its cost does not depend on the length of the origin.
"""

from __future__ import annotations

from broker_service.domain.decision import Decision
from broker_service.domain.events import InheritedResult, RunCreated
from broker_service.domain.model import Interaction, Run, RunCause, RunState
from broker_service.domain.state import RunNode
from turngate_core.ids import copy_message_id


def open_fork(decision: Decision, origin: RunNode, fork_id: str, answered: Interaction) -> RunNode:
    """The first answer to `origin` opens its fork: a sibling that supersedes it, waits for what
    else is open, and takes its place wherever it is selected (F2). `answered` is closed already.
    """
    state = decision.state
    run = Run(
        id=fork_id,
        session_id=state.session.id,
        prompt_id=origin.prompt_id,
        state=RunState.PARKED if origin.waits else RunState.PENDING,
        cause=RunCause.ANSWER,
        origin_run_id=origin.id,
        supersedes_run_id=origin.id,
        waits_for_interaction_ids=tuple(origin.waits),
        agent=origin.agent,
        create_time=decision.now,
        update_time=decision.now,
        trace_context=origin.trace_context,
    )
    decision.emit(
        RunCreated(
            run=run,
            selected=state.selected == origin.id,
            origin_through_message_id=origin.step_message_id,
            inherited_results=tuple(
                InheritedResult(call_id, origin.result_runs[call_id])
                for call_id in origin.step_calls
                if call_id in origin.results
            ),
            answered_message_id=copy_message_id(answered.message_id, fork_id),
        )
    )
    return state.runs[fork_id]
