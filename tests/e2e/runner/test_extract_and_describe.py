"""`ExtractToolResults` (X1-X7) and `DescribeAgents` over the wire."""

from __future__ import annotations

import grpc
import pytest
from grpc import aio

from tests.e2e.runner.broker_side import Serve, Stub
from turngate.v1 import message_pb2, runner_pb2, session_pb2
from turngate_client.errors import error_from_rpc

Extract = runner_pb2.ExtractToolResultsRequest
TranscriptMessage = runner_pb2.TranscriptMessage
Part = runner_pb2.TranscriptPart


def call(call_id: str, arguments: str = "{}", tool: str = "request_input") -> Part:
    return Part(
        call=runner_pb2.TranscriptCall(call_id=call_id, tool_name=tool, arguments_json=arguments)
    )


def result(
    call_id: str,
    output: str,
    kind: message_pb2.ResultKind.ValueType = message_pb2.RESULT_KIND_CLIENT,
) -> Part:
    found = message_pb2.ToolResult(
        call_id=call_id, output_json=output, kind=kind, interaction_id=f"i-{call_id}"
    )
    return Part(result=runner_pb2.TranscriptResult(result=found))


def decision(call_id: str, approved: bool) -> Part:
    return Part(decision=message_pb2.ApprovalDecision(call_id=call_id, approved=approved))


def said(role: str, *parts: Part) -> TranscriptMessage:
    return TranscriptMessage(role=role, parts=parts)


@pytest.fixture
async def stub(serve: Serve) -> Stub:
    return await serve("agents: {a: {}}")


async def test_only_answers_of_the_turn_count_in_call_order(stub: Stub) -> None:
    """X1, X4, X7: results may come before their calls."""
    answer = await stub.ExtractToolResults(
        Extract(
            messages=[
                said("user"),
                said("assistant", call("old"), result("old", '"o"')),
                said("user"),
                said("tool", result("b", "2")),
                said("assistant", call("a", '{"x":1.0}'), call("b"), call("c"), result("a", "1")),
                said("tool", result("c", "3", message_pb2.RESULT_KIND_OUTCOME_UNKNOWN)),
            ]
        )
    )
    assert answer.turn_start == 2
    assert [one.call_id for one in answer.results] == ["a", "b"]
    first = answer.results[0]
    assert (first.result.output_json, first.result.interaction_id) == ("1", "i-a")
    assert (first.tool_name, first.canonical_arguments) == ("request_input", '{"x":1}')
    assert list(answer.used_call_ids) == ["old", "a", "b", "c"]


async def test_replayed_calls_are_matched_once_each(stub: Stub) -> None:
    """X2: answered, approved with its own arguments, denied, new."""
    pay = '{"amount": 5}'
    answer = await stub.ExtractToolResults(
        Extract(
            messages=[
                said("user"),
                said("assistant", call("f"), result("f", '{"action":"accept"}')),
                said("assistant", call("p", pay, "pay"), decision("p", True)),
                said("assistant", call("d", "{}", "drop"), decision("d", False)),
            ],
            replayed_calls=[
                runner_pb2.ReplayedCall(tool_name="request_input", peek=True),
                runner_pb2.ReplayedCall(tool_name="request_input", arguments_json="null"),
                runner_pb2.ReplayedCall(tool_name="request_input"),
                runner_pb2.ReplayedCall(tool_name="pay", arguments_json='{"amount":5.0}'),
                runner_pb2.ReplayedCall(tool_name="drop"),
            ],
        )
    )
    outcome = runner_pb2.ReplayOutcome
    assert [outcome.Name(m.outcome) for m in answer.replay_matches] == [
        "REPLAY_OUTCOME_ANSWERED",
        "REPLAY_OUTCOME_ANSWERED",
        "REPLAY_OUTCOME_PARK",
        "REPLAY_OUTCOME_APPROVED",
        "REPLAY_OUTCOME_DENIED",
    ]
    assert answer.replay_matches[1].result.output_json == '{"action":"accept"}'
    assert answer.replay_matches[3].arguments_json == pay
    assert [(d.call_id, d.approved) for d in answer.decisions] == [("p", True), ("d", False)]


async def test_an_output_that_is_no_json_is_refused_with_its_place(stub: Stub) -> None:
    """T2."""
    with pytest.raises(aio.AioRpcError) as refused:
        await stub.ExtractToolResults(
            Extract(messages=[said("user", call("a"), result("a", '{"a":1,"a":2}'))])
        )
    error = error_from_rpc(refused.value)
    assert (refused.value.code(), error.reason) == (
        grpc.StatusCode.INVALID_ARGUMENT,
        "INVALID_JSON",
    )
    assert error.metadata["field"] == "messages[0].parts[1].result.result.output_json"
    assert (error.metadata["problem"], error.metadata["offset"]) == ("duplicate_key", "7")


@pytest.mark.parametrize("part", [Part(), call(""), result("", "1"), decision("", True)])
async def test_a_transcript_that_cannot_be_read_is_refused(stub: Stub, part: Part) -> None:
    with pytest.raises(aio.AioRpcError) as refused:
        await stub.ExtractToolResults(Extract(messages=[said("user"), said("assistant", part)]))
    error = error_from_rpc(refused.value)
    assert error.reason == "INVALID_TRANSCRIPT"
    assert error.metadata["field"].startswith("messages[1].parts[0]")


async def test_agents_are_described_with_their_tools(serve: Serve) -> None:
    stub = await serve(
        """
agents:
  a:
    description: Pays
    history_window: 7
    tools:
      pay: {permission: ask, destructive: true, after_answers: false, grant_scope: once}
      scan: {executor: client, kind: scanner, input_schema: {type: object}}
  b: {}
""",
        max_concurrent_runs=3,
    )
    described = await stub.DescribeAgents(runner_pb2.DescribeAgentsRequest())
    assert (described.max_concurrent_runs, described.protocol_revision) == (3, 1)
    assert [agent.name for agent in described.agents] == ["a", "b"]
    agent = described.agents[0]
    assert (agent.description, agent.history_window, agent.replays) == ("Pays", 7, False)
    pay, scan = agent.tools
    assert pay.executor == message_pb2.TOOL_EXECUTOR_SERVER
    assert pay.traits.tool_permission == session_pb2.PERMISSION_ASK
    assert pay.traits.destructive
    assert pay.traits.HasField("after_answers")
    assert not pay.traits.after_answers
    assert pay.traits.grant_scope == message_pb2.GRANT_SCOPE_ONCE
    assert (scan.kind, scan.input_schema_json) == ("scanner", '{"type":"object"}')
