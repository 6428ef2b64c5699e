"""A message while an agent writes it: pieces become deltas, and in the end the whole message."""

from __future__ import annotations

from collections.abc import Mapping

from runner_service.agents.protocol import (
    AgentFailure,
    AgentTool,
    Call,
    CallPiece,
    DataPiece,
    Output,
    ProviderCall,
    ReasoningPiece,
    StepEnd,
    StepPiece,
    TextPiece,
)
from runner_service.limits import (
    MAX_MESSAGE_BYTES,
    MAX_TEXT_BYTES,
    MAX_TOOL_NAME_CHARACTERS,
    cut,
    error_result,
    tool_result,
    well_formed,
)
from runner_service.minting import IdMint
from runner_service.outbox import Outbox, RunnerEvent
from runner_service.toolbox import executor_of
from turngate.v1 import event_pb2, message_pb2, run_pb2, runner_pb2
from turngate_core.json_text import JsonTextError, check

_Kind = event_pb2.TextKind


class MessageWriter:
    """Writes one message of the assistant: reports its deltas and gathers its parts.

    `tools`: what is offered in this step, by name; set before the first piece.
    """

    def __init__(self, outbox: Outbox, ids: IdMint) -> None:
        self._outbox = outbox
        self._ids = ids
        self.tools: Mapping[str, AgentTool] = {}
        self._text: list[str] = []  # of the part that is being written
        self._text_kind: _Kind.ValueType | None = None
        self._text_length = 0  # code points of that part
        self._text_bytes = 0  # of the whole message
        self._begun: dict[str, _BegunCall] = {}
        self._parts: list[message_pb2.Part | None] = []
        self._end = StepEnd()
        self.message_id = ids.message_id()
        started = runner_pb2.RunnerMessageStarted(message_id=self.message_id)
        outbox.put(RunnerEvent(message_started=started))

    def take(self, piece: StepPiece) -> None:
        """Report a piece. Raises `AgentFailure` for a message that is too large."""
        match piece:
            case TextPiece(text):
                self._take_text(text, event_pb2.TEXT_KIND_TEXT)
            case ReasoningPiece(text):
                self._take_text(text, event_pb2.TEXT_KIND_REASONING)
            case DataPiece(kind, json):
                self._take_data(kind, json)
            case CallPiece(key, name, arguments):
                self._take_call_piece(key, name, arguments)
            case Call():
                self._take_call(piece)
            case ProviderCall():
                self._take_provider_call(piece)
            case StepEnd():
                self._end = piece

    def message(self) -> message_pb2.Message:
        """The whole message. Raises `AgentFailure` if it is too large or a call never came."""
        self._close_text()
        parts = [part for part in self._parts if part is not None]
        if len(parts) != len(self._parts):
            raise AgentFailure(
                run_pb2.RUN_FAILURE_REASON_AGENT_ERROR, "a call was begun and never completed"
            )
        message = message_pb2.Message(
            id=self.message_id,
            role=message_pb2.ROLE_ASSISTANT,
            parts=parts,
            finish_reason=well_formed(self._end.finish_reason),
            usage=self._end.usage,
            provider_state=self._end.provider_state,
        )
        if message.ByteSize() > MAX_MESSAGE_BYTES:
            raise _too_large("the message", message.ByteSize(), MAX_MESSAGE_BYTES)
        return message

    def _take_text(self, text: str, kind: _Kind.ValueType) -> None:
        if not text:
            return
        text = well_formed(text)
        if self._text_kind != kind:
            self._close_text()
            self._text_kind = kind
            self._parts.append(None)  # the place of the part; filled when it is closed
        self._text_bytes += len(text.encode())
        if self._text_bytes > MAX_TEXT_BYTES:
            raise _too_large("the text of the message", self._text_bytes, MAX_TEXT_BYTES)
        delta = event_pb2.TextDelta(
            message_id=self.message_id,
            part_index=len(self._parts) - 1,
            kind=kind,
            offset=self._text_length,
            text=text,
        )
        self._text.append(text)
        self._text_length += len(text)
        self._outbox.put(RunnerEvent(text_delta=delta))

    def _close_text(self) -> None:
        if self._text_kind is None:
            return
        text = "".join(self._text)
        if self._text_kind == event_pb2.TEXT_KIND_REASONING:
            part = message_pb2.Part(reasoning=message_pb2.ReasoningPart(text=text))
        else:
            part = message_pb2.Part(text=message_pb2.TextPart(text=text))
        # Calls may have been begun since: the text's own place is the last open one.
        self._parts[self._text_place()] = part
        self._text = []
        self._text_kind = None
        self._text_length = 0

    def _text_place(self) -> int:
        taken = {begun.place for begun in self._begun.values()}
        return max(i for i, p in enumerate(self._parts) if p is None and i not in taken)

    def _take_data(self, kind: str, json: str) -> None:
        try:
            check(json)
        except JsonTextError as error:
            raise AgentFailure(
                run_pb2.RUN_FAILURE_REASON_AGENT_ERROR, f"data of kind {kind!r}: {error}"
            ) from error
        self._close_text()
        self._parts.append(message_pb2.Part(data=message_pb2.DataPart(kind=kind, json=json)))

    def _take_call_piece(self, key: str, name: str, arguments: str) -> None:
        begun = self._begun.get(key)
        if begun is None:
            self._close_text()
            begun = _BegunCall(self._ids.call_id(), len(self._parts))
            self._begun[key] = begun
            self._parts.append(None)
        arguments = well_formed(arguments)
        delta = event_pb2.ToolCallDelta(
            message_id=self.message_id,
            part_index=begun.place,
            call_id=begun.call_id,
            name=_name(name),
            offset=begun.length,
            arguments_delta=arguments,
        )
        begun.length += len(arguments)
        self._outbox.put(RunnerEvent(tool_call_delta=delta))

    def _take_call(self, piece: Call) -> None:
        self._close_text()
        begun = self._begun.pop(piece.key, None) if piece.key else None
        tool = self.tools.get(piece.name)
        call = message_pb2.ToolCall(
            call_id=begun.call_id if begun else self._ids.call_id(),
            name=_name(piece.name),
            executor=executor_of(tool),
            provider_call_id=well_formed(piece.provider_call_id),
            tool_origin=tool.origin if tool else "",
        )
        _set_arguments(call, piece.arguments)
        part = message_pb2.Part(tool_call=call)
        if begun:
            self._parts[begun.place] = part
        else:
            self._parts.append(part)

    def _take_provider_call(self, piece: ProviderCall) -> None:
        self._close_text()
        call = message_pb2.ToolCall(
            call_id=self._ids.call_id(),
            name=_name(piece.name),
            executor=message_pb2.TOOL_EXECUTOR_PROVIDER,
            provider_call_id=well_formed(piece.provider_call_id),
        )
        _set_arguments(call, piece.arguments)
        if isinstance(piece.outcome, Output):
            result = tool_result(call.call_id, piece.outcome.json)
        else:
            result = error_result(call.call_id, piece.outcome.text)
        self._parts.append(message_pb2.Part(tool_call=call))
        self._parts.append(message_pb2.Part(tool_result=result))


class _BegunCall:
    """A call of which pieces were shown: its id, its part's index, code points shown so far."""

    def __init__(self, call_id: str, place: int) -> None:
        self.call_id = call_id
        self.place = place
        self.length = 0


def _name(name: str) -> str:
    # A name that no tool can have is refused later; the message that tells so has to be storable.
    return well_formed(name)[:MAX_TOOL_NAME_CHARACTERS] or "(no name)"


def _set_arguments(call: message_pb2.ToolCall, arguments: str) -> None:
    """T2: exact text if it is JSON, else beside it what the model wrote."""
    try:
        if arguments:  # empty text means `{}` and is kept as it came
            check(arguments)
    except JsonTextError:
        call.malformed_arguments = cut(well_formed(arguments), MAX_TEXT_BYTES)
    else:
        call.arguments_json = arguments


def _too_large(what: str, size: int, limit: int) -> AgentFailure:
    return AgentFailure(
        run_pb2.RUN_FAILURE_REASON_AGENT_ERROR,
        f"{what} is too large: {size} bytes, at most {limit} are accepted",
    )
