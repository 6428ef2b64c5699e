"""What the client raises: one error type, decoded from the status that a service sent (E2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import grpc
from google.protobuf.message import DecodeError
from google.rpc import error_details_pb2, status_pb2

# Where gRPC carries the details of a status (google.rpc.Status).
DETAILS_KEY = "grpc-status-details-bin"
DOMAIN = "turngate"


@dataclass(frozen=True, slots=True)
class FieldViolation:
    """One field that was refused: where it is, why for programs, why for people."""

    field: str
    description: str
    reason: str = ""


class TurngateError(Exception):
    """A call was refused or did not come through.

    `code`: the gRPC code. `reason`: a name of `ErrorReason` without its prefix, such as
    `INVALID_ANSWER`; empty if the error is not the service's own (no connection, a proxy).
    `message`: for people. `metadata`: what error_reason.proto says beside the reason.
    `violations`: one for each field that was refused. `retry_after`: seconds, if the service said
    when a retry makes sense.
    """

    def __init__(
        self,
        code: grpc.StatusCode,
        reason: str,
        message: str,
        metadata: Mapping[str, str] | None = None,
        violations: tuple[FieldViolation, ...] = (),
        retry_after: float | None = None,
    ) -> None:
        super().__init__(f"{reason or code.name}: {message}" if message else reason or code.name)
        self.code = code
        self.reason = reason
        self.message = message
        self.metadata: Mapping[str, str] = dict(metadata or {})
        self.violations = violations
        self.retry_after = retry_after


class WaitTimedOut(TimeoutError):
    """What a program waited for did not come in time; the text names it and the last state."""


def error_from_rpc(error: grpc.aio.AioRpcError) -> TurngateError:
    """The error that a failed call stands for. Details that cannot be read are left out."""
    code, message = error.code(), error.details() or ""
    details = _status_details(error)
    if details is None:
        return TurngateError(code, "", message)
    reason = ""
    metadata: dict[str, str] = {}
    violations: tuple[FieldViolation, ...] = ()
    retry_after: float | None = None
    for detail in details.details:
        info = error_details_pb2.ErrorInfo()
        bad_request = error_details_pb2.BadRequest()
        retry = error_details_pb2.RetryInfo()
        try:
            if detail.Unpack(info) and info.domain == DOMAIN:
                reason, metadata = info.reason, dict(info.metadata)
            elif detail.Unpack(bad_request):
                violations = tuple(
                    FieldViolation(one.field, one.description, one.reason)
                    for one in bad_request.field_violations
                )
            elif detail.Unpack(retry):
                retry_after = retry.retry_delay.ToTimedelta().total_seconds()
        except DecodeError:
            continue  # one unreadable detail does not hide the others
    return TurngateError(code, reason, message, metadata, violations, retry_after)


def _status_details(error: grpc.aio.AioRpcError) -> status_pb2.Status | None:
    for key, value in error.trailing_metadata() or ():
        if key == DETAILS_KEY and isinstance(value, bytes):
            try:
                return status_pb2.Status.FromString(value)
            except DecodeError:
                return None
    return None
