"""`DescribeAgents`: what this runner serves."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from importlib.metadata import PackageNotFoundError, version

import structlog

from runner_service.agents.protocol import Agent, AgentProfile, AgentTool, ServerTool
from runner_service.opening import PROTOCOL_REVISION
from runner_service.toolbox import declaration_of, executor_of, proposal_of
from turngate.v1 import runner_pb2

log = structlog.stdlib.get_logger(__name__)

# A broker waits 2 s for the whole answer.
LISTING_TIMEOUT_SECONDS = 1.0


async def describe_agents(
    agents: Iterable[Agent], max_concurrent_runs: int
) -> runner_pb2.DescribeAgentsResponse:
    """All agents by name, with their tools; without them where they cannot be had in time."""
    ordered = sorted(agents, key=lambda agent: agent.profile.name)
    listed = await asyncio.gather(*(_tools(agent) for agent in ordered))
    pairs = zip(ordered, listed, strict=True)
    return runner_pb2.DescribeAgentsResponse(
        agents=[_description(agent.profile, tools) for agent, tools in pairs],
        version=_version(),
        max_concurrent_runs=max_concurrent_runs,
        protocol_revision=PROTOCOL_REVISION,
    )


async def _tools(agent: Agent) -> Sequence[AgentTool]:
    # An agent whose tools cannot be listed is still there: its runs tell the reason.
    listing = asyncio.ensure_future(agent.tools(None))
    try:
        await asyncio.wait({listing}, timeout=LISTING_TIMEOUT_SECONDS)
    finally:
        listing.cancel()
    if not listing.done() or listing.cancelled():
        log.warning("tools not listed in time", agent=agent.profile.name)
        return ()
    if (error := listing.exception()) is not None:
        log.warning("tools cannot be listed", agent=agent.profile.name, exc_info=error)
        return ()
    return listing.result()


def _description(profile: AgentProfile, tools: Iterable[AgentTool]) -> runner_pb2.AgentDescription:
    return runner_pb2.AgentDescription(
        name=profile.name,
        description=profile.description,
        tools=[_tool(tool) for tool in tools],
        history_window=profile.history_window,
        replays=profile.replays,
    )


def _tool(tool: AgentTool) -> runner_pb2.AgentTool:
    described = runner_pb2.AgentTool(
        name=tool.name,
        description=tool.description,
        input_schema_json=tool.input_schema_json,
        executor=executor_of(tool),
    )
    if isinstance(tool, ServerTool):
        described.traits.CopyFrom(proposal_of(tool))
    else:
        described.kind = tool.kind or tool.name
        if (declaration := declaration_of(tool)) is not None:
            described.declaration.CopyFrom(declaration)
    return described


def _version() -> str:
    try:
        return version("turngate")
    except PackageNotFoundError:
        return "unknown"
