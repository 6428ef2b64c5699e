"""A real server on a real port."""

from collections.abc import AsyncIterator

import pytest_asyncio
from grpc import aio

from tests.unit.serving.echo import SERVICE, Echo
from turngate_serving.server import Server, build_server


@pytest_asyncio.fixture
async def echo() -> Echo:
    return Echo()


@pytest_asyncio.fixture
async def server(echo: Echo) -> AsyncIterator[Server]:
    server = await build_server("127.0.0.1:0", echo.register, [SERVICE])
    await server.grpc.start()
    server.health.serving()
    yield server
    await server.grpc.stop(None)


@pytest_asyncio.fixture
async def channel(server: Server) -> AsyncIterator[aio.Channel]:
    async with aio.insecure_channel(server.address) as channel:
        yield channel
