"""`DescribeAgents`: what this runner serves."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version

from runner_service.agents.protocol import Agent, AgentProfile, AgentTool, ServerTool
from runner_service.opening import PROTOCOL_REVISION
from runner_service.toolbox import declaration_of, executor_of, proposal_of
from turngate.v1 import runner_pb2


def describe_agents(
    agents: Iterable[Agent], max_concurrent_runs: int
) -> runner_pb2.DescribeAgentsResponse:
    """All agents with their tools, by name."""
    profiles = sorted((agent.profile for agent in agents), key=lambda profile: profile.name)
    return runner_pb2.DescribeAgentsResponse(
        agents=[_description(profile) for profile in profiles],
        version=_version(),
        max_concurrent_runs=max_concurrent_runs,
        protocol_revision=PROTOCOL_REVISION,
    )


def _description(profile: AgentProfile) -> runner_pb2.AgentDescription:
    return runner_pb2.AgentDescription(
        name=profile.name,
        description=profile.description,
        tools=[_tool(tool) for tool in profile.tools],
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
