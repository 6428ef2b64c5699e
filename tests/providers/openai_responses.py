"""OpenAI Responses: `POST /v1/responses`.

Source: API reference, "The response object" and "Streaming events" (names, fields and order).
"""

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pydantic import TypeAdapter

from tests.providers import openai_common
from tests.providers.openai_responses_request import (
    PARAMETERS,
    AssistantMessage,
    FunctionCall,
    FunctionCallOutput,
    InputItem,
    InputMessage,
    ReasoningItem,
    ResponsesRequest,
)
from tests.providers.openai_responses_rules import Memory, check
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
from tests.providers.signatures import Sealed, digest, opened, sign
from tests.providers.wire import Frame, chunks, event, mint
from turngate_core.json_text import JsonValue

_OUTPUT: TypeAdapter[FunctionCall | AssistantMessage | ReasoningItem] = TypeAdapter(
    FunctionCall | AssistantMessage | ReasoningItem
)


class OpenAiResponses:
    """The endpoint. It stores responses, and remembers which reasoning led to which item."""

    wire: Wire = "openai_responses"
    path = "/v1/responses"

    def __init__(self, key: str) -> None:
        self._key = key
        self._memory = Memory()

    def admit(
        self, headers: Mapping[str, str], body: dict[str, Any], exact: JsonValue
    ) -> "ModelResponse":
        """See `wire.Endpoint`."""
        openai_common.check_key(headers, self._key)
        request = read(body, ResponsesRequest, PARAMETERS, partial(openai_common.fault, body))
        conversation = check(request, self._memory)
        history = [item for given in conversation for item in _items(given)]
        if request.instructions:
            history.insert(0, Said("system", request.instructions))
        tools = tuple(tool.name for tool in request.tools or [])
        neutral = Request(
            self.wire, request.model, bool(request.stream), tools, tuple(history), exact
        )
        return ModelResponse(neutral, request, conversation, self._memory)

    def failure(self, failure: Failure) -> Refused:
        """See `wire.Endpoint`."""
        return openai_common.failure(failure)

    def error(self, refused: Refused) -> dict[str, object]:
        """See `wire.Endpoint`."""
        return openai_common.error_body(refused)


def _items(given: InputItem) -> Iterator[Item]:
    match given:
        case InputMessage() | AssistantMessage():
            text = _text(given.content)
            if text:
                yield Said(given.role, text)
        case FunctionCall():
            yield Called(given.call_id, given.name, given.arguments)
        case FunctionCallOutput():
            yield Returned(given.call_id, _text(given.output))
        case ReasoningItem():
            yield Reasoned("".join(part.text for part in given.summary))
        case _:
            raise TypeError("references were resolved")


def _text(parts: Any) -> str:
    return "".join(getattr(part, "text", "") for part in parts)


