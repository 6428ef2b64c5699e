"""Messages as a client sees them: tool parts with states, render hints, steps (H1-H4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

from turngate_core.json_text import JsonValue

INPUT_STREAMING: Final = "input-streaming"
INPUT_AVAILABLE: Final = "input-available"
APPROVAL_REQUESTED: Final = "approval-requested"
APPROVAL_RESPONDED: Final = "approval-responded"
OUTPUT_AVAILABLE: Final = "output-available"
OUTPUT_ERROR: Final = "output-error"
OUTPUT_DENIED: Final = "output-denied"

# Any other state, known or not, counts as not settled.
SETTLED_STATES: Final = frozenset(
    {APPROVAL_RESPONDED, OUTPUT_AVAILABLE, OUTPUT_ERROR, OUTPUT_DENIED}
)


@dataclass(frozen=True, slots=True)
class ApprovalData:
    """What a tool part says about its approval; `approved` is `None` while it is open."""

    approval_id: str | None = None
    approved: bool | None = None


@dataclass(frozen=True, slots=True)
class ToolPart:
    """A tool call with its state. `state` may be one that this version does not know.

    `arguments` and `output` are JSON text, `render` is a hint on the part itself. Dynamic parts
    carry their tool's name like any other.
    """

    tool: str
    call_id: str
    state: str
    arguments: str | None = None
    output: str | None = None
    error_text: str | None = None
    approval: ApprovalData | None = None
    provider_executed: bool = False
    dynamic: bool = False
    render: JsonValue = None


@dataclass(frozen=True, slots=True)
class RenderHintPart:
    """A hint beside the call (H1). From elsewhere it may hold anything; malformed ones are None."""

    call_id: JsonValue
    render: JsonValue


@dataclass(frozen=True, slots=True)
class StepStartPart:
    """A step begins: one model call with the tool calls it makes."""


@dataclass(frozen=True, slots=True)
class DisplayTextPart:
    """Text."""

    text: str


@dataclass(frozen=True, slots=True)
class OtherPart:
    """Whatever says nothing about calls: reasoning, files, data."""


DisplayPart: TypeAlias = ToolPart | RenderHintPart | StepStartPart | DisplayTextPart | OtherPart


@dataclass(frozen=True, slots=True)
class DisplayMessage:
    """A message of a conversation as it is shown."""

    role: str
    parts: tuple[DisplayPart, ...]


def is_settled(part: ToolPart) -> bool:
    """True if nobody is expected to do anything about the call any more."""
    return part.state in SETTLED_STATES
