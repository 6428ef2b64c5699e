"""Anthropic Messages: thinking blocks and their signatures, spoken with the client `anthropic`."""

from collections.abc import Callable
from typing import Any

import anthropic
import pytest

from tests.providers.script import Reasoning, Text, ToolCall, answer, in_turn
from tests.providers.server import ProviderServer, serving

MANUAL = "claude-haiku-4-5"
BINDING = "claude-opus-5-5"
EXTENDED = {"type": "enabled", "budget_tokens": 1024}
WEATHER = {"name": "weather", "input_schema": {"type": "object"}}
USER = {"role": "user", "content": "What is the weather in Bern?"}
STEPS = answer(Reasoning("I need the weather."), "I look.", ToolCall("weather", "{}"))

Messages = list[dict[str, Any]]


def create(client: anthropic.Anthropic, messages: Messages, **fields: Any) -> Any:
    request: dict[str, Any] = {
        "model": MANUAL,
        "max_tokens": 2000,
        "tools": [WEATHER],
        "messages": messages,
    }
    if fields.get("model", MANUAL) == MANUAL:
        request["thinking"] = EXTENDED
    return client.beta.messages.create(**(request | fields))


def after_a_call(client: anthropic.Anthropic, **fields: Any) -> Messages:
    """A conversation up to the result of a tool, as the model gave it."""
    message = create(client, [USER], **fields)
    content = [block.model_dump(exclude_none=True) for block in message.content]
    result = {"type": "tool_result", "tool_use_id": content[-1]["id"], "content": "sunny"}
    return [
        USER,
        {"role": "assistant", "content": content},
        {"role": "user", "content": [result]},
    ]


def test_thinking_streams_with_its_signature(
    server: ProviderServer, anthropic_client: anthropic.Anthropic
) -> None:
    server.script = in_turn(STEPS)
    with anthropic_client.messages.stream(
        model=MANUAL,
        max_tokens=2000,
        messages=[{"role": "user", "content": "Hi"}],
        thinking={"type": "enabled", "budget_tokens": 1024},
    ) as stream:
        pieces = [event.thinking for event in stream if event.type == "thinking"]
        message = stream.get_final_message()
    assert len(pieces) > 1
    assert [block.type for block in message.content] == ["thinking", "text", "tool_use"]
    assert isinstance(message.content[0], anthropic.types.ThinkingBlock)
    assert message.content[0].thinking == "I need the weather."
    assert message.content[0].signature


@pytest.mark.parametrize("model", [MANUAL, BINDING])
def test_blocks_given_back_as_they_came_are_taken(
    server: ProviderServer, anthropic_client: anthropic.Anthropic, model: str
) -> None:
    server.script = in_turn(STEPS, answer(Reasoning("Good."), "Sunny."), answer("Bye."))
    messages = after_a_call(anthropic_client, model=model)
    last = create(anthropic_client, messages, model=model)
    content = [block.model_dump(exclude_none=True) for block in last.content]
    messages += [{"role": "assistant", "content": content}, {"role": "user", "content": "Thanks"}]
    create(anthropic_client, messages, model=model)
    assert server.refused == []


def test_signatures_outlive_a_restart(
    server: ProviderServer, anthropic_client: anthropic.Anthropic
) -> None:
    server.script = in_turn(STEPS)
    messages = after_a_call(anthropic_client)
    with (
        serving(in_turn(answer("Sunny."))) as other,
        anthropic.Anthropic(base_url=other.anthropic_url, api_key=other.api_key) as client,
    ):
        create(client, messages)
        assert other.refused == []


def without_thinking(messages: Messages) -> None:
    del messages[1]["content"][0]


def changed(messages: Messages) -> None:
    messages[1]["content"][0]["thinking"] = "I know the weather."


def forged(messages: Messages) -> None:
    messages[1]["content"][0]["signature"] = "c2lnbmVk"


def changed_long_ago(messages: Messages) -> None:
    changed(messages)
    messages += [
        {"role": "assistant", "content": "Sunny."},
        {"role": "user", "content": "Thanks"},
    ]


def redacted(messages: Messages) -> None:
    messages[1]["content"].insert(0, {"type": "redacted_thinking", "data": "abc"})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            without_thinking,
            r"messages\.1\.content\.0\.type: Expected `thinking` or .*, but found `text`",
        ),
        (changed, "blocks in the latest assistant message cannot be modified"),
        (forged, r"messages\.1\.content\.0: Invalid `signature` in `thinking` block"),
        (changed_long_ago, r"messages\.1\.content\.0: Invalid `signature` in `thinking` block"),
        (redacted, "Invalid `data` in `redacted_thinking` block"),
    ],
)
def test_blocks_that_are_missing_or_changed_are_refused(
    server: ProviderServer,
    anthropic_client: anthropic.Anthropic,
    change: Callable[[Messages], None],
    message: str,
) -> None:
    server.script = in_turn(STEPS)
    messages = after_a_call(anthropic_client)
    change(messages)
    with pytest.raises(anthropic.BadRequestError, match=message):
        create(anthropic_client, messages)


