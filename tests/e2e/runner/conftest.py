"""A real runner on a real port, with the agents of a test's own script."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import structlog
from grpc import aio

from runner_service.agents.protocol import Agent
from runner_service.agents.scripted import scripted_agents
from runner_service.api.execute import Executions
from runner_service.api.service import SERVICE_NAME, RunnerService
from runner_service.limits import AttemptLimits
from tests.e2e.runner.broker_side import (
    BrokerSide,
    Heard,
    Message,
    Open,
    Run,
    Serve,
    ServeAgents,
    Stub,
    Verdicts,
    start,
)
from turngate.v1 import runner_pb2_grpc
from turngate_serving.server import build_server


@pytest.fixture(autouse=True)
def plain_tracebacks() -> Iterator[None]:
    """As the services write them: those with local variables take seconds here."""
    console = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
    structlog.configure(processors=[structlog.processors.add_log_level, console])
    yield
    structlog.reset_defaults()


@pytest_asyncio.fixture
async def serve_agents() -> AsyncIterator[ServeAgents]:
    """Serves agents on a real port."""
    async with AsyncExitStack() as stack:

        async def serve(
            agents: Mapping[str, Agent],
            *,
            max_concurrent_runs: int = 0,
            limits: AttemptLimits | None = None,
        ) -> Stub:
            executions = Executions(agents, limits or AttemptLimits(), max_concurrent_runs)
            service = RunnerService(agents, executions, max_concurrent_runs)

            def register(server: aio.Server) -> None:
                runner_pb2_grpc.add_RunnerServiceServicer_to_server(service, server)

            server = await build_server("127.0.0.1:0", register, [SERVICE_NAME])
            await server.grpc.start()
            stack.push_async_callback(server.grpc.stop, None)
            channel = await stack.enter_async_context(aio.insecure_channel(server.address))
            return runner_pb2_grpc.RunnerServiceStub(channel)

        yield serve


@pytest.fixture
def serve(serve_agents: ServeAgents, tmp_path: Path) -> Serve:
    """Serves a script's text; the files of its tools lie in `tmp_path`."""

    async def serve_script(
        text: str, *, max_concurrent_runs: int = 0, limits: AttemptLimits | None = None
    ) -> Stub:
        file = tmp_path / "script.yaml"
        file.write_text(text, encoding="utf-8")
        agents = scripted_agents(file, tmp_path)
        return await serve_agents(agents, max_concurrent_runs=max_concurrent_runs, limits=limits)

    return serve_script


@pytest.fixture
def opened() -> Open:
    """An attempt that has been opened, for what a test does step by step."""

    async def open_attempt(stub: Stub, history: Iterable[Message], **fields: Any) -> BrokerSide:
        messages = list(history)
        agent = fields.pop("agent", "a")
        return await BrokerSide(stub, start(agent, messages, **fields), messages).open()

    return open_attempt


@pytest.fixture
def run(opened: Open) -> Run:
    """An attempt from the opening to its end."""

    async def run_attempt(
        stub: Stub,
        history: Iterable[Message],
        verdicts: Verdicts | None = None,
        **fields: Any,
    ) -> Heard:
        broker = await opened(stub, history, **fields)
        return await broker.run(verdicts)

    return run_attempt
