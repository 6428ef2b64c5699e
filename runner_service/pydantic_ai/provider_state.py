"""What a provider wants to see again: ids, signed reasoning, details. Kept without the texts.

The message in the log has the texts, arguments and outputs; the state has everything else that
Pydantic AI knows of the response, part by part, and how much of the message each part is. So the
response comes back as it was, for the provider and the model that it came from and for no other.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import TypeVar

import structlog
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelResponse,
    ModelResponsePart,
    NativeToolCallPart,
    NativeToolReturnPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
)
from pydantic_ai.models import Model
from pydantic_ai.usage import RequestUsage
from pydantic_core import from_json

from runner_service.pydantic_ai.exact import ExactCall
from turngate.v1 import message_pb2

log = structlog.stdlib.get_logger(__name__)

_Part = TypeVar("_Part", bound=ModelResponsePart)

# The contract's limit; what is larger is dropped, and the provider sees plain text again.
MAX_STATE_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class ModelId:
    """To whom a state belongs: the provider and the model that were asked."""

    provider: str
    model: str


class _State(BaseModel):
    """`lengths`: code points of each part that is text or reasoning, 0 for others.

    `skipped`: code points of reasoning at the front, of answers that were not accepted.
    """

    model_config = ConfigDict(extra="forbid")

    version: int = 1
    skipped: int = 0
    lengths: list[int]
    messages: list[object]


class _Mismatch(Exception):
    """The message is not the one that the state was made with."""


def id_of(model: Model) -> ModelId:
    """To whom states of this model's responses belong."""
    return ModelId(model.system, model.model_name)


def state_of(
    response: ModelResponse, model: ModelId, *, skipped: int = 0
) -> message_pb2.ProviderState | None:
    """The state of a response; `None` if it is too large to be kept."""
    parts = [_emptied(part) for part in response.parts]
    skeleton = replace(response, parts=parts, usage=RequestUsage(), failed_attempts=None)
    lengths = [
        len(part.content) if isinstance(part, (TextPart, ThinkingPart)) else 0
        for part in response.parts
    ]
    state = _State(
        skipped=skipped,
        lengths=lengths,
        messages=from_json(ModelMessagesTypeAdapter.dump_json([skeleton])),
    )
    data = state.model_dump_json().encode()
    if len(data) > MAX_STATE_BYTES:
        log.info("state of the provider is too large to be kept", size=len(data))
        return None
    return message_pb2.ProviderState(provider=model.provider, model=model.model, data=data)


def restored(
    message: message_pb2.Message, model: ModelId, call_ids: Sequence[str]
) -> ModelResponse | None:
    """The response that the message was made of; `None` if it is to be shown as plain content.

    That is so for another model, for what no build of this runner wrote, and when message and
    state do not fit each other. `call_ids`: as the provider is to see those of the message's calls
    that it did not execute itself, in order.
    """
    kept = message.provider_state
    if not kept.data or ModelId(kept.provider, kept.model) != model:
        return None
    try:
        state = _State.model_validate_json(kept.data)
        messages: list[ModelMessage] = ModelMessagesTypeAdapter.validate_python(state.messages)
    except ValidationError:
        log.warning("a provider's state cannot be read", message_id=message.id)
        return None
    if len(messages) != 1 or not isinstance(skeleton := messages[0], ModelResponse):
        return None
    try:
        return replace(skeleton, parts=_filled(skeleton.parts, state, message, call_ids))
    except _Mismatch:
        log.warning("a provider's state does not fit its message", message_id=message.id)
        return None


def _emptied(part: ModelResponsePart) -> ModelResponsePart:
    match part:
        case TextPart() | ThinkingPart():
            return _changed(part, content="")
        case NativeToolReturnPart():
            return _changed(part, content=None)
        case ToolCallPart() | NativeToolCallPart():
            return _changed(part, args=None)
        case _:
            return part


def _changed(part: _Part, **fields: object) -> _Part:
    # `dataclasses.replace` has one type of content for each kind of part; what is put in here came
    # out of such a part.
    changed = copy(part)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed


def _filled(
    parts: Sequence[ModelResponsePart],
    state: _State,
    message: message_pb2.Message,
    call_ids: Sequence[str],
) -> list[ModelResponsePart]:
    if len(parts) != len(state.lengths):
        raise _Mismatch
    cursor = _Cursor(message)
    cursor.text("reasoning", state.skipped)
    own_ids = iter(call_ids)
    filled: list[ModelResponsePart] = []
    native: dict[str, int] = {}
    for part, length in zip(parts, state.lengths, strict=True):
        match part:
            case TextPart():
                filled.append(_changed(part, content=cursor.text("text", length)))
            case ThinkingPart():
                filled.append(_changed(part, content=cursor.text("reasoning", length)))
            case ToolCallPart():
                filled.append(_call(part, cursor.call(), next(own_ids, part.tool_call_id)))
            case NativeToolCallPart():
                native[part.tool_call_id] = len(filled)
                filled.append(part)
            case NativeToolReturnPart():
                call = cursor.call()
                place = native.get(part.tool_call_id)
                if place is not None:
                    filled[place] = _changed(filled[place], args=call.arguments_json or None)
                filled.append(_changed(part, content=cursor.output()))
            case _:
                filled.append(part)
    if not cursor.at_end:
        raise _Mismatch
    return filled


def _call(part: ToolCallPart, call: message_pb2.ToolCall, call_id: str) -> ToolCallPart:
    if part.tool_name != call.name:
        raise _Mismatch
    return ExactCall(
        part.tool_name,
        call.arguments_json or call.malformed_arguments,
        call_id,
        id=part.id,
        provider_name=part.provider_name,
        provider_details=part.provider_details,
    )


class _Cursor:
    """Takes the content of a message piece by piece. Neighbouring texts are one part there."""

    def __init__(self, message: message_pb2.Message) -> None:
        self._parts = list(message.parts)
        self._index = 0
        self._offset = 0

    @property
    def at_end(self) -> bool:
        return self._index == len(self._parts)

    def text(self, kind: str, length: int) -> str:
        if not length:
            return ""
        part = self._part(kind)
        whole = part.text.text if kind == "text" else part.reasoning.text
        taken = whole[self._offset : self._offset + length]
        if len(taken) != length:
            raise _Mismatch
        self._offset += length
        if self._offset == len(whole):
            self._advance()
        return taken

    def call(self) -> message_pb2.ToolCall:
        call = self._part("tool_call", whole=True).tool_call
        self._advance()
        return call

    def output(self) -> object:
        result = self._part("tool_result", whole=True).tool_result
        self._advance()
        if result.WhichOneof("outcome") != "output_json":
            raise _Mismatch
        return from_json(result.output_json)

    def _part(self, kind: str, *, whole: bool = False) -> message_pb2.Part:
        if self.at_end or (whole and self._offset):
            raise _Mismatch
        part = self._parts[self._index]
        if part.WhichOneof("content") != kind:
            raise _Mismatch
        return part

    def _advance(self) -> None:
        self._index += 1
        self._offset = 0
