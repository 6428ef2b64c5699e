"""OpenAI Chat Completions: `POST /v1/chat/completions`.

Source: API reference, "The chat completion object" and "The chat completion chunk object".
"""

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tests.providers import openai_common
from tests.providers.openai_chat_request import (
    PARAMETERS,
    AssistantMessage,
    ChatRequest,
    Message,
    ToolMessage,
)
from tests.providers.openai_chat_rules import check
from tests.providers.refusal import Refused, read
from tests.providers.script import (
    Answer,
    BrokenOff,
    Called,
    Failure,
    Item,
    Reasoning,
    Request,
    Returned,
    Said,
    Silence,
    Text,
    ToolCall,
    Usage,
    Wire,
)
from tests.providers.wire import Frame, chunks, event, mint
from turngate_core.json_text import JsonValue

_FINISH = {"stop": "stop", "length": "length", "content_filter": "content_filter"}


class OpenAiChat:
    """The endpoint."""

    wire: Wire = "openai_chat"
    path = "/v1/chat/completions"

    def __init__(self, key: str) -> None:
        self._key = key

    def admit(
        self, headers: Mapping[str, str], body: dict[str, Any], exact: JsonValue
    ) -> "Completion":
        """See `wire.Endpoint`."""
        openai_common.check_key(headers, self._key)
        request = read(body, ChatRequest, PARAMETERS, partial(openai_common.fault, body))
        check(request)
        history = tuple(item for message in request.messages for item in _items(message))
        tools = tuple(tool.function.name for tool in request.tools or [])
        neutral = Request(self.wire, request.model, bool(request.stream), tools, history, exact)
        options = request.stream_options
        return Completion(neutral, usage=bool(options and options.include_usage))

    def failure(self, failure: Failure) -> Refused:
        """See `wire.Endpoint`."""
        return openai_common.failure(failure)

    def error(self, refused: Refused) -> dict[str, object]:
        """See `wire.Endpoint`."""
        return openai_common.error_body(refused)


def _items(message: Message) -> Iterator[Item]:
    text = "".join(getattr(part, "text", "") for part in message.content or [])
    if isinstance(message, ToolMessage):
        yield Returned(message.tool_call_id, text)
        return
    if text:
        yield Said(message.role, text)
    if isinstance(message, AssistantMessage):
        for call in message.tool_calls or []:
            yield Called(call.id, call.function.name, call.function.arguments)


@dataclass(frozen=True, slots=True)
class Completion:
    """A request that was let in, and its answer."""

    request: Request
    usage: bool
    id: str = field(default_factory=lambda: mint("chatcmpl-", 29))

    def whole(self, answer: Answer) -> str:
        """The answer as a chat completion object."""
        text = "".join(part.text for part in answer.parts if isinstance(part, Text))
        calls = [_call(part) for part in answer.parts if isinstance(part, ToolCall)]
        message: dict[str, JsonValue] = {
            "role": "assistant",
            "content": text or None,
            "refusal": None,
            "annotations": [],
        }
        if calls:
            message["tool_calls"] = list(calls)
        choice = {
            "index": 0,
            "message": message,
            "finish_reason": _finish(answer),
            "logprobs": None,
        }
        return json.dumps(
            self._object("chat.completion", [choice]) | {"usage": _usage(answer.usage)}
        )

    def frames(self, answer: Answer) -> Iterator[Frame]:
        """The answer as chat completion chunks, then [DONE]."""
        yield self._delta({"role": "assistant", "content": "", "refusal": None})
        index = 0
        for part in answer.parts:
            match part:
                case Text():
                    for chunk in chunks(part.text, part.chunk):
                        yield self._delta({"content": chunk})
                case ToolCall():
                    # The first delta of a call has its id and name, the others its arguments.
                    head = _call(part, arguments="")
                    yield self._delta({"tool_calls": [{"index": index, **head}]})
                    for chunk in chunks(part.arguments, part.chunk):
                        piece = {"index": index, "function": {"arguments": chunk}}
                        yield self._delta({"tool_calls": [piece]})
                    index += 1
                case Silence() | BrokenOff():
                    yield part
                case Failure():
                    refused = openai_common.failure(part)
                    yield event(openai_common.error_body(refused))
                    return
                case Reasoning():
                    pass  # this wire does not show it, it only counts it
        yield self._delta({}, _finish(answer))
        if self.usage:
            # API reference, `include_usage`: a last chunk with usage and no choices; all others
            # have a null usage.
            yield event(self._object("chat.completion.chunk", []) | {"usage": _usage(answer.usage)})
        yield "data: [DONE]\n\n"

    def _delta(self, delta: dict[str, object], finish: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        chunk = self._object("chat.completion.chunk", [choice])
        return event(chunk | {"usage": None} if self.usage else chunk)

    def _object(self, kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "id": self.id,
            "object": kind,
            "created": int(time.time()),
            "model": self.request.model,
            "service_tier": "default",
            "system_fingerprint": None,
            "choices": choices,
        }


def _call(part: ToolCall, arguments: str | None = None) -> dict[str, Any]:
    text = part.arguments if arguments is None else arguments
    return {
        "id": part.id or mint("call_"),
        "type": "function",
        "function": {"name": part.name, "arguments": text},
    }


def _finish(answer: Answer) -> str:
    # A model that calls tools to the end stops with `tool_calls`; a cut one with its own reason.
    return "tool_calls" if answer.calls and answer.finish == "stop" else _FINISH[answer.finish]


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cached, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": usage.reasoning,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }
