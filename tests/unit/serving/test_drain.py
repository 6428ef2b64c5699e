"""Start and stop of a service process: clean on SIGTERM and SIGINT, within a bound, never stuck."""

import asyncio
import json
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import pytest
from google.protobuf.wrappers_pb2 import StringValue
from grpc import aio
from grpc_health.v1 import health_pb2, health_pb2_grpc

from tests.unit.serving.echo import DEADLINE_S, SERVICE, Details, Echo, Raw, call, path, word
from turngate_core.errors import Reason
from turngate_serving.server import Server, build_server, serve_until_signal

ROOT = Path(__file__).parents[3]
both_signals = pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])


async def start(address: str, grace: float, hook: str) -> Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "tests.unit.serving.drained", address, str(grace), hook),
        cwd=ROOT,
        env={"PYTHONPATH": f"{ROOT}:{ROOT / 'gen' / 'python'}"},
        stdout=PIPE,
        stderr=PIPE,
    )


class Service:
    """A running service process and a channel to it."""

    def __init__(self, process: Process, channel: aio.Channel) -> None:
        self.process = process
        self.channel = channel

    async def waiting_stream(self) -> "aio.UnaryStreamCall[bytes, bytes]":
        """A stream that has begun and goes on until its service ends it."""
        stream = Raw(self.channel).many(path("Many"))(word("wait"))
        await stream.read()
        return stream

    async def ended(self) -> list[dict[str, str]]:
        """The log lines; the process has ended by itself."""
        _, stderr = await self.process.communicate()
        return [json.loads(line) for line in stderr.splitlines() if line.startswith(b"{")]


@asynccontextmanager
async def service(hook: str, grace: float = 60.0) -> AsyncIterator[Service]:
    async with asyncio.timeout(2 * DEADLINE_S):
        process = await start("127.0.0.1:0", grace, hook)
        assert process.stdout is not None
        try:
            address = (await process.stdout.readline()).decode().strip()
            async with aio.insecure_channel(address) as channel:
                yield Service(process, channel)
        finally:
            if process.returncode is None:
                process.kill()
                await process.communicate()


async def rest(stream: "aio.UnaryStreamCall[bytes, bytes]") -> list[str]:
    words = []
    while isinstance(raw := await stream.read(), bytes):
        words.append(StringValue.FromString(raw).value)
    return words


@both_signals
async def test_a_signal_drains_and_ends_with_0(number: signal.Signals) -> None:
    """The grace of 60 s is not used: all that is open ends first, the health watch included."""
    async with service("ends") as running:
        stream = await running.waiting_stream()
        watch = health_pb2_grpc.HealthStub(running.channel).Watch(
            health_pb2.HealthCheckRequest(service=SERVICE)
        )
        assert (await watch.read()).status == health_pb2.HealthCheckResponse.SERVING
        running.process.send_signal(number)
        assert (await watch.read()).status == health_pb2.HealthCheckResponse.NOT_SERVING
        assert await rest(stream) == ["wait"]
        lines = await running.ended()
    assert running.process.returncode == 0
    assert [line["event"] for line in lines] == ["listening", "signal", "stopped"]


@pytest.mark.parametrize("hook", ["hangs", "fails"])
async def test_a_hook_that_goes_wrong_keeps_nobody_from_stopping(hook: str) -> None:
    async with service(hook) as running:
        stream = await running.waiting_stream()
        running.process.terminate()
        assert await rest(stream) == ["wait"]
        lines = await running.ended()
    assert running.process.returncode == 0
    (error,) = [line for line in lines if line["level"] == "error"]
    assert hook in error["hook"]


async def test_a_stream_that_nothing_ends_is_cut_off_after_the_grace() -> None:
    async with service("none", grace=0.3) as running:
        stream = await running.waiting_stream()
        running.process.terminate()
        with pytest.raises(aio.AioRpcError):
            await rest(stream)
        await running.ended()
    assert running.process.returncode == 0


@both_signals
async def test_a_second_signal_stops_at_once(number: signal.Signals) -> None:
    async with service("none", grace=60) as running:
        stream = await running.waiting_stream()
        watch = health_pb2_grpc.HealthStub(running.channel).Watch(health_pb2.HealthCheckRequest())
        await watch.read()
        running.process.terminate()
        assert (await watch.read()).status == health_pb2.HealthCheckResponse.NOT_SERVING
        running.process.send_signal(number)
        with pytest.raises(aio.AioRpcError):
            await rest(stream)
        lines = await running.ended()
    assert running.process.returncode == 128 + number
    assert lines[-1]["event"] == "stopped at once"


async def test_a_taken_port_is_one_line_and_exit_code_2(server: Server) -> None:
    async with asyncio.timeout(DEADLINE_S):
        process = await start(server.address, 1, "none")
        stdout, stderr = await process.communicate()
    assert process.returncode == 2
    assert stdout == b""
    expected = f"echo: cannot listen on {server.address}: Address already in use\n"
    assert stderr.decode() == expected


@asynccontextmanager
async def draining(
    echo: Echo, hook: Callable[[], Awaitable[None]], stop: asyncio.Event
) -> AsyncIterator[aio.Channel]:
    server = await build_server("127.0.0.1:0", echo.register, [SERVICE])
    listening = asyncio.Event()
    serving = asyncio.ensure_future(
        serve_until_signal(server, hooks=[hook], stop=stop, on_listening=lambda _: listening.set())
    )
    async with asyncio.timeout(DEADLINE_S), aio.insecure_channel(server.address) as channel:
        await listening.wait()
        yield channel
        assert await serving == 0


async def test_while_it_drains_new_calls_are_refused_and_open_ones_go_on(echo: Echo) -> None:
    """The hooks run meanwhile; probes are told, not refused."""
    stop, in_hook, leave_hook = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def hook() -> None:
        in_hook.set()
        await leave_hook.wait()

    async with draining(echo, hook, stop) as channel:
        stream = Raw(channel).many(path("Many"))(word("wait"))
        await echo.open.wait()
        stop.set()
        await in_hook.wait()
        with pytest.raises(aio.AioRpcError) as caught:
            await call(channel, "One", word("hello"))
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
        assert Details(caught.value).info.reason == Reason.SHUTTING_DOWN
        health = health_pb2_grpc.HealthStub(channel)
        response = await health.Check(health_pb2.HealthCheckRequest(), timeout=DEADLINE_S)
        assert response.status == health_pb2.HealthCheckResponse.NOT_SERVING
        leave_hook.set()
        echo.stop.set()
        assert await rest(stream) == ["first", "wait"]


async def test_serving_that_is_cancelled_takes_its_server_down(echo: Echo) -> None:
    server = await build_server("127.0.0.1:0", echo.register, [SERVICE])
    listening = asyncio.Event()
    serving = asyncio.ensure_future(
        serve_until_signal(server, on_listening=lambda _: listening.set())
    )
    async with asyncio.timeout(DEADLINE_S):
        await listening.wait()
        serving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await serving
        again = await build_server(server.address, echo.register, [SERVICE])
        await again.grpc.stop(None)
