"""Anthropic Messages, spoken with the client `anthropic`: answers, failures, refused messages."""

from typing import Any

import anthropic
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

MODEL = "claude-haiku-4-5"
USER = {"role": "user", "content": "What is the weather in Bern?"}
ARGUMENTS = '{"city": "Bern", "at": 1.50, "n": 12345678901234567890}'
MARK: dict[str, Any] = {"cache_control": {"type": "ephemeral"}}


def tool(name: str = "weather", **fields: Any) -> dict[str, Any]:
    return {"name": name, "input_schema": {"type": "object"}} | fields


def use(of: str, **fields: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": of, "name": "weather", "input": {}} | fields


def result(of: str, **fields: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": of, "content": "sunny"} | fields


def text(of: str, **fields: Any) -> dict[str, Any]:
    return {"type": "text", "text": of} | fields


def says(*content: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(content)}


def user(*content: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(content)}


def create(client: anthropic.Anthropic, *messages: dict[str, Any], **fields: Any) -> Any:
    request: dict[str, Any] = {
        "model": MODEL,
        "max_tokens": 2000,
        "tools": [tool()],
        "messages": list(messages) or [USER],
    }
    return client.messages.create(**(request | fields))


# --- answers ---


def test_text_comes_whole(server: ProviderServer, anthropic_client: anthropic.Anthropic) -> None:
    server.script = in_turn(answer("It is sunny.", usage=Usage(30, 7, cached=10)))
    message = create(anthropic_client)
    assert message.content[0].text == "It is sunny."
    assert message.stop_reason == "end_turn"
    assert (message.usage.input_tokens, message.usage.output_tokens) == (20, 7)
    assert message.usage.cache_read_input_tokens == 10
    assert server.refused == []


def test_the_events_of_a_stream_come_in_their_order(
    server: ProviderServer, anthropic_client: anthropic.Anthropic
) -> None:
    server.script = in_turn(answer("It is sunny.", ToolCall("weather", "{}")))
    events = [event.type for event in create(anthropic_client, stream=True)]
    assert events == [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "content_block_start",
        "content_block_delta",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]


def test_tool_calls_stream_digit_for_digit(
    server: ProviderServer, anthropic_client: anthropic.Anthropic
) -> None:
    """T2: the pieces of the arguments are the script's own text."""
    server.script = in_turn(answer("I look.", ToolCall("weather", ARGUMENTS)))
    pieces = [
        event.delta.partial_json
        for event in create(anthropic_client, stream=True)
        if event.type == "content_block_delta" and event.delta.type == "input_json_delta"
    ]
    assert len(pieces) > 2
    assert "".join(pieces) == ARGUMENTS


def test_tool_calls_come_whole_digit_for_digit(
    server: ProviderServer, anthropic_client: anthropic.Anthropic
) -> None:
    """T2: the arguments stand in the message as the script wrote them."""
    server.script = in_turn(answer(ToolCall("weather", ARGUMENTS), ToolCall("weather", id="t_2")))
    raw = anthropic_client.messages.with_raw_response.create(
        model=MODEL, max_tokens=100, messages=[{"role": "user", "content": "Hi"}]
    )
    assert f'"input": {ARGUMENTS}' in raw.text()
    message = raw.parse()
    assert message.stop_reason == "tool_use"
    assert [block.type for block in message.content] == ["tool_use", "tool_use"]


def test_a_script_sees_the_history_and_computes_its_answer(
    server: ProviderServer, anthropic_client: anthropic.Anthropic
) -> None:
    server.script = in_turn(
        answer(ToolCall("weather", id="call_1")),
        lambda request: answer(f"{request.prompt} {request.results['weather']}!"),
    )
    create(anthropic_client)
    message = create(anthropic_client, USER, says(use("call_1")), user(result("call_1")))
    assert message.content[0].text == "What is the weather in Bern? sunny!"
    assert server.refused == []


@pytest.mark.parametrize(
    ("finish", "reason"), [("length", "max_tokens"), ("content_filter", "refusal")]
)
def test_an_answer_may_be_cut(
    server: ProviderServer, anthropic_client: anthropic.Anthropic, finish: Any, reason: str
) -> None:
    server.script = in_turn(answer("It is", finish=finish))
    assert create(anthropic_client).stop_reason == reason


# --- failures ---


@pytest.mark.parametrize(
    ("kind", "status", "type"),
    [
        ("authentication", 401, "authentication_error"),
        ("permission", 403, "permission_error"),
        ("rate_limit", 429, "rate_limit_error"),
        ("quota", 402, "billing_error"),
        ("context_too_long", 400, "invalid_request_error"),
        ("content_filter", 400, "invalid_request_error"),
        ("server_error", 500, "api_error"),
        ("overloaded", 529, "overloaded_error"),
    ],
)
def test_a_failure_of_the_script_is_the_providers_error(
    server: ProviderServer,
    anthropic_client: anthropic.Anthropic,
    kind: Any,
    status: int,
    type: str,
) -> None:
    server.script = in_turn(Failure(kind, retry_after=3))
    with pytest.raises(anthropic.APIStatusError) as raised:
        create(anthropic_client)
    assert (raised.value.status_code, raised.value.type) == (status, type)
    assert raised.value.response.headers["retry-after"] == "3"
    assert server.refused == []


def test_a_failure_within_a_stream_ends_it(
    server: ProviderServer, anthropic_client: anthropic.Anthropic
) -> None:
    server.script = in_turn(answer("It is", Failure("overloaded")))
    stream = create(anthropic_client, stream=True)
    with pytest.raises(anthropic.APIStatusError) as raised:
        list(stream)
    assert raised.value.type == "overloaded_error"


def test_a_stream_breaks_off(server: ProviderServer, anthropic_client: anthropic.Anthropic) -> None:
    server.script = in_turn(answer("It is sunny", BrokenOff()))
    events = create(anthropic_client, stream=True)
    assert [next(events).type for _ in range(3)][-1] == "content_block_delta"
    # The client lets the error of its transport through.
    with pytest.raises(Exception, match="peer closed connection"):
        list(events)


def test_a_client_that_goes_away_is_noticed(
    server: ProviderServer, anthropic_client: anthropic.Anthropic
) -> None:
    silence = Silence()
    server.script = in_turn(answer(silence, "late"))
    with create(anthropic_client, stream=True) as events:
        next(events)
        silence.begun.result(timeout=DEADLINE)
    silence.abandoned.result(timeout=DEADLINE)


# --- refusals ---

REFUSED_MESSAGES: dict[str, tuple[list[dict[str, Any]], str]] = {
    "a call without result": (
        [USER, says(use("t1")), user(text("And?"))],
        r"messages\.1: `tool_use` ids were found without `tool_result` .* immediately after: t1",
    ),
    "a call of several without result": (
        [USER, says(use("t1"), use("t2")), user(result("t1"))],
        "immediately after: t2",
    ),
    "a call at the end": ([USER, says(use("t1"))], "immediately after: t1"),
    "text before the result": (
        [USER, says(use("t1")), user(text("Here:"), result("t1"))],
        "immediately after: t1",
    ),
    "text behind the call": (
        [USER, says(use("t1"), text("I look.")), user(result("t1"))],
        "immediately after: t1",
    ),
    "a result without call": (
        [user(result("t1"))],
        r"messages\.0\.content\.0: unexpected `tool_use_id` found in `tool_result` blocks: t1",
    ),
    "a result of a call that was answered before": (
        [USER, says(use("t1")), user(result("t1")), says(text("Yes.")), user(result("t1"))],
        r"messages\.4\.content\.0: unexpected `tool_use_id` found in `tool_result` blocks: t1",
    ),
    "two results of one call": (
        [USER, says(use("t1")), user(result("t1"), result("t1"))],
        "each tool_use must have a single result. Found multiple `tool_result` blocks with id: t1",
    ),
    "an id that came before": (
        [USER, says(use("t1")), user(result("t1")), says(use("t1")), user(result("t1"))],
        r"messages\.3\.content\.0: `tool_use` ids must be unique",
    ),
    "an id out of the pattern": (
        [USER, says(use("t.1")), user(result("t.1"))],
        r"messages\.1\.content\.0\.tool_use\.id: String should match pattern '\^\[a-zA-Z0-9_-\]",
    ),
    "a name of a tool out of the pattern": (
        [USER, says(use("t1", name="files.read")), user(result("t1"))],
        r"messages\.1\.content\.0\.tool_use\.name: String should match pattern",
    ),
    "an input that is no object": (
        [USER, says(use("t1", input="{}")), user(result("t1"))],
        r"messages\.1\.content\.0\.tool_use\.input: Input should be a valid dictionary",
    ),
    "a call by the user": (
        [user(use("t1"))],
        "`tool_use` blocks can only be in `assistant` messages",
    ),
    "a result by the assistant": (
        [USER, says(result("t1")), USER],
        "`tool_result` blocks can only be in `user` messages",
    ),
    "an assistant that begins": (
        [says(text("Hello")), USER],
        'first message must use the "user" role',
    ),
    "a system message between a call and its result": (
        [USER, says(use("t1")), {"role": "system", "content": "Hm"}, user(result("t1"))],
        r"messages\.2: a `system` message must follow a `user` message",
    ),
    "an unknown role": (
        [{"role": "tool", "content": "sunny"}],
        r"messages\.0\.role: Input should be 'user', 'assistant' or 'system'",
    ),
    "an empty text": ([user(text(""))], "text content blocks must be non-empty"),
    "an empty string": ([{"role": "user", "content": ""}], "text content blocks must be non-empty"),
    "a blank text": ([user(text(" \n"))], "text content blocks must contain non-whitespace text"),
    "an empty text to be cached": (
        [user(text("", **MARK))],
        "cache_control cannot be set for empty text blocks",
    ),
    "no content": ([user(), says(text("Hi")), USER], "all messages must have non-empty content"),
    "no messages": ([], "at least one message is required"),
    "a last assistant message that ends in a space": (
        [USER, says(text("It is "))],
        "final assistant content cannot end with trailing whitespace",
    ),
    "a cache marker on thinking": (
        [USER, says({"type": "thinking", "thinking": "hm", "signature": "s"} | MARK), USER],
        r"messages\.1\.content\.0\.thinking\.cache_control: Extra inputs are not permitted",
    ),
    "an unknown field of a message": (
        [USER | {"name": "Ann"}],
        r"messages\.0\.name: Extra inputs are not permitted",
    ),
    "an unknown kind of block": (
        [user({"type": "output_text", "text": "Hi"})],
        r"messages\.0\.content\.0: Input tag 'output_text' found using 'type' does not match",
    ),
}


@pytest.mark.parametrize("case", REFUSED_MESSAGES)
def test_messages_that_are_refused(
    server: ProviderServer, anthropic_client: anthropic.Anthropic, case: str
) -> None:
    messages, message = REFUSED_MESSAGES[case]
    with pytest.raises(anthropic.BadRequestError, match=message) as raised:
        create(anthropic_client, messages=messages)
    assert raised.value.type == "invalid_request_error"
    assert len(server.refused) == 1


REFUSED_PARAMETERS: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown parameter": (
        {"extra_body": {"reasoning": {}}},
        "reasoning: Extra inputs are not permitted",
    ),
    "no max_tokens": ({"max_tokens": anthropic.omit}, "max_tokens: Field required"),
    "an empty system prompt": (
        {"system": [text("")]},
        "system: text content blocks must be non-empty",
    ),
    "five cache markers": (
        {
            "system": [text("Be kind.", **MARK)],
            "tools": [tool(**MARK)],
            "messages": [user(*[text(f"{n}", **MARK) for n in range(3)])],
        },
        "A maximum of 4 blocks with cache_control may be provided. Found 5.",
    ),
    "a tool name out of the pattern": (
        {"tools": [tool("files.read")]},
        r"tools\.0\.custom\.name: String should match pattern '\^\[a-zA-Z0-9_-\]\{1,128\}\$'",
    ),
    "a tool name that is too long": (
        {"tools": [tool("t" * 129)]},
        r"tools\.0\.custom\.name: String should match pattern",
    ),
    "two tools of one name": ({"tools": [tool(), tool()]}, "tools: Tool names must be unique."),
    "a schema of no object": (
        {"tools": [tool(input_schema={"type": "string"})]},
        r"tools\.0\.custom\.input_schema\.type: Input should be 'object'",
    ),
    "a schema without type": (
        {"tools": [tool(input_schema={})]},
        r"tools\.0\.custom\.input_schema\.type: Field required",
    ),
    "a choice without tools": (
        {"tools": [], "tool_choice": {"type": "auto"}},
        "tool_choice may only be specified while providing tools",
    ),
    "a choice of a tool that is not there": (
        {"tool_choice": {"type": "tool", "name": "clock"}},
        "Tool 'clock' not found in provided tools",
    ),
    "a prefill for a model without": (
        {"model": "claude-opus-4-6", "messages": [USER, says(text("It is"))]},
        "does not support assistant message prefill",
    ),
}


