"""Sizes that the contract sets, and what becomes of what is too large (T2, E3)."""

from __future__ import annotations

from dataclasses import dataclass

from turngate.v1 import message_pb2
from turngate_core.json_text import DEFAULT_MAX_BYTES, JsonFault, JsonTextError, check

MAX_TEXT_BYTES = 256 * 1024
MAX_TOOL_NAME_CHARACTERS = 128
MAX_MESSAGE_BYTES = 900 * 1024

_SHOWN_BYTES = 2048


@dataclass(frozen=True, slots=True)
class AttemptLimits:
    """`max_steps`: model calls of a run, its origin's included.

    `cancel_grace_seconds`: how long an agent and its tools may go on after a cancel; shorter than
    the broker's own grace of 10 s (C1). `tool_timeout_seconds`: how long one tool may take; `None`:
    no limit.
    """

    max_steps: int = 200
    cancel_grace_seconds: float = 8.0
    tool_timeout_seconds: float | None = None


def tool_result(call_id: str, output_json: str) -> message_pb2.ToolResult:
    """The result of a tool that ran: its output, or an error that tells why that cannot be kept."""
    clean = well_formed(output_json)
    try:
        check(clean)
    except JsonTextError as error:
        if error.fault is JsonFault.TOO_LARGE:
            size = len(clean.encode())
            text = (
                f"The tool ran, but its output is too large: {size} bytes, at most "
                f"{DEFAULT_MAX_BYTES} are accepted. It begins: {cut(clean, _SHOWN_BYTES)}"
            )
        else:
            text = f"The tool ran, but its output is no JSON text that is accepted: {error}."
        return error_result(call_id, text)
    return message_pb2.ToolResult(
        call_id=call_id, kind=message_pb2.RESULT_KIND_TOOL, output_json=clean
    )


def error_result(
    call_id: str,
    text: str,
    kind: message_pb2.ResultKind.ValueType = message_pb2.RESULT_KIND_TOOL,
) -> message_pb2.ToolResult:
    """An error as the result of a call, cut if it is too long."""
    return message_pb2.ToolResult(
        call_id=call_id, kind=kind, error_text=cut(well_formed(text), MAX_TEXT_BYTES)
    )


def well_formed(text: str) -> str:
    """The text without unpaired surrogates, which the wire cannot carry."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def cut(text: str, max_bytes: int) -> str:
    """The text, cut at a character and marked if it has more bytes than that in UTF-8."""
    data = text.encode()
    if len(data) <= max_bytes:
        return text
    mark = " … (cut)"
    return data[: max_bytes - len(mark.encode())].decode(errors="ignore") + mark
