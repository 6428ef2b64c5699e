"""Agents of Pydantic AI, served as they are: what the broker hears of their steps and tools."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TypeAlias

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, ModelRetry, NativeOutput, RunContext, Tool, ToolReturn
from pydantic_ai.exceptions import ModelHTTPError, ModelRateLimitError
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import (
    AgentInfo,
    DeltaThinkingPart,
    DeltaToolCall,
    FunctionModel,
)
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import ExternalToolset, FunctionToolset

from runner_service.agents.protocol import Turn
from runner_service.pydantic_ai import PydanticAgent, idempotency_key
from tests.e2e.runner.broker_side import (
    Message,
    Open,
    Run,
    ServeAgents,
    answered,
    calls,
    client_output,
    text_of,
    user,
)
from turngate.v1 import message_pb2, run_pb2, runner_pb2, session_pb2

Delta: TypeAlias = str | dict[int, DeltaToolCall] | dict[int, DeltaThinkingPart]


class Script:
    """A model that says fixed things, one list an answer, and notes what it was shown."""

    def __init__(self, *answers: list[Delta], provider: str = "function") -> None:
        self._answers = answers
        self.shown: list[list[ModelMessage]] = []
        self.infos: list[AgentInfo] = []
        self.model = FunctionModel(stream_function=self._say, model_name=provider)

    async def _say(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Delta]:
        self.shown.append(list(messages))
        self.infos.append(info)
        for delta in self._answers[len(self.shown) - 1]:
            yield delta

    def returned(self, asked: int = -1) -> list[ToolReturnPart]:
        """The results that stand at the end of what it was shown."""
        last = self.shown[asked][-1]
        return [part for part in last.parts if isinstance(part, ToolReturnPart)]


def call(name: str, arguments: str = "{}", index: int = 0, call_id: str = "p1") -> Delta:
    return {index: DeltaToolCall(name=name, json_args=arguments, tool_call_id=call_id)}


def data_of(message: Message) -> list[str]:
    return [part.data.json for part in message.parts if part.HasField("data")]


def one_tool(tool: Tool[None], *after: list[Delta]) -> tuple[Agent[None, str], Script]:
    """An agent whose model calls the tool, and then says what follows."""
    script = Script([call(tool.name)], *(after or (["end"],)))
    return Agent(script.model, name="a", tools=[tool]), script


async def test_text_reasoning_and_arguments_stream(serve_agents: ServeAgents, run: Run) -> None:
    """T2: the arguments are those that the model wrote, digit for digit."""
    script = Script(
        [
            {0: DeltaThinkingPart(content="hm ")},
            {0: DeltaThinkingPart(content="so")},
            "Let me ",
            "see. ",
            {2: DeltaToolCall(name="add", json_args='{"a": 1', tool_call_id="p1")},
            {2: DeltaToolCall(json_args=', "b": 2.0}')},
        ],
        ["It is 3."],
    )
    agent = Agent(script.model, name="a", instructions="Be brief.", system_prompt="You add.")

    @agent.tool_plain
    def add(a: int, b: float) -> float:
        """Adds."""
        return a + b

    stub = await serve_agents({"a": PydanticAgent(agent)})
    heard = await run(stub, [user("1 + 2?")])
    assert heard.end == "completed"
    first, second = heard.messages
    kinds = [part.WhichOneof("content") for part in first.parts]
    assert kinds == ["reasoning", "text", "tool_call"]
    assert first.parts[0].reasoning.text == "hm so"
    (made,) = calls(first)
    assert made.arguments_json == '{"a": 1, "b": 2.0}'
    assert (made.provider_call_id, made.tool_origin) == ("p1", "a")
    shown = [delta.arguments_delta for delta in heard.all("tool_call_delta")]
    assert shown == ['{"a": 1', ', "b": 2.0}']
    assert [delta.text for delta in heard.all("text_delta")][-1] == "It is 3."
    assert heard.results[made.call_id].output_json == "3.0"
    assert text_of(second) == "It is 3."
    assert first.usage.output_tokens > 0
    assert script.infos[1].instructions == "Be brief."
    request, said, results = script.shown[1]
    assert isinstance(request.parts[0], SystemPromptPart)
    assert request.parts[0].content == "You add."
    # The reasoning is shown again to the model that it came from.
    assert [type(part) for part in said.parts][:2] == [ThinkingPart, TextPart]
    assert isinstance(said, ModelResponse)
    assert isinstance(results, ModelRequest)
    (result,) = script.returned()
    assert (result.content, result.tool_call_id) == ("3.0", "p1")


async def test_a_tool_for_approval_is_asked_for_and_runs_once_granted(
    serve_agents: ServeAgents, run: Run
) -> None:
    """A1."""

    def pay() -> str:
        """Pays."""
        return "paid"

    agent, script = one_tool(Tool(pay, requires_approval=True))
    stub = await serve_agents({"a": PydanticAgent(agent)})
    asked = await run(stub, [user("pay")], {"pay": runner_pb2.VERDICT_ASK})
    assert asked.end == "parked"
    (proposed,) = asked.all("tools_proposed")
    assert proposed.tools[0].tool_permission == session_pb2.PERMISSION_ASK
    granted = await run(stub, [user("pay"), asked.messages[0]])
    assert granted.end == "completed"
    assert granted.results[calls(asked.messages[0])[0].call_id].output_json == '"paid"'
    # A string is shown to the model as the text that it is.
    assert script.returned()[0].content == "paid"


async def test_a_toolset_that_asks_for_some_calls_is_asked_for_all(
    serve_agents: ServeAgents, run: Run
) -> None:
    """A1: which calls it asks for shows only when it runs, and then nobody can be asked."""
    toolset: FunctionToolset[None] = FunctionToolset()

    @toolset.tool_plain
    def pay() -> str:
        """Pays."""
        return "paid"

    script = Script([call("pay")], ["end"])
    agent = Agent(script.model, name="a", toolsets=[toolset.approval_required()])
    stub = await serve_agents({"a": PydanticAgent(agent)})
    heard = await run(stub, [user("pay")])
    assert heard.all("tools_proposed")[0].tools[0].tool_permission == session_pb2.PERMISSION_ASK
    assert [result.output_json for result in heard.results.values()] == ['"paid"']


async def test_client_tools_of_session_agent_and_house_are_offered_and_park(
    serve_agents: ServeAgents, run: Run
) -> None:
    """R4: they are external tools to the model, and nobody but a client answers them."""
    external = ToolDefinition(
        name="pick_seat",
        description="Pick",
        metadata={"turngate": {"kind": "seat_map", "expires_after": 60}},
    )
    script = Script(
        [call("pick_seat", "{}", 0, "p1"), call("show_map", '{"zoom":1.50}', 1, "p2")], ["end"]
    )
    agent = Agent(script.model, name="a", toolsets=[ExternalToolset([external], id="seats")])
    stub = await serve_agents({"a": PydanticAgent(agent)})
    tools = [session_pb2.ClientTool(name="show_map", input_schema_json='{"type":"object"}')]
    parked = await run(stub, [user("go")], client_tools=tools)
    offered = {tool.name for tool in script.infos[0].function_tools}
    assert offered == {"pick_seat", "show_map", "request_input", "request_connection"}
    assert parked.end == "parked"
    seat, shown = parked.all("render_hint")
    assert (seat.hint.kind, shown.hint.kind) == ("seat_map", "show_map")
    assert seat.declaration.expires_after.seconds == 60
    assert not shown.HasField("declaration")
    seat_call, map_call = calls(parked.messages[0])
    assert seat_call.tool_origin == "seats"
    results = [
        client_output(seat_call.call_id, '{"seat":"1.0"}'),
        client_output(map_call.call_id, "[1.0, 12345678901234567890]"),
    ]
    resumed = await run(
        stub, [user("go"), answered(parked.messages[0], *results)], client_tools=tools
    )
    assert resumed.end == "completed"
    assert [(one.tool_call_id, one.content) for one in script.returned()] == [
        ("p1", '{"seat":"1.0"}'),
        ("p2", "[1.0, 12345678901234567890]"),
    ]


async def test_a_tool_gets_deps_of_the_turn_and_its_idempotency_key(
    serve_agents: ServeAgents, run: Run
) -> None:
    """S1: and what else a tool may want to know of the session."""
    script = Script([call("who")], ["end"])
    agent = Agent(script.model, name="a", deps_type=str)

    @agent.tool
    def who(ctx: RunContext[str]) -> list[object]:
        """Who."""
        return [ctx.deps, idempotency_key(ctx), (ctx.metadata or {})["turngate"]["session_id"]]

    async def deps(turn: Turn) -> str:
        return f"db of {turn.tenant_id}"

    stub = await serve_agents({"a": PydanticAgent(agent, make_deps=deps)})
    heard = await run(stub, [user("who?")], tenant_id="acme")
    (result,) = heard.results.values()
    assert result.output_json == f'["db of acme","s1:{result.call_id}","s1"]'


async def test_model_retry_is_an_error_with_its_text_and_has_an_end(
    serve_agents: ServeAgents, run: Run
) -> None:
    """R6: a tool that wants to be called again more often than it allows fails the run by name."""

    def find() -> str:
        """Finds."""
        raise ModelRetry("no such city; try Bern")

    agent, script = one_tool(Tool(find, max_retries=1), [call("find", call_id="p2")])
    stub = await serve_agents({"a": PydanticAgent(agent)})
    heard = await run(stub, [user("go")])
    first, second = heard.results.values()
    assert "no such city; try Bern" in first.error_text
    assert script.returned()[0].outcome == "failed"
    assert heard.end == "failed"
    assert "'find' failed more often" in heard.all("failed")[0].failure.message
    assert second.error_text == heard.all("failed")[0].failure.message


async def test_a_success_in_between_begins_the_count_anew(
    serve_agents: ServeAgents, run: Run
) -> None:
    outcomes = iter([True, False, True, False])

    def find() -> str:
        """Finds."""
        if next(outcomes):
            raise ModelRetry("again")
        return "found"

    more: list[list[Delta]] = [[call("find", call_id=f"p{n}")] for n in (2, 3, 4)]
    agent, _ = one_tool(Tool(find, max_retries=1), *more, ["end"])
    stub = await serve_agents({"a": PydanticAgent(agent)})
    heard = await run(stub, [user("go")])
    assert heard.end == "completed"


async def test_what_a_tool_raises_stays_inside(serve_agents: ServeAgents, run: Run) -> None:
    """E2."""

    def buggy() -> str:
        """Bug."""
        raise ValueError("password is hunter2")

    agent, _ = one_tool(Tool(buggy))
    stub = await serve_agents({"a": PydanticAgent(agent)})
    heard = await run(stub, [user("go")])
    (result,) = heard.results.values()
    assert result.error_text == "The tool failed unexpectedly."
    assert heard.end == "completed"


async def test_a_tools_own_time_out_counts(serve_agents: ServeAgents, run: Run) -> None:
    async def slow() -> str:
        """Slow."""
        await asyncio.Event().wait()
        return ""

    agent, _ = one_tool(Tool(slow, timeout=0.05))
    stub = await serve_agents({"a": PydanticAgent(agent)})
    heard = await run(stub, [user("go")])
    (result,) = heard.results.values()
    assert "0.05" in result.error_text
    assert heard.end == "completed"


async def test_files_of_a_tool_are_named_and_not_kept(serve_agents: ServeAgents, run: Run) -> None:
    def photo() -> ToolReturn:
        """Photo."""
        picture = BinaryContent(b"\x89PNG", media_type="image/png")
        return ToolReturn({"n": 1}, content=["look:", picture])

    agent, _ = one_tool(Tool(photo))
    stub = await serve_agents({"a": PydanticAgent(agent)})
    heard = await run(stub, [user("go")])
    (result,) = heard.results.values()
    assert result.output_json == (
        '{"return_value":{"n":1},'
        '"content":[["look:","[a file of type image/png, 4 bytes; it is not kept]"]]}'
    )


class Trip(BaseModel):
    city: str
    nights: int


@pytest.mark.parametrize("native", [False, True])
async def test_a_structured_output_is_data_and_bad_ones_are_asked_for_again(
    serve_agents: ServeAgents, run: Run, native: bool
) -> None:
    """T4: attempts that did not fit are no messages, so nothing of them has to be paired."""
    bad, good = '{"city":"Bern"}', '{"city":"Bern","nights":2}'
    answers: list[list[Delta]] = (
        [[bad], [good]] if native else [[call("final_result", bad)], [call("final_result", good)]]
    )
    script = Script(*answers, ["later"])
    agent: Agent[None, Trip] = Agent(
        script.model, name="a", output_type=NativeOutput(Trip) if native else Trip
    )
    stub = await serve_agents({"a": PydanticAgent(agent)})
    heard = await run(stub, [user("go")])
    assert heard.end == "completed"
    (message,) = heard.messages
    assert data_of(message) == [good]
    assert (text_of(message), calls(message)) == ("", [])
    assert len(script.shown) == 2


async def test_calls_beside_an_output_win(serve_agents: ServeAgents, run: Run) -> None:
    """A tool that the model asked for runs; the output comes when its result is known."""
    good = '{"city":"Bern","nights":2}'
    script = Script(
        ["Checking. ", call("check", "{}", 1, "p1"), call("final_result", good, 2, "p2")],
        [call("final_result", good)],
    )
    agent = Agent(script.model, name="a", output_type=Trip)

    @agent.tool_plain
    def check() -> bool:
        """Checks."""
        return True

    stub = await serve_agents({"a": PydanticAgent(agent)})
    heard = await run(stub, [user("go")])
    first, second = heard.messages
    assert [made.name for made in calls(first)] == ["check"]
    assert text_of(first) == "Checking. "
    assert data_of(second) == [good]
    assert heard.end == "completed"


async def test_a_text_that_a_validator_refuses_is_never_shown(
    serve_agents: ServeAgents, run: Run
) -> None:
    script = Script(["rude"], ["polite"])
    agent = Agent(script.model, name="a")

    @agent.output_validator
    def politely(text: str) -> str:
        if text == "rude":
            raise ModelRetry("be polite")
        return text

    stub = await serve_agents({"a": PydanticAgent(agent)})
    heard = await run(stub, [user("go")])
    assert (heard.deltas, heard.end) == ("polite", "completed")


async def test_an_answer_of_nothing_but_reasoning_is_asked_for_again(
    serve_agents: ServeAgents, run: Run
) -> None:
    script = Script([{0: DeltaThinkingPart(content="hm")}], ["so"], ["later"])
    agent = Agent(script.model, name="a")
    stub = await serve_agents({"a": PydanticAgent(agent)})
    heard = await run(stub, [user("go")])
    assert text_of(heard.messages[0]) == "so"
    assert heard.end == "completed"
    await run(stub, [user("go"), heard.messages[0], user("more", "p2")])
    shown = script.shown[-1][1]
    assert [type(part) for part in shown.parts] == [TextPart]


async def test_a_call_without_sound_arguments_or_tool_goes_back(
    serve_agents: ServeAgents, run: Run
) -> None:
    """T2, R4."""
    script = Script([call("nope"), call("request_input", "{", 1, "p2")], ["end"])
    stub = await serve_agents({"a": PydanticAgent(Agent(script.model, name="a"))})
    heard = await run(stub, [user("go")])
    assert heard.end == "completed"
    kinds = {result.kind for result in heard.results.values()}
    assert kinds == {message_pb2.RESULT_KIND_CALL_REFUSED}
    assert [one.outcome for one in script.returned()] == ["failed", "failed"]


async def test_errors_of_a_provider_have_names(serve_agents: ServeAgents, run: Run) -> None:
    """E2: a stable reason with the time to wait, and nothing of the provider's own text."""

    async def refuse(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Delta]:
        raise ModelHTTPError.for_category(
            ModelRateLimitError,
            status_code=429,
            model_name="m",
            body={"key": "sk-1"},
            headers={"retry-after": "2"},
        )
        yield ""

    agent = Agent(FunctionModel(stream_function=refuse), name="a")
    stub = await serve_agents({"a": PydanticAgent(agent)})
    heard = await run(stub, [user("go")])
    failure = heard.all("failed")[0].failure
    assert failure.reason == run_pb2.RUN_FAILURE_REASON_MODEL_RATE_LIMIT
    assert failure.retry_after_ms == 2000
    assert "sk-1" not in failure.message


