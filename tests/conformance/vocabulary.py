"""From the vocabulary of the cases to the types of `turngate_core`."""

from __future__ import annotations

from tests.conformance.case_files import CaseError, JsonObject
from turngate_core.display import (
    ApprovalData,
    DisplayMessage,
    DisplayPart,
    DisplayTextPart,
    OtherPart,
    RenderHintPart,
    StepStartPart,
    ToolPart,
)
from turngate_core.json_text import JsonValue, dump
from turngate_core.registry import Registration
from turngate_core.synthetic import SyntheticReason
from turngate_core.transcript import (
    CallPart,
    DecisionPart,
    ResultPart,
    TextPart,
    TranscriptMessage,
    TranscriptPart,
)


def objects(value: JsonValue, what: str) -> list[JsonObject]:
    """A list of objects; absent is empty."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise CaseError(f"{what}: not a list")
    items = [item for item in value if isinstance(item, dict)]
    if len(items) != len(value):
        raise CaseError(f"{what}: holds something that is no object")
    return items


def text(given: JsonObject, key: str) -> str:
    """A text that has to be there."""
    value = given.get(key)
    if not isinstance(value, str):
        raise CaseError(f"{key}: not a text")
    return value


def json_text_of(given: JsonObject, key: str) -> str | None:
    """The JSON text of a value, as it would come over the wire; `None` if it is absent."""
    return dump(given[key]) if key in given else None


def transcript(given: JsonObject) -> tuple[TranscriptMessage, ...]:
    """The `messages` of a case as the runner sees them."""
    return tuple(
        TranscriptMessage(text(message, "role"), _transcript_parts(message))
        for message in objects(given.get("messages"), "messages")
    )


def _transcript_parts(message: JsonObject) -> tuple[TranscriptPart, ...]:
    if "parts" not in message:
        return (TextPart(text(message, "text")),)
    return tuple(_transcript_part(part) for part in objects(message["parts"], "parts"))


def _transcript_part(part: JsonObject) -> TranscriptPart:
    match part.get("kind"):
        case "tool_call":
            arguments = json_text_of(part, "args") or ""
            return CallPart(text(part, "call_id"), text(part, "tool"), arguments)
        case "tool_result":
            return _result(part)
        case _:
            return TextPart("")


def _result(part: JsonObject) -> ResultPart | DecisionPart:
    call_id = text(part, "call_id")
    tool = part.get("tool")
    own_tool = tool if isinstance(tool, str) and tool else None
    output = part.get("output")
    approved = output.get("approved") if isinstance(output, dict) else None
    is_plain = part.get("typed") is None and part.get("synthetic") is None
    if isinstance(approved, bool) and is_plain:
        # How these files write a decision; the product has a type of its own for it (A5).
        return DecisionPart(call_id, approved, tool=own_tool, arguments=json_text_of(part, "args"))
    return ResultPart(
        call_id,
        json_text_of(part, "output"),
        is_error=part.get("is_error") is True,
        synthetic=SyntheticReason(text(part, "synthetic")) if part.get("synthetic") else None,
        tool=own_tool,
        arguments=json_text_of(part, "args"),
    )


def display(given: JsonObject) -> tuple[DisplayMessage, ...]:
    """The `messages` of a case as a client sees them."""
    return tuple(
        DisplayMessage(text(message, "role"), display_parts(message))
        for message in objects(given.get("messages"), "messages")
    )


def display_parts(message: JsonObject, key: str = "parts") -> tuple[DisplayPart, ...]:
    """The parts of a message; a message may also be `{role, text}`."""
    if key not in message:
        return (DisplayTextPart(text(message, "text")),) if "text" in message else ()
    return tuple(_display_part(part) for part in objects(message[key], key))


def _display_part(part: JsonObject) -> DisplayPart:
    match part.get("kind"):
        case "tool":
            return tool_part(part)
        case "render_hint":
            data = part.get("data") if "data" in part else part
            if not isinstance(data, dict):
                return RenderHintPart(None, None)
            return RenderHintPart(data.get("call_id"), data.get("render"))
        case "step_start":
            return StepStartPart()
        case "text":
            return DisplayTextPart("")
        case _:
            return OtherPart()


def tool_part(part: JsonObject) -> ToolPart:
    """A tool part with its state."""
    error_text = part.get("error_text")
    return ToolPart(
        tool=text(part, "tool"),
        call_id=text(part, "call_id"),
        state=text(part, "state"),
        arguments=json_text_of(part, "args"),
        output=json_text_of(part, "output"),
        error_text=error_text if isinstance(error_text, str) else None,
        approval=_approval(part.get("approval")),
        provider_executed=part.get("provider_executed") is True,
        dynamic=part.get("dynamic") is True,
        render=part.get("render"),
    )


def _approval(value: JsonValue) -> ApprovalData | None:
    if value is None:
        return None
    if not isinstance(value, dict):
        return ApprovalData()
    approval_id, approved = value.get("id"), value.get("approved")
    return ApprovalData(
        approval_id if isinstance(approval_id, str) else None,
        approved if isinstance(approved, bool) else None,
    )


def registrations(given: JsonObject) -> list[Registration]:
    """What a host has registered, in order."""
    return [
        Registration(_names(item.get("by_kind")), _names(item.get("by_tool")))
        for item in objects(given.get("registered"), "registered")
    ]


def _names(value: JsonValue) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise CaseError("a registration is no object")
    return {key: name for key, name in value.items() if isinstance(name, str)}
