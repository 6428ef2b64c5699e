"""The runner as a process: its agents, its server, its stop."""

from __future__ import annotations

from pathlib import Path

import structlog
from grpc import aio

from runner_service.agents.protocol import Agent
from runner_service.agents.script_loader import ScriptError
from runner_service.agents.scripted import DEMO_SCRIPT, scripted_agents
from runner_service.api.execute import Executions
from runner_service.api.service import SERVICE_NAME, RunnerService
from runner_service.config import RunnerSettings
from runner_service.limits import AttemptLimits
from turngate.v1 import runner_pb2_grpc
from turngate_serving.exit import StartError
from turngate_serving.ready import say_ready
from turngate_serving.server import ServerOptions, build_server, serve_until_signal

log = structlog.stdlib.get_logger(__name__)

# A hook of the drain has the whole time-out; the attempts get a little less, to end by name.
_SHARE_OF_DRAIN = 0.8


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


def load_agents(settings: RunnerSettings) -> dict[str, Agent]:
    """The agents that are to be served, by name. Raises `StartError`."""
    agents: dict[str, Agent] = {}
    data_dir = settings.data_path
    try:
        agents.update(scripted_agents(DEMO_SCRIPT, data_dir))
        builtin = set(agents)
        for file in settings.script:
            found = scripted_agents(Path(file), data_dir)
            for name in found.keys() & agents.keys() - builtin:
                raise StartError(f"{file}: another script has an agent {name!r}, too")
            builtin -= found.keys()
            agents.update(found)
    except ScriptError as error:
        raise StartError(str(error)) from error
    if not settings.agent:
        return agents
    for name in settings.agent:
        if name not in agents:
            raise StartError(f"no agent {name!r}; there are {', '.join(sorted(agents))}")
    return {name: agents[name] for name in settings.agent}
