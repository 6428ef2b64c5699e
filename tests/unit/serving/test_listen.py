"""Where a server may listen (P2), and start-up errors that say what is wrong."""

import socket
from pathlib import Path

import pytest
from grpc import aio

from tests.unit.serving.echo import SERVICE, Echo, call, word
from turngate_serving.exit import StartError
from turngate_serving.listen import TcpAddress, UnixAddress, check_exposure, parse_address
from turngate_serving.server import Server, build_server


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:50051", TcpAddress("127.0.0.1", 50051)),
        ("localhost:0", TcpAddress("localhost", 0)),
        ("[::1]:65535", TcpAddress("::1", 65535)),
        ("unix:/run/t.sock", UnixAddress(Path("/run/t.sock"))),
    ],
)
def test_addresses_are_read_and_shown_alike(text: str, address: TcpAddress | UnixAddress) -> None:
    assert parse_address(text) == address
    assert str(address) == text


@pytest.mark.parametrize(
    "text", ["", "50051", ":50051", "a:", "a:b", "a:65536", "::1:5", "a:-1", "a:٣", "unix:", "[]:1"]
)
def test_what_is_no_address_is_refused_by_name(text: str) -> None:
    with pytest.raises(StartError, match="not an address like") as caught:
        parse_address(text)
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize(
    "text", ["0.0.0.0:1", "[::]:1", "192.168.1.7:1", "example.org:1", "localhost.example.org:1"]
)
def test_without_authentication_only_loopback_is_served(text: str) -> None:
    """P2: else everybody who reaches the port could act for anybody."""
    with pytest.raises(StartError, match=r"no authentication is configured") as caught:
        check_exposure(parse_address(text), authenticated=False)
    assert text in str(caught.value)
    check_exposure(parse_address(text), authenticated=True)


@pytest.mark.parametrize("text", ["127.0.0.1:1", "127.8.8.8:1", "[::1]:1", "localhost:1", "unix:x"])
def test_loopback_and_unix_sockets_need_no_authentication(text: str) -> None:
    check_exposure(parse_address(text), authenticated=False)


async def test_a_server_does_not_listen_where_it_may_not(echo: Echo) -> None:
    with pytest.raises(StartError, match=r"0\.0\.0\.0:0"):
        await build_server("0.0.0.0:0", echo.register, [SERVICE])


async def test_port_0_reports_the_real_port(server: Server, channel: aio.Channel) -> None:
    assert server.address.startswith("127.0.0.1:")
    assert not server.address.endswith(":0")
    assert await call(channel, "One", word("hello")) == ["hello"]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_a_taken_port_is_refused_by_name(server: Server, echo: Echo, host: str) -> None:
    port = server.address.rpartition(":")[2]
    with pytest.raises(StartError) as caught:
        await build_server(f"{host}:{port}", echo.register, [SERVICE])
    assert str(caught.value) == f"cannot listen on {host}:{port}: Address already in use"


async def test_no_other_process_can_share_the_port(server: Server) -> None:
    """`SO_REUSEPORT` is gRPC's default: a stale process would get part of the connections."""
    host, _, port = server.address.rpartition(":")
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        with pytest.raises(OSError, match="Address already in use"):
            other.bind((host, int(port)))


async def test_a_port_is_free_again_after_its_server(echo: Echo) -> None:
    first = await build_server("127.0.0.1:0", echo.register, [SERVICE])
    await first.grpc.start()
    async with aio.insecure_channel(first.address) as channel:
        await call(channel, "One", word("hello"))
        await first.grpc.stop(None)
    second = await build_server(first.address, echo.register, [SERVICE])
    await second.grpc.stop(None)


async def test_an_address_of_another_machine_is_refused_by_name(echo: Echo) -> None:
    with pytest.raises(StartError) as caught:
        await build_server("192.0.2.1:50051", echo.register, [SERVICE], authenticated=True)
    assert str(caught.value).startswith("cannot listen on 192.0.2.1:50051: ")


async def test_a_unix_socket_serves_and_is_not_taken_from_its_owner(
    echo: Echo, tmp_path: Path
) -> None:
    address = f"unix:{tmp_path}/s"
    server = await build_server(address, echo.register, [SERVICE])
    await server.grpc.start()
    async with aio.insecure_channel(server.address) as channel:
        assert await call(channel, "One", word("hello")) == ["hello"]
        with pytest.raises(StartError, match="another process listens there"):
            await build_server(address, echo.register, [SERVICE])
        assert await call(channel, "One", word("again")) == ["again"]
    await server.grpc.stop(None)


async def test_a_socket_file_that_nobody_serves_is_no_hindrance(echo: Echo, tmp_path: Path) -> None:
    """What a killed process leaves behind."""
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(f"{tmp_path}/s")
    server = await build_server(f"unix:{tmp_path}/s", echo.register, [SERVICE])
    await server.grpc.stop(None)


async def test_a_folder_that_does_not_exist_is_refused(echo: Echo, tmp_path: Path) -> None:
    with pytest.raises(StartError, match="cannot listen on unix:"):
        await build_server(f"unix:{tmp_path}/no/s", echo.register, [SERVICE])
