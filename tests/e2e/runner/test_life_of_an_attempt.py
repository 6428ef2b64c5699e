"""Cancel, lost connections, failures, heartbeats, callers that close their side (R3, C1, A1)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator
from pathlib import Path

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from grpc import aio

from runner_service.agents.effects import wait_for_file
from runner_service.limits import AttemptLimits
from tests.e2e.runner.broker_side import (
    DEADLINE_SECONDS,
    BrokerSide,
    Heard,
    Message,
    Open,
    Run,
    Serve,
    Stub,
    ToolResult,
    Verdicts,
    answered,
    calls,
    start,
    text_of,
    user,
)
from turngate.v1 import message_pb2, run_pb2, runner_pb2, session_pb2
from turngate_client.errors import error_from_rpc

SLOW_TOOL = """
agents:
  a:
    tools:
      slow:
        on_cancel: {on_cancel}
        does: [{{count: started}}, {{wait_for_file: gate}}, {{count: ended}}]
        output: slow
    turns:
      - steps:
          - parts: [{{call: slow, id: slow}}]
          - parts: [{{text: "slow: ${{outcomes.slow}}"}}]
"""


def reason_of(error: aio.AioRpcError) -> str:
    """The reason of a refusal."""
    return error_from_rpc(error).reason


async def until_file(path: Path) -> None:
    """Wait until a file is there."""
    async with asyncio.timeout(DEADLINE_SECONDS):
        await wait_for_file(path, asyncio.Event())


async def run_when_free(run: Run, stub: Stub, verdicts: Verdicts) -> Heard:
    """An attempt as soon as the runner takes one."""
    async with asyncio.timeout(DEADLINE_SECONDS):
        while True:
            try:
                return await run(stub, [user("go")], verdicts)
            except aio.AioRpcError as error:
                if reason_of(error) != "RUNNER_BUSY":
                    raise


async def test_a_complete_message_is_not_asked_for_again(serve: Serve, run: Run) -> None:
    """R3: after a crash the next attempt goes on from the calls without result."""
    stub = await serve(SLOW_TOOL.format(on_cancel="finish").replace("{wait_for_file: gate}, ", ""))
    first = await run(stub, [user("go")])
    heard = await run(stub, [user("go"), first.messages[0]], attempt=2)
    assert heard.kinds[0] == "tools_proposed"
    assert heard.kinds[1] == "tool_result"
    assert len(heard.messages) == 1
    assert heard.messages[0].id not in {message.id for message in first.messages}


async def test_a_complete_last_message_only_ends_the_run(serve: Serve, run: Run) -> None:
    """R3: the reply was finished, its end was not acknowledged."""
    stub = await serve("agents: {a: {}}")
    first = await run(stub, [user("go")])
    heard = await run(stub, [user("go"), first.messages[0]], attempt=2)
    assert heard.kinds == ["completed"]


async def test_a_lost_park_is_parked_again_with_its_hint(serve: Serve, run: Run) -> None:
    """H1, R3: the message is there, its parking was not acknowledged."""
    stub = await serve("""
agents: {a: {turns: [{steps: [{parts: [{call: request_input, arguments: {message: m}}]}]}]}}
""")
    first = await run(stub, [user("go")])
    heard = await run(stub, [user("go"), first.messages[0]], attempt=2)
    assert heard.kinds == ["render_hint", "parked"]


async def test_unknown_outcomes_are_told_to_the_model(serve: Serve, run: Run) -> None:
    """S1: the broker gives the result; the run goes on with it."""
    stub = await serve(SLOW_TOOL.format(on_cancel="finish"))
    broker_result = ToolResult(kind=message_pb2.RESULT_KIND_OUTCOME_UNKNOWN)
    call = message_pb2.ToolCall(
        call_id="c1", name="slow", executor=message_pb2.TOOL_EXECUTOR_SERVER
    )
    broker_result.call_id = "c1"
    step = Message(
        id="m1", role=message_pb2.ROLE_ASSISTANT, parts=[message_pb2.Part(tool_call=call)]
    )
    heard = await run(stub, [user("go"), answered(step, broker_result)])
    assert text_of(heard.messages[0]) == "slow: outcome_unknown"


async def test_cancel_while_text_streams_withdraws_it(serve: Serve, opened: Open) -> None:
    """C1, R3: no half message stays, and the end is reported at once."""
    stub = await serve("""
