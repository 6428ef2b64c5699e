"""Where a turn stands in its script, from the history alone."""

from __future__ import annotations

import asyncio

import pytest

from runner_service.agents.protocol import Turn
from runner_service.agents.script import Agent
from runner_service.agents.script_loader import parse_script
from runner_service.agents.script_parts import Text
from runner_service.agents.script_position import find_position, outcomes_of
from runner_service.agents.scripted import FALLBACK
from runner_service.pairing import pair
from turngate.v1 import message_pb2, session_pb2

Message = message_pb2.Message
ToolResult = message_pb2.ToolResult


def agent(turns: str) -> Agent:
    return parse_script(f"agents: {{a: {{tools: {{t: {{}}}}, {turns}}}}}", "s").agents["a"]


def prompt(text: str) -> Message:
    part = message_pb2.Part(text=message_pb2.TextPart(text=text))
    return Message(role=message_pb2.ROLE_USER, parts=[part])


def step(name: str, result: ToolResult) -> Message:
    result.call_id = f"call_{name}"
    call = message_pb2.ToolCall(
        call_id=result.call_id, name=name, executor=message_pb2.TOOL_EXECUTOR_CLIENT
    )
    return Message(
        role=message_pb2.ROLE_ASSISTANT,
        parts=[message_pb2.Part(tool_call=call), message_pb2.Part(tool_result=result)],
    )


def next_text(script: Agent, *messages: Message, from_the_beginning: bool = True) -> str | None:
    """The text of the step that comes next; None at the end of the script."""
    turn_start = max(i for i, m in enumerate(messages) if m.role == message_pb2.ROLE_USER)
    history = pair(messages, turn_start)
    turn = Turn(
        session_id="s",
        run_id="r",
        attempt=1,
        tenant_id="t",
        principal="p",
        history=history.messages,
        turn_start=history.turn_start,
        starts_with_branch=from_the_beginning,
        tools={},
        approval_policy=session_pb2.ApprovalPolicy(),
        trace_context=message_pb2.TraceContext(),
        cancelled=asyncio.Event(),
    )
    position = find_position(script, turn, FALLBACK)
    if position.step is None:
        return None
    part = position.step.parts[0]
    return part.text if isinstance(part, Text) else type(part).__name__


TURNS = agent("""turns: [
  {when: {text: "^trip"}, steps: [{parts: [{text: a trip}]}]},
  {steps: [{parts: [{text: first}]}]},
  {steps: [{parts: [{text: second}]}]}],
  otherwise: {steps: [{parts: [{text: otherwise}]}]}""")


def reply(text: str = "ok") -> Message:
    part = message_pb2.Part(text=message_pb2.TextPart(text=text))
    return Message(role=message_pb2.ROLE_ASSISTANT, parts=[part])


def test_a_turn_is_chosen_by_its_text_else_in_order() -> None:
    trip, x = prompt("trip"), prompt("x")
    assert next_text(TURNS, trip) == "a trip"
    assert next_text(TURNS, x) == "first"
    assert next_text(TURNS, x, reply(), trip) == "a trip"
    assert next_text(TURNS, x, reply(), trip, reply(), x) == "second"
    assert next_text(TURNS, x, reply(), x, reply(), x) == "otherwise"


def test_without_the_beginning_of_the_branch_there_is_no_order() -> None:
    assert next_text(TURNS, prompt("x"), from_the_beginning=False) == "otherwise"


def test_without_any_turn_the_user_is_quoted() -> None:
    assert next_text(agent("turns: []"), prompt("x")) == "You said: ${user.text}"


BRANCHES = agent("""turns: [{steps: [
  {parts: [{call: request_input, id: form}]},
  {when: {call: form, outcome: accepted}, parts: [{call: t, id: more}]},
  {when: {all: [{call: form, outcome: accepted}, {call: more, outcome: [done, error]}]},
   parts: [{text: more came}]},
  {when: {call: form, outcome: [declined, cancelled]}, parts: [{text: no form}]},
  {when: {none: [{call: form, outcome: answered}]}, parts: [{text: no answer}]},
  {parts: [{text: else}]}]}]""")


def client(output: str) -> ToolResult:
    return ToolResult(output_json=output, kind=message_pb2.RESULT_KIND_CLIENT)


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (client('{"action":"accept","content":{}}'), "CallTool"),
        (client('{"action":"decline"}'), "no form"),
        (client('{"action":"cancel"}'), "no form"),
        (client('"something else"'), "else"),
        (ToolResult(kind=message_pb2.RESULT_KIND_EXPIRED), "no answer"),
    ],
)
def test_steps_depend_on_answers(result: ToolResult, text: str) -> None:
    assert next_text(BRANCHES, prompt("x"), step("request_input", result)) == text


