"""Requests to OpenAI Responses, for tests of the fake."""

from typing import Any

import openai

from tests.providers.script import Reasoning, ToolCall, answer

MODEL = "gpt-5"
USER = {"role": "user", "content": "What is the weather in Bern?"}
ARGUMENTS = '{"city": "Bern", "at": 1.50, "n": 12345678901234567890}'
ENCRYPTED = ["reasoning.encrypted_content"]
STEPS = answer(Reasoning("I need the weather."), ToolCall("weather", "{}", id="call_1"))

Items = list[dict[str, Any]]


def tool(name: str = "weather", **fields: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": {}}
    return {"type": "function", "name": name, "parameters": schema, "strict": False} | fields


def call(of: str, **fields: Any) -> dict[str, Any]:
    return {"type": "function_call", "call_id": of, "name": "weather", "arguments": "{}"} | fields


def output(of: str, **fields: Any) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": of, "output": "sunny"} | fields


def said(text: str, **fields: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": [{"type": "output_text", "text": text}]} | fields


def create(client: openai.OpenAI, *items: dict[str, Any], **fields: Any) -> Any:
    request: dict[str, Any] = {"model": MODEL, "input": list(items) or [USER], "tools": [tool()]}
    return client.responses.create(**(request | fields))


def items_of(response: Any) -> Items:
    """The output of a response as the input of the next request."""
    return [item.model_dump(exclude_none=True) for item in response.output]