agents: {a: {turns: [{steps: [{parts: [{text: begun}, {wait_for_file: never}, {text: x}]}]}]}}
""")
    broker = await opened(stub, [user("go")])
    await broker.until("text_delta")
    await broker.cancel()
    heard = await broker.run()
    assert heard.kinds == ["message_started", "message_withdrawn", "cancelled"]


async def test_a_cancel_that_comes_with_the_opening_starts_nothing(
    serve: Serve, opened: Open
) -> None:
    stub = await serve("agents: {a: {}}")
    broker = BrokerSide(stub, start("a", [user("go")]), [user("go")])
    await broker.cancel()
    await broker.open()
    assert (await broker.run()).kinds == ["cancelled"]


async def test_a_result_that_comes_after_a_cancel_is_reported(
    serve: Serve, opened: Open, tmp_path: Path
) -> None:
    """C1: arriving results are recorded; no further model call is made."""
    stub = await serve(SLOW_TOOL.format(on_cancel="finish"))
    broker = await opened(stub, [user("go")])
    proposed = await broker.until("tools_proposed")
    await broker.acknowledge(*broker.verdicts_on(proposed, {}))
    await until_file(tmp_path / "started")
    await broker.cancel()
    heard = await broker.run()
    assert heard.kinds[-2:] == ["tool_result", "cancelled"]
    assert (tmp_path / "ended").read_text() == "1"
    assert len(heard.messages) == 1


async def test_a_tool_that_stops_at_a_cancel_has_no_result(
    serve: Serve, opened: Open, tmp_path: Path
) -> None:
    """C1: the broker makes it `outcome_unknown`."""
    stub = await serve(SLOW_TOOL.format(on_cancel="stop"))
    broker = await opened(stub, [user("go")])
    proposed = await broker.until("tools_proposed")
    await broker.acknowledge(*broker.verdicts_on(proposed, {}))
    await until_file(tmp_path / "started")
    await broker.cancel()
    heard = await broker.run()
    assert heard.kinds[-1] == "cancelled"
    assert "tool_result" not in heard.kinds
    assert not (tmp_path / "ended").exists()


async def test_cancelled_verdicts_start_nothing(serve: Serve, run: Run, tmp_path: Path) -> None:
    stub = await serve(SLOW_TOOL.format(on_cancel="finish"))
    heard = await run(stub, [user("go")], {"slow": runner_pb2.VERDICT_CANCELLED})
    assert heard.kinds[-1] == "cancelled"
    assert not (tmp_path / "started").exists()


async def test_a_grant_that_comes_with_a_cancel_starts_nothing(
    serve: Serve, opened: Open, tmp_path: Path
) -> None:
    """C1: no tool starts after a cancel, whatever was granted before it."""
    stub = await serve(SLOW_TOOL.format(on_cancel="finish"))
    broker = await opened(stub, [user("go")])
    proposed = await broker.until("tools_proposed")
    await broker.acknowledge(*broker.verdicts_on(proposed, {}), after_cancel=True)
    heard = await broker.run()
    assert heard.end == "cancelled"
    assert not (tmp_path / "started").exists()


async def test_a_lost_connection_ends_everything_that_was_begun(
    serve: Serve, opened: Open, run: Run, tmp_path: Path
) -> None:
    """S2: nothing of a lost attempt goes on; the runner is free for the next."""
    stub = await serve(SLOW_TOOL.format(on_cancel="finish"), max_concurrent_runs=1)
    broker = await opened(stub, [user("go")])
    proposed = await broker.until("tools_proposed")
    await broker.acknowledge(*broker.verdicts_on(proposed, {}))
    await until_file(tmp_path / "started")
    broker.drop()
    heard = await run_when_free(run, stub, {"slow": runner_pb2.VERDICT_ASK})
    assert heard.end == "parked"
    (tmp_path / "gate").touch()
    await run(stub, [user("go")])
    assert (tmp_path / "ended").read_text() == "1"


async def test_a_silent_agent_is_kept_alive_by_heartbeats(serve: Serve, opened: Open) -> None:
    stub = await serve(
        "agents: {a: {turns: [{steps: [{parts: [{wait_for_file: never}, {text: x}]}]}]}}"
    )
    broker = await opened(stub, [user("go")], heartbeat_interval=Duration(nanos=30_000_000))
    for _ in range(3):
        await broker.until("heartbeat")
    broker.drop()


async def test_after_the_end_nothing_is_said(serve: Serve, opened: Open, tmp_path: Path) -> None:
    """The end is the last event, also while its acknowledgement is late."""
    stub = await serve("agents: {a: {}}")
    broker = await opened(stub, [user("go")], heartbeat_interval=Duration(nanos=20_000_000))
    await broker.until("completed")
    listening = asyncio.ensure_future(broker.listen())
    done, _ = await asyncio.wait({listening}, timeout=0.2)
    assert not done
    await broker.acknowledge()
    assert await listening is False


async def test_a_full_runner_refuses_by_name(serve: Serve, opened: Open, run: Run) -> None:
    """RUNNER_BUSY, with a time after which to try again."""
    stub = await serve(
        "agents: {a: {turns: [{steps: [{parts: [{text: x}, {wait_for_file: never}]}]}]}}",
        max_concurrent_runs=1,
    )
    broker = await opened(stub, [user("go")])
    await broker.until("text_delta")
    refusal = await refused_whole(run(stub, [user("go")]) for _ in range(20))
    assert refusal.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert reason_of(refusal) == "RUNNER_BUSY"
    assert error_from_rpc(refusal).retry_after == 0.5
    broker.drop()


async def refused_whole(attempts: Iterator[Awaitable[object]]) -> aio.AioRpcError:
    """The refusal as it was sent. A write into a call that has just been refused may fail first:
    then grpcio has INTERNAL of its own in its place. (To a broker both are a run not taken.)
    """
    for attempt in attempts:
        with pytest.raises(aio.AioRpcError) as refused:
            await attempt
        if refused.value.code() is not grpc.StatusCode.INTERNAL:
            return refused.value
    pytest.fail("the refusal never came through")


CALLER_ALONE = """
agents:
  a:
    tools:
      free: {does: [{count: free}], output: "${call.idempotency_key}"}
      pay: {permission: ask, does: [{count: payments}]}
      wipe: {destructive: true, does: [{count: wipes}]}
    turns:
      - when: {text: pay}
        steps: [{parts: [{call: free}, {call: pay}, {call: wipe}]}, {parts: [{text: done}]}]
      - when: {text: free}
        steps: [{parts: [{call: free, id: f}]}, {parts: [{text: "${results.f|denied}"}]}]
