"""A refusal as a gRPC status with `google.rpc` details (E2).

Exactly one `ErrorInfo`; `BadRequest` with the violations and `RetryInfo` where they apply.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import grpc
import grpc.aio
from google.protobuf.any_pb2 import Any as AnyMessage
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status

from turngate_core.errors import FieldViolation, Reason, Refusal

DOMAIN = "turngate"
DETAILS_KEY = "grpc-status-details-bin"

# Clients begin to refuse trailers at 8 KB, proxies earlier. Details are base64 on the wire: 4 KB
# of it are 3 KB of bytes. The message travels beside them, percent-encoded: up to 3 bytes a byte.
MAX_DETAILS_BYTES = 3072
MAX_MESSAGE_BYTES = 1000
_MAX_METADATA_VALUE = 512
_MAX_VIOLATION_TEXT = 200


class WireStatus(NamedTuple):
    """What a server call is aborted with."""

    code: grpc.StatusCode
    message: str
    trailers: tuple[tuple[str, bytes], ...]


def wire_status(refusal: Refusal) -> WireStatus:
    """The status of a refusal, with details of at most `MAX_DETAILS_BYTES`.

    Violations that do not fit are counted in a last one. Metadata values are ASCII, others are
    escaped with backslashes.
    """
    code = grpc.StatusCode[refusal.code]
    message = _cut_bytes(_encodable(refusal.message), MAX_MESSAGE_BYTES)
    number: int = code.value[0]
    status = Status(code=number, message=message)
    info = ErrorInfo(reason=refusal.reason, domain=DOMAIN)
    for key, value in refusal.metadata.items():
        info.metadata[key] = _cut(_ascii(value), _MAX_METADATA_VALUE)
    status.details.append(_packed(info))
    if refusal.retry_after_ms is not None:
        retry = RetryInfo()
        retry.retry_delay.FromMilliseconds(refusal.retry_after_ms)
        status.details.append(_packed(retry))
    if refusal.violations:
        # 16 for the lengths and tags around it.
        room = MAX_DETAILS_BYTES - status.ByteSize() - 16
        status.details.append(_packed(_bad_request(refusal.violations, room)))
    return WireStatus(code, message, ((DETAILS_KEY, status.SerializeToString()),))


def refused_with(error: grpc.aio.AioRpcError) -> Reason | None:
    """The reason by which the other service refused; None if it has none of ours."""
    for key, value in error.trailing_metadata() or ():
        if key != DETAILS_KEY or not isinstance(value, bytes):
            continue
        for detail in Status.FromString(value).details:
            info = ErrorInfo()
            if detail.Unpack(info) and info.domain == DOMAIN and info.reason in set(Reason):
                return Reason(info.reason)
    return None


def _bad_request(violations: Sequence[FieldViolation], room: int) -> BadRequest:
    """As many of the violations as fit into `room` bytes, and how many do not."""
    type_url = 64
    note = 64
    left = room - type_url - note
    bad_request = BadRequest()
    for index, (field, description) in enumerate(violations):
        violation = BadRequest.FieldViolation(
            field=_cut(_encodable(field), _MAX_VIOLATION_TEXT),
            description=_cut(_encodable(description), _MAX_VIOLATION_TEXT),
        )
        left -= violation.ByteSize() + 4
        if left < 0:
            more = len(violations) - index
            bad_request.field_violations.add(description=f"and {more} more that do not fit in here")
            break
        bad_request.field_violations.append(violation)
    return bad_request


def _packed(detail: ErrorInfo | BadRequest | RetryInfo) -> AnyMessage:
    packed = AnyMessage()
    packed.Pack(detail)
    return packed


def _encodable(text: str) -> str:
    """The text with unpaired surrogates escaped: protobuf has no room for them."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _ascii(text: str) -> str:
    return text.encode("ascii", "backslashreplace").decode("ascii")


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 3] + "..."


def _cut_bytes(text: str, size: int) -> str:
    encoded = text.encode("utf-8")
    if len(encoded) <= size:
        return text
    return encoded[: size - 3].decode("utf-8", "ignore") + "..."
