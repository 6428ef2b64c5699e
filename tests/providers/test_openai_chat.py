"""OpenAI Chat Completions, spoken with the client `openai`."""

from typing import Any

import openai
import pytest

from tests.providers.conftest import DEADLINE
from tests.providers.openai_chat_client import (
    ARGUMENTS,
    MODEL,
    USER,
    called,
    create,
    result,
    tool,
)
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
    tools: Any = [tool(), tool("clock")]
    if stream:
        with openai_client.chat.completions.stream(
            model=MODEL,
            messages=[{"role": "user", "content": "Hi"}],
            tools=tools,
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
