"""`grpc.health.v1`: check, watch and list, for the server and for each service."""

import asyncio

import grpc
import pytest
from grpc import aio
from grpc_health.v1 import health_pb2, health_pb2_grpc

from tests.unit.serving.echo import DEADLINE_S, SERVICE
from turngate_serving.server import Server

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


def ask(service: str) -> health_pb2.HealthCheckRequest:
    return health_pb2.HealthCheckRequest(service=service)


@pytest.mark.parametrize("service", ["", SERVICE, "grpc.health.v1.Health"])
async def test_check_knows_the_server_and_each_service(channel: aio.Channel, service: str) -> None:
    stub = health_pb2_grpc.HealthStub(channel)
    assert (await stub.Check(ask(service), timeout=DEADLINE_S)).status == SERVING


async def test_check_of_another_service_is_not_found(channel: aio.Channel) -> None:
    with pytest.raises(aio.AioRpcError) as caught:
        await health_pb2_grpc.HealthStub(channel).Check(ask("nobody"), timeout=DEADLINE_S)
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND


async def test_list_has_all(channel: aio.Channel) -> None:
    stub = health_pb2_grpc.HealthStub(channel)
    found = await stub.List(health_pb2.HealthListRequest(), timeout=DEADLINE_S)
    assert {name: one.status for name, one in found.statuses.items()} == dict.fromkeys(
        ("", SERVICE, "grpc.health.v1.Health"), SERVING
    )


async def read_to_the_end(watch: "aio.UnaryStreamCall[object, object]") -> None:
    while (response := await watch.read()) is not aio.EOF:
        assert isinstance(response, health_pb2.HealthCheckResponse)
        assert response.status == NOT_SERVING


async def test_a_watch_sees_the_server_stop_and_ends_with_it(
    server: Server, channel: aio.Channel
) -> None:
    """A health watch that went on would cost the whole grace of the stop."""
    # Also where nothing lies between the two: the last state is told before the end.
    watch = health_pb2_grpc.HealthStub(channel).Watch(ask(SERVICE), timeout=DEADLINE_S)
    assert (await watch.read()).status == SERVING
    async with asyncio.timeout(DEADLINE_S):
        server.health.stopping()
        server.health.end()
        last = await watch.read()
        assert last.status == NOT_SERVING
        with pytest.raises(aio.AioRpcError) as caught:
            await read_to_the_end(watch)
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_a_watch_of_an_unknown_service_waits(channel: aio.Channel) -> None:
    watch = health_pb2_grpc.HealthStub(channel).Watch(ask("nobody"), timeout=DEADLINE_S)
    assert (await watch.read()).status == health_pb2.HealthCheckResponse.SERVICE_UNKNOWN
    watch.cancel()
