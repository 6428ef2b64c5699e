"""Agents that are written in Python against the protocol: what the runner does for them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

import pytest

from runner_service.agents.effects import pause
from runner_service.agents.protocol import (
    AgentFailure,
    AgentProfile,
    AgentTool,
    Call,
    CallPiece,
    DataPiece,
    GrantedCall,
    Output,
    ReasoningPiece,
    ServerTool,
    StepEnd,
    StepPiece,
    TextPiece,
    ToolOutcome,
    Turn,
)
from runner_service.limits import AttemptLimits
from tests.e2e.runner.broker_side import (
    Message,
    Open,
    Run,
    ServeAgents,
    calls,
    text_of,
    user,
)
from turngate.v1 import event_pb2, message_pb2, run_pb2, runner_pb2, session_pb2


@dataclass
class OwnAgent:
    """Says fixed pieces, one list a step; notes the turns that it was asked in."""

    steps: Sequence[Sequence[StepPiece]]
    offered: tuple[AgentTool, ...] = (ServerTool("t"),)
    turns: list[Turn] = field(default_factory=list)

    @property
    def profile(self) -> AgentProfile:
        return AgentProfile("a")

    async def tools(self, turn: Turn | None) -> Sequence[AgentTool]:
        return self.offered

    async def next_step(self, turn: Turn) -> AsyncIterator[StepPiece]:
        self.turns.append(turn)
        for piece in self.steps[len(turn.history) - turn.turn_start - 1]:
            yield piece

    async def execute(self, call: GrantedCall) -> ToolOutcome:
        return Output(f'"{call.name} ran"')


class RaisingTool(OwnAgent):
    """Its tool has a bug."""

    async def execute(self, call: GrantedCall) -> ToolOutcome:
        raise ValueError("password is hunter2")


class NoTools(OwnAgent):
    """Its tools cannot be had: the server that they come from is down."""

    async def tools(self, turn: Turn | None) -> Sequence[AgentTool]:
        raise AgentFailure(run_pb2.RUN_FAILURE_REASON_AGENT_ERROR, "tools of search: unreachable")


class GivesUp(OwnAgent):
    """Its tool says that the run cannot go on."""

    async def execute(self, call: GrantedCall) -> ToolOutcome:
        raise AgentFailure(run_pb2.RUN_FAILURE_REASON_AGENT_ERROR, "t failed too often")


class Stubborn(OwnAgent):
    """Its tool does not look at cancels."""

    def __init__(self) -> None:
        super().__init__([[Call("t")]])
        self.started = asyncio.Event()

    async def execute(self, call: GrantedCall) -> ToolOutcome:
        self.started.set()
        await asyncio.Event().wait()
        return Output("1")


async def test_pieces_become_parts_in_their_order(serve_agents: ServeAgents, run: Run) -> None:
    """T1, T3: parts, part indexes, offsets and call ids of deltas fit the whole message."""
    agent = OwnAgent(
        [
            [
                ReasoningPiece("hm"),
                ReasoningPiece(" hm"),
                TextPiece("äh"),
                CallPiece("k1", "t", '{"a"'),
                CallPiece("k2", "t", "{"),
                CallPiece("k1", "t", ":1}"),
                Call("t", '{"a":1}', "prov-1", "k1"),
                Call("t", "{}", "prov-2", "k2"),
                TextPiece("so"),
                StepEnd(
                    "tool_use",
                    message_pb2.Usage(input_tokens=3, output_tokens=4),
                    message_pb2.ProviderState(provider="p", model="m", data=b"\x00\xff"),
                ),
            ],
            [TextPiece("end")],
        ]
    )
    stub = await serve_agents({"a": agent})
    heard = await run(stub, [user("go")])
    message = heard.messages[0]
    assert [part.WhichOneof("content") for part in message.parts] == [
        "reasoning",
        "text",
        "tool_call",
        "tool_call",
        "text",
    ]
    assert message.parts[0].reasoning.text == "hm hm"
    assert (message.finish_reason, message.usage.output_tokens) == ("tool_use", 4)
    assert message.provider_state.data == b"\x00\xff"
    deltas = [d for d in heard.all("text_delta") if d.message_id == message.id]
    kinds = {delta.part_index: delta.kind for delta in deltas}
    text = event_pb2.TEXT_KIND_TEXT
    assert kinds == {0: event_pb2.TEXT_KIND_REASONING, 1: text, 4: text}
    one, two = calls(message)
    shown = [
        (delta.part_index, delta.call_id, delta.offset, delta.arguments_delta)
        for delta in heard.all("tool_call_delta")
    ]
    assert shown == [
        (2, one.call_id, 0, '{"a"'),
        (3, two.call_id, 0, "{"),
        (2, one.call_id, 4, ":1}"),
    ]
    assert (one.provider_call_id, two.provider_call_id) == ("prov-1", "prov-2")


async def test_the_next_step_is_shown_results_right_after_their_calls(
    serve_agents: ServeAgents, run: Run
) -> None:
    """T4."""
    agent = OwnAgent([[Call("t"), Call("nope")], [TextPiece("end")]])
    stub = await serve_agents({"a": agent})
    await run(stub, [user("go")])
    first, second = agent.turns
    assert (len(first.history), len(second.history)) == (1, 2)
    ran, refused = second.history[1].results
    assert ran.output_json == '"t ran"'
    assert refused.kind == message_pb2.RESULT_KIND_CALL_REFUSED
    assert set(second.tools) == {"t", "request_input", "request_connection"}


async def test_a_tool_with_a_bug_is_an_error_result_without_its_text(
    serve_agents: ServeAgents, run: Run
) -> None:
    """E2: neither the model nor a client sees an exception's text."""
    stub = await serve_agents({"a": RaisingTool([[Call("t")], [TextPiece("end")]])})
    heard = await run(stub, [user("go")])
    (result,) = heard.results.values()
    assert result.error_text == "The tool failed unexpectedly."
    assert heard.end == "completed"


