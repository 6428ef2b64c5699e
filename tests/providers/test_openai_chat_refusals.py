"""OpenAI Chat Completions: what is refused, provoked with the client `openai`."""

from typing import Any

import openai
import pytest

from tests.providers.openai_chat_client import (
    PARAMETERS,
    USER,
    called,
    create,
    result,
    tool,
)
from tests.providers.server import ProviderServer

REFUSED_MESSAGES: dict[str, tuple[list[dict[str, Any]], str, str | None]] = {
    "a call without result": (
        [USER, called("call_1")],
        "must be followed by tool messages .* did not have response messages: call_1",
        "messages",
    ),
    "a call of several without result": (
        [USER, called("call_1", "call_2"), result("call_1"), USER],
        "did not have response messages: call_2",
        "messages",
    ),
    "a result that is not directly behind its call": (
        [USER, called("call_1"), USER, result("call_1")],
        "did not have response messages: call_1",
        "messages",
    ),
    "a result without call": (
        [USER, result("call_1")],
        "messages with role 'tool' must be a response to a preceeding message",
        "messages.[1].role",
    ),
    "a result of an unknown call": (
        [USER, called("call_1"), result("call_9")],
        "'tool_call_id' of 'call_9' not found in 'tool_calls' of previous message",
        "messages.[2].tool_call_id",
    ),
    "two results of one call": (
        [USER, called("call_1"), result("call_1"), result("call_1")],
        r"Duplicate value for 'tool_call_id' of 'call_1', in messages\[2\] and messages\[3\]",
        "messages.[3].tool_call_id",
    ),
    "two calls of one id": (
        [USER, called("call_1", "call_1"), result("call_1")],
        "Duplicate value for 'id' of 'call_1'",
        "messages.[1].tool_calls",
    ),
    "arguments that are no string": (
        [
            USER,
            {
                "role": "assistant",
                "tool_calls": [
                    {"id": "c", "type": "function", "function": {"name": "f", "arguments": {}}}
                ],
            },
        ],
        r"tool_calls\[0\].function.arguments': expected a string, but got an object",
        "messages[1].tool_calls[0].function.arguments",
    ),
    "an empty list of calls": (
        [USER, {"role": "assistant", "content": "Hi", "tool_calls": []}],
        r"Invalid 'messages\[1\].tool_calls': empty array",
        "messages[1].tool_calls",
    ),
    "an id that is too long": (
        [USER, called("c" * 41), result("c" * 41)],
        "Expected a string with maximum length 40, but got a string with length 41",
        "messages[1].tool_calls[0].id",
    ),
    "no content of a user": (
        [{"role": "user", "content": None}],
        "Invalid value for 'content': expected a string, got null.",
        "messages.[0].content",
    ),
    "no content of an assistant without calls": (
        [USER, {"role": "assistant", "content": None}],
        "Invalid value for 'content': expected a string, got null.",
        "messages.[1].content",
    ),
    "a message without content": (
        [{"role": "user"}],
        r"Missing required parameter: 'messages\[0\].content'",
        "messages[0].content",
    ),
    "an unknown role": (
        [{"role": "robot", "content": "Hi"}],
        "Invalid value: 'robot'. Supported values are: 'system', 'developer', 'user'",
        "messages[0]",
    ),
    "an image as the result of a tool": (
        [
            USER,
            called("c"),
            result("c", content=[{"type": "image_url", "image_url": {"url": "x"}}]),
        ],
        "Supported values are: 'text'",
        "messages[2].content[0].type",
    ),
    "an unknown field of a message": (
        [USER, {"role": "assistant", "content": "Hi", "reasoning_content": "hm"}],
        r"Unknown parameter: 'messages\[1\].reasoning_content'",
        "messages[1].reasoning_content",
    ),
    "a name in a result": (
        [USER, called("c"), result("c", name="weather")],
        r"Unknown parameter: 'messages\[2\].name'",
        "messages[2].name",
    ),
}


