"""Anthropic Messages: `POST /v1/messages`, with and without betas.

Source: API reference, "Create a Message"; platform.claude.com/docs, "Streaming messages" (events
and their order) and "Errors".
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.providers import anthropic_rules, anthropic_thinking
from tests.providers.anthropic_request import (
    PARAMETERS,
    MessagesRequest,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    fault,
)
from tests.providers.anthropic_rules import Turn
from tests.providers.refusal import Refused, read
from tests.providers.script import (
    Answer,
    BrokenOff,
    Called,
    Failure,
    Item,
    Reasoned,
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
from tests.providers.signatures import Sealed, digest, sign
from tests.providers.wire import Frame, chunks, event, mint
from turngate_core.json_text import JsonValue, dump, parse

_STOP = {"stop": "end_turn", "length": "max_tokens", "content_filter": "refusal"}
_FAILURES = {
    "authentication": (401, "authentication_error", "invalid x-api-key"),
    "permission": (403, "permission_error", "Your API key does not have permission to use it."),
    "rate_limit": (429, "rate_limit_error", "This request would exceed your rate limit."),
    "quota": (402, "billing_error", "Your credit balance is too low."),
    "context_too_long": (
        400,
        "invalid_request_error",
        "prompt is too long: 210000 tokens > 200000 maximum",
    ),
    "content_filter": (
        400,
        "invalid_request_error",
        "Output blocked by content filtering policy",
    ),
    "server_error": (500, "api_error", "Internal server error"),
    "overloaded": (529, "overloaded_error", "Overloaded"),
}


class AnthropicMessages:
    """The endpoint. It remembers which thinking led to which tool call."""

    wire: Wire = "anthropic_messages"
    path = "/v1/messages"

    def __init__(self, key: str) -> None:
        self._key = key
        self._minted: dict[str, list[str]] = {}

    def admit(
        self, headers: Mapping[str, str], body: dict[str, Any], exact: JsonValue
    ) -> "MessageAnswer":
        """See `wire.Endpoint`."""
        self._check_headers(headers)
        request = read(body, MessagesRequest, PARAMETERS, fault)
        model = anthropic_thinking.MODELS.get(request.model)
        if model is None:
            raise Refused(404, f"model: {request.model}", type="not_found_error")
        betas = {beta.strip() for beta in headers.get("anthropic-beta", "").split(",")}
        anthropic_thinking.check_configuration(request, model, betas)
        turns = anthropic_rules.check(request, model.prefill)
        dropped = anthropic_thinking.check_blocks(request, model, turns, self._minted)
        neutral = Request(
            self.wire,
            request.model,
            bool(request.stream),
            tuple(tool.name for tool in request.tools or []),
            tuple(_items(request, turns, exact)),
            exact,
        )
        thinks = anthropic_thinking.thinks(request, model)
        return MessageAnswer(neutral, request, turns, thinks, dropped, self._minted)

    def failure(self, failure: Failure) -> Refused:
        """See `wire.Endpoint`."""
        return _failure(failure)

    def error(self, refused: Refused) -> dict[str, object]:
        """See `wire.Endpoint`."""
        return _error(refused) | {"request_id": mint("req_")}

    def _check_headers(self, headers: Mapping[str, str]) -> None:
        # API reference, "Authentication" and "Versions": both headers are required.
        key = headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ")
        if not key:
            raise Refused(401, "x-api-key header is required", type="authentication_error")
        if key != self._key:
            raise Refused(401, "invalid x-api-key", type="authentication_error")
        if "anthropic-version" not in headers:
            raise Refused(400, "anthropic-version: header is required")


def _failure(failure: Failure) -> Refused:
    status, kind, message = _FAILURES[failure.kind]
    headers = {} if failure.retry_after is None else {"retry-after": str(failure.retry_after)}
    return Refused(status, message, type=kind, headers=headers)


def _error(refused: Refused) -> dict[str, object]:
    return {"type": "error", "error": {"type": refused.type, "message": refused.message}}


def _items(request: MessagesRequest, turns: list[Turn], exact: JsonValue) -> Iterator[Item]:
    for block in request.system or []:
        yield Said("system", block.text)
    for turn in turns:
        for placed in turn.blocks:
            match placed.block:
                case TextBlock(text=text):
                    yield Said(turn.role, text)
                case ThinkingBlock(thinking=thinking):
                    yield Reasoned(thinking)
                case ToolUseBlock(id=of, name=name):
                    arguments = _at(exact, "messages", placed.message, "content", placed.position)
                    yield Called(of, name, dump(_at(arguments, "input")))
                case ToolResultBlock(tool_use_id=of, content=content):
                    texts = [b.text for b in content or [] if isinstance(b, TextBlock)]
                    yield Returned(of, "".join(texts))
                case _:
                    pass


def _at(value: JsonValue, *steps: str | int) -> JsonValue:
    for step in steps:
        match value, step:
            case dict(), str():
                value = value[step]
            case list(), int():
                value = value[step]
            case _:
                raise LookupError(f"{step} is not in the request")
    return value


@dataclass(frozen=True, slots=True)
class MessageAnswer:
    """A request that was let in, and its answer."""

    request: Request
    _request: MessagesRequest
    _turns: list[Turn]
    _thinks: bool
    _dropped: list[tuple[str, str]]
    _minted: dict[str, list[str]]
    id: str = field(default_factory=lambda: mint("msg_"))

    def whole(self, answer: Answer) -> str:
        """The answer as a message. The arguments of calls stand in it as they are."""
        blocks = self._blocks(answer)
        raw: dict[str, str] = {}
        content: list[dict[str, Any]] = []
        for part, block in blocks:
            if isinstance(part, ToolCall):
                parse(part.arguments)  # raises: this wire has no place for text that is no JSON
                raw[json.dumps(block["id"] + " input")] = part.arguments
                block = block | {"input": block["id"] + " input"}
            content.append(block)
        message = self._message(content, answer.usage) | self._stop(answer)
        text = json.dumps(message)
        for placeholder, arguments in raw.items():
            text = text.replace(placeholder, arguments, 1)
        return text

    def frames(self, answer: Answer) -> Iterator[Frame]:
        """The answer as named events, `message_start` to `message_stop`."""
        start = self._message([], answer.usage) | {"stop_reason": None, "stop_sequence": None}
        yield _event("message_start", message=start)
        yield _event("ping")
        blocks = iter(self._blocks(answer))
        index = 0
        for part in answer.parts:
            match part:
                case Silence() | BrokenOff():
                    yield part
                case Failure():
                    # "Error events": the error object of the HTTP status, as an event.
                    yield event(_error(_failure(part)), "error")
                    return
                case Reasoning() if not self._thinks:
                    pass
                case _:
                    _, block = next(blocks)
                    yield from _block_events(index, part, block)
                    index += 1
        yield _event(
            "message_delta", delta=self._stop(answer), usage=_usage(answer.usage, whole=True)
        )
        yield _event("message_stop")

    def _message(self, content: list[dict[str, Any]], usage: Usage) -> dict[str, Any]:
        message: dict[str, Any] = {
            "id": self.id,
            "type": "message",
            "role": "assistant",
            "model": self.request.model,
            "content": content,
            "usage": _usage(usage, whole=bool(content)),
        }
        if self._dropped:
            message["input_transformations"] = [
                {"type": "thinking_dropped", "path": path, "reason": reason}
                for path, reason in self._dropped
            ]
        return message

    def _stop(self, answer: Answer) -> dict[str, Any]:
        # "Handling stop reasons".
        tools = answer.calls and answer.finish == "stop"
        return {
            "stop_reason": "tool_use" if tools else _STOP[answer.finish],
            "stop_sequence": None,
        }

    def _blocks(self, answer: Answer) -> list[tuple[Text | Reasoning | ToolCall, dict[str, Any]]]:
        blocks: list[tuple[Text | Reasoning | ToolCall, dict[str, Any]]] = []
        before = list(anthropic_thinking.history(self._turns))
        led: list[ThinkingBlock | ToolUseBlock] = []
        for part in answer.parts:
            match part:
                case Text():
                    block: dict[str, Any] = {"type": "text", "text": part.text}
                case Reasoning() if self._thinks:
                    prefix = anthropic_thinking.prefix(self._request, before)
                    signature = sign(Sealed(self.request.model, digest(part.text), prefix))
                    block = {"type": "thinking", "thinking": part.text, "signature": signature}
                    led.append(ThinkingBlock(**block))
                case ToolCall():
                    block = {
                        "type": "tool_use",
                        "id": part.id or mint("toolu_01", 22),
                        "name": part.name,
                        "input": _loaded(part.arguments),
                    }
                    led.append(ToolUseBlock(**block))
                case _:
                    continue
            blocks.append((part, block))
            before.append(("assistant", block))
        self._minted.update(anthropic_thinking.led_to(led))
        return blocks


def _loaded(arguments: str) -> dict[str, Any]:
    # Text that is no JSON goes out in a stream all the same: a model can write it.
    try:
        loaded = json.loads(arguments)
    except json.JSONDecodeError:
        return {}
    return loaded if isinstance(loaded, dict) else {}


def _block_events(
    index: int, part: Text | Reasoning | ToolCall, block: dict[str, Any]
) -> Iterator[str]:
    def delta(**fields: str) -> str:
        return _event("content_block_delta", index=index, delta=fields)

    if isinstance(part, Text):
        empty: dict[str, Any] = {"text": ""}
        deltas = [delta(type="text_delta", text=piece) for piece in chunks(part.text, part.chunk)]
    elif isinstance(part, Reasoning):
        empty = {"thinking": "", "signature": ""}
        pieces = chunks(part.text, part.chunk)
        deltas = [delta(type="thinking_delta", thinking=piece) for piece in pieces]
        # "Thinking delta": the signature comes just before the end of the block.
        deltas.append(delta(type="signature_delta", signature=block["signature"]))
    else:
        empty = {"input": {}}
        pieces = ["", *chunks(part.arguments, part.chunk)]
        deltas = [delta(type="input_json_delta", partial_json=piece) for piece in pieces]
    yield _event("content_block_start", index=index, content_block=block | empty)
    yield from deltas
    yield _event("content_block_stop", index=index)


def _event(name: str, **fields: object) -> str:
    return event({"type": name, **fields}, name)


def _usage(usage: Usage, *, whole: bool) -> dict[str, Any]:
    # API reference, `usage`: input tokens that were read from the cache are counted apart.
    return {
        "input_tokens": usage.input - usage.cached,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cached,
        "output_tokens": usage.output if whole else 1,
    }