async def test_a_tool_can_fail_the_run_by_name(serve_agents: ServeAgents, run: Run) -> None:
    """R6: the results are kept, so that a retry can go on with them."""
    stub = await serve_agents({"a": GivesUp([[Call("t")]])})
    heard = await run(stub, [user("go")])
    (result,) = heard.results.values()
    assert result.error_text == "t failed too often"
    assert heard.end == "failed"
    assert heard.all("failed")[0].failure.message == "t failed too often"


async def test_a_tool_that_takes_too_long_is_an_error_that_says_so(
    serve_agents: ServeAgents, run: Run
) -> None:
    """S1: nobody knows whether it had its effect, and the model is told."""
    agent = Stubborn()
    agent.steps = [[Call("t")], [TextPiece("end")]]
    stub = await serve_agents({"a": agent}, limits=AttemptLimits(tool_timeout_seconds=0.05))
    heard = await run(stub, [user("go")])
    (result,) = heard.results.values()
    assert result.error_text == ("The tool did not end within 0.05 s; it may have had its effect.")
    assert heard.end == "completed"


async def test_tools_that_cannot_be_had_fail_the_run_by_name(
    serve_agents: ServeAgents, run: Run
) -> None:
    stub = await serve_agents({"a": NoTools([[TextPiece("never")]])})
    heard = await run(stub, [user("go")])
    assert heard.kinds == ["message_started", "message_withdrawn", "failed"]
    assert heard.all("failed")[0].failure.message == "tools of search: unreachable"


async def test_an_agent_whose_tools_cannot_be_had_is_described_without_them(
    serve_agents: ServeAgents,
) -> None:
    stub = await serve_agents({"a": NoTools([]), "b": OwnAgent([])})
    described = await stub.DescribeAgents(runner_pb2.DescribeAgentsRequest())
    assert [len(agent.tools) for agent in described.agents] == [0, 1]


async def test_data_becomes_a_part(serve_agents: ServeAgents, run: Run) -> None:
    """T1, T2: digit for digit."""
    pieces: list[StepPiece] = [TextPiece("so: "), DataPiece("output", '{"n":1.0}'), TextPiece("!")]
    stub = await serve_agents({"a": OwnAgent([pieces])})
    heard = await run(stub, [user("go")])
    kinds = [part.WhichOneof("content") for part in heard.messages[0].parts]
    assert kinds == ["text", "data", "text"]
    assert heard.messages[0].parts[1].data.json == '{"n":1.0}'


async def test_data_that_is_no_json_fails_the_run(serve_agents: ServeAgents, run: Run) -> None:
    """T2."""
    stub = await serve_agents({"a": OwnAgent([[DataPiece("output", "{")]])})
    heard = await run(stub, [user("go")])
    assert "data of kind 'output'" in heard.all("failed")[0].failure.message