def test_a_call_of_elsewhere_needs_thinking_before_it_only_with_extended_thinking(
    server: ProviderServer, anthropic_client: anthropic.Anthropic
) -> None:
    server.script = in_turn(answer("Sunny."))
    call = {"type": "tool_use", "id": "t1", "name": "weather", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "sunny"}
    messages: Messages = [
        USER,
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result]},
    ]
    with pytest.raises(anthropic.BadRequestError, match="but found `tool_use`"):
        create(anthropic_client, messages)
    create(anthropic_client, messages, model=BINDING)


def test_thinking_of_before_may_be_left_out_once_the_user_spoke(
    server: ProviderServer, anthropic_client: anthropic.Anthropic
) -> None:
    server.script = in_turn(STEPS, answer("Bye."))
    messages = after_a_call(anthropic_client)
    without_thinking(messages)
    messages += [{"role": "assistant", "content": "Sunny."}, {"role": "user", "content": "Bye"}]
    create(anthropic_client, messages)
    assert len(server.refused) == 0


def test_thinking_is_bound_to_the_conversation_before_it(
    server: ProviderServer, anthropic_client: anthropic.Anthropic
) -> None:
    """A changed prompt, system prompt or list of tools before the block is refused, unless the
    request asks to drop such blocks."""
    server.script = in_turn(STEPS, answer("Sunny."))
    messages = after_a_call(anthropic_client, model=BINDING)
    edited: Messages = [{"role": "user", "content": "What is the weather in Basel?"}, *messages[1:]]
    changes: list[tuple[Messages, dict[str, Any]]] = [
        (edited, {}),
        (messages, {"system": "Be brief."}),
        (messages, {"tools": [WEATHER, WEATHER | {"name": "clock"}]}),
    ]
    for history, fields in changes:
        with pytest.raises(anthropic.BadRequestError, match="bound to a different conversation"):
            create(anthropic_client, history, model=BINDING, **fields)
    dropping = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
    message = create(
        anthropic_client,
        edited,
        model=BINDING,
        thinking=dropping,
        betas=["thinking-binding-controls-2026-08-01"],
    )
    [transformation] = message.input_transformations
    assert transformation.path == "messages.1.content.0"
    assert transformation.reason == "prefix_binding_mismatch"


def test_a_prefill_has_no_thinking_where_thinking_is_off(
    server: ProviderServer, anthropic_client: anthropic.Anthropic
) -> None:
    server.script = in_turn(STEPS)
    thought = after_a_call(anthropic_client)[1]["content"][0]
    messages: Messages = [USER, {"role": "assistant", "content": [thought]}]
    with pytest.raises(anthropic.BadRequestError, match="When thinking is disabled"):
        create(anthropic_client, messages, thinking={"type": "disabled"})


def test_thinking_of_another_model_is_not_read(
    server: ProviderServer, anthropic_client: anthropic.Anthropic
) -> None:
    server.script = in_turn(STEPS, answer("Sunny."))
    messages = after_a_call(anthropic_client)
    message = create(anthropic_client, messages, model=BINDING)
    [transformation] = message.input_transformations
    assert transformation.reason == "model_binding_mismatch"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"thinking": {"type": "adaptive"}}, '"thinking.type.adaptive" is not supported'),
        (
            {"model": BINDING, "thinking": {"type": "disabled"}},
            '"thinking.type.disabled" is not supported',
        ),
        (
            {"thinking": {"type": "enabled", "budget_tokens": 1000}},
            r"thinking\.enabled\.budget_tokens: Input should be greater than or equal to 1024",
        ),
        ({"max_tokens": 1024}, "`max_tokens` must be greater than `thinking.budget_tokens`"),
        (
            {"tool_choice": {"type": "any"}},
            "Thinking may not be enabled when tool_choice forces tool use",
        ),
        (
            {"extra_body": {"temperature": 0.5}},
            "`temperature` may only be set to 1 when thinking is enabled",
        ),
        (
            {
                "model": BINDING,
                "thinking": {"type": "adaptive", "block_binding": {}},
            },
            r"thinking\.adaptive\.block_binding: Extra inputs are not permitted",
        ),
    ],
)
def test_configurations_that_are_refused(
    anthropic_client: anthropic.Anthropic, fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(anthropic.BadRequestError, match=message):
        create(anthropic_client, [USER], **fields)


def test_thinking_between_calls_is_needed_where_the_model_thought(
    server: ProviderServer, anthropic_client: anthropic.Anthropic
) -> None:
    server.script = in_turn(
        answer(Reasoning("One."), ToolCall("weather", id="t1"), ToolCall("weather", id="t2")),
        answer(Reasoning("Two."), Text("So."), ToolCall("weather", id="t3")),
    )
    first = create(anthropic_client, [USER], model=BINDING)
    messages: Messages = [
        USER,
        {"role": "assistant", "content": [b.model_dump(exclude_none=True) for b in first.content]},
        {"role": "user", "content": [_result("t1"), _result("t2")]},
    ]
    second = create(anthropic_client, messages, model=BINDING)
    content = [b.model_dump(exclude_none=True) for b in second.content]
    messages += [
        {"role": "assistant", "content": content[1:]},
        {"role": "user", "content": [_result("t3")]},
    ]
    with pytest.raises(anthropic.BadRequestError, match=r"messages\.3\.content\.0\.type: Expected"):
        create(anthropic_client, messages, model=BINDING)


def _result(of: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": of, "content": "sunny"}
