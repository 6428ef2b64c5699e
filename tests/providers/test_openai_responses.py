"""OpenAI Responses, spoken with the client `openai`."""

from typing import Any

import openai
import pytest

from tests.providers.conftest import DEADLINE
from tests.providers.openai_responses_client import (
    ARGUMENTS,
    ENCRYPTED,
    MODEL,
    STEPS,
    USER,
    create,
    items_of,
    output,
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
from tests.providers.server import ProviderServer, serving

# --- answers ---


def test_text_comes_whole(server: ProviderServer, openai_client: openai.OpenAI) -> None:
    server.script = in_turn(answer("It is sunny.", usage=Usage(30, 7, cached=10, reasoning=2)))
    response = create(openai_client, input="What is the weather?", instructions="Be brief.")
    assert response.output_text == "It is sunny."
    assert response.status == "completed"
    assert (response.usage.input_tokens, response.usage.output_tokens) == (30, 7)
    assert response.usage.input_tokens_details.cached_tokens == 10
    assert response.usage.output_tokens_details.reasoning_tokens == 2
    assert server.refused == []


def test_the_events_of_a_stream_come_in_their_order(
    server: ProviderServer, openai_client: openai.OpenAI
) -> None:
    server.script = in_turn(
        answer(Reasoning("Hm.", chunk=9), "It is sunny.", ToolCall("weather", "{}"))
    )
    events = list(create(openai_client, stream=True, reasoning={"summary": "auto"}))
    assert [event.type.removeprefix("response.") for event in events] == [
        "created",
        "in_progress",
        "output_item.added",
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
        "output_item.done",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
        "completed",
    ]
    assert [event.sequence_number for event in events] == list(range(len(events)))


@pytest.mark.parametrize("stream", [False, True])
def test_tool_calls_come_digit_for_digit(
    server: ProviderServer, openai_client: openai.OpenAI, stream: bool
) -> None:
    """T2: the text of the arguments is the script's own, in pieces or whole."""
    server.script = in_turn(answer("I look.", ToolCall("weather", ARGUMENTS, id="call_1")))
    if stream:
        with openai_client.responses.stream(model=MODEL, input="Hi") as events:
            pieces = [e.delta for e in events if e.type == "response.function_call_arguments.delta"]
            response: Any = events.get_final_response()
        assert "".join(pieces) == ARGUMENTS
    else:
        response = create(openai_client)
    [text, made] = response.output
    assert text.content[0].text == "I look."
    assert (made.name, made.arguments, made.call_id) == ("weather", ARGUMENTS, "call_1")
    assert made.id.startswith("fc_")


def test_reasoning_is_shown_and_encrypted_only_if_asked_for(
    server: ProviderServer, openai_client: openai.OpenAI
) -> None:
    server.script = in_turn(*[answer(Reasoning("Hm."), "Yes.")] * 3)
    [plain, _] = create(openai_client).output
    assert (plain.summary, plain.encrypted_content) == ([], None)
    fields: dict[str, Any] = {"reasoning": {"summary": "auto"}, "include": ENCRYPTED}
    [full, _] = create(openai_client, **fields).output
    assert full.summary[0].text == "Hm."
    assert full.encrypted_content
    [last] = [
        event.response.output[0]
        for event in create(openai_client, stream=True, **fields)
        if event.type == "response.completed"
    ]
    assert (last.summary[0].text, bool(last.encrypted_content)) == ("Hm.", True)


def test_a_script_sees_the_history_and_computes_its_answer(
    server: ProviderServer, openai_client: openai.OpenAI
) -> None:
    server.script = in_turn(
        STEPS, lambda request: answer(f"{request.prompt} {request.results['weather']}!")
    )
    first = create(openai_client)
    response = create(openai_client, USER, *items_of(first), output("call_1"))
    assert response.output_text == "What is the weather in Bern? sunny!"
    assert server.refused == []


def test_a_conversation_goes_on_from_a_stored_response(
    server: ProviderServer, openai_client: openai.OpenAI
) -> None:
    server.script = in_turn(STEPS, lambda request: answer(f"It is {request.results['weather']}."))
    first = create(openai_client)
    response = create(openai_client, output("call_1"), previous_response_id=first.id)
    assert response.output_text == "It is sunny."


def test_reasoning_goes_on_encrypted_without_a_store(
    server: ProviderServer, openai_client: openai.OpenAI
) -> None:
    fields: dict[str, Any] = {"store": False, "include": ENCRYPTED}
    server.script = in_turn(STEPS, answer("Sunny."))
    messages = [USER, *items_of(create(openai_client, **fields)), output("call_1")]
    assert create(openai_client, *messages, **fields).output_text == "Sunny."
    with (
        serving(in_turn(answer("Sunny."))) as other,
        openai.OpenAI(base_url=other.openai_url, api_key=other.api_key) as client,
    ):
        assert create(client, *messages, **fields).output_text == "Sunny."


def test_reasoning_of_another_model_is_withheld(
    server: ProviderServer, openai_client: openai.OpenAI
) -> None:
    server.script = in_turn(STEPS, answer("Sunny."))
    messages = [USER, *items_of(create(openai_client, include=ENCRYPTED)), output("call_1")]
    response = create(openai_client, *messages, model="gpt-5-mini")
    [transformation] = response.input_transformations
    assert (transformation.action, transformation.reason) == ("removed", "model_mismatch")


def test_stored_items_may_be_referred_to(
    server: ProviderServer, openai_client: openai.OpenAI
) -> None:
    server.script = in_turn(STEPS, answer("Sunny."))
    references = [
        {"type": "item_reference", "id": item["id"]} for item in items_of(create(openai_client))
    ]
    assert create(openai_client, USER, *references, output("call_1")).output_text == "Sunny."


@pytest.mark.parametrize(
    ("finish", "reason"), [("length", "max_output_tokens"), ("content_filter", "content_filter")]
)
@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_may_be_cut(
    server: ProviderServer, openai_client: openai.OpenAI, finish: Any, reason: str, stream: bool
) -> None:
    server.script = in_turn(answer("It is", finish=finish))
    created = create(openai_client, stream=stream)
    response = list(created)[-1].response if stream else created
    assert response.status == "incomplete"
    assert response.incomplete_details.reason == reason


# --- failures ---


def test_a_failure_of_the_script_is_the_providers_error(
    server: ProviderServer, openai_client: openai.OpenAI
) -> None:
    server.script = in_turn(Failure("rate_limit", retry_after=3))
    with pytest.raises(openai.RateLimitError) as raised:
        create(openai_client)
    assert raised.value.response.headers["retry-after"] == "3"
    assert server.refused == []


def test_a_failure_within_a_stream_ends_it(
    server: ProviderServer, openai_client: openai.OpenAI
) -> None:
    server.script = in_turn(answer("It is", Failure("server_error")))
    last = list(create(openai_client, stream=True))[-1]
    assert last.type == "response.failed"
    assert last.response.error.code == "server_error"


def test_a_stream_breaks_off(server: ProviderServer, openai_client: openai.OpenAI) -> None:
    server.script = in_turn(answer("It is sunny", BrokenOff()))
    events = create(openai_client, stream=True)
    assert next(events).type == "response.created"
    with pytest.raises(openai.APIConnectionError):
        list(events)


def test_a_client_that_goes_away_is_noticed(
    server: ProviderServer, openai_client: openai.OpenAI
) -> None:
    silence = Silence()
    server.script = in_turn(answer(silence, "late"))
    with create(openai_client, stream=True) as events:
        next(events)
        silence.begun.result(timeout=DEADLINE)
    silence.abandoned.result(timeout=DEADLINE)
