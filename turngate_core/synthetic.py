"""Typed results that no tool and no client gave (T4, X4, D1, D2).

What a synthetic result is, is read from its type, never from its text.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class SyntheticReason(StrEnum):
    """Why a call has a result that is not its own."""

    CANCELLED_BY_USER = "cancelled_by_user"
    DENIED = "denied"
    EXPIRED = "expired"
    RUN_FAILED = "run_failed"
    OUTCOME_UNKNOWN = "outcome_unknown"
    NOT_HANDLED = "not_handled"
    DEGRADED = "degraded"


# X4: these leave the call without an answer; a call that is issued again parks.
_NO_ANSWER: Final = frozenset(
    {
        SyntheticReason.CANCELLED_BY_USER,
        SyntheticReason.RUN_FAILED,
        SyntheticReason.OUTCOME_UNKNOWN,
    }
)

_TOLD_TO_MODEL: Final = {
    SyntheticReason.CANCELLED_BY_USER: "The user cancelled this call before it was done.",
    SyntheticReason.DENIED: "This call was not allowed. It was not executed.",
    SyntheticReason.EXPIRED: "Nobody answered this call in time.",
    SyntheticReason.RUN_FAILED: "The run failed before this call was done.",
    SyntheticReason.OUTCOME_UNKNOWN: (
        "This call was started, and then the connection to it was lost. "
        "It may or may not have had its effect. It was not repeated."
    ),
    SyntheticReason.NOT_HANDLED: "No connected client can handle this tool.",
    SyntheticReason.DEGRADED: "No client can show this form.",
}


def is_answer(reason: SyntheticReason) -> bool:
    """X4: `expired`, `denied` and settlements by the broker answer their call in its turn."""
    return reason not in _NO_ANSWER


def is_error(reason: SyntheticReason) -> bool:
    """True if the result is marked as an error; D1's `not_handled` alone is an output."""
    return reason is not SyntheticReason.NOT_HANDLED


def shows_start(reason: SyntheticReason) -> bool:
    """True if the call was started before it got this result (S1)."""
    return reason is SyntheticReason.OUTCOME_UNKNOWN


def text_for_model(reason: SyntheticReason, detail: str = "") -> str:
    """What the model is told in place of a result; `detail` is a person's reason, if there is."""
    told = _TOLD_TO_MODEL[reason]
    return f"{told} Reason: {detail}" if detail else told