@pytest.mark.parametrize("case", REFUSED_MESSAGES)
def test_messages_that_are_refused(
    server: ProviderServer, openai_client: openai.OpenAI, case: str
) -> None:
    messages, message, param = REFUSED_MESSAGES[case]
    with pytest.raises(openai.BadRequestError, match=message) as raised:
        create(openai_client, *messages, tools=[tool()])
    assert raised.value.param == param
    assert raised.value.type == "invalid_request_error"
    assert len(server.refused) == 1


REFUSED_PARAMETERS: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown parameter": ({"extra_body": {"thinking": True}}, "Unknown parameter: 'thinking'"),
    "no messages": ({"messages": []}, "Invalid 'messages': empty array"),
    "stream options without a stream": (
        {"stream_options": {"include_usage": True}},
        "'stream_options' parameter is only allowed when 'stream' is enabled",
    ),
    "a tool choice without tools": (
        {"tool_choice": "auto"},
        "'tool_choice' is only allowed when 'tools' are specified",
    ),
    "parallel calls without tools": (
        {"parallel_tool_calls": False},
        "'parallel_tool_calls' is only allowed when 'tools' are specified",
    ),
    "an empty list of tools": ({"tools": []}, "Invalid 'tools': empty array"),
    "too many tools": (
        {"tools": [tool(f"t{n}") for n in range(129)]},
        "maximum length 128, but got an array with length 129",
    ),
    "a tool name out of the pattern": (
        {"tools": [tool("files.read")]},
        r"Invalid 'tools\[0\].function.name': string does not match pattern",
    ),
    "a tool name that is too long": (
        {"tools": [tool("t" * 65)]},
        r"Invalid 'tools\[0\].function.name': string too long",
    ),
    "two tools of one name": ({"tools": [tool(), tool()]}, "Duplicate tool name: 'weather'"),
    "a schema of no object": (
        {"tools": [tool(parameters={"type": "string"})]},
        "Invalid schema for function 'weather': schema must be a JSON Schema of 'type: \"object\"'",
    ),
    "a strict schema that is open": (
        {"tools": [tool(strict=True)]},
        "'additionalProperties' is required to be supplied and to be false",
    ),
    "a strict schema with an optional property": (
        {"tools": [tool(strict=True, parameters=PARAMETERS | {"additionalProperties": False})]},
        "'required' is required to be supplied .* Missing 'city'",
    ),
    "several choices": ({"n": 2}, "answers with one choice only"),
    "a choice of a tool that is not there": (
        {
            "tools": [tool()],
            "tool_choice": {"type": "function", "function": {"name": "clock"}},
        },
        "not found in 'tools' parameter: 'clock'",
    ),
    "max_tokens for a reasoning model": (
        {"model": "gpt-5", "max_tokens": 10},
        "'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead",
    ),
    "a temperature for a reasoning model": (
        {"model": "gpt-5", "temperature": 0.5},
        "'temperature' does not support 0.5 with this model",
    ),
    "an effort for a model that does not reason": (
        {"reasoning_effort": "low"},
        "Unrecognized request argument supplied: reasoning_effort",
    ),
}


@pytest.mark.parametrize("case", REFUSED_PARAMETERS)
def test_parameters_that_are_refused(openai_client: openai.OpenAI, case: str) -> None:
    fields, message = REFUSED_PARAMETERS[case]
    with pytest.raises(openai.BadRequestError, match=message):
        create(openai_client, USER, **fields)


def test_an_unknown_model_is_not_found(openai_client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match="does not exist") as raised:
        create(openai_client, model="gpt-99")
    assert raised.value.code == "model_not_found"


@pytest.mark.parametrize("header", ["Bearer sk-wrong", ""])
def test_a_wrong_key_is_refused(openai_client: openai.OpenAI, header: str) -> None:
    with pytest.raises(openai.AuthenticationError):
        create(openai_client, extra_headers={"Authorization": header})


def test_a_request_after_the_scripts_end_is_refused_by_name(
    server: ProviderServer, openai_client: openai.OpenAI
) -> None:
    with pytest.raises(openai.BadRequestError, match="script of the fake provider has ended"):
        create(openai_client)
    assert len(server.refused) == 1
