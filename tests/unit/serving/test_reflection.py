"""Reflection under both names, for clients of either."""

import asyncio
import subprocess
from typing import Any

import pytest
from google.protobuf import descriptor_pool, message_factory
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.message import Message
from grpc import aio

from tests.unit.serving.echo import DEADLINE_S, SERVICE, Raw
from turngate_serving.server import Server

PACKAGES = ("grpc.reflection.v1alpha", "grpc.reflection.v1")
ALL = {
    SERVICE,
    "grpc.health.v1.Health",
    "grpc.reflection.v1.ServerReflection",
    "grpc.reflection.v1alpha.ServerReflection",
}


def message(package: str, name: str) -> type[Message]:
    found = descriptor_pool.Default().FindMessageTypeByName(f"{package}.{name}")
    return message_factory.GetMessageClass(found)


async def reflect(channel: aio.Channel, package: str, **asked: str) -> Any:
    """One request with the package's own types, and its response, whose type is made here."""
    request = message(package, "ServerReflectionRequest")(**asked)
    stream = Raw(channel).chat(f"/{package}.ServerReflection/ServerReflectionInfo")(
        iter([request.SerializeToString()]), timeout=DEADLINE_S
    )
    (answer,) = [answer async for answer in stream]
    return message(package, "ServerReflectionResponse").FromString(answer)


@pytest.mark.parametrize("package", PACKAGES)
async def test_the_services_are_listed(channel: aio.Channel, package: str) -> None:
    response = await reflect(channel, package, list_services="*")
    listed = response.list_services_response.service
    assert {service.name for service in listed} == ALL


@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.parametrize("described", ["turngate.v1.BrokerService", *PACKAGES])
async def test_what_is_listed_is_described(
    channel: aio.Channel, package: str, described: str
) -> None:
    symbol = described if described.endswith("Service") else f"{described}.ServerReflection"
    response = await reflect(channel, package, file_containing_symbol=symbol)
    files = [
        FileDescriptorProto.FromString(raw)
        for raw in response.file_descriptor_response.file_descriptor_proto
    ]
    assert any(
        f"{file.package}.{service.name}" == symbol for file in files for service in file.service
    )


async def test_an_open_stream_does_not_hold_up_the_stop(
    server: Server, channel: aio.Channel
) -> None:
    stream = Raw(channel).chat(f"/{PACKAGES[1]}.ServerReflection/ServerReflectionInfo")()
    asked = message(PACKAGES[1], "ServerReflectionRequest")(list_services="*")
    await stream.write(asked.SerializeToString())
    await stream.read()
    async with asyncio.timeout(DEADLINE_S):
        server.drain.end()
        await server.grpc.stop(60)


async def test_grpcurl_lists_and_describes(server: Server, grpcurl: str) -> None:
    """Scenario 14: a person with nothing but grpcurl."""

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [grpcurl, "-plaintext", server.address, *arguments],
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )
        return done.stdout + done.stderr

    assert set((await asyncio.to_thread(run, "list")).split()) == ALL
    described = await asyncio.to_thread(run, "describe", "grpc.reflection.v1.ServerReflection")
    assert "stream .grpc.reflection.v1.ServerReflectionRequest" in described
