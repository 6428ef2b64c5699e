"""Steps over the wire: streaming, joined events, order of tools and parking, refusals (R3, R4)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.runner.broker_side import (
    Open,
    Run,
    Serve,
    ToolResult,
    answered,
    calls,
    client_output,
    text_of,
    user,
)
from turngate.v1 import message_pb2, runner_pb2, session_pb2

FORM = """
agents:
  a:
    turns:
      - when: {text: trip}
        steps:
          - parts:
              - text: Where to?
              - call: request_input
                id: form
                arguments:
                  message: Where
                  requestedSchema: {type: object, properties: {city: {type: string}}}
          - parts: [{text: "Off to ${results.form.content.city}."}]
"""

MIXED = """
agents:
  a:
    tools:
      look: {read_only: true, does: [{count: looks}], output: {seen: "${count}"}}
      pay: {permission: ask, does: [{count: payments}], output: paid}
      wipe: {destructive: true, does: [{count: wipes}], output: wiped}
    turns:
      - steps:
          - parts:
              - {call: request_input, id: form, arguments: {message: m}}
              - {call: look, id: look}
              - {call: pay, id: pay}
              - {call: wipe, id: wipe}
          - parts: [{text: "${model_input}"}]
"""
ASK_AND_DEFER = {"pay": runner_pb2.VERDICT_ASK, "wipe": runner_pb2.VERDICT_DEFERRED}


async def test_text_streams_word_by_word_and_the_message_is_the_same(
    serve: Serve, run: Run
) -> None:
    """W3: the deltas fold to the text of the whole message."""
    words = "Alle sieben Wörter kommen 🙂 einzeln an."
    stub = await serve(
        f"agents: {{a: {{turns: [{{steps: [{{parts: [{{text: {words}, pace: 5ms}}]}}]}}]}}}}"
    )
    heard = await run(stub, [user("hi")])
    assert heard.deltas == words
    assert text_of(heard.messages[0]) == words
    deltas = heard.all("text_delta")
    assert len(deltas) > 3
    length = 0
    for delta in deltas:
        assert delta.offset == length  # in code points
        length += len(delta.text)
    assert heard.kinds == ["message_started", "message_completed", "completed"]


async def test_message_hint_and_parking_come_joined(serve: Serve, run: Run) -> None:
    """One commit for the broker: nothing is between the message and what follows from it."""
    stub = await serve(FORM)
    heard = await run(stub, [user("a trip")])
    assert heard.batches[-1][-3:] == ["message_completed", "render_hint", "parked"]
    (call,) = calls(heard.messages[0])
    (hint,) = heard.all("render_hint")
    assert (hint.hint.tool_call_id, hint.hint.kind) == (call.call_id, "elicitation")
    assert call.executor == message_pb2.TOOL_EXECUTOR_CLIENT


async def test_the_answer_in_the_history_is_taken_by_id_and_the_run_goes_on(
    serve: Serve, run: Run
) -> None:
    """X2: a result binds to its call by id."""
    stub = await serve(FORM)
    first = (await run(stub, [user("a trip")])).messages[0]
    answer = client_output(
        calls(first)[0].call_id, '{"action":"accept","content":{"city":"Visby"}}'
    )
    heard = await run(stub, [user("a trip"), answered(first, answer)])
    assert text_of(heard.messages[0]) == "Off to Visby."
    assert heard.end == "completed"


async def test_the_same_question_in_the_next_turn_parks_again(serve: Serve, run: Run) -> None:
    """X5, even if the model's provider gives it the same id."""
    stub = await serve(FORM)
    first = (await run(stub, [user("a trip")])).messages[0]
    answer = client_output(
        calls(first)[0].call_id, '{"action":"accept","content":{"city":"Visby"}}'
    )
    heard = await run(stub, [user("a trip"), answered(first, answer), user("another trip", "p2")])
    assert heard.end == "parked"
    assert calls(heard.messages[0])[0].call_id != calls(first)[0].call_id


async def test_server_tools_run_first_then_the_run_parks_with_the_rest(
    serve: Serve, run: Run, tmp_path: Path
) -> None:
    """R4: granted tools are executed and reported before the run parks; asked ones are repeated."""
    stub = await serve(MIXED)
    heard = await run(stub, [user("go")], ASK_AND_DEFER)
    assert heard.kinds == [
        "message_started",
        "message_completed",
        "render_hint",
        "tools_proposed",
        "tool_result",
        "parked",
    ]
    assert ["message_completed", "render_hint", "tools_proposed"] in [b[-3:] for b in heard.batches]
    form, look, pay, wipe = calls(heard.messages[0])
    (proposed,) = heard.all("tools_proposed")
    assert [tool.call_id for tool in proposed.tools] == [look.call_id, pay.call_id, wipe.call_id]
    assert [tool.read_only for tool in proposed.tools] == [True, False, False]
    assert [tool.destructive for tool in proposed.tools] == [False, False, True]
    assert proposed.tools[1].tool_permission == session_pb2.PERMISSION_ASK
    assert heard.results[look.call_id].output_json == '{"seen":1}'
    (parked,) = heard.all("parked")
    assert [tool.call_id for tool in parked.waiting_tools] == [pay.call_id, wipe.call_id]
    assert not (tmp_path / "payments").exists()
    assert form.call_id not in heard.results