"""


async def test_a_caller_that_closes_its_side_grants_what_needs_no_approval(
    serve: Serve, opened: Open, tmp_path: Path
) -> None:
    """A1, grpcurl: the rest parks, destructive tools wait for the answers."""
    stub = await serve(CALLER_ALONE)
    broker = await opened(stub, [user("pay")], protocol_revision=0)
    await broker.half_close()
    await broker.until_closed()
    assert broker.heard.end == "parked"
    assert (tmp_path / "free").read_text() == "1"
    assert not (tmp_path / "payments").exists()
    assert not (tmp_path / "wipes").exists()


async def test_a_caller_that_closes_its_side_gets_a_whole_run(serve: Serve, opened: Open) -> None:
    stub = await serve(CALLER_ALONE)
    broker = await opened(stub, [user("free")], protocol_revision=0)
    await broker.half_close()
    await broker.until_closed()
    assert broker.heard.end == "completed"
    assert text_of(broker.heard.messages[-1]).startswith("s1:call_")


async def test_the_policy_of_the_start_binds_a_caller_alone(
    serve: Serve, opened: Open, tmp_path: Path
) -> None:
    """A1: a DENY anywhere wins."""
    stub = await serve(CALLER_ALONE)
    rule = session_pb2.PolicyRule(pattern="fr*", permission=session_pb2.PERMISSION_DENY)
    policy = session_pb2.ApprovalPolicy(rules=[rule])
    broker = await opened(stub, [user("free")], approval_policy=policy, protocol_revision=0)
    await broker.half_close()
    await broker.until_closed()
    assert text_of(broker.heard.messages[-1]) == "denied"
    assert not (tmp_path / "free").exists()


@pytest.mark.parametrize("heard", [True, False])
async def test_a_broker_that_closes_its_side_in_the_middle_grants_nothing(
    serve: Serve, opened: Open, tmp_path: Path, heard: bool
) -> None:
    """A1, S1: a broker is one by its revision; its silence is no consent, from the first moment."""
    stub = await serve(CALLER_ALONE)
    broker = await opened(stub, [user("free")])
    await broker.until("tools_proposed")
    if heard:
        await broker.acknowledge(through=1)
    await broker.half_close()
    with pytest.raises(aio.AioRpcError) as refused:
        await broker.until_closed()
    assert reason_of(refused.value) == "PROTOCOL_VIOLATION"
    assert not (tmp_path / "free").exists()


@pytest.mark.parametrize(
    ("reason", "name"),
    [
        (n.removeprefix("RUN_FAILURE_REASON_").lower(), n)
        for n in run_pb2.RunFailureReason.keys()[1:]
        if n != "RUN_FAILURE_REASON_IMPORTED"  # what the broker says of runs in a file
    ],
)
async def test_a_failure_has_its_reason_and_withdraws_what_was_begun(
    serve: Serve, run: Run, reason: str, name: str
) -> None:
    """R3: every reason of the contract can be had."""
    stub = await serve(f"""
