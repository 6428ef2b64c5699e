"""One server for all tests here, with a script for each; clients that try once."""

from collections.abc import Iterator

import anthropic
import openai
import pytest

from tests.providers.script import in_turn
from tests.providers.server import ProviderServer, serving

# What a client waits for an answer, in seconds: the server is in this process.
DEADLINE = 10.0


@pytest.fixture(scope="package")
def running() -> Iterator[ProviderServer]:
    with serving(in_turn()) as server:
        yield server


@pytest.fixture
def server(running: ProviderServer) -> Iterator[ProviderServer]:
    """The fakes without a script: a test sets `server.script`."""
    running.reset(in_turn())
    yield running
    assert running.faults == []


@pytest.fixture(scope="package")
def openai_of_all(running: ProviderServer) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(
        base_url=running.openai_url, api_key=running.api_key, max_retries=0, timeout=DEADLINE
    ) as client:
        yield client


@pytest.fixture(scope="package")
def anthropic_of_all(running: ProviderServer) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(
        base_url=running.anthropic_url, api_key=running.api_key, max_retries=0, timeout=DEADLINE
    ) as client:
        yield client


# A client takes a while to make, so there is one of each.


@pytest.fixture
def openai_client(server: ProviderServer, openai_of_all: openai.OpenAI) -> openai.OpenAI:
    return openai_of_all


@pytest.fixture
def anthropic_client(
    server: ProviderServer, anthropic_of_all: anthropic.Anthropic
) -> anthropic.Anthropic:
    return anthropic_of_all
