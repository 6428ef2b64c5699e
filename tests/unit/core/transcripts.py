"""Short ways to write transcripts and displayed messages in tests."""

from __future__ import annotations

from turngate_core.display import (
    ApprovalData,
    DisplayMessage,
    DisplayPart,
    DisplayTextPart,
    RenderHintPart,
    StepStartPart,
    ToolPart,
)
from turngate_core.policy import GrantScope
from turngate_core.transcript import (
    CallPart,
    DecisionPart,
    ResultPart,
    TextPart,
    TranscriptMessage,
    TranscriptPart,
)


def user(*parts: TranscriptPart) -> TranscriptMessage:
    return TranscriptMessage("user", parts or (TextPart("go"),))


def assistant(*parts: TranscriptPart) -> TranscriptMessage:
    return TranscriptMessage("assistant", parts)


def call(call_id: str, tool: str = "ask", arguments: str = "{}") -> CallPart:
    return CallPart(call_id, tool, arguments)


def result(call_id: str, output: str | None = '"x"') -> ResultPart:
    return ResultPart(call_id, output)


def yes(call_id: str, scope: GrantScope | None = None) -> DecisionPart:
    return DecisionPart(call_id, approved=True, scope=scope)


def no(call_id: str) -> DecisionPart:
    return DecisionPart(call_id, approved=False)


def shown(*parts: DisplayPart) -> tuple[DisplayMessage, ...]:
    """A conversation of a prompt and one reply with these parts."""
    prompt = DisplayMessage("user", (DisplayTextPart("go"),))
    return prompt, DisplayMessage("assistant", parts)


STEP = StepStartPart()


def form(state: str, call_id: str = "c-1") -> ToolPart:
    return ToolPart("request_input", call_id, state)


def gated(state: str, approved: bool | None = None, tool: str = "pay") -> ToolPart:
    return ToolPart(tool, "d-1", state, approval=ApprovalData("ap-1", approved))


def hint(call_id: str, kind: str) -> RenderHintPart:
    return RenderHintPart(call_id, {"kind": kind})