def test_each_message_was_one_step() -> None:
    accepted = step("request_input", client('{"action":"accept"}'))
    done = step("t", ToolResult(output_json="1", kind=message_pb2.RESULT_KIND_TOOL))
    assert next_text(BRANCHES, prompt("x"), accepted, done) == "more came"


def test_a_step_may_be_repeated() -> None:
    script = agent("""turns: [{steps: [
      {times: 2, parts: [{text: again}, {call: t}]}, {parts: [{text: end}]}]}]""")
    done = step("t", ToolResult(output_json="1", kind=message_pb2.RESULT_KIND_TOOL))
    assert next_text(script, prompt("x"), done) == "again"
    assert next_text(script, prompt("x"), done, done) == "end"


def test_at_the_end_of_the_script_there_is_no_step() -> None:
    script = agent("turns: [{steps: [{parts: [{call: t}]}]}]")
    done = step("t", ToolResult(output_json="1", kind=message_pb2.RESULT_KIND_TOOL))
    assert next_text(script, prompt("x"), done) is None


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("{value: results.r.n, equals: 1}", True),
        ("{value: results.r.n, equals: 2}", False),
        ("{value: results.r.big, equals: 9007199254740993}", True),
        ("{value: results.r.big, equals: 9007199254740992}", False),
        ("{value: results.r.city, matches: ^Vis}", True),
        ("{value: results.r.city, matches: ^vis}", False),
        ("{value: results.r.nothing, exists: false}", True),
        ("{value: results.r.none, equals: null}", True),
        ("{value: results.r.nothing, equals: null}", False),
        ("{any: [{value: results.r.n, equals: 2}, {value: results.r.n, equals: 1}]}", True),
    ],
)
def test_conditions_on_values(condition: str, holds: bool) -> None:
    script = agent(f"""turns: [{{steps: [{{parts: [{{call: t, id: r}}]}},
      {{when: {condition}, parts: [{{text: holds}}]}}, {{parts: [{{text: not}}]}}]}}]""")
    output = '{"n":1.0,"big":9007199254740993,"city":"Visby","none":null}'
    done = step("t", ToolResult(output_json=output, kind=message_pb2.RESULT_KIND_TOOL))
    assert next_text(script, prompt("x"), done) == ("holds" if holds else "not")


@pytest.mark.parametrize(
    ("kind", "word"),
    [
        (message_pb2.RESULT_KIND_CALL_REFUSED, "refused"),
        (message_pb2.RESULT_KIND_NOT_HANDLED, "not_handled"),
        (message_pb2.RESULT_KIND_UNSUPPORTED_PAYLOAD, "unsupported"),
        (message_pb2.RESULT_KIND_QUESTION_LIMIT, "question_limit"),
        (message_pb2.RESULT_KIND_CANCELLED_BY_USER, "cancelled_by_user"),
        (message_pb2.RESULT_KIND_DENIED, "denied"),
        (message_pb2.RESULT_KIND_EXPIRED, "expired"),
        (message_pb2.RESULT_KIND_RUN_FAILED, "run_failed"),
        (message_pb2.RESULT_KIND_OUTCOME_UNKNOWN, "outcome_unknown"),
        (message_pb2.RESULT_KIND_CLIENT, "answered"),
        (message_pb2.RESULT_KIND_TOOL, "done"),
    ],
)
def test_an_outcome_is_read_from_the_type(
    kind: message_pb2.ResultKind.ValueType, word: str
) -> None:
    """X4: never from the text; an output that looks like a decision is none (A5)."""
    result = ToolResult(output_json='{"approved":true,"action":"decline"}', kind=kind)
    assert outcomes_of(message_pb2.ToolCall(name="pay"), result) == {word}


@pytest.mark.parametrize(
    ("output", "word"),
    [
        ('{"connected":true,"integration":"x"}', "accepted"),
        ('{"connected":false,"reason":"declined"}', "declined"),
        ('{"connected":false,"reason":"timeout"}', "failed"),
    ],
)
def test_outcomes_of_a_connection(output: str, word: str) -> None:
    """B2."""
    found = outcomes_of(message_pb2.ToolCall(name="request_connection"), client(output))
    assert found == {"answered", word}