@dataclass(slots=True)
class ModelResponse:
    """A request that was let in, and its answer."""

    request: Request
    _request: ResponsesRequest
    _conversation: list[InputItem]
    _memory: Memory
    id: str = field(default_factory=lambda: mint("resp_", 48))
    _sequence: int = 0

    def whole(self, answer: Answer) -> str:
        """The answer as a response object."""
        output = [item for _, item in self._output(answer)]
        self._remember(output)
        return json.dumps(self._response(answer, output))

    def frames(self, answer: Answer) -> Iterator[Frame]:
        """The answer as events, `response.created` to `response.completed`."""
        yield self._event("response.created", response=self._started())
        yield self._event("response.in_progress", response=self._started())
        output = self._output(answer)
        done: list[dict[str, Any]] = []
        for part in answer.parts:
            match part:
                case Silence() | BrokenOff():
                    yield part
                case Failure():
                    refused = openai_common.failure(part)
                    error = {"code": refused.code, "message": refused.message}
                    failed = self._started() | {"status": "failed", "error": error, "output": done}
                    yield self._event("response.failed", response=failed)
                    return
                case Reasoning() if not self._reasons:
                    pass
                case _:
                    _, item = output[len(done)]
                    yield from self._item_events(len(done), part, item)
                    done.append(item)
        self._remember(done)
        response = self._response(answer, done)
        yield self._event(f"response.{response['status']}", response=response)

    @property
    def _reasons(self) -> bool:
        return openai_common.MODELS[self.request.model].reasons

    def _output(self, answer: Answer) -> list[tuple[Text | Reasoning | ToolCall, dict[str, Any]]]:
        items: list[tuple[Text | Reasoning | ToolCall, dict[str, Any]]] = []
        for part in answer.parts:
            match part:
                case Text():
                    items.append((part, _message(part)))
                case ToolCall():
                    items.append((part, _function_call(part)))
                case Reasoning() if self._reasons:
                    items.append((part, self._reasoning(part)))
                case _:
                    pass
        return items

    def _reasoning(self, part: Reasoning) -> dict[str, Any]:
        options = self._request.reasoning
        item: dict[str, Any] = {"id": mint("rs_", 48), "type": "reasoning", "summary": []}
        # API reference, `reasoning.summary`: without it, the model's reasoning is not shown.
        if options is not None and (options.summary or options.generate_summary):
            item["summary"] = [{"type": "summary_text", "text": part.text}]
        # The service gives it to who asks for it with `include`, and lately to all who do not
        # store. The fake waits to be asked: what works with it works with both.
        if "reasoning.encrypted_content" in (self._request.include or []):
            sealed = Sealed(self.request.model, digest(part.text), "")
            item["encrypted_content"] = sign(sealed)
        return item

    def _remember(self, output: list[dict[str, Any]]) -> None:
        items = [_OUTPUT.validate_python(item) for item in output]
        reasoning: str | None = None
        for number, item in enumerate(items):
            if isinstance(item, ReasoningItem):
                reasoning = item.id
                after = items[number + 1] if number + 1 < len(items) else None
                self._memory.follower[item.id] = after
            elif reasoning is not None and item.id is not None:
                self._memory.needs[item.id] = reasoning
        # API reference, `store`: "Defaults to true when omitted."
        if self._request.store is not False:
            self._memory.stored |= {item.id: item for item in items if item.id is not None}
            self._memory.responses[self.id] = [*self._conversation, *items]

    def _started(self) -> dict[str, Any]:
        request = self._request
        reasoning = request.reasoning
        return {
            "id": self.id,
            "object": "response",
            "created_at": int(time.time()),
            "status": "in_progress",
            "background": False,
            "error": None,
            "incomplete_details": None,
            "instructions": request.instructions,
            "max_output_tokens": request.max_output_tokens,
            "model": request.model,
            "output": [],
            "parallel_tool_calls": request.parallel_tool_calls is not False,
            "previous_response_id": request.previous_response_id,
            "reasoning": {
                "effort": reasoning.effort if reasoning else None,
                "summary": reasoning.summary if reasoning else None,
            },
            "store": request.store is not False,
            "temperature": 1.0,
            "text": {"format": {"type": "text"}},
            "tool_choice": "auto",
            "tools": [],
            "top_p": 1.0,
            "truncation": "disabled",
            "usage": None,
            "user": None,
            "metadata": {},
        }

    def _response(self, answer: Answer, output: list[dict[str, Any]]) -> dict[str, Any]:
        response = self._started() | {
            "status": "completed",
            "output": output,
            "usage": _usage(answer.usage),
        }
        if answer.finish != "stop":
            reason = "max_output_tokens" if answer.finish == "length" else "content_filter"
            response |= {"status": "incomplete", "incomplete_details": {"reason": reason}}
        if removed := [_removed(i.id) for i in self._conversation if self._foreign(i)]:
            response["input_transformations"] = removed
        return response

    def _foreign(self, item: InputItem) -> bool:
        # API reference, `input_transformations`: reasoning of another model is withheld.
        if not isinstance(item, ReasoningItem) or item.encrypted_content is None:
            return False
        sealed = opened(item.encrypted_content)
        return sealed is not None and sealed.model != self.request.model

    def _item_events(
        self, index: int, part: Text | Reasoning | ToolCall, item: dict[str, Any]
    ) -> Iterator[str]:
        at = {"output_index": index, "item_id": item["id"]}
        # An item that begins has nothing in it yet; encrypted content comes when it is done.
        begun = item | {"status": "in_progress"}
        if isinstance(part, Text):
            begun |= {"content": []}
            events = self._text_events(at | {"content_index": 0}, part)
        elif isinstance(part, Reasoning):
            begun = {k: v for k, v in begun.items() if k not in ("encrypted_content", "status")}
            begun |= {"summary": []}
            shown = bool(item["summary"])
            events = self._summary_events(at | {"summary_index": 0}, part) if shown else iter(())
        else:
            begun |= {"arguments": ""}
            events = self._call_events(at, part)
        yield self._event("response.output_item.added", output_index=index, item=begun)
        yield from events
        yield self._event("response.output_item.done", output_index=index, item=item)

    def _text_events(self, at: dict[str, Any], part: Text) -> Iterator[str]:
        empty, full = _text_part(""), _text_part(part.text)
        yield self._event("response.content_part.added", **at, part=empty)
        for chunk in chunks(part.text, part.chunk):
            yield self._event("response.output_text.delta", **at, delta=chunk, logprobs=[])
        yield self._event("response.output_text.done", **at, text=part.text, logprobs=[])
        yield self._event("response.content_part.done", **at, part=full)

    def _summary_events(self, at: dict[str, Any], part: Reasoning) -> Iterator[str]:
        empty, full = (
            {"type": "summary_text", "text": ""},
            {"type": "summary_text", "text": part.text},
        )
        yield self._event("response.reasoning_summary_part.added", **at, part=empty)
        for chunk in chunks(part.text, part.chunk):
            yield self._event("response.reasoning_summary_text.delta", **at, delta=chunk)
        yield self._event("response.reasoning_summary_text.done", **at, text=part.text)
        yield self._event("response.reasoning_summary_part.done", **at, part=full)

    def _call_events(self, at: dict[str, Any], part: ToolCall) -> Iterator[str]:
        for chunk in chunks(part.arguments, part.chunk):
            yield self._event("response.function_call_arguments.delta", **at, delta=chunk)
        yield self._event(
            "response.function_call_arguments.done",
            **at,
            name=part.name,
            arguments=part.arguments,
        )

    def _event(self, type: str, **fields: object) -> str:
        numbered = {"type": type, "sequence_number": self._sequence, **fields}
        self._sequence += 1
        return event(numbered, type)


def _message(part: Text) -> dict[str, Any]:
    return {
        "id": mint("msg_", 48),
        "type": "message",
        "status": "completed",
        "role": "assistant",
        "content": [_text_part(part.text)],
    }


def _text_part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _function_call(part: ToolCall) -> dict[str, Any]:
    return {
        "id": mint("fc_", 48),
        "type": "function_call",
        "status": "completed",
        "call_id": part.id or mint("call_"),
        "name": part.name,
        "arguments": part.arguments,
    }


def _removed(item: str | None) -> dict[str, Any]:
    return {"id": item, "type": "reasoning", "action": "removed", "reason": "model_mismatch"}


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": 0},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.input + usage.output,
    }
