"""An agent of Pydantic AI works on each wire, and no request of it is refused."""

from collections.abc import AsyncIterable, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeAlias

import pytest
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI
from pydantic_ai import Agent, RunContext
from pydantic_ai.exceptions import ModelContextWindowExceededError
from pydantic_ai.models import Model
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

from tests.providers.conftest import DEADLINE
from tests.providers.script import (
    Answer,
    Failure,
    Reasoning,
    Request,
    ToolCall,
    answer,
    in_turn,
)
from tests.providers.server import ProviderServer


@asynccontextmanager
async def openai_provider(server: ProviderServer) -> AsyncIterator[OpenAIProvider]:
    async with AsyncOpenAI(
        base_url=server.openai_url, api_key=server.api_key, max_retries=0, timeout=DEADLINE
    ) as client:
        yield OpenAIProvider(openai_client=client)


@asynccontextmanager
async def chat(server: ProviderServer) -> AsyncIterator[Model]:
    async with openai_provider(server) as provider:
        yield OpenAIChatModel("gpt-4.1", provider=provider)


@asynccontextmanager
async def responses(server: ProviderServer) -> AsyncIterator[Model]:
    async with openai_provider(server) as provider:
        yield OpenAIResponsesModel("gpt-5", provider=provider)


@asynccontextmanager
async def messages(server: ProviderServer, name: str = "claude-opus-5-5") -> AsyncIterator[Model]:
    async with AsyncAnthropic(
        base_url=server.anthropic_url, api_key=server.api_key, max_retries=0, timeout=DEADLINE
    ) as client:
        yield AnthropicModel(name, provider=AnthropicProvider(anthropic_client=client))


def extended(server: ProviderServer) -> AbstractAsyncContextManager[Model]:
    return messages(server, "claude-haiku-4-5")


Make: TypeAlias = Callable[[ProviderServer], AbstractAsyncContextManager[Model]]
WIRES: list[Make] = [chat, responses, messages, extended]


def weather_agent(model: Model) -> Agent[None, str]:
    agent = Agent(model, instructions="Be brief.")

    @agent.tool_plain
    def weather(city: str) -> str:
        """The weather in a city."""
        return f"sunny in {city}"

    return agent


async def drain(_context: RunContext[None], events: AsyncIterable[object]) -> None:
    """Lets the model stream, which it does for who listens."""
    async for _ in events:
        pass


def last(request: Request) -> Answer:
    return answer(Reasoning("All there."), f"It is {request.results['weather']}.")


@pytest.mark.parametrize("make", WIRES)
async def test_an_agent_calls_a_tool_and_goes_on(server: ProviderServer, make: Make) -> None:
    server.script = in_turn(
        answer(Reasoning("I look."), "Let me see.", ToolCall("weather", '{"city": "Bern"}')),
        last,
        answer("Bye."),
    )
    settings: Any = {"thinking": True} if make is extended else {}
    async with make(server) as model:
        agent = weather_agent(model)
        first = await agent.run("Weather?", model_settings=settings, event_stream_handler=drain)
        again = await agent.run(
            "Thanks!", message_history=first.all_messages(), model_settings=settings
        )
    assert (first.output, again.output) == ("It is sunny in Bern.", "Bye.")
    assert server.refused == []


@pytest.mark.parametrize("make", [chat, responses, messages])
async def test_an_agent_sees_the_providers_error(server: ProviderServer, make: Make) -> None:
    server.script = in_turn(Failure("context_too_long"))
    async with make(server) as model:
        with pytest.raises(ModelContextWindowExceededError):
            await weather_agent(model).run("Hi")
