"""Runners that misbehave at the wire: whatever they do, their run does not hang (R3, S2).

The broker is a real process; the runner is a few lines here that keep the contract badly.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc import aio

from tests.e2e.pair import Service
from turngate.v1 import runner_pb2, runner_pb2_grpc
from turngate.v1.message_pb2 import ROLE_ASSISTANT, ROLE_USER, Message
from turngate.v1.run_pb2 import RUN_FAILURE_REASON_ATTEMPTS_EXHAUSTED, RUN_STATE_FAILED, Run
from turngate_client import SessionView, TurngateClient

FLAGS = (
    "--default-agent=bad",
    "--lease=2",
    "--heartbeat=0.2",
    "--silent-runner=1",
    "--runner-retries=2",
    "--retry-pause=0.05",
)


class BadRunner(runner_pb2_grpc.RunnerServiceServicer):
    """Describes one agent and executes it in a way of its own."""

    async def DescribeAgents(
        self, request: runner_pb2.DescribeAgentsRequest, context: Any
    ) -> runner_pb2.DescribeAgentsResponse:
        agent = runner_pb2.AgentDescription(name="bad", history_window=100)
        return runner_pb2.DescribeAgentsResponse(agents=[agent])

    async def ExtractToolResults(
        self, request: runner_pb2.ExtractToolResultsRequest, context: Any
    ) -> runner_pb2.ExtractToolResultsResponse:
        return runner_pb2.ExtractToolResultsResponse()


class TakesNothing(BadRunner):
    """Says that it is alive, and reads no history: its window of flow control fills up."""

    async def Execute(
        self, request_iterator: Any, context: Any
    ) -> AsyncIterator[runner_pb2.ExecuteResponse]:
        number = 0
        while True:
            number += 1
            yield beats(number, 1)
            try:
                async with asyncio.timeout(0.2):
                    await asyncio.Event().wait()
            except TimeoutError:
                continue


class DiesBehindAFlood(BadRunner):
    """Sends more than the broker gathers at once, and is gone."""

    async def Execute(
        self, request_iterator: Any, context: Any
    ) -> AsyncIterator[runner_pb2.ExecuteResponse]:
        for batch in range(8):
            yield beats(batch * 1000 + 1, 1000)
        await context.abort(grpc.StatusCode.UNAVAILABLE, "gone")


def beats(first: int, count: int) -> runner_pb2.ExecuteResponse:
    response = runner_pb2.ExecuteResponse()
    for number in range(first, first + count):
        response.events.add(number=number, heartbeat=runner_pb2.Heartbeat())
    return response


@asynccontextmanager
async def broker_with(runner: BadRunner, store: str, folder: Path) -> AsyncIterator[TurngateClient]:
    server = aio.server(
        options=[("grpc.http2.bdp_probe", 0), ("grpc.http2.lookahead_bytes", 65_535)]
    )
    runner_pb2_grpc.add_RunnerServiceServicer_to_server(runner, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    flags = (f"--store={store}", "--migrate", f"--runner=127.0.0.1:{port}", *FLAGS)
    broker = Service("broker", folder, flags)
    broker.start()
    try:
        async with TurngateClient(broker.address) as client:
            yield client
    finally:
        broker.kill()
        await server.stop(None)


def history(size: int) -> list[Message]:
    messages = []
    for role in (ROLE_USER, ROLE_ASSISTANT, ROLE_USER, ROLE_ASSISTANT):
        message = Message(role=role)
        message.parts.add().text.text = "x" * size
        messages.append(message)
    return messages


@pytest.mark.parametrize("make", [TakesNothing, DiesBehindAFlood])
async def test_S2_a_run_does_not_hang_at_a_runner_that_misbehaves(
    make: Callable[[], BadRunner], store_url: Callable[[Path], str], tmp_path: Path
) -> None:
    """R3, R6: each attempt is lost within its bound, and then the run fails by name."""
    async with broker_with(make(), store_url(tmp_path), tmp_path) as client:
        session = await client.create_session(messages=history(200_000))
        sent = await session.send("hello")

        def failed(view: SessionView) -> Run | None:
            found = view.runs.get(sent.run_id)
            return found.run if found and found.run.state == RUN_STATE_FAILED else None

        run = await session.until(failed, timeout=45, what="the failed run")
        assert run.failure.reason == RUN_FAILURE_REASON_ATTEMPTS_EXHAUSTED