@pytest.mark.parametrize("case", REFUSED_PARAMETERS)
def test_parameters_that_are_refused(anthropic_client: anthropic.Anthropic, case: str) -> None:
    fields, message = REFUSED_PARAMETERS[case]
    with pytest.raises(anthropic.BadRequestError, match=message):
        create(anthropic_client, **({"messages": [USER]} | fields))


def test_consecutive_messages_of_one_role_are_one_turn(
    server: ProviderServer, anthropic_client: anthropic.Anthropic
) -> None:
    server.script = in_turn(answer("Yes."))
    calls = [says(text("I look.")), says(use("t1"), use("t2"))]
    results = [user(result("t1")), user(result("t2")), user(text("So?"))]
    assert create(anthropic_client, USER, *calls, *results).content[0].text == "Yes."


def test_an_unknown_model_is_not_found(anthropic_client: anthropic.Anthropic) -> None:
    with pytest.raises(anthropic.NotFoundError, match="model: claude-99"):
        create(anthropic_client, model="claude-99")


def test_a_wrong_key_is_refused(anthropic_client: anthropic.Anthropic) -> None:
    with pytest.raises(anthropic.AuthenticationError, match="invalid x-api-key"):
        create(anthropic_client, extra_headers={"x-api-key": "sk-wrong"})


def test_reasoning_is_left_out_where_thinking_is_off(
    server: ProviderServer, anthropic_client: anthropic.Anthropic
) -> None:
    server.script = in_turn(answer(Reasoning("hm"), "Yes."))
    assert [block.type for block in create(anthropic_client).content] == ["text"]