async def test_after_the_answers_the_asked_and_the_deferred_tools_run(
    serve: Serve, run: Run, tmp_path: Path
) -> None:
    """R4, T4: one resume; the model gets four results in call order right after the calls."""
    stub = await serve(MIXED)
    parked = await run(stub, [user("go")], ASK_AND_DEFER)
    step = parked.messages[0]
    form, look, pay, wipe = calls(step)
    resumed = answered(
        step, client_output(form.call_id, '{"action":"decline"}'), parked.results[look.call_id]
    )
    heard = await run(stub, [user("go"), resumed], attempt=2)
    assert heard.kinds[:3] == ["tools_proposed", "tool_result", "tool_result"]
    assert (tmp_path / "payments").read_text() == "1"
    assert (tmp_path / "looks").read_text() == "1"
    shown = json.loads(text_of(heard.messages[0]))
    assert [call["call_id"] for call in shown[1]["calls"]] == [
        form.call_id,
        look.call_id,
        pay.call_id,
        wipe.call_id,
    ]
    assert [result["output"] for result in shown[1]["results"]] == [
        '{"action":"decline"}',
        '{"seen":1}',
        '"paid"',
        '"wiped"',
    ]


async def test_a_denied_call_is_told_to_the_model_and_the_run_goes_on(
    serve: Serve, run: Run
) -> None:
    """A1, A2."""
    stub = await serve("""
agents:
  a:
    tools: {pay: {does: [{count: payments}]}}
    turns:
      - steps:
          - parts: [{call: pay, id: pay}]
          - when: {call: pay, outcome: denied}
            parts: [{text: "Denied: ${errors.pay}"}]
          - parts: [{text: Paid}]
""")
    heard = await run(stub, [user("go")], {"pay": runner_pb2.VERDICT_DENIED})
    assert text_of(heard.messages[-1]) == "Denied: not today"
    assert heard.results == {}


async def test_a_recorded_result_is_used_instead_of_a_second_start(
    serve: Serve, opened: Open, tmp_path: Path
) -> None:
    """S1: REUSE brings the result; WAIT is followed by another verdict."""
    stub = await serve("""
agents:
  a:
    tools: {pay: {does: [{count: payments}]}}
    turns:
      - steps:
          - parts: [{call: pay, id: one}, {call: pay, id: two}]
          - parts: [{text: "${results.one} ${results.two}"}]
""")
    broker = await opened(stub, [user("go")])
    proposed = await broker.until("tools_proposed")
    one, two = (tool.call_id for tool in proposed.tools)

    def reuse(call_id: str, output: str) -> runner_pb2.ToolVerdict:
        result = ToolResult(call_id=call_id, output_json=output, kind=message_pb2.RESULT_KIND_TOOL)
        return runner_pb2.ToolVerdict(
            call_id=call_id, verdict=runner_pb2.VERDICT_REUSE, result=result
        )

    wait = runner_pb2.ToolVerdict(call_id=two, verdict=runner_pb2.VERDICT_WAIT)
    await broker.acknowledge(reuse(one, "7"), wait)
    await broker.acknowledge(reuse(two, "8"))
    await broker.until("message_completed")
    heard = await broker.run()
    assert text_of(heard.messages[-1]) == "7 8"
    assert not (tmp_path / "payments").exists()


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ("{call: pay, arguments_text: '{\"amount\": 1'}", "no JSON"),
        ('{call: pay, arguments_text: \'{"amount": 1, "amount": 2}\'}', "duplicate key"),
        ("{call: pay, arguments_text: '[1]'}", "must be a JSON object"),
        ("{call: pay, arguments: {amount: two}}", "/amount"),
        ("{call: pay}", "/amount: is required"),
        ("{call: pey, offered_by: nobody}", "Did you mean pay?"),
        ("{call: scan, arguments: {}}", "/what: is required"),
        ("{call: request_connection}", "/integration: is required"),
        ("{call: request_input, arguments_text: nonsense}", "no JSON"),
    ],
)
async def test_calls_that_do_not_fit_go_back_to_the_model(
    serve: Serve, run: Run, call: str, told: str
) -> None:
    """T2, R4: a typed error, in the same message; nothing parks, nothing starts."""
    stub = await serve(f"""
agents:
  a:
    tools:
      pay:
        input_schema:
          type: object
          properties: {{amount: {{type: integer}}}}
          required: [amount]
      scan: {{executor: client, input_schema: {{type: object, required: [what]}}}}
    turns:
      - steps:
          - parts: [{call}]
          - parts: [{{text: I see}}]
""")
    heard = await run(stub, [user("go")])
    assert heard.kinds == [
        "message_started",
        "message_completed",
        "tool_result",
        "message_started",
        "message_completed",
        "completed",
    ]
    (result,) = heard.results.values()
    assert result.kind == message_pb2.RESULT_KIND_CALL_REFUSED
    assert told in result.error_text


