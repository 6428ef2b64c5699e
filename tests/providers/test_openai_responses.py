"""OpenAI Responses, spoken with the client `openai`."""

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
from tests.providers.server import ProviderServer, serving

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


# --- refusals ---

REFUSED_ITEMS: dict[str, tuple[Items, str, str | None]] = {
    "a call without output": (
        [USER, call("call_1")],
        "No tool output found for function call call_1.",
        "input",
    ),
    "a call of several without output": (
        [USER, call("call_1"), call("call_2"), output("call_2")],
        "No tool output found for function call call_1.",
        "input",
    ),
    "an output without call": (
        [USER, output("call_1")],
        "No tool call found for function call output with call_id call_1.",
        "input",
    ),
    "an output before its call": (
        [USER, output("call_1"), call("call_1")],
        "No tool call found for function call output with call_id call_1.",
        "input",
    ),
    "two outputs of one call": (
        [USER, call("call_1"), output("call_1"), output("call_1")],
        "Duplicate function call output with call_id 'call_1'",
        "input",
    ),
    "two calls of one id": (
        [USER, call("call_1"), call("call_1"), output("call_1")],
        "Duplicate call_id: 'call_1'",
        "input",
    ),
    "two items of one id": (
        [said("Hi", id="msg_1"), said("Hi", id="msg_1"), USER],
        "Duplicate item found with id msg_1. Remove duplicate items from your input and try again.",
        "input",
    ),
    "the id of a call in place of the item's": (
        [USER, call("call_1", id="call_1"), output("call_1")],
        r"Invalid 'input\[1\].id': 'call_1'. Expected an ID that begins with 'fc'.",
        "input[1].id",
    ),
    "a foreign id of a message": (
        [USER, said("Hi", id="item_1")],
        "Expected an ID that begins with 'msg'.",
        "input[1].id",
    ),
    "a foreign id of reasoning": (
        [USER, {"type": "reasoning", "id": "th_1", "summary": []}, said("Hi")],
        "Expected an ID that begins with 'rs'.",
        "input[1].id",
    ),
    "an id with other characters": (
        [USER, said("Hi", id="msg.1")],
        "Expected an ID that contains letters, numbers, underscores, or dashes",
        "input[1].id",
    ),
    "an id that is too long": (
        [USER, call("c" * 65), output("c" * 65)],
        "Expected a string with maximum length 64, but got a string with length 65",
        "input[1].call_id",
    ),
    "an empty id of a call": (
        [USER, call("")],
        r"Invalid 'input\[1\].call_id': empty string",
        "input[1].call_id",
    ),
    "reasoning that was not stored": (
        [USER, {"type": "reasoning", "id": "rs_1", "summary": []}, said("Hi")],
        "Item with id 'rs_1' not found. Items are not persisted when `store` is set to false.",
        "input",
    ),
    "a reference to what was not stored": (
        [USER, {"type": "item_reference", "id": "msg_1"}],
        "Item with id 'msg_1' not found.",
        "input",
    ),
    "encrypted content of elsewhere": (
        [
            USER,
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAAA=="},
            said("Hi"),
        ],
        "The encrypted content gAAA...AA== could not be verified.",
        None,
    ),
    "arguments that are no string": (
        [USER, call("call_1", arguments={}), output("call_1")],
        r"Invalid type for 'input\[1\].arguments': expected a string, but got an object",
        "input[1].arguments",
    ),
    "an output that is no text": (
        [USER, call("call_1"), output("call_1", output={"sun": 1})],
        r"Invalid type for 'input\[2\].output': expected an array, but got an object",
        "input[2].output",
    ),
    "input text of the assistant": (
        [USER, {"role": "assistant", "content": [{"type": "input_text", "text": "Hi"}]}],
        "Invalid value: 'input_text'. Supported values are: 'output_text', 'refusal'",
        "input[1].content[0]",
    ),
    "output text of the user": (
        [{"role": "user", "content": [{"type": "output_text", "text": "Hi"}]}],
        "Invalid value: 'output_text'. Supported values are: 'input_text'",
        "input[0].content[0]",
    ),
    "an unknown kind of item": (
        [USER, {"type": "tool_result", "id": "x"}],
        "Invalid value: 'tool_result'. Supported values are:",
        "input[1]",
    ),
    "an unknown role": (
        [{"role": "tool", "content": "Hi"}],
        "Invalid value: 'tool'. Supported values are: 'user', 'system' or 'developer'",
        "input[0].role",
    ),
    "an unknown field": (
        [USER | {"name": "Ann"}],
        r"Unknown parameter: 'input\[0\].name'",
        "input[0].name",
    ),
}


