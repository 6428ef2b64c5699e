"""Is a resume due, and does this settlement start it (F10)?"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from turngate_core.client_tools import BUILT_IN, ClientTools, is_client_tool_result
from turngate_core.display import (
    APPROVAL_RESPONDED,
    OUTPUT_AVAILABLE,
    OUTPUT_ERROR,
    DisplayMessage,
    StepStartPart,
    ToolPart,
    is_settled,
)
from turngate_core.render import build_render_map


class InteractionKind(StrEnum):
    """What kind of interaction was settled."""

    CLIENT_TOOL = "client_tool"
    APPROVAL = "approval"


@dataclass(frozen=True, slots=True)
class LiveSettlement:
    """The event of settling: a client tool by its call id, an approval by its approval id."""

    kind: InteractionKind
    id: str


def resume_due(messages: tuple[DisplayMessage, ...], known: ClientTools = BUILT_IN) -> bool:
    """Is a resume still due, by the shape of the transcript? The answer starts nothing (F10).

    Due: the last message is the assistant's, the step after its last step start has a client-tool
    result or a decision that the run has not taken up yet, and no tool part of it is unsettled.
    """
    step = _last_step(messages)
    if not all(is_settled(part) for part in step):
        return False
    render_map = build_render_map(messages[-1].parts) if messages else {}
    return any(
        part.state == APPROVAL_RESPONDED or is_client_tool_result(part, render_map, known)
        for part in step
    )


def settlement_resumes(messages: tuple[DisplayMessage, ...], live: LiveSettlement) -> bool:
    """Does this settlement start the resume? Only the event does, and only as the last one.

    The interaction is one by record, whatever its tool's name. It starts nothing while another
    tool part of its step is unsettled, nor if the run has gone on since.
    """
    step = _last_step(messages)
    return any(_is_settled_by(part, live) for part in step) and all(map(is_settled, step))


def _last_step(messages: tuple[DisplayMessage, ...]) -> list[ToolPart]:
    """The tool parts after the last step start of the last message, if it is the assistant's."""
    if not messages or messages[-1].role != "assistant":
        return []
    step: list[ToolPart] = []
    for part in messages[-1].parts:
        if isinstance(part, StepStartPart):
            step = []
        elif isinstance(part, ToolPart):
            step.append(part)
    return step


def _is_settled_by(part: ToolPart, live: LiveSettlement) -> bool:
    if live.kind is InteractionKind.APPROVAL:
        # A state beyond this one says that the run has taken the decision up already (A4).
        return (
            part.state == APPROVAL_RESPONDED
            and part.approval is not None
            and part.approval.approval_id == live.id
        )
    return (
        part.call_id == live.id
        and part.state in (OUTPUT_AVAILABLE, OUTPUT_ERROR)
        and part.approval is None
        and not part.provider_executed
    )