async def test_a_call_that_never_came_to_its_end_fails_the_run(
    serve_agents: ServeAgents, run: Run
) -> None:
    stub = await serve_agents({"a": OwnAgent([[CallPiece("k", "t", "{")]])})
    heard = await run(stub, [user("go")])
    assert heard.kinds[-2:] == ["message_withdrawn", "failed"]
    assert heard.all("failed")[0].failure.reason == run_pb2.RUN_FAILURE_REASON_AGENT_ERROR


async def test_a_tool_that_does_not_end_is_cut_after_the_grace(
    serve_agents: ServeAgents, opened: Open
) -> None:
    """C1: the end of a cancel never waits for ever."""
    agent = Stubborn()
    stub = await serve_agents({"a": agent}, limits=AttemptLimits(cancel_grace_seconds=0.1))
    broker = await opened(stub, [user("go")])
    proposed = await broker.until("tools_proposed")
    await broker.acknowledge(*broker.verdicts_on(proposed, {}))
    await asyncio.wait_for(agent.started.wait(), 20)
    await broker.cancel()
    heard = await broker.run()
    assert heard.end == "cancelled"
    assert heard.results == {}


async def test_a_message_that_is_too_large_fails_the_run_by_name(
    serve_agents: ServeAgents, run: Run
) -> None:
    """E3: each call may have 256 KiB of arguments, a message 900 KiB in all."""
    call = Call("t", '"' + "x" * 250_000 + '"')
    stub = await serve_agents({"a": OwnAgent([[call] * 4])})
    heard = await run(stub, [user("go")])
    assert heard.kinds[-2:] == ["message_withdrawn", "failed"]
    assert "too large" in heard.all("failed")[0].failure.message


async def test_a_session_cannot_take_the_place_of_a_server_tool(
    serve_agents: ServeAgents, run: Run
) -> None:
    """R7: the agent's own tool wins; a client never answers for it."""
    stub = await serve_agents({"a": OwnAgent([[Call("t")], [TextPiece("end")]])})
    heard = await run(stub, [user("go")], client_tools=[session_pb2.ClientTool(name="t")])
    assert calls(heard.messages[0])[0].executor == message_pb2.TOOL_EXECUTOR_SERVER
    assert heard.end == "completed"


async def test_a_call_of_what_is_now_another_kind_of_tool_is_refused(
    serve_agents: ServeAgents, run: Run
) -> None:
    """R3: an attempt under a changed agent neither starts nor asks for something else."""
    stub = await serve_agents({"a": OwnAgent([[], [TextPiece("end")]])})
    call = message_pb2.ToolCall(
        call_id="c", name="t", executor=message_pb2.TOOL_EXECUTOR_CLIENT, arguments_json="{}"
    )
    step = Message(
        id="m", role=message_pb2.ROLE_ASSISTANT, parts=[message_pb2.Part(tool_call=call)]
    )
    heard = await run(stub, [user("go"), step])
    assert heard.results["c"].kind == message_pb2.RESULT_KIND_CALL_REFUSED


async def test_an_agent_that_writes_fast_is_held_until_the_broker_reads(
    serve_agents: ServeAgents, opened: Open
) -> None:
    """W4 on this side: what waits for a slow broker is bounded."""
    agent = Flood([[]])
    stub = await serve_agents({"a": agent})
    broker = await opened(stub, [user("go")])
    await broker.until("message_started")
    async with asyncio.timeout(20):
        before = -1
        while agent.written != before:
            before = agent.written
            await pause(0.3, asyncio.Event())
    # 512 KiB in the outbox, and what gRPC takes in by itself.
    assert agent.written < 64 * 1024 * 1024 / len(Flood.PIECE)
    assert not agent.ended
    broker.drop()


class Flood(OwnAgent):
    """Writes reasoning without an end."""

    PIECE = "x" * 8192
    written = 0
    ended = False

    async def next_step(self, turn: Turn) -> AsyncIterator[StepPiece]:
        for number in range(1_000_000):
            self.written = number
            yield CallPiece("k", "t", self.PIECE)
        self.ended = True


@pytest.mark.parametrize("text", ["a\ud800b", "\ud83d\ude00", "\x00", "\u2028"])
async def test_text_that_the_wire_cannot_carry_is_replaced(
    serve_agents: ServeAgents, run: Run, text: str
) -> None:
    """T2, scenario 9: halves of a pair are joined or replaced, all else stays."""
    stub = await serve_agents({"a": OwnAgent([[TextPiece(text)]])})
    heard = await run(stub, [user("go")])
    expected = {"a\ud800b": "a\ufffdb", "\ud83d\ude00": "😀"}.get(text, text)
    assert text_of(heard.messages[0]) == expected == heard.deltas
