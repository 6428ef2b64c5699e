"""R3, S1: lost after any event, a run that is taken up again ends as if nothing had happened."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.runner.broker_side import (
    BrokerSide,
    Heard,
    Message,
    Run,
    Serve,
    Stub,
    ToolResult,
    answered,
    start,
    text_of,
    user,
)
from turngate.v1 import message_pb2, runner_pb2

SCRIPT = """
agents:
  a:
    tools:
      one: {does: [{append: log, line: "${call.id}"}], output: 1, idempotent: true}
      two: {does: [{append: log, line: "${call.id}"}], output: 2, idempotent: true}
    turns:
      - steps:
          - parts:
              - text: let me see
              - {call: one, id: a}
              - {call: nope, offered_by: nobody, id: x}
          - parts: [{call: one, id: b}, {call: two, id: c}]
          - parts: [{text: "${results.a} ${outcomes.x} ${results.b} ${results.c}"}]
"""
EVENTS = 15


def stored(history: list[Message], heard: Heard) -> list[Message]:
    """The branch as a broker would have it: complete messages with the results so far."""
    results = heard.results
    messages = [*history, *heard.messages]
    return [answered(message, *_new(message, results)) for message in messages]


def _new(message: Message, results: dict[str, ToolResult]) -> list[ToolResult]:
    shown = {part.tool_result.call_id for part in message.parts if part.HasField("tool_result")}
    return [result for call_id, result in results.items() if call_id not in shown]


async def until_event(stub: Stub, history: list[Message], number: int) -> tuple[BrokerSide, bool]:
    """An attempt that is lost after this event was stored; whether it came to its end before."""
    broker = await BrokerSide(stub, start("a", history), history).open()
    answered_through = 0
    while len(broker.heard.events) < number:
        if not await broker.listen():
            return broker, True
        verdicts: list[runner_pb2.ToolVerdict] = []
        for event in broker.heard.events[answered_through:]:
            if event.WhichOneof("event") == "tools_proposed":
                verdicts += broker.verdicts_on(event.tools_proposed, {})
        answered_through = len(broker.heard.events)
        await broker.acknowledge(*verdicts)
    # What came joined with it is not stored.
    del broker.heard.events[number:]
    broker.drop()
    return broker, False


@pytest.mark.parametrize("number", range(1, EVENTS + 1))
async def test_lost_after_any_event_the_next_attempt_goes_on(
    serve: Serve, run: Run, tmp_path: Path, number: int
) -> None:
    stub = await serve(SCRIPT)
    prompt = user("go")
    lost, _ = await until_event(stub, [prompt], number)
    assert len(lost.heard.events) <= number
    history = stored([prompt], lost.heard)
    heard = await run(stub, history, attempt=2)
    whole = stored(history, heard)
    assert heard.end == "completed"
    assert text_of(whole[-1]) == "1 refused 1 2"
    assert len(whole) == 4
    # No message twice, no result twice, and every call that is left in the branch has run.
    kept = {message.id for message in lost.heard.messages}
    assert not kept & {message.id for message in heard.messages}
    assert not lost.heard.results.keys() & heard.results.keys()
    ran = (tmp_path / "log").read_text().split()
    granted = [
        part.tool_call.call_id
        for message in whole
        for part in message.parts
        if part.HasField("tool_call") and part.tool_call.name != "nope"
    ]
    assert set(granted) <= set(ran)


async def test_the_script_has_as_many_events_as_are_tried(serve: Serve, run: Run) -> None:
    """So that the test above tries every event, and all of them exist."""
    stub = await serve(SCRIPT)
    heard = await run(stub, [user("go")])
    assert len(heard.events) == EVENTS
    assert message_pb2.RESULT_KIND_CALL_REFUSED in {r.kind for r in heard.results.values()}
