"""Messages that are being written: pieces of text put together by their offset (W3)."""

from __future__ import annotations

from dataclasses import dataclass, field

from turngate.v1.event_pb2 import TEXT_KIND_REASONING, MessageStarted, TextDelta, ToolCallDelta
from turngate.v1.message_pb2 import (
    ROLE_ASSISTANT,
    Message,
    Part,
    ReasoningPart,
    TextPart,
    ToolCall,
)


class FoldError(ValueError):
    """Events that cannot be folded: they were not read in order, or some are missing."""


def put_piece(text: str, offset: int, piece: str) -> str:
    """The text with a piece put at its offset, in code points (W3).

    A piece that was seen before, in whole or in part, changes nothing but what is new of it.
    Raises FoldError if text is missing before the piece.
    """
    if offset > len(text) or offset < 0:
        raise FoldError(f"a piece begins at {offset}, but only {len(text)} code points came so far")
    return text + piece[len(text) - offset :]


@dataclass(slots=True)
class Draft:
    """A message so far: its parts by index, of which only texts and arguments grow."""

    message_id: str
    run_id: str
    step: int
    parts: dict[int, Part] = field(default_factory=dict)

    def put_text(self, delta: TextDelta) -> None:
        """Fold a piece of text or reasoning."""
        part = self.parts.get(delta.part_index)
        if delta.kind == TEXT_KIND_REASONING:
            before = part.reasoning.text if part else ""
            text = put_piece(before, delta.offset, delta.text)
            self.parts[delta.part_index] = Part(reasoning=ReasoningPart(text=text))
        else:
            before = part.text.text if part else ""
            text = put_piece(before, delta.offset, delta.text)
            self.parts[delta.part_index] = Part(text=TextPart(text=text))

    def put_arguments(self, delta: ToolCallDelta) -> None:
        """Fold a piece of a call's arguments."""
        part = self.parts.get(delta.part_index)
        before = part.tool_call.arguments_json if part else ""
        self.parts[delta.part_index] = Part(
            tool_call=ToolCall(
                call_id=delta.call_id,
                name=delta.name or (part.tool_call.name if part else ""),
                arguments_json=put_piece(before, delta.offset, delta.arguments_delta),
            )
        )

    def message(self) -> Message:
        """The message so far; arguments of calls in it may be cut off anywhere."""
        return Message(
            id=self.message_id,
            role=ROLE_ASSISTANT,
            run_id=self.run_id,
            step=self.step,
            parts=[self.parts[index] for index in sorted(self.parts)],
        )


def begin_draft(started: MessageStarted) -> Draft:
    """An empty message."""
    return Draft(started.message_id, started.run_id, started.step)