async def test_a_form_of_an_unsupported_shape_is_sent_as_a_call(serve: Serve, run: Run) -> None:
    """D2 is the broker's."""
    stub = await serve("""
agents: {a: {turns: [{steps: [{parts: [{call: request_input, arguments: {nested: {}}}]}]}]}}
""")
    assert (await run(stub, [user("go")])).end == "parked"


async def test_arguments_come_digit_for_digit(serve: Serve, run: Run) -> None:
    """T2: integers beyond 2^53, 1.0, key order."""
    exact = '{"z": 9007199254740993, "a": 1.0, "big": 1e400, "n": "\\u0000"}'
    stub = await serve(f"""
agents:
  a:
    turns:
      - steps:
          - parts:
              - {{call: request_input, arguments_text: '{exact}'}}
              - {{call: request_input, arguments: {{z: 9007199254740993, a: 1.0}}}}
""")
    heard = await run(stub, [user("go")])
    one, two = calls(heard.messages[0])
    assert one.arguments_json == exact
    assert two.arguments_json == '{"z":9007199254740993,"a":1.0}'


async def test_a_thousand_calls_in_one_step(serve: Serve, run: Run, tmp_path: Path) -> None:
    """Scenario 9."""
    stub = await serve("""
agents:
  a:
    tools: {one: {does: [{count: n}], output: "${arguments.i}"}}
    turns:
      - steps:
          - parts: [{call: one, id: c, times: 1000, arguments: {i: "${count}"}}]
          - parts: [{text: "${results.c_1} ${results.c_1000}"}]
""")
    heard = await run(stub, [user("go")])
    assert text_of(heard.messages[-1]) == "1 1000"
    assert (tmp_path / "n").read_text() == "1000"
    assert len(heard.results) == 1000
    assert len({call.call_id for call in calls(heard.messages[0])}) == 1000


async def test_a_huge_output_is_cut_with_a_clear_error(serve: Serve, run: Run) -> None:
    """T2: one byte over the limit is told to the model; at the limit it passes."""
    stub = await serve("""
agents:
  a:
    tools: {at: {output_bytes: 262144}, over: {output_bytes: 262145}, bad: {output_text: "{1}"}}
    turns: [{steps: [{parts: [{call: at}, {call: over}, {call: bad}]}, {parts: [{text: done}]}]}]
""")
    heard = await run(stub, [user("go")])
    at, over, bad = (heard.results[call.call_id] for call in calls(heard.messages[0]))
    assert len(at.output_json) == 262144
    assert "262145 bytes, at most 262144 are accepted. It begins:" in over.error_text
    assert len(over.error_text) < 4096
    assert "no JSON" in bad.error_text


async def test_a_provider_executed_call_waits_for_nothing(serve: Serve, run: Run) -> None:
    stub = await serve("""
agents:
  a:
    turns:
      - steps: [{parts: [{call: web_search, provider_output: {hits: 3}}, {text: Found}]}]
""")
    heard = await run(stub, [user("go")])
    assert heard.end == "completed"
    (message,) = heard.messages
    kinds = [part.WhichOneof("content") for part in message.parts]
    assert kinds == ["tool_call", "tool_result", "text"]
    assert message.parts[0].tool_call.executor == message_pb2.TOOL_EXECUTOR_PROVIDER


async def test_tools_of_the_session_are_offered(serve: Serve, run: Run) -> None:
    stub = await serve("""
agents: {a: {turns: [{steps: [{parts: [{call: scan, offered_by: session, arguments: {x: 1}}]}]}]}}
""")
    tool = session_pb2.ClientTool(name="scan", kind="scanner", params_json='{"size":2}')
    heard = await run(stub, [user("go")], client_tools=[tool])
    assert heard.end == "parked"
    (hint,) = heard.all("render_hint")
    assert (hint.hint.kind, hint.hint.params_json) == ("scanner", '{"size":2}')


async def test_ids_are_fresh_and_differ_from_used_ones(serve: Serve, run: Run) -> None:
    """T3; the provider's own id is kept beside ours and may repeat."""
    stub = await serve("""
agents:
  a:
    turns:
      - steps: [{parts: [{call: request_input, times: 2, provider_call_id: toolu_1}]}]
""")
    heard = await run(stub, [user("go")])
    one, two = calls(heard.messages[0])
    assert one.call_id != two.call_id
    assert one.provider_call_id == two.provider_call_id == "toolu_1"
