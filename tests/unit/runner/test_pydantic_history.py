"""Histories as messages of Pydantic AI, and what of a provider's state comes back (T4)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest
from pydantic_ai.messages import (
    CompactionPart,
    DocumentUrl,
    ImageUrl,
    ModelRequest,
    ModelResponse,
    ModelResponsePart,
    NativeToolCallPart,
    NativeToolReturnPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from runner_service.agents.protocol import Turn
from runner_service.pairing import pair
from runner_service.pydantic_ai.history import BEGINNING, History, history_of
from runner_service.pydantic_ai.provider_state import MAX_STATE_BYTES, ModelId, restored, state_of
from turngate.v1 import message_pb2, session_pb2

Message = message_pb2.Message
Part = message_pb2.Part
MODEL = ModelId("anthropic", "claude")
PROVIDER = message_pb2.TOOL_EXECUTOR_PROVIDER


def text(value: str) -> Part:
    return Part(text=message_pb2.TextPart(text=value))


def reasoning(value: str) -> Part:
    return Part(reasoning=message_pb2.ReasoningPart(text=value))


def call(call_id: str, arguments: str = "{}", provider_call_id: str = "") -> Part:
    return Part(
        tool_call=message_pb2.ToolCall(
            call_id=call_id,
            name="t",
            arguments_json=arguments,
            provider_call_id=provider_call_id,
            executor=message_pb2.TOOL_EXECUTOR_SERVER,
        )
    )


def said(*parts: Part, state: message_pb2.ProviderState | None = None) -> Message:
    return Message(role=message_pb2.ROLE_ASSISTANT, parts=parts, provider_state=state)


def asked(*parts: Part) -> Message:
    return Message(role=message_pb2.ROLE_USER, parts=parts or [text("go")])


def shown(
    messages: Sequence[Message], model: ModelId = MODEL, *, whole: bool = True, **results: str
) -> History:
    outcomes = {
        call_id: message_pb2.ToolResult(
            call_id=call_id, output_json=output, kind=message_pb2.RESULT_KIND_TOOL
        )
        for call_id, output in results.items()
    }
    history = pair(messages, 0, outcomes)
    turn = Turn(
        session_id="s",
        run_id="r",
        attempt=1,
        tenant_id="",
        principal="",
        history=history.messages,
        turn_start=history.turn_start,
        starts_with_branch=whole,
        tools={},
        approval_policy=session_pb2.ApprovalPolicy(),
        trace_context=message_pb2.TraceContext(),
        cancelled=asyncio.Event(),
    )
    return history_of(turn, model)


def state(*parts: ModelResponsePart, skipped: int = 0) -> message_pb2.ProviderState:
    made = state_of(
        ModelResponse(parts=list(parts), provider_name="anthropic"), MODEL, skipped=skipped
    )
    assert made is not None
    return made


@pytest.mark.parametrize(
    "output", ['{"b":1.0,"a":1e2}', "[12345678901234567890]", " 1.50 ", "null"]
)
def test_outputs_and_arguments_are_shown_digit_for_digit(output: str) -> None:
    """T2."""
    history = shown([asked(), said(call("c1", '{"n": 1.10000000000000000001}'))], c1=output)
    made = history.messages[1].parts[0]
    assert isinstance(made, ToolCallPart)
    assert made.args_as_json_str() == '{"n": 1.10000000000000000001}'
    returned = history.messages[2].parts[0]
    assert isinstance(returned, ToolReturnPart)
    assert returned.model_response_str() == output


def test_a_string_is_shown_as_the_text_that_it_is() -> None:
    history = shown([asked(), said(call("c1"))], c1='"a \\"b\\""')
    returned = history.messages[2].parts[0]
    assert isinstance(returned, ToolReturnPart)
    assert returned.model_response_str() == 'a "b"'


def test_files_and_data_of_a_user() -> None:
    """T1."""
    picture = message_pb2.FilePart(uri="https://x.test/a", media_type="image/png")
    paper = message_pb2.FilePart(uri="https://x.test/b", media_type="application/pdf")
    local = message_pb2.FilePart(uri="file:///b", name="b.txt", media_type="text/plain")
    data = message_pb2.DataPart(kind="form", json='{"n":1.0}')
    history = shown(
        [
            asked(
                text("see"), Part(file=picture), Part(file=paper), Part(file=local), Part(data=data)
            )
        ]
    )
    (prompt,) = history.messages[0].parts
    assert isinstance(prompt, UserPromptPart)
    assert list(prompt.content) == [
        "see",
        ImageUrl("https://x.test/a", media_type="image/png"),
        DocumentUrl("https://x.test/b", media_type="application/pdf"),
        "[file: b.txt (text/plain)]",
        '[data: form] {"n":1.0}',
    ]


def test_a_trimmed_history_begins_with_a_user() -> None:
    """X6: what was cut in the middle of an older turn is left out."""
    history = shown([said(text("old")), asked(text("new"))], whole=False)
    assert [type(message) for message in history.messages] == [ModelRequest]


def test_a_greeting_at_the_beginning_stays() -> None:
    history = shown([said(text("Welcome!")), asked()])
    first, greeting, _ = history.messages
    assert isinstance(first.parts[0], UserPromptPart)
    assert first.parts[0].content == BEGINNING
    assert greeting.parts[0] == TextPart("Welcome!")


def test_an_id_that_a_provider_gave_twice_is_shown_once() -> None:
    own = state(ToolCallPart("t", "{}", "same"))
    first, second = (said(call(one, "{}", "same"), state=own) for one in ("c1", "c2"))
    history = shown([asked(), first, second], c1="1", c2="2")
    ids = [
        (part.tool_call_id, part.content)
        for message in history.messages
        for part in message.parts
        if isinstance(part, ToolReturnPart)
    ]
    assert ids == [("same", "1"), ("c2", "2")]


RESPONSE = (
    ThinkingPart("a", signature="s1", provider_name="anthropic"),
    ThinkingPart("", signature="redacted", id="redacted_thinking", provider_name="anthropic"),
    ThinkingPart("bc", signature="s2", provider_name="anthropic"),
    TextPart("one"),
    NativeToolCallPart("web_search", '{"q":"x"}', "srv1", provider_name="anthropic"),
    NativeToolReturnPart("web_search", [{"url": "u"}], "srv1", provider_name="anthropic"),
    CompactionPart("so far", provider_name="anthropic"),
    TextPart("two", id="msg_1", provider_name="anthropic"),
    TextPart("three"),
    ToolCallPart("t", '{"n": 1.0}', "toolu_1", id="fc_1", provider_name="anthropic"),
)


def stored(own: message_pb2.ProviderState) -> Message:
    """The message that the response became: neighbours of one kind are one part."""
    search = message_pb2.ToolCall(
        call_id="c0", name="web_search", arguments_json='{"q":"x"}', executor=PROVIDER
    )
    found = message_pb2.ToolResult(
        call_id="c0", output_json='[{"url":"u"}]', kind=message_pb2.RESULT_KIND_TOOL
    )
    return said(
        reasoning("abc"),
        text("one"),
        Part(tool_call=search),
        Part(tool_result=found),
        text("twothree"),
        call("c1", '{"n": 1.0}', "toolu_1"),
        state=own,
    )


def test_a_response_comes_back_as_it_was_without_standing_in_the_log_twice() -> None:
    own = state(*RESPONSE)
    assert b"twothree" not in own.data
    assert b"1.0}" not in own.data
    history = shown([asked(), stored(own)], c1="1")
    response = history.messages[1]
    assert isinstance(response, ModelResponse)
    assert list(response.parts)[:-1] == list(RESPONSE)[:-1]
    made, expected = response.parts[-1], RESPONSE[-1]
    assert isinstance(made, ToolCallPart)
    assert isinstance(expected, ToolCallPart)
    assert (made.args, made.id, made.tool_call_id) == (expected.args, expected.id, "toolu_1")


@pytest.mark.parametrize("model", [ModelId("openai", "claude"), ModelId("anthropic", "other")])
def test_another_model_sees_texts_and_calls_only(model: ModelId) -> None:
    history = shown([asked(), stored(state(*RESPONSE))], model, c1="1")
    kinds = [type(part).__name__ for part in history.messages[1].parts]
    assert kinds == ["TextPart", "TextPart", "ExactCall"]


@pytest.mark.parametrize(
    "message",
    [
        said(text("on"), state=state(TextPart("one"))),
        said(text("one more"), state=state(TextPart("one"))),
        said(reasoning("one"), state=state(TextPart("one"))),
        said(text("one"), call("c1"), state=state(TextPart("one"))),
        said(text("one"), state=message_pb2.ProviderState(
            provider="anthropic", model="claude", data=b"\xff")),
        said(text("one"), state=message_pb2.ProviderState(
            provider="anthropic", model="claude", data=b'{"lengths":[3],"messages":[1]}')),
    ],
)  # fmt: skip
def test_a_state_that_does_not_fit_its_message_is_dropped(message: Message) -> None:
    assert restored(message, MODEL, ["c1"]) is None


def test_reasoning_of_answers_that_were_not_accepted_is_left_out() -> None:
    own = state(ThinkingPart("second", signature="s"), TextPart("ok"), skipped=len("first"))
    response = restored(said(reasoning("firstsecond"), text("ok"), state=own), MODEL, [])
    assert response is not None
    assert [part.content for part in response.parts if isinstance(part, ThinkingPart)] == ["second"]


def test_a_state_that_is_too_large_is_not_kept() -> None:
    huge = ThinkingPart("a", signature="s" * MAX_STATE_BYTES)
    assert state_of(ModelResponse(parts=[huge]), MODEL) is None
    small = replace(huge, signature="s")
    assert state_of(ModelResponse(parts=[small]), MODEL) is not None
