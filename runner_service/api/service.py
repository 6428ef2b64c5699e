"""RunnerService: hands each request to what serves it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing

from grpc import aio

from runner_service.agents.protocol import Agent
from runner_service.api.describe import describe_agents
from runner_service.api.execute import Executions
from runner_service.api.extract import extract_tool_results
from turngate.v1 import runner_pb2, runner_pb2_grpc

SERVICE_NAME = runner_pb2.DESCRIPTOR.services_by_name["RunnerService"].full_name


class RunnerService(runner_pb2_grpc.RunnerServiceServicer):
    """The service, for `add_RunnerServiceServicer_to_server`."""

    def __init__(
        self, agents: Mapping[str, Agent], executions: Executions, max_concurrent_runs: int
    ) -> None:
        self._agents = agents
        self._executions = executions
        self._max_concurrent_runs = max_concurrent_runs

    async def Execute(
        self,
        request_iterator: AsyncIterator[runner_pb2.ExecuteRequest],
        context: aio.ServicerContext[runner_pb2.ExecuteRequest, runner_pb2.ExecuteResponse],
    ) -> AsyncIterator[runner_pb2.ExecuteResponse]:
        """One attempt of one run."""
        async with aclosing(self._executions.execute(request_iterator)) as batches:
            async for batch in batches:
                yield batch

    async def ExtractToolResults(
        self,
        request: runner_pb2.ExtractToolResultsRequest,
        context: aio.ServicerContext[
            runner_pb2.ExtractToolResultsRequest, runner_pb2.ExtractToolResultsResponse
        ],
    ) -> runner_pb2.ExtractToolResultsResponse:
        """What of a transcript belongs to its current turn."""
        return extract_tool_results(request)

    async def DescribeAgents(
        self,
        request: runner_pb2.DescribeAgentsRequest,
        context: aio.ServicerContext[
            runner_pb2.DescribeAgentsRequest, runner_pb2.DescribeAgentsResponse
        ],
    ) -> runner_pb2.DescribeAgentsResponse:
        """The agents of this runner."""
        return await describe_agents(self._agents.values(), self._max_concurrent_runs)
