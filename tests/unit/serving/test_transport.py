"""The options of the transport: gRPC ignores names that it does not know, so each is tried."""

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc
import pytest
from grpc import aio

from tests.unit.serving.echo import DEADLINE_S, SERVICE, Echo, call, word
from turngate_serving.server import ServerOptions, build_server

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS, PING, GOAWAY = 4, 6, 7
ACK = 1
ENHANCE_YOUR_CALM = 11


def frame(kind: int, flags: int, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes((kind, flags)) + b"\0\0\0\0" + payload


class BareClient:
    """HTTP/2 without gRPC: it does just what the test wants."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self.writer = writer

    async def next(self) -> tuple[int, int, bytes]:
        """Kind, flags and payload of the next frame; `IncompleteReadError` at the end."""
        head = await self._reader.readexactly(9)
        payload = await self._reader.readexactly(int.from_bytes(head[:3], "big"))
        return head[3], head[4], payload

    async def until_cut_off(self) -> None:
        """Returns when the server has closed the connection."""
        await self._reader.read()

    async def ping(self, number: int) -> bool:
        """Ping so many times, one after the other; whether all were acknowledged.

        If not, the server has gone away, because of the pings.
        """
        for index in range(number):
            asked = struct.pack(">Q", index)
            self.writer.write(frame(PING, 0, asked))
            while (got := await self.next()) != (PING, ACK, asked):
                kind, _, payload = got
                if kind == GOAWAY:
                    assert int.from_bytes(payload[4:8], "big") == ENHANCE_YOUR_CALM
                    return False
        return True


@asynccontextmanager
async def bare_client(options: ServerOptions) -> AsyncIterator[BareClient]:
    server = await build_server("127.0.0.1:0", Echo().register, [SERVICE], options=options)
    await server.grpc.start()
    host, _, port = server.address.rpartition(":")
    async with asyncio.timeout(DEADLINE_S):
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(PREFACE + frame(SETTINGS, 0))
        try:
            yield BareClient(reader, writer)
        finally:
            writer.close()
            await server.grpc.stop(None)


@pytest.mark.parametrize("answered", [0, 2])
async def test_a_client_that_has_vanished_is_found(answered: int) -> None:
    """Without keepalive its streams would be held for two hours; it has no call open here."""
    options = ServerOptions(keepalive_time_s=0.2, keepalive_timeout_s=0.2)
    async with bare_client(options) as client:
        while answered > 0:
            kind, _, payload = await client.next()
            if kind == PING:
                client.writer.write(frame(PING, ACK, payload))
                answered -= 1
        await client.until_cut_off()


async def test_a_client_that_answers_is_kept() -> None:
    options = ServerOptions(keepalive_time_s=0.1, keepalive_timeout_s=5)
    async with bare_client(options) as client:
        pings = 0
        while pings < 5:
            kind, _, payload = await client.next()
            assert kind != GOAWAY
            if kind == PING:
                client.writer.write(frame(PING, ACK, payload))
                pings += 1


async def test_clients_may_ping_as_often_as_the_options_say() -> None:
    async with bare_client(ServerOptions(min_client_ping_s=0)) as client:
        assert await client.ping(20)


async def test_a_client_that_pings_more_often_is_cut_off() -> None:
    async with bare_client(ServerOptions(min_client_ping_s=60)) as client:
        assert not await client.ping(20)


async def test_a_request_over_4_mib_is_refused_and_one_below_is_not(echo: Echo) -> None:
    server = await build_server("127.0.0.1:0", echo.register, [SERVICE])
    await server.grpc.start()
    unlimited = [("grpc.max_receive_message_length", -1)]
    async with aio.insecure_channel(server.address, options=unlimited) as channel:
        room = 4 * 1024 * 1024 - len(word("x" * 4_000_000)) + 4_000_000
        assert len((await call(channel, "One", word("x" * room)))[0]) == room
        with pytest.raises(aio.AioRpcError) as caught:
            await call(channel, "One", word("x" * (room + 1)))
    await server.grpc.stop(None)
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_a_smaller_limit_holds(echo: Echo) -> None:
    options = ServerOptions(max_receive_bytes=100)
    server = await build_server("127.0.0.1:0", echo.register, [SERVICE], options=options)
    await server.grpc.start()
    async with aio.insecure_channel(server.address) as channel:
        with pytest.raises(aio.AioRpcError) as caught:
            await call(channel, "One", word("x" * 100))
    await server.grpc.stop(None)
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
