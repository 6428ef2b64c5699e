"""The runner as a process: its agents, its server, its stop."""

from __future__ import annotations

import asyncio
from typing import Protocol, runtime_checkable

import structlog
from grpc import aio

from runner_service.api.execute import Executions
from runner_service.api.service import SERVICE_NAME, RunnerService
from runner_service.config import RunnerSettings
from runner_service.limits import AttemptLimits
from runner_service.loading import load_agents
from turngate.v1 import runner_pb2_grpc
from turngate_serving.ready import say_ready
from turngate_serving.server import ServerOptions, build_server, serve_until_signal

log = structlog.stdlib.get_logger(__name__)

# A hook of the drain has the whole time-out; the attempts get a little less, to end by name.
_SHARE_OF_DRAIN = 0.8


@runtime_checkable
class _Closing(Protocol):
    """An agent that has something open."""

    async def close(self) -> None: ...


async def serve(settings: RunnerSettings) -> int:
    """Serve until a signal; the exit code. Raises `StartError`."""
    agents = load_agents(settings)
    limits = AttemptLimits(
        max_steps=settings.max_steps,
        cancel_grace_seconds=settings.cancel_grace,
        tool_timeout_seconds=settings.tool_timeout or None,
    )
    executions = Executions(agents, limits, settings.max_concurrent_runs)
    service = RunnerService(agents, executions, settings.max_concurrent_runs)

    def register(server: aio.Server) -> None:
        runner_pb2_grpc.add_RunnerServiceServicer_to_server(service, server)

    async def hand_over() -> None:
        await executions.drain(settings.drain_timeout * _SHARE_OF_DRAIN)
        closing = [agent.close() for agent in agents.values() if isinstance(agent, _Closing)]
        await asyncio.gather(*closing, return_exceptions=True)

    server = await build_server(
        settings.listen,
        register,
        [SERVICE_NAME],
        options=ServerOptions(
            keepalive_time_s=settings.keepalive_time,
            keepalive_timeout_s=settings.keepalive_timeout,
        ),
    )
    log.info("agents", names=sorted(agents))
    return await serve_until_signal(
        server,
        hooks=[hand_over],
        hook_timeout_s=settings.drain_timeout,
        grace_s=settings.drain_grace,
        on_listening=lambda address: say_ready(settings.ready_file, address),
    )
