"""Agents of Pydantic AI on each wire: the strict servers refuse what the real ones refuse."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI
from pydantic_ai import Agent
from pydantic_ai.models import Model
from pydantic_ai.models.anthropic import AnthropicModel, AnthropicModelSettings
from pydantic_ai.models.openai import (
    OpenAIChatModel,
    OpenAIResponsesModel,
    OpenAIResponsesModelSettings,
)
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

from runner_service.pydantic_ai import PydanticAgent
from tests.e2e.runner.broker_side import (
    Message,
    Run,
    ServeAgents,
    ToolResult,
    answered,
    calls,
    client_output,
    text_of,
    user,
)
from tests.providers.script import (
    Answer,
    Failure,
    FailureKind,
    Reasoned,
    Reasoning,
    Request,
    ToolCall,
    answer,
    in_turn,
)
from tests.providers.server import ProviderServer, serving
from turngate.v1 import message_pb2, run_pb2, session_pb2

WIRES = ("chat", "responses", "messages", "extended")


@pytest.fixture(scope="module")
def running() -> Iterator[ProviderServer]:
    with serving(in_turn()) as server:
        yield server


@pytest.fixture
def server(running: ProviderServer) -> Iterator[ProviderServer]:
    """The providers without a script. No test may let a request be refused."""
    running.reset(in_turn())
    yield running
    assert running.faults == []


@pytest_asyncio.fixture(params=WIRES)
async def model(request: pytest.FixtureRequest, server: ProviderServer) -> AsyncIterator[Model]:
    """A model on each wire."""
    openai = AsyncOpenAI(base_url=server.openai_url, api_key=server.api_key, max_retries=0)
    anthropic = AsyncAnthropic(base_url=server.anthropic_url, api_key=server.api_key, max_retries=0)
    async with openai, anthropic:
        by_openai = OpenAIProvider(openai_client=openai)
        by_anthropic = AnthropicProvider(anthropic_client=anthropic)
        match request.param:
            case "chat":
                yield OpenAIChatModel("gpt-4.1", provider=by_openai)
            case "responses":
                settings = OpenAIResponsesModelSettings(openai_reasoning_summary="auto")
                yield OpenAIResponsesModel("gpt-5", provider=by_openai, settings=settings)
            case "messages":
                yield AnthropicModel("claude-opus-5-5", provider=by_anthropic)
            case _:
                thinking = AnthropicModelSettings(
                    anthropic_thinking={"type": "enabled", "budget_tokens": 1024}, max_tokens=4096
                )
                name = "claude-haiku-4-5"
                yield AnthropicModel(name, provider=by_anthropic, settings=thinking)


def weather_agent(model: Model) -> PydanticAgent[None]:
    agent = Agent(model, name="a", instructions="Be brief.")

    @agent.tool_plain
    def weather(city: str, n: float = 0) -> str:
        """The weather in a city."""
        return f"sunny in {city}"

    return PydanticAgent(agent)


async def test_a_turn_parks_goes_on_and_is_followed_by_another(
    serve_agents: ServeAgents, run: Run, server: ProviderServer, model: Model
) -> None:
    """T4: parallel calls, one for a client; reasoning is shown again and no request is refused."""
    seen: list[Request] = []

    def look(request: Request) -> Answer:
        seen.append(request)
        return answer(Reasoning("There it is."), "Sunny, seat 3.")

    server.script = in_turn(
        answer(
            Reasoning("I look."),
            "Let me see.",
            ToolCall("weather", '{"city": "Bern", "n": 1.50}'),
            ToolCall("pick_seat", '{"row": 12345678901234567890}'),
        ),
        look,
        answer("Bye."),
    )
    stub = await serve_agents({"a": weather_agent(model)})
    tools = [session_pb2.ClientTool(name="pick_seat", input_schema_json='{"type":"object"}')]
    parked = await run(stub, [user("Weather?")], client_tools=tools)
    assert parked.end == "parked", parked.all("failed")
    (step,) = parked.messages
    assert text_of(step) == "Let me see."
    weather, seat = calls(step)
    assert weather.arguments_json == '{"city": "Bern", "n": 1.50}'
    results = [parked.results[weather.call_id], client_output(seat.call_id, '{"seat":3.0}')]
    history = [user("Weather?"), answered(step, *results)]
    resumed = await run(stub, history, client_tools=tools)
    assert resumed.end == "completed", server.refused
    assert seen[0].results == {"weather": "sunny in Bern", "pick_seat": '{"seat":3.0}'}
    if not isinstance(model, OpenAIChatModel):  # a wire without reasoning
        assert Reasoned("I look.") in seen[0].history
    more = [*history, resumed.messages[0], user("Thanks!", "p2")]
    assert (await run(stub, more, client_tools=tools)).end == "completed"
    assert server.refused == [], server.refused


async def test_a_history_of_everything_that_can_go_wrong_is_accepted(
    serve_agents: ServeAgents, run: Run, server: ProviderServer, model: Model
) -> None:
    """T4: synthetic results, malformed arguments, ids given twice, a window that begins late."""
    server.script = in_turn(answer("Fine."))
    stub = await serve_agents({"a": weather_agent(model)})
    kinds = (
        message_pb2.RESULT_KIND_CANCELLED_BY_USER,
        message_pb2.RESULT_KIND_DENIED,
        message_pb2.RESULT_KIND_EXPIRED,
        message_pb2.RESULT_KIND_RUN_FAILED,
        message_pb2.RESULT_KIND_OUTCOME_UNKNOWN,
    )
    ended = [ToolResult(call_id=f"call:{n}.x", kind=kind) for n, kind in enumerate(kinds)]
    made = [
        message_pb2.ToolCall(
            call_id=result.call_id,
            name="weather",
            provider_call_id="same",
            executor=message_pb2.TOOL_EXECUTOR_SERVER,
        )
        for result in ended
    ]
    made[0].malformed_arguments = '{"city": '
    made[1].arguments_json = '{"city": "Bern"}'
    made.append(message_pb2.ToolCall(call_id="open", name="gone", provider_call_id="same"))
    first = Message(
        id="m1",
        role=message_pb2.ROLE_ASSISTANT,
        parts=[message_pb2.Part(tool_call=call) for call in made],
    )
    greeting = Message(id="m0", role=message_pb2.ROLE_ASSISTANT)
    greeting.parts.add(text=message_pb2.TextPart(text="Welcome!"))
    thought = Message(id="m2", role=message_pb2.ROLE_ASSISTANT)
    thought.parts.add(reasoning=message_pb2.ReasoningPart(text="of another model"))
    history = [greeting, user("one"), answered(first, *ended), thought, user("two", "p2")]
    heard = await run(stub, history)
    assert heard.end == "completed", server.refused
    assert server.refused == [], server.refused


async def test_state_of_one_model_is_not_shown_to_another(
    serve_agents: ServeAgents, run: Run, server: ProviderServer, model: Model
) -> None:
    """A session may change its model: signatures and ids stay behind, texts and calls go on."""
    foreign = message_pb2.ProviderState(provider="anthropic", model="other", data=b'{"x":1}')
    call = message_pb2.ToolCall(
        call_id="c1", name="weather", arguments_json='{"city":"Bern"}', provider_call_id="toolu_1"
    )
    step = Message(id="m1", role=message_pb2.ROLE_ASSISTANT, provider_state=foreign)
    step.parts.add(reasoning=message_pb2.ReasoningPart(text="hm"))
    step.parts.add(tool_call=call)
    result = ToolResult(call_id="c1", output_json="1", kind=message_pb2.RESULT_KIND_TOOL)
    server.script = in_turn(answer("Fine."))
    stub = await serve_agents({"a": weather_agent(model)})
    heard = await run(stub, [user("one"), answered(step, result)])
    assert heard.end == "completed", server.refused
    assert server.refused == [], server.refused


FAILURES: dict[FailureKind, run_pb2.RunFailureReason.ValueType] = {
    "authentication": run_pb2.RUN_FAILURE_REASON_MODEL_AUTHENTICATION,
    "rate_limit": run_pb2.RUN_FAILURE_REASON_MODEL_RATE_LIMIT,
    "context_too_long": run_pb2.RUN_FAILURE_REASON_MODEL_CONTEXT_TOO_LONG,
    "content_filter": run_pb2.RUN_FAILURE_REASON_MODEL_CONTENT_FILTER,
    "server_error": run_pb2.RUN_FAILURE_REASON_MODEL_UNAVAILABLE,
    "overloaded": run_pb2.RUN_FAILURE_REASON_MODEL_UNAVAILABLE,
}


@pytest.mark.parametrize("kind", FAILURES)
async def test_a_providers_errors_have_stable_names(
    serve_agents: ServeAgents, run: Run, server: ProviderServer, model: Model, kind: FailureKind
) -> None:
    """E2: with the time to wait where the provider says it, and without the provider's text."""
    server.script = in_turn(Failure(kind, retry_after=3 if kind == "rate_limit" else None))
    stub = await serve_agents({"a": weather_agent(model)})
    heard = await run(stub, [user("go")])
    failure = heard.all("failed")[0].failure
    name = run_pb2.RunFailureReason.Name(failure.reason)
    assert name == run_pb2.RunFailureReason.Name(FAILURES[kind])
    assert failure.retry_after_ms == (3000 if kind == "rate_limit" else 0)
    assert server.api_key not in failure.message
