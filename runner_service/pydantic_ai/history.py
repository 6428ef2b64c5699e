"""A well-paired history as the messages of Pydantic AI (T4)."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pydantic_ai.messages import (
    AudioUrl,
    DocumentUrl,
    ImageUrl,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
    VideoUrl,
)

from runner_service.agents.protocol import Turn
from runner_service.pairing import PairedMessage, calls_of
from runner_service.pydantic_ai.exact import ExactCall
from runner_service.pydantic_ai.provider_state import ModelId, restored
from turngate.v1 import message_pb2
from turngate_core.json_text import JsonLimits, parse

# Some providers want the user to speak first.
BEGINNING = "(The conversation begins.)"

# What every provider takes as the id of a call.
_CALL_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_LIMITS = JsonLimits(max_bytes=2**31, max_depth=256)
_LINKS = ("http://", "https://")
_FILES: dict[str, type[ImageUrl] | type[AudioUrl] | type[VideoUrl]] = {
    "image": ImageUrl,
    "audio": AudioUrl,
    "video": VideoUrl,
}


@dataclass(frozen=True, slots=True)
class History:
    """`instructions`: those of the session, beside the agent's own."""

    messages: list[ModelMessage]
    instructions: str


def history_of(turn: Turn, model: ModelId) -> History:
    """What the model is shown of the turn and before; the last message is one to reply to.

    The state of a provider is shown to the model that it came from, see `restored`.
    """
    ids = _CallIds()
    instructions: list[str] = []
    messages: list[ModelMessage] = []
    for paired in _from_a_user(turn):
        message = paired.message
        if message.role == message_pb2.ROLE_SYSTEM:
            instructions.append(_text_of(message))
        elif message.role == message_pb2.ROLE_ASSISTANT:
            messages.extend(_step(paired, model, ids))
        else:
            messages.append(ModelRequest(parts=[UserPromptPart(_user_content(message))]))
    if messages and isinstance(messages[0], ModelResponse):
        messages.insert(0, ModelRequest(parts=[UserPromptPart(BEGINNING)]))
    return History(messages, "\n\n".join(instructions))


def _from_a_user(turn: Turn) -> Sequence[PairedMessage]:
    """Of a trimmed history what begins with a user's message: the turn itself does (T5)."""
    if turn.starts_with_branch:
        return turn.history
    for index, paired in enumerate(turn.history):
        if paired.message.role == message_pb2.ROLE_USER:
            return turn.history[index:]
    return turn.history


def _step(paired: PairedMessage, model: ModelId, ids: _CallIds) -> Iterator[ModelMessage]:
    message = paired.message
    calls = calls_of(message)
    shown = ids.of(calls, provider=True)
    response = restored(message, model, shown)
    if response is None:
        # A provider may know from its ids what it had thought, and want to see that, too.
        shown = ids.of(calls, provider=False)
        response = ModelResponse(parts=list(_plain(message, iter(shown))))
    ids.use(shown)
    if response.parts:
        yield response
    if calls:
        results = zip(calls, shown, paired.results, strict=True)
        yield ModelRequest(parts=[_returned(call.name, id_, one) for call, id_, one in results])


def _plain(message: message_pb2.Message, call_ids: Iterator[str]) -> Iterator[ModelResponsePart]:
    """Without reasoning and without what a provider executed: only its own model may see those."""
    for part in message.parts:
        match part.WhichOneof("content"):
            case "text" if part.text.text:
                yield TextPart(part.text.text)
            case "data":
                yield TextPart(part.data.json)
            case "tool_call" if part.tool_call.executor != message_pb2.TOOL_EXECUTOR_PROVIDER:
                call = part.tool_call
                arguments = call.arguments_json or call.malformed_arguments
                yield ExactCall(call.name, arguments, next(call_ids))


def _returned(name: str, call_id: str, result: message_pb2.ToolResult) -> ToolReturnPart:
    if result.WhichOneof("outcome") != "error_text":
        return ToolReturnPart(name, _output(result.output_json), call_id)
    if result.kind == message_pb2.RESULT_KIND_DENIED:
        return ToolReturnPart(name, result.error_text, call_id, outcome="denied")
    return ToolReturnPart(name, result.error_text, call_id, outcome="failed")


def _output(json: str) -> str:
    """Digit for digit (T2); a string is shown as the text that it is."""
    if json.lstrip().startswith('"'):
        value = parse(json, _LIMITS)
        if isinstance(value, str):
            return value
    return json


def _user_content(message: message_pb2.Message) -> str | list[UserContent]:
    content = list(_user_parts(message))
    if not content:
        return "(An empty message.)"
    if len(content) == 1 and isinstance(content[0], str):
        return content[0]
    return content


def _user_parts(message: message_pb2.Message) -> Iterator[UserContent]:
    for part in message.parts:
        match part.WhichOneof("content"):
            case "text" if part.text.text:
                yield part.text.text
            case "data":
                yield f"[data: {part.data.kind}] {part.data.json}"
            case "file":
                yield _file(part.file)


def _file(file: message_pb2.FilePart) -> UserContent:
    media_type = file.media_type or None
    if not file.uri.startswith(_LINKS):
        # Nothing that a provider could fetch; it is named all the same.
        return f"[file: {file.name or file.uri} ({file.media_type or 'unknown type'})]"
    kind = _FILES.get(file.media_type.partition("/")[0], DocumentUrl)
    return kind(file.uri, media_type=media_type)


def _text_of(message: message_pb2.Message) -> str:
    return "".join(part.text.text for part in message.parts if part.HasField("text"))


class _CallIds:
    """The ids under which a provider sees calls, each only once: two calls with one id are refused,
    and a provider may give an id again.
    """

    def __init__(self) -> None:
        self._used: set[str] = set()

    def of(self, calls: Sequence[message_pb2.ToolCall], *, provider: bool) -> list[str]:
        """Ids for the calls of a message: the provider's own where it gave one, or ours."""
        found: list[str] = []
        for call in calls:
            names = _names_of(call, provider=provider)
            taken = self._used.union(found)
            found.append(
                next(name for name in names if _CALL_ID.fullmatch(name) and name not in taken)
            )
        return found

    def use(self, ids: Sequence[str]) -> None:
        """These stand in the history now."""
        self._used.update(ids)


def _names_of(call: message_pb2.ToolCall, *, provider: bool) -> Iterator[str]:
    if provider:
        yield call.provider_call_id
    yield call.call_id
    for number in itertools.count():
        text = f"{number}:{call.call_id}"
        yield f"call_{hashlib.sha256(text.encode()).hexdigest()[:24]}"
