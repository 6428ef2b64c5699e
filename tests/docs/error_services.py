"""The services that the examples of errors are provoked on.

A pair of processes; and, for states that a healthy pair does not come to, servers in this process:
over real gRPC and with the code that names the error, but with a fault behind it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from google.protobuf.message import Message as Proto
from grpc import aio

from broker_service.api.changes import store_errors
from broker_service.sessions import too_new
from broker_service.storage.port import StoreUnavailable
from broker_service.watch.hub import WatchHub
from broker_service.watch.tail import WatchSettings
from runner_service.agents.scripted import scripted_agents
from runner_service.api.execute import Executions
from runner_service.api.service import SERVICE_NAME, RunnerService
from runner_service.limits import AttemptLimits
from tests.docs.error_blocks import Refused, refused
from tests.e2e.conftest import SCRIPTS
from tests.e2e.pair import Pair
from tests.e2e.runner.broker_side import Stub
from tests.unit.watch.samples import MemoryLog, S, text
from turngate.v1 import broker_pb2 as pb
from turngate.v1 import broker_pb2_grpc, runner_pb2_grpc
from turngate_client import TurngateClient
from turngate_serving.server import build_server


class FaultyBroker(broker_pb2_grpc.BrokerServiceServicer):
    """A mistake in it, no store, a log of a newer version, and a watcher that reads nothing."""

    async def GetServerInfo(
        self, request: pb.GetServerInfoRequest, context: Any
    ) -> pb.GetServerInfoResponse:
        raise ValueError("what nobody outside may read")

    async def SendMessage(
        self, request: pb.SendMessageRequest, context: Any
    ) -> pb.SendMessageResponse:
        with store_errors():
            raise StoreUnavailable("what nobody outside may read")

    async def GetSession(
        self, request: pb.GetSessionRequest, context: Any
    ) -> pb.GetSessionResponse:
        raise too_new(request.session_id)

    async def WatchSession(
        self, request: pb.WatchSessionRequest, context: Any
    ) -> AsyncIterator[pb.WatchSessionResponse]:
        log = MemoryLog()
        log.append(text("Where to?"))
        watch = WatchHub(log, WatchSettings(stuck_reader=0.05)).watch(S, 0, principal="ann")

        async def stuck(_: object) -> None:
            await asyncio.Event().wait()

        await watch.deliver(stuck)
        yield pb.WatchSessionResponse()


@dataclass(frozen=True)
class World:
    """What provocations talk to. `client` is Ann's; `small_runner` executes one run at once."""

    pair: Pair
    client: TurngateClient
    channel: aio.Channel
    runner: Stub
    small_runner: Stub
    faulty: Any

    async def refused(self, method: str, request: Proto, *, user: str = "ann") -> Refused:
        """The error with which the broker answers a method that takes and gives one message."""
        stub: Any = broker_pb2_grpc.BrokerServiceStub(self.channel)
        call = getattr(stub, method)(request, metadata=as_user(user))
        return await refused(method, request, call)

    async def watch_refused(self, request: pb.WatchSessionRequest) -> Refused:
        """The error with which the broker ends a watch of a session."""
        stub = broker_pb2_grpc.BrokerServiceStub(self.channel)
        return await refused("WatchSession", request, ended(stub.WatchSession(request)))


def as_user(name: str) -> tuple[tuple[str, str], ...]:
    """The metadata that names a caller."""
    return (("turngate-user", name),)


async def ended(stream: AsyncIterable[object]) -> None:
    """Read a stream to its end."""
    async for _ in stream:
        pass


@asynccontextmanager
async def new_world(pair: Pair, folder: Path) -> AsyncIterator[World]:
    """All services, until the provocations are through."""
    agents = scripted_agents(SCRIPTS / "conversations.yaml", folder)
    executions = Executions(agents, AttemptLimits(), 1)

    def register(server: aio.Server) -> None:
        # For the types, the inherited methods are abstract; at run time they are not.
        broker = cast(Any, FaultyBroker)()
        broker_pb2_grpc.add_BrokerServiceServicer_to_server(broker, server)
        service = RunnerService(agents, executions, 1)
        runner_pb2_grpc.add_RunnerServiceServicer_to_server(service, server)

    async with AsyncExitStack() as stack:
        here = await build_server("127.0.0.1:0", register, [SERVICE_NAME])
        await here.grpc.start()
        stack.push_async_callback(here.grpc.stop, None)
        inside = await stack.enter_async_context(aio.insecure_channel(here.address))
        channel = await stack.enter_async_context(aio.insecure_channel(pair.broker.address))
        runner = await stack.enter_async_context(aio.insecure_channel(pair.runner.address))
        yield World(
            pair=pair,
            client=await stack.enter_async_context(pair.client()),
            channel=channel,
            runner=runner_pb2_grpc.RunnerServiceStub(runner),
            small_runner=runner_pb2_grpc.RunnerServiceStub(inside),
            faulty=broker_pb2_grpc.BrokerServiceStub(inside),
        )
