"""Which runner takes a run: those that describe its agent, in turn (S2)."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field

import grpc
import structlog
from grpc import aio

from turngate.v1 import runner_pb2, runner_pb2_grpc

log = structlog.stdlib.get_logger(__name__)

DESCRIBE_TIMEOUT_S = 2.0
DESCRIPTION_KEPT_S = 30.0
"""How long a description counts. A runner that restarts with other agents is asked again then, or
as soon as it refuses a run."""

_OPTIONS = (
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 2_000),
)


@dataclass(frozen=True, slots=True)
class Placed:
    """A runner that serves the agent, and the window of history that the agent wants (X6)."""

    stub: runner_pb2_grpc.RunnerServiceAsyncStub
    address: str
    history_window: int


@dataclass(slots=True)
class _Runner:
    address: str
    channel: aio.Channel
    stub: runner_pb2_grpc.RunnerServiceAsyncStub
    agents: dict[str, runner_pb2.AgentDescription] = field(default_factory=dict)
    described_at: float = float("-inf")
    asking: asyncio.Lock = field(default_factory=asyncio.Lock)


class Placement:
    """The runners that this broker knows, by address."""

    def __init__(self, addresses: tuple[str, ...]) -> None:
        self._runners = []
        for address in addresses:
            channel = aio.insecure_channel(address, options=_OPTIONS)
            stub = runner_pb2_grpc.RunnerServiceStub(channel)
            self._runners.append(_Runner(address, channel, stub))
        self._next = 0

    async def place(self, agent: str) -> Placed | None:
        """The next runner in turn that serves the agent; None if none does now."""
        for offset in range(len(self._runners)):
            runner = self._runners[(self._next + offset) % len(self._runners)]
            await self._describe(runner)
            described = runner.agents.get(agent)
            if described is not None:
                self._next = (self._next + offset + 1) % len(self._runners)
                return Placed(runner.stub, runner.address, described.history_window)
        return None

    def refused(self, address: str) -> None:
        """A runner could not take a run: ask it again what it serves before the next one."""
        for runner in self._runners:
            if runner.address == address:
                runner.described_at = float("-inf")

    async def close(self) -> None:
        for runner in self._runners:
            await runner.channel.close()

    async def _describe(self, runner: _Runner) -> None:
        async with runner.asking:
            if time.monotonic() - runner.described_at < DESCRIPTION_KEPT_S:
                return
            try:
                response = await runner.stub.DescribeAgents(
                    runner_pb2.DescribeAgentsRequest(), timeout=DESCRIBE_TIMEOUT_S
                )
            except aio.AioRpcError as error:
                if runner.agents or error.code() is not grpc.StatusCode.UNAVAILABLE:
                    log.warning("runner not reached", runner=runner.address, code=error.code().name)
                runner.agents = {}
                return
            runner.agents = {agent.name: agent for agent in response.agents}
            runner.described_at = time.monotonic()
