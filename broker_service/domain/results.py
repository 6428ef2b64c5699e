"""Typed results that no tool and no client gave (T4, X4)."""

from __future__ import annotations

from broker_service.domain.model import ResultKind, ToolResult
from turngate_core.synthetic import SyntheticReason, text_for_model

_REASONS = {
    ResultKind.CANCELLED_BY_USER: SyntheticReason.CANCELLED_BY_USER,
    ResultKind.DENIED: SyntheticReason.DENIED,
    ResultKind.EXPIRED: SyntheticReason.EXPIRED,
    ResultKind.RUN_FAILED: SyntheticReason.RUN_FAILED,
    ResultKind.OUTCOME_UNKNOWN: SyntheticReason.OUTCOME_UNKNOWN,
}


def synthetic_result(
    call_id: str, kind: ResultKind, now: int, *, detail: str = "", interaction_id: str = ""
) -> ToolResult:
    """The result of this kind, with what the model is told. `detail`: a person's reason."""
    return ToolResult(
        call_id=call_id,
        error_text=text_for_model(_REASONS[kind], detail),
        kind=kind,
        interaction_id=interaction_id,
        create_time=now,
    )
