"""OpenAI Responses: what is refused, provoked with the client `openai`."""

from typing import Any

import openai
import pytest

from tests.providers.openai_responses_client import (
    ENCRYPTED,
    STEPS,
    USER,
    Items,
    call,
    create,
    items_of,
    output,
    said,
    tool,
)
from tests.providers.script import Reasoning, answer, in_turn
from tests.providers.server import ProviderServer

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
