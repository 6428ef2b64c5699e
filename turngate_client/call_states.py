"""What a call's result, its question and its run make of it."""

from __future__ import annotations

from collections.abc import Iterator

from turngate.v1.interaction_pb2 import (
    INTERACTION_KIND_APPROVAL,
    INTERACTION_STATE_OPEN,
    Interaction,
)
from turngate.v1.message_pb2 import (
    RESULT_KIND_CANCELLED_BY_USER,
    RESULT_KIND_CLIENT,
    RESULT_KIND_DENIED,
    RESULT_KIND_EXPIRED,
    RESULT_KIND_OUTCOME_UNKNOWN,
    RESULT_KIND_RUN_FAILED,
    RESULT_KIND_TOOL,
    ApprovalDecision,
    ApprovalRequest,
    Part,
    ToolResult,
)
from turngate.v1.run_pb2 import (
    RUN_STATE_CANCELLED,
    RUN_STATE_COMPLETED,
    RUN_STATE_FAILED,
    Run,
)
from turngate_core import display
from turngate_core.synthetic import SyntheticReason, text_for_model

FINAL_STATES = (RUN_STATE_COMPLETED, RUN_STATE_FAILED, RUN_STATE_CANCELLED)


def synthetic_result(run: Run, call_id: str, *, started: bool, expired: bool) -> ToolResult | None:
    """What a run that has ended left of a call without a result (T4); None while it is live.

    `expired`: a question that it waited for expired, and that cancelled the run (I4).
    """
    if run.state not in FINAL_STATES:
        return None
    if started:
        kind, reason = RESULT_KIND_OUTCOME_UNKNOWN, SyntheticReason.OUTCOME_UNKNOWN
    elif expired:
        kind, reason = RESULT_KIND_EXPIRED, SyntheticReason.EXPIRED
    elif run.state == RUN_STATE_CANCELLED:
        kind, reason = RESULT_KIND_CANCELLED_BY_USER, SyntheticReason.CANCELLED_BY_USER
    else:
        kind, reason = RESULT_KIND_RUN_FAILED, SyntheticReason.RUN_FAILED
    return ToolResult(
        call_id=call_id,
        error_text=text_for_model(reason),
        kind=kind,
        create_time=run.update_time,
    )


def approval_parts(interaction: Interaction) -> Iterator[Part]:
    """What a transcript shows of an approval, after its call: the request and the decision."""
    yield Part(
        approval_request=ApprovalRequest(
            interaction_id=interaction.id,
            call_id=interaction.call_id,
            grant_scope=interaction.grant_scope,
        )
    )
    for answer in interaction.answers[-1:]:  # a denial may have replaced an approval (A2)
        yield Part(
            approval_decision=ApprovalDecision(
                interaction_id=interaction.id,
                call_id=interaction.call_id,
                approved=answer.approved,
                reason=answer.reason,
                grant_scope=answer.grant_scope,
                decided_by=answer.author,
                create_time=answer.create_time,
            )
        )


def call_state(streaming: bool, result: ToolResult | None, interaction: Interaction | None) -> str:
    """The display state of a call, see turngate_core.display."""
    if result is not None:
        if result.kind == RESULT_KIND_DENIED:
            return display.OUTPUT_DENIED
        outcome = result.WhichOneof("outcome")
        answered = outcome == "output_json" or (
            # An absent result of a call that ran or was answered is an answer, too (X4).
            outcome is None and result.kind in (RESULT_KIND_CLIENT, RESULT_KIND_TOOL)
        )
        return display.OUTPUT_AVAILABLE if answered else display.OUTPUT_ERROR
    if interaction is not None and interaction.kind == INTERACTION_KIND_APPROVAL:
        if interaction.state == INTERACTION_STATE_OPEN:
            return display.APPROVAL_REQUESTED
        return display.APPROVAL_RESPONDED
    return display.INPUT_STREAMING if streaming else display.INPUT_AVAILABLE
