"""Ready bytes as gRPC messages, a client that reads nothing, one that leaves, and a drain."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
import pytest
from grpc import aio

from broker_service.watch.frames import FrameLimits
from broker_service.watch.hub import WatchHub
from broker_service.watch.tail import WatchSettings
from tests.unit.watch.samples import MemoryLog, S, deleted, positions, text, within
from turngate.v1.broker_pb2 import WatchSessionRequest, WatchSessionResponse
from turngate_core.errors import Reason, Refusal

METHOD = "turngate.v1.BrokerService/WatchSession"

WatchSession = aio.UnaryStreamMultiCallable[WatchSessionRequest, WatchSessionResponse]


@dataclass
class Service:
    """One servicer over a hub, and how its calls ended."""

    hub: WatchHub
    refusals: list[Refusal] = field(default_factory=list)
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    async def watch(self, request: WatchSessionRequest, context: Any) -> None:
        watch = self.hub.watch(S, 0, principal="ann")
        context.add_done_callback(lambda _: watch.close())
        try:
            await watch.deliver(context.write)
        except Refusal as refusal:
            self.refusals.append(refusal)
            self.ended.set()
            # For a client that reads nothing this waits: the status goes after what was written.
            await context.abort(grpc.StatusCode[refusal.code], refusal.metadata["cursor"])
        finally:
            self.ended.set()


@asynccontextmanager
async def serving(service: Service) -> AsyncIterator[WatchSession]:
    server = aio.server()
    name, method = METHOD.split("/")
    handler: grpc.RpcMethodHandler[WatchSessionRequest, bytes] = (
        grpc.unary_stream_rpc_method_handler(
            service.watch, request_deserializer=WatchSessionRequest.FromString
        )
    )
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler(name, {method: handler}),)
    )
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        async with aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            yield channel.unary_stream(
                f"/{METHOD}",
                request_serializer=WatchSessionRequest.SerializeToString,
                response_deserializer=WatchSessionResponse.FromString,
            )
    finally:
        await server.stop(None)


async def read_all(
    call: aio.UnaryStreamCall[WatchSessionRequest, WatchSessionResponse],
    frames: list[WatchSessionResponse],
) -> None:
    """Add what comes to `frames`, until the stream ends or fails."""
    async for frame in call:
        frames.append(frame)


async def test_a_client_reads_frames() -> None:
    log = MemoryLog(entries=3)
    log.append(deleted())
    frames: list[WatchSessionResponse] = []
    async with serving(Service(WatchHub(log))) as watch_session:
        await within(read_all(watch_session(WatchSessionRequest()), frames))
    assert positions(frames) == [1, 2, 3, 4]


async def test_a_client_that_reads_nothing_is_ended() -> None:
    """W4: the transport takes some megabytes, then a write is stuck."""
    log = MemoryLog()
    log.append(*[text("x" * 100_000) for _ in range(200)])
    service = Service(WatchHub(log, WatchSettings(stuck_reader=0.3)))
    async with serving(service) as watch_session:
        call = watch_session(WatchSessionRequest())
        await within(service.ended.wait())
        assert [refusal.reason for refusal in service.refusals] == [Reason.WATCH_TOO_SLOW]
        assert len(service.hub) == 0
        frames: list[WatchSessionResponse] = []
        with pytest.raises(aio.AioRpcError) as ended:
            await within(read_all(call, frames))
        assert ended.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    read = positions(frames)
    assert read == list(range(1, len(read) + 1)), "what it finds when it reads on has no gap"
    assert len(read) < 200


async def test_a_client_that_leaves_leaves_nothing_behind() -> None:
    service = Service(WatchHub(MemoryLog(entries=3), WatchSettings(frame=FrameLimits(entries=3))))
    async with serving(service) as watch_session:
        call = watch_session(WatchSessionRequest())
        frame = await within(aiter(call).__anext__())
        assert (positions([frame]), frame.live) == ([1, 2, 3], True)
        assert len(service.hub) == 1
        call.cancel()
        await within(service.ended.wait())
        assert len(service.hub) == 0


async def test_a_drain_ends_the_call_with_its_cursor() -> None:
    service = Service(WatchHub(MemoryLog(entries=3)))
    async with serving(service) as watch_session:
        stream = aiter(watch_session(WatchSessionRequest()))
        frame = await within(stream.__anext__())
        service.hub.close()
        with pytest.raises(aio.AioRpcError) as ended:
            await within(stream.__anext__())
        assert ended.value.code() is grpc.StatusCode.UNAVAILABLE
        assert ended.value.details() == frame.cursor
