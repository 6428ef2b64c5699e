"""Requests to OpenAI Chat Completions, for tests of the fake."""

from typing import Any

import openai

MODEL = "gpt-4.1"
USER = {"role": "user", "content": "What is the weather in Bern?"}
ARGUMENTS = '{"city": "Bern", "at": 1.50, "n": 12345678901234567890}'
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}}


def tool(name: str = "weather", **function: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": PARAMETERS} | function}


def called(*ids: str, **fields: Any) -> dict[str, Any]:
    calls = [
        {"id": i, "type": "function", "function": {"name": "weather", "arguments": "{}"}}
        for i in ids
    ]
    return {"role": "assistant", "tool_calls": calls} | fields


def result(of: str, **fields: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": of, "content": "sunny"} | fields


def create(client: openai.OpenAI, *messages: dict[str, Any], **fields: Any) -> Any:
    request: dict[str, Any] = {"model": MODEL, "messages": list(messages) or [USER], **fields}
    return client.chat.completions.create(**request)