@pytest.mark.parametrize("case", REFUSED_ITEMS)
def test_items_that_are_refused(
    server: ProviderServer, openai_client: openai.OpenAI, case: str
) -> None:
    items, message, param = REFUSED_ITEMS[case]
    with pytest.raises(openai.APIStatusError, match=message) as raised:
        create(openai_client, *items)
    assert raised.value.param == param
    assert raised.value.status_code == (404 if "not found." in message else 400)
    assert len(server.refused) == 1


def test_an_item_without_its_reasoning_is_refused(
    server: ProviderServer, openai_client: openai.OpenAI
) -> None:
    server.script = in_turn(STEPS)
    [reasoning, made] = items_of(create(openai_client))
    message = (
        f"Item '{made['id']}' of type 'function_call' was provided without its required "
        f"'reasoning' item: '{reasoning['id']}'."
    )
    with pytest.raises(openai.BadRequestError, match=message):
        create(openai_client, USER, made, output("call_1"))


def test_reasoning_without_its_item_is_refused(
    server: ProviderServer, openai_client: openai.OpenAI
) -> None:
    server.script = in_turn(STEPS)
    [reasoning, _] = items_of(create(openai_client))
    message = (
        f"Item '{reasoning['id']}' of type 'reasoning' was provided without its required "
        "following item."
    )
    for rest in ([], [said("Sunny.")], [call("call_2"), output("call_2")]):
        with pytest.raises(openai.BadRequestError, match=message):
            create(openai_client, USER, reasoning, *rest)


def test_reasoning_alone_cannot_be_given_back(
    server: ProviderServer, openai_client: openai.OpenAI
) -> None:
    server.script = in_turn(answer(Reasoning("Hm."), finish="length"))
    [reasoning] = items_of(create(openai_client))
    with pytest.raises(openai.BadRequestError, match="without its required following item"):
        create(openai_client, USER, reasoning, said("Hm"), USER)


def test_a_response_that_was_not_stored_is_not_found(
    server: ProviderServer, openai_client: openai.OpenAI
) -> None:
    server.script = in_turn(answer("Hi"))
    response = create(openai_client, store=False)
    with pytest.raises(openai.BadRequestError, match="not found") as raised:
        create(openai_client, previous_response_id=response.id)
    assert raised.value.code == "previous_response_not_found"
    assert raised.value.param == "previous_response_id"


REFUSED_PARAMETERS: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown parameter": ({"extra_body": {"messages": []}}, "Unknown parameter: 'messages'"),
    "no input": ({"input": []}, "Missing required parameter: 'input'"),
    "an unknown includable": (
        {"include": ["reasoning"]},
        "Invalid value: 'reasoning'. Supported values are: 'file_search_call.results'",
    ),
    "encrypted content of a model that does not reason": (
        {"model": "gpt-4.1", "include": ENCRYPTED},
        "Encrypted content is not supported with this model.",
    ),
    "an effort for a model that does not reason": (
        {"model": "gpt-4.1", "reasoning": {"effort": "low"}},
        "Unsupported parameter: 'reasoning.effort' is not supported with this model.",
    ),
    "a temperature for a reasoning model": (
        {"temperature": 0.5},
        "Unsupported parameter: 'temperature' is not supported with this model.",
    ),
    "too few output tokens": (
        {"max_output_tokens": 1},
        "integer below minimum value. Expected a value >= 16, but got 1 instead",
    ),
    "a tool name out of the pattern": (
        {"tools": [tool("files.read")]},
        r"Invalid 'tools\[0\].name': string does not match pattern",
    ),
    "two tools of one name": ({"tools": [tool(), tool()]}, "Duplicate tool name: 'weather'"),
    "a schema that is open where strict is the default": (
        {"tools": [{"type": "function", "name": "f", "parameters": {"type": "object"}}]},
        "'additionalProperties' is required to be supplied and to be false",
    ),
    "a tool in the form of the other wire": (
        {"tools": [{"type": "function", "function": {"name": "weather"}}]},
        r"Missing required parameter: 'tools\[0\].name'",
    ),
    "a choice of a tool that is not there": (
        {"tool_choice": {"type": "function", "name": "clock"}},
        "Tool choice 'function' not found in 'tools' parameter",
    ),
    "stream options without a stream": (
        {"stream_options": {"include_obfuscation": False}},
        "'stream_options' parameter is only allowed when 'stream' is enabled",
    ),
}


@pytest.mark.parametrize("case", REFUSED_PARAMETERS)
def test_parameters_that_are_refused(openai_client: openai.OpenAI, case: str) -> None:
    fields, message = REFUSED_PARAMETERS[case]
    with pytest.raises(openai.BadRequestError, match=message):
        create(openai_client, USER, **fields)


def test_an_unknown_model_is_not_found(openai_client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match="does not exist"):
        create(openai_client, model="gpt-99")