agents:
  a:
    turns:
      - steps:
          - parts: [{{text: begun}}, {{fail: {reason}, message: no luck, retry_after: 1500ms}}]
""")
    heard = await run(stub, [user("go")])
    assert heard.kinds == ["message_started", "message_withdrawn", "failed"]
    (failed,) = heard.all("failed")
    assert run_pb2.RunFailureReason.Name(failed.failure.reason) == name
    assert failed.failure.message == "no luck"
    assert failed.failure.retry_after_ms == 1500


async def test_an_unexpected_error_fails_the_run_without_its_text(serve: Serve, run: Run) -> None:
    """E2."""
    stub = await serve("agents: {a: {turns: [{steps: [{parts: [{fail: unexpected}]}]}]}}")
    heard = await run(stub, [user("go")])
    (failed,) = heard.all("failed")
    assert failed.failure.reason == run_pb2.RUN_FAILURE_REASON_AGENT_ERROR
    assert "nobody expects" not in failed.failure.message


async def test_a_failure_keeps_the_steps_before_it(serve: Serve, run: Run, tmp_path: Path) -> None:
    """R6: a retry goes on with the failed step; the tool is not started again."""
    stub = await serve("""
agents:
  a:
    tools: {pay: {does: [{count: payments}]}}
    turns:
      - steps:
          - parts: [{call: pay, id: pay}]
          - parts: [{fail: model_unavailable, unless_file: provider-is-up}, {text: paid}]
""")
    first = await run(stub, [user("go")])
    assert first.end == "failed"
    (tmp_path / "provider-is-up").touch()
    step = answered(first.messages[0], *first.results.values())
    heard = await run(stub, [user("go"), step], run_id="r2")
    assert text_of(heard.messages[0]) == "paid"
    assert (tmp_path / "payments").read_text() == "1"


async def test_a_run_has_a_limit_of_steps(serve: Serve, run: Run) -> None:
    stub = await serve(
        """
agents:
  a:
    tools: {t: {}}
    turns: [{steps: [{times: 10, parts: [{call: t}]}, {parts: [{text: x}]}]}]
