"""OpenAI Chat Completions, spoken with the client `openai`."""

from typing import Any

import openai
import pytest

from tests.providers.conftest import DEADLINE
from tests.providers.script import (
    BrokenOff,
    Failure,
    Reasoning,
    Silence,
    ToolCall,
    Usage,
    answer,
    in_turn,
)
from tests.providers.server import ProviderServer

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


# --- answers ---


def test_text_comes_whole(server: ProviderServer, openai_client: openai.OpenAI) -> None:
    server.script = in_turn(answer("It is sunny.", usage=Usage(30, 7, cached=10, reasoning=2)))
    completion = create(openai_client)
    assert completion.choices[0].message.content == "It is sunny."
    assert completion.choices[0].finish_reason == "stop"
    assert (completion.usage.prompt_tokens, completion.usage.completion_tokens) == (30, 7)
    assert completion.usage.prompt_tokens_details.cached_tokens == 10
    assert completion.usage.completion_tokens_details.reasoning_tokens == 2
    assert server.refused == []


def test_text_comes_in_pieces_with_usage_at_the_end(
    server: ProviderServer, openai_client: openai.OpenAI
) -> None:
    server.script = in_turn(answer(Reasoning("hm"), "It is sunny in Bern today."))
    with openai_client.chat.completions.stream(
        model=MODEL,
        messages=[{"role": "user", "content": "Hi"}],
        stream_options={"include_usage": True},
    ) as stream:
        pieces = [event.delta for event in stream if event.type == "content.delta"]
        completion = stream.get_final_completion()
    assert len(pieces) > 1
    assert "".join(pieces) == "It is sunny in Bern today."
    assert completion.choices[0].message.content == "It is sunny in Bern today."
    assert completion.usage is not None
    assert completion.usage.total_tokens == 120


def test_usage_is_not_sent_unless_asked_for(
    server: ProviderServer, openai_client: openai.OpenAI
) -> None:
    server.script = in_turn(answer("Yes."))
    chunks = list(create(openai_client, stream=True))
    assert all(chunk.usage is None and chunk.choices for chunk in chunks)


@pytest.mark.parametrize("stream", [False, True])
def test_tool_calls_come_digit_for_digit(
    server: ProviderServer, openai_client: openai.OpenAI, stream: bool
) -> None:
    """T2: the text of the arguments is the script's own, in pieces or whole."""
    server.script = in_turn(
        answer("I look.", ToolCall("weather", ARGUMENTS), ToolCall("clock", "{}", id="call_2"))
    )
    tools = [tool(), tool("clock")]
    if stream:
        with openai_client.chat.completions.stream(
            model=MODEL,
            messages=[{"role": "user", "content": "Hi"}],
            tools=tools,  # type: ignore[arg-type]
        ) as events:
            choice = events.get_final_completion().choices[0]
    else:
        choice = create(openai_client, tools=tools).choices[0]
    calls = choice.message.tool_calls
    assert calls is not None
    assert [call.function.arguments for call in calls] == [ARGUMENTS, "{}"]
    assert [call.function.name for call in calls] == ["weather", "clock"]
    assert calls[1].id == "call_2"
    assert choice.finish_reason == "tool_calls"


def test_a_script_sees_the_history_and_computes_its_answer(
    server: ProviderServer, openai_client: openai.OpenAI
) -> None:
    server.script = in_turn(
        answer(ToolCall("weather", id="call_1")),
        lambda request: answer(f"{request.prompt} {request.results['weather']}!"),
    )
    create(openai_client, tools=[tool()])
    completion = create(openai_client, USER, called("call_1"), result("call_1"), tools=[tool()])
    assert completion.choices[0].message.content == "What is the weather in Bern? sunny!"
    assert server.refused == []


@pytest.mark.parametrize("finish", ["length", "content_filter"])
def test_an_answer_may_be_cut(
    server: ProviderServer, openai_client: openai.OpenAI, finish: Any
) -> None:
    server.script = in_turn(answer("It is", finish=finish))
    assert create(openai_client).choices[0].finish_reason == finish


# --- failures ---


@pytest.mark.parametrize(
    ("kind", "error", "code"),
    [
        ("authentication", openai.AuthenticationError, "invalid_api_key"),
        ("permission", openai.PermissionDeniedError, "unsupported_country_region_territory"),
        ("rate_limit", openai.RateLimitError, "rate_limit_exceeded"),
        ("quota", openai.RateLimitError, "insufficient_quota"),
        ("context_too_long", openai.BadRequestError, "context_length_exceeded"),
        ("content_filter", openai.BadRequestError, "invalid_prompt"),
        ("server_error", openai.InternalServerError, "server_error"),
        ("overloaded", openai.InternalServerError, "server_is_overloaded"),
    ],
)
def test_a_failure_of_the_script_is_the_providers_error(
    server: ProviderServer,
    openai_client: openai.OpenAI,
    kind: Any,
    error: type[openai.APIStatusError],
    code: str,
) -> None:
    server.script = in_turn(Failure(kind, retry_after=3))
    with pytest.raises(error) as raised:
        create(openai_client)
    assert raised.value.code == code
    if kind == "rate_limit":
        assert raised.value.response.headers["retry-after"] == "3"
    assert server.refused == []


def test_a_failure_within_a_stream_ends_it(
    server: ProviderServer, openai_client: openai.OpenAI
) -> None:
    server.script = in_turn(answer("It is", Failure("server_error")))
    stream = create(openai_client, stream=True)
    with pytest.raises(openai.APIError, match="had an error"):
        list(stream)


def test_a_stream_breaks_off(server: ProviderServer, openai_client: openai.OpenAI) -> None:
    server.script = in_turn(answer("It is sunny", BrokenOff()))
    chunks = create(openai_client, stream=True)
    assert [next(chunks).choices[0].delta.content for _ in range(2)] == ["", "It is sunny"]
    with pytest.raises(openai.APIConnectionError):
        next(chunks)


def test_a_silent_model_waits_for_its_end(
    server: ProviderServer, openai_client: openai.OpenAI
) -> None:
    silence = Silence()
    server.script = in_turn(answer("It is", silence, " sunny"))
    text = ""
    for chunk in create(openai_client, stream=True):
        text += chunk.choices[0].delta.content or ""
        if text == "It is":
            silence.begun.result(timeout=DEADLINE)
            silence.end()
    assert text == "It is sunny"


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_goes_away_is_noticed(
    server: ProviderServer, openai_client: openai.OpenAI, stream: bool
) -> None:
    silence = Silence()
    server.script = in_turn(answer(silence, "late"))
    with pytest.raises(openai.APITimeoutError):
        list(create(openai_client, stream=stream, timeout=0.2))
    silence.abandoned.result(timeout=DEADLINE)


# --- refusals ---

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
