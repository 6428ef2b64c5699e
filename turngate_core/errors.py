"""Refusals: the one exception by which the product says no, and why (E2).

The reasons are those of `error_reason.proto`, where each is documented with its metadata; a test
keeps enum, table and contract the same. How a refusal travels over gRPC is turngate_serving's
matter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple


class Code(StrEnum):
    """The canonical gRPC codes that the product answers with."""

    INVALID_ARGUMENT = "INVALID_ARGUMENT"
    NOT_FOUND = "NOT_FOUND"
    ALREADY_EXISTS = "ALREADY_EXISTS"
    PERMISSION_DENIED = "PERMISSION_DENIED"
    RESOURCE_EXHAUSTED = "RESOURCE_EXHAUSTED"
    FAILED_PRECONDITION = "FAILED_PRECONDITION"
    ABORTED = "ABORTED"
    OUT_OF_RANGE = "OUT_OF_RANGE"
    UNIMPLEMENTED = "UNIMPLEMENTED"
    INTERNAL = "INTERNAL"
    UNAVAILABLE = "UNAVAILABLE"
    UNAUTHENTICATED = "UNAUTHENTICATED"


class Reason(StrEnum):
    """Why a request was refused: `ErrorReason` of the contract without its prefix."""

    MALFORMED_REQUEST = "MALFORMED_REQUEST"
    INVALID_FIELD = "INVALID_FIELD"
    INVALID_JSON = "INVALID_JSON"
    LIMIT_EXCEEDED = "LIMIT_EXCEEDED"
    REQUEST_ID_REUSED = "REQUEST_ID_REUSED"
    NOT_IMPLEMENTED = "NOT_IMPLEMENTED"
    INTERNAL = "INTERNAL"
    SHUTTING_DOWN = "SHUTTING_DOWN"
    STORE_UNAVAILABLE = "STORE_UNAVAILABLE"
    UNAUTHENTICATED = "UNAUTHENTICATED"
    PERMISSION_DENIED = "PERMISSION_DENIED"

    SESSION_NOT_FOUND = "SESSION_NOT_FOUND"
    RUN_NOT_FOUND = "RUN_NOT_FOUND"
    MESSAGE_NOT_FOUND = "MESSAGE_NOT_FOUND"
    INTERACTION_NOT_FOUND = "INTERACTION_NOT_FOUND"
    HELD_MESSAGE_NOT_FOUND = "HELD_MESSAGE_NOT_FOUND"
    GRANT_NOT_FOUND = "GRANT_NOT_FOUND"
    NODE_NOT_FOUND = "NODE_NOT_FOUND"
    AGENT_NOT_FOUND = "AGENT_NOT_FOUND"
    SESSION_DELETED = "SESSION_DELETED"
    SESSION_TOO_NEW = "SESSION_TOO_NEW"

    TOOL_CALL_NOT_IN_RUN = "TOOL_CALL_NOT_IN_RUN"
    ALREADY_SETTLED = "ALREADY_SETTLED"
    WRONG_INTERACTION_KIND = "WRONG_INTERACTION_KIND"
    TOOL_NAME_MISMATCH = "TOOL_NAME_MISMATCH"
    INVALID_ANSWER = "INVALID_ANSWER"
    INTERACTION_EXPIRED = "INTERACTION_EXPIRED"
    INTERACTION_CANCELLED = "INTERACTION_CANCELLED"
    INTERACTION_NOT_HANDLED = "INTERACTION_NOT_HANDLED"
    ALREADY_DECIDED = "ALREADY_DECIDED"
    RUN_CANCELLED = "RUN_CANCELLED"
    NOT_THE_CLOSER = "NOT_THE_CLOSER"
    CALL_NOT_OPEN = "CALL_NOT_OPEN"

    SESSION_BUSY = "SESSION_BUSY"
    MESSAGE_ID_TAKEN = "MESSAGE_ID_TAKEN"
    SESSION_ID_TAKEN = "SESSION_ID_TAKEN"
    NOT_THE_AUTHOR = "NOT_THE_AUTHOR"
    RUN_STATE = "RUN_STATE"
    NOT_A_PROMPT = "NOT_A_PROMPT"

    CURSOR_INVALID = "CURSOR_INVALID"
    CURSOR_FOREIGN = "CURSOR_FOREIGN"
    CURSOR_FUTURE = "CURSOR_FUTURE"
    WATCH_TOO_SLOW = "WATCH_TOO_SLOW"
    PAGE_TOKEN_INVALID = "PAGE_TOKEN_INVALID"

    STALE_ATTEMPT = "STALE_ATTEMPT"
    PROTOCOL_VIOLATION = "PROTOCOL_VIOLATION"
    RUNNER_BUSY = "RUNNER_BUSY"
    INVALID_TRANSCRIPT = "INVALID_TRANSCRIPT"


# The codes a reason may come with; the first is the one it has unless the refusal says otherwise.
CODES: Mapping[Reason, tuple[Code, ...]] = {
    Reason.MALFORMED_REQUEST: (Code.INVALID_ARGUMENT,),
    Reason.INVALID_FIELD: (Code.INVALID_ARGUMENT,),
    Reason.INVALID_JSON: (Code.INVALID_ARGUMENT,),
    Reason.LIMIT_EXCEEDED: (Code.INVALID_ARGUMENT, Code.RESOURCE_EXHAUSTED),
    Reason.REQUEST_ID_REUSED: (Code.ALREADY_EXISTS,),
    Reason.NOT_IMPLEMENTED: (Code.UNIMPLEMENTED,),
    Reason.INTERNAL: (Code.INTERNAL,),
    Reason.SHUTTING_DOWN: (Code.UNAVAILABLE,),
    Reason.STORE_UNAVAILABLE: (Code.UNAVAILABLE,),
    Reason.UNAUTHENTICATED: (Code.UNAUTHENTICATED,),
    Reason.PERMISSION_DENIED: (Code.PERMISSION_DENIED,),
    Reason.SESSION_NOT_FOUND: (Code.NOT_FOUND,),
    Reason.RUN_NOT_FOUND: (Code.NOT_FOUND,),
    Reason.MESSAGE_NOT_FOUND: (Code.NOT_FOUND,),
    Reason.INTERACTION_NOT_FOUND: (Code.NOT_FOUND,),
    Reason.HELD_MESSAGE_NOT_FOUND: (Code.NOT_FOUND,),
    Reason.GRANT_NOT_FOUND: (Code.NOT_FOUND,),
    Reason.NODE_NOT_FOUND: (Code.NOT_FOUND,),
    Reason.AGENT_NOT_FOUND: (Code.NOT_FOUND,),
    Reason.SESSION_DELETED: (Code.FAILED_PRECONDITION,),
    Reason.SESSION_TOO_NEW: (Code.FAILED_PRECONDITION,),
    Reason.TOOL_CALL_NOT_IN_RUN: (Code.FAILED_PRECONDITION,),
    Reason.ALREADY_SETTLED: (Code.FAILED_PRECONDITION,),
    Reason.WRONG_INTERACTION_KIND: (Code.INVALID_ARGUMENT,),
    Reason.TOOL_NAME_MISMATCH: (Code.INVALID_ARGUMENT,),
    Reason.INVALID_ANSWER: (Code.INVALID_ARGUMENT,),
    Reason.INTERACTION_EXPIRED: (Code.FAILED_PRECONDITION,),
    Reason.INTERACTION_CANCELLED: (Code.FAILED_PRECONDITION,),
    Reason.INTERACTION_NOT_HANDLED: (Code.FAILED_PRECONDITION,),
    Reason.ALREADY_DECIDED: (Code.FAILED_PRECONDITION,),
    Reason.RUN_CANCELLED: (Code.FAILED_PRECONDITION,),
    Reason.NOT_THE_CLOSER: (Code.PERMISSION_DENIED,),
    Reason.CALL_NOT_OPEN: (Code.FAILED_PRECONDITION,),
    Reason.SESSION_BUSY: (Code.FAILED_PRECONDITION,),
    Reason.MESSAGE_ID_TAKEN: (Code.ALREADY_EXISTS,),
    Reason.SESSION_ID_TAKEN: (Code.ALREADY_EXISTS,),
    Reason.NOT_THE_AUTHOR: (Code.PERMISSION_DENIED,),
    Reason.RUN_STATE: (Code.FAILED_PRECONDITION,),
    Reason.NOT_A_PROMPT: (Code.INVALID_ARGUMENT,),
    Reason.CURSOR_INVALID: (Code.INVALID_ARGUMENT,),
    Reason.CURSOR_FOREIGN: (Code.INVALID_ARGUMENT,),
    Reason.CURSOR_FUTURE: (Code.OUT_OF_RANGE,),
    Reason.WATCH_TOO_SLOW: (Code.RESOURCE_EXHAUSTED,),
    Reason.PAGE_TOKEN_INVALID: (Code.INVALID_ARGUMENT,),
    Reason.STALE_ATTEMPT: (Code.ABORTED,),
    Reason.PROTOCOL_VIOLATION: (Code.FAILED_PRECONDITION,),
    Reason.RUNNER_BUSY: (Code.RESOURCE_EXHAUSTED,),
    Reason.INVALID_TRANSCRIPT: (Code.INVALID_ARGUMENT,),
}


class FieldViolation(NamedTuple):
    """One field of a request that does not fit: a path such as `messages[2].text`, and why."""

    field: str
    description: str


class Refusal(Exception):
    """A request that is refused by name; the caller sees all of it, so no secret goes in (E2).

    `metadata` is what the contract names beside the reason. `violations`: one a field.
    `retry_after_ms`: for what passes by itself. `code`: only for reasons that may have several.
    """

    def __init__(
        self,
        reason: Reason,
        message: str,
        metadata: Mapping[str, str] | None = None,
        violations: Sequence[tuple[str, str]] = (),
        *,
        retry_after_ms: int | None = None,
        code: Code | None = None,
    ) -> None:
        """Raise `ValueError` for a code that the reason does not come with."""
        super().__init__(f"{reason}: {message}")
        if code is not None and code not in CODES[reason]:
            raise ValueError(f"{reason} does not come with {code}")
        self.reason = reason
        self.code = CODES[reason][0] if code is None else code
        self.message = message
        self.metadata: dict[str, str] = dict(metadata or {})
        self.violations = tuple(FieldViolation(*violation) for violation in violations)
        self.retry_after_ms = retry_after_ms


def invalid_field(field: str, description: str) -> Refusal:
    """The refusal of one field of a request."""
    return Refusal(
        Reason.INVALID_FIELD, f"{field}: {description}", violations=[(field, description)]
    )
