"""Well-paired history: what a model is shown (T4).

Each call has exactly one result, in call order, right after the message that made the calls. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from turngate.v1 import message_pb2
from turngate_core.synthetic import SyntheticReason, text_for_model

Message = message_pb2.Message
ToolResult = message_pb2.ToolResult

_SYNTHETIC_KINDS = {
    message_pb2.RESULT_KIND_CANCELLED_BY_USER: SyntheticReason.CANCELLED_BY_USER,
    message_pb2.RESULT_KIND_DENIED: SyntheticReason.DENIED,
    message_pb2.RESULT_KIND_EXPIRED: SyntheticReason.EXPIRED,
    message_pb2.RESULT_KIND_RUN_FAILED: SyntheticReason.RUN_FAILED,
    message_pb2.RESULT_KIND_OUTCOME_UNKNOWN: SyntheticReason.OUTCOME_UNKNOWN,
}

# Parts that are content. Results stand in `PairedMessage.results`; hints, approval requests and
# decisions are for clients (H1, A5).
_PLAIN = frozenset({"text", "reasoning", "file", "data"})
_CONTENT = _PLAIN | {"tool_call"}


@dataclass(frozen=True, slots=True)
class PairedMessage:
    """A message and the results of its calls.

    `message` holds content and calls only (a provider's own result stays right after its call).
    `results`: one for each call that the provider did not execute itself, in call order.
    """

    message: Message
    results: tuple[ToolResult, ...] = ()


@dataclass(frozen=True, slots=True)
class PairedHistory:
    """`turn_start`: the index in `messages` of the turn's first message (T5)."""

    messages: tuple[PairedMessage, ...]
    turn_start: int


def pair(
    messages: Sequence[Message], turn_start: int, results: Mapping[str, ToolResult] | None = None
) -> PairedHistory:
    """The history that a model may be shown (T4).

    `turn_start`: the index in `messages` of the turn's first message. `results`: results by call
    id that the messages may not show; those win over the ones that stand in the messages. A call
    without any result gets a typed synthetic one; a result without a call is left out.
    """
    known = {**results_in(messages), **(results or {})}
    paired: list[PairedMessage] = []
    paired_turn_start = 0
    for index, message in enumerate(messages):
        if index == turn_start:
            paired_turn_start = len(paired)
        content = _content(message, known)
        # A message that held nothing but hints or results is none for a model.
        if content.parts or not message.parts:
            paired.append(PairedMessage(content, tuple(_results(content, known))))
    return PairedHistory(tuple(paired), paired_turn_start)


def results_in(messages: Iterable[Message]) -> dict[str, ToolResult]:
    """The results that stand anywhere in the messages, by call id; the last one of an id counts."""
    return {
        part.tool_result.call_id: part.tool_result
        for message in messages
        for part in message.parts
        if part.WhichOneof("content") == "tool_result"
    }


def calls_of(message: Message) -> list[message_pb2.ToolCall]:
    """The calls of a message that need a result of their own, in order.

    Those that the provider executed come with their result and wait for nothing.
    """
    return [
        part.tool_call
        for part in message.parts
        if part.WhichOneof("content") == "tool_call"
        and part.tool_call.executor != message_pb2.TOOL_EXECUTOR_PROVIDER
    ]


def _content(message: Message, known: Mapping[str, ToolResult]) -> Message:
    if all(part.WhichOneof("content") in _PLAIN for part in message.parts):
        return message  # nearly every one: not worth a copy
    content = Message()
    content.CopyFrom(message)
    del content.parts[:]
    for part in message.parts:
        if part.WhichOneof("content") not in _CONTENT:
            continue
        content.parts.append(part)
        call = part.tool_call
        if call.executor == message_pb2.TOOL_EXECUTOR_PROVIDER:
            content.parts.add(tool_result=_result_of(call.call_id, known))
    return content


def _results(message: Message, known: Mapping[str, ToolResult]) -> Iterable[ToolResult]:
    return (_result_of(call.call_id, known) for call in calls_of(message))


def _result_of(call_id: str, known: Mapping[str, ToolResult]) -> ToolResult:
    found = known.get(call_id)
    if found is None:
        # Nobody says what became of it; it cannot be asked for again, its step is over.
        kind = message_pb2.RESULT_KIND_RUN_FAILED
        return ToolResult(call_id=call_id, kind=kind, error_text=_text(kind))
    if found.kind in _SYNTHETIC_KINDS and found.WhichOneof("outcome") is None:
        told = ToolResult()
        told.CopyFrom(found)
        told.error_text = _text(found.kind)
        return told
    return found


def _text(kind: message_pb2.ResultKind.ValueType) -> str:
    return text_for_model(_SYNTHETIC_KINDS[kind])