""",
        limits=AttemptLimits(max_steps=5),
    )
    heard = await run(stub, [user("go")], completed_steps=3)
    (failed,) = heard.all("failed")
    assert failed.failure.reason == run_pb2.RUN_FAILURE_REASON_STEP_LIMIT
    assert len(heard.messages) == 2


@pytest.mark.parametrize(("size", "end"), [(256 * 1024, "completed"), (256 * 1024 + 1, "failed")])
async def test_text_has_a_limit(serve: Serve, run: Run, size: int, end: str) -> None:
    """E3: at the limit, and one byte over it."""
    stub = await serve(
        f"agents: {{a: {{turns: [{{steps: [{{parts: [{{text: x, repeat: {size}}}]}}]}}]}}}}"
    )
    heard = await run(stub, [user("go")])
    assert heard.end == end
    if end == "completed":
        assert heard.deltas == "x" * size


async def test_an_unknown_agent_is_refused_by_name(serve: Serve, run: Run) -> None:
    stub = await serve("agents: {a: {}}")
    with pytest.raises(aio.AioRpcError) as refused:
        await run(stub, [user("go")], agent="b")
    assert reason_of(refused.value) == "AGENT_NOT_FOUND"


@pytest.mark.parametrize(
    "events",
    [
        [],
        [runner_pb2.BrokerEvent(history=runner_pb2.HistoryChunk(last=True))],
        [runner_pb2.BrokerEvent(start=start("a", [user("x")]))],
        [
            runner_pb2.BrokerEvent(start=start("a", [user("x")])),
            runner_pb2.BrokerEvent(start=start("a", [user("x")])),
        ],
        [
            runner_pb2.BrokerEvent(start=start("a", [user("x")])),
            runner_pb2.BrokerEvent(history=runner_pb2.HistoryChunk(last=True)),
        ],
        [
            runner_pb2.BrokerEvent(start=start("a", [user("x")], protocol_revision=2)),
            runner_pb2.BrokerEvent(
                history=runner_pb2.HistoryChunk(messages=[user("x")], last=True)
            ),
        ],
    ],
    ids=["nothing", "no start", "no history", "two starts", "empty history", "new revision"],
)
async def test_an_opening_that_makes_no_sense_is_refused(
    serve: Serve, events: list[runner_pb2.BrokerEvent]
) -> None:
    stub = await serve("agents: {a: {}}")
    broker = BrokerSide(stub, start("a", [user("x")]), [])
    await broker.send(*events)
    await broker.half_close()
    with pytest.raises(aio.AioRpcError) as refused:
        await broker.until_closed()
    assert reason_of(refused.value) == "PROTOCOL_VIOLATION"


async def test_an_acknowledgement_of_what_was_not_sent_is_refused(
    serve: Serve, opened: Open
) -> None:
    stub = await serve("agents: {a: {}}")
    broker = await opened(stub, [user("go")])
    await broker.until("completed")
    await broker.acknowledge(through=99)
    with pytest.raises(aio.AioRpcError) as refused:
        await broker.until_closed()
    assert reason_of(refused.value) == "PROTOCOL_VIOLATION"


async def test_a_divided_history_is_joined(serve: Serve) -> None:
    """A message with the id of the one before it continues it; several chunks are one history."""
    stub = await serve("agents: {a: {otherwise: {steps: [{parts: [{text: '${user.text}'}]}]}}}")
    pieces = [user("one "), user("two "), user("three")]
    broker = BrokerSide(stub, start("a", pieces[:1]), [])
    await broker.send(runner_pb2.BrokerEvent(start=start("a", pieces[:1])))
    for index, piece in enumerate(pieces):
        chunk = runner_pb2.HistoryChunk(messages=[piece], last=index == 2)
        await broker.send(runner_pb2.BrokerEvent(history=chunk))
    heard = await broker.run()
    assert text_of(heard.messages[0]) == "one two three"


async def test_the_turn_is_found_in_a_trimmed_history(serve: Serve, run: Run) -> None:
    """T5, X6: positions count in the branch, the history is a window of it."""
    stub = await serve("agents: {a: {otherwise: {steps: [{parts: [{text: '${user.text}'}]}]}}}")
    heard = await run(
        stub,
        [user("older", "p8"), user("now", "p9")],
        branch_message_count=1000,
        history_offset=998,
        turn_start=999,
    )
    assert text_of(heard.messages[0]) == "now"


async def test_a_start_that_names_another_turn_is_refused(serve: Serve, run: Run) -> None:
    """T5: a wrong position would hand the answers of one turn to another."""
    stub = await serve("agents: {a: {}}")
    with pytest.raises(aio.AioRpcError) as refused:
        await run(stub, [user("one"), user("two", "p2")], turn_start=0)
    error = error_from_rpc(refused.value)
    assert error.reason == "INVALID_FIELD"
    assert error.violations[0].field == "start.turn_start"


async def test_a_broker_may_close_its_side_after_the_last_acknowledgement(
    serve: Serve, opened: Open
) -> None:
    stub = await serve("agents: {a: {}}")
    broker = await opened(stub, [user("go")])
    await broker.until("completed")
    await broker.acknowledge()
    await broker.half_close()
    await broker.until_closed()


async def test_verdicts_name_calls_that_were_proposed(serve: Serve, opened: Open) -> None:
    """A verdict on a call that was not proposed breaks the protocol."""
    stub = await serve(CALLER_ALONE)
    broker = await opened(stub, [user("free")])
    await broker.until("tools_proposed")
    await broker.acknowledge(
        runner_pb2.ToolVerdict(call_id="foreign", verdict=runner_pb2.VERDICT_GRANTED)
    )
    with pytest.raises(aio.AioRpcError) as refused:
        await broker.until_closed()
    assert reason_of(refused.value) == "PROTOCOL_VIOLATION"
    assert calls(broker.heard.messages[0])[0].name == "free"