async def test_a_cancel_closes_the_model_call(serve_agents: ServeAgents, opened: Open) -> None:
    """C1: the stream of the model ends at once."""
    closed = asyncio.Event()

    async def endless(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Delta]:
        try:
            yield "so "
            await asyncio.Event().wait()
        finally:
            closed.set()

    agent = Agent(FunctionModel(stream_function=endless), name="a")
    stub = await serve_agents({"a": PydanticAgent(agent)})
    broker = await opened(stub, [user("go")])
    await broker.until("text_delta")
    await broker.cancel()
    heard = await broker.run()
    assert heard.end == "cancelled"
    await asyncio.wait_for(closed.wait(), 20)


async def test_tools_are_described_with_schemas_and_traits(serve_agents: ServeAgents) -> None:
    agent = Agent(Script().model, name="a", description="Helps")

    @agent.tool_plain(
        metadata={"turngate": {"destructive": True, "idempotent": True, "grant_scope": "once"}}
    )
    def drop(table: str) -> None:
        """Drops a table."""

    stub = await serve_agents({"a": PydanticAgent(agent)})
    described = await stub.DescribeAgents(runner_pb2.DescribeAgentsRequest())
    (one,) = described.agents
    assert (one.name, one.description) == ("a", "Helps")
    (tool,) = one.tools
    assert (tool.name, tool.description) == ("drop", "Drops a table.")
    assert '"table"' in tool.input_schema_json
    assert tool.traits.destructive
    assert tool.traits.idempotent
    assert tool.traits.grant_scope == message_pb2.GRANT_SCOPE_ONCE


async def test_metadata_that_is_misspelt_fails_the_run_by_name(
    serve_agents: ServeAgents, run: Run
) -> None:
    def drop() -> str:
        """Drops."""
        return ""

    agent, _ = one_tool(Tool(drop, metadata={"turngate": {"destructiv": True}}))
    stub = await serve_agents({"a": PydanticAgent(agent)})
    heard = await run(stub, [user("go")])
    message = heard.all("failed")[0].failure.message
    assert message.startswith("tool 'drop': metadata turngate.destructiv: ")


async def test_the_sessions_own_instructions_stand_beside_the_agents(
    serve_agents: ServeAgents, run: Run
) -> None:
    script = Script(["hi"])
    agent = Agent(script.model, name="a", instructions="Be brief.")
    stub = await serve_agents({"a": PydanticAgent(agent)})
    part = message_pb2.Part(text=message_pb2.TextPart(text="Speak French."))
    system = Message(id="m0", role=message_pb2.ROLE_SYSTEM, parts=[part])
    await run(stub, [system, user("go")])
    instructions = script.infos[0].instructions or ""
    assert "Be brief." in instructions
    assert "Speak French." in instructions
    assert [type(part) for part in script.shown[0][0].parts] == [UserPromptPart]
