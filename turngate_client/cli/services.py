"""The two services as child processes: started, waited for, stopped, never left behind."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc
from grpc_health.v1 import health_pb2

from turngate_client.cli.output import CommandFailed, ExitCode

START_SECONDS = 30.0
# The services' own time for a clean stop is 15 s at most by default.
STOP_SECONDS = 20.0
_START_ERROR_CODE = 2

Sink = Callable[[str, str], None]
"""Takes a service's name and one line that it has written."""


@dataclass(frozen=True, slots=True)
class Service:
    """A child process that serves. `ended`: done as soon as it has ended, with its exit code."""

    name: str
    address: str
    ended: asyncio.Task[int]


@dataclass(frozen=True, slots=True)
class Pair:
    """A runner and a broker that gives it work."""

    broker: Service
    runner: Service


@asynccontextmanager
async def running_pair(
    folder: Path, sink: Sink, *, broker_flags: Sequence[str], runner_flags: Sequence[str]
) -> AsyncIterator[Pair]:
    """Both services, serving; stopped at the end in whatever way it comes, the broker first.

    `folder`: for the files in which they tell their addresses. Raises CommandFailed if one of them
    does not start.
    """
    async with AsyncExitStack() as stack:

        async def start(name: str, flags: Sequence[str]) -> Service:
            ready_file = folder / f"{name}.ready"
            return await stack.enter_async_context(running_service(name, ready_file, sink, flags))

        runner = await start("runner", runner_flags)
        broker = await start("broker", [*broker_flags, "--runner", runner.address])
        yield Pair(broker, runner)


@asynccontextmanager
async def running_service(
    name: str, ready_file: Path, sink: Sink, flags: Sequence[str]
) -> AsyncIterator[Service]:
    """One service, serving: `name` is `broker` or `runner`."""
    process = await asyncio.create_subprocess_exec(
        *service_command(name),
        *flags,
        "--ready-file",
        str(ready_file),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        # Ctrl-C reaches this command only, which then stops both in order.
        start_new_session=True,
    )
    ended = asyncio.create_task(_until_end(name, process, sink))
    try:
        async with asyncio.timeout(START_SECONDS):
            address = await _wait_for_ready_file(name, ready_file, ended)
            await _wait_until_healthy(name, address, ended)
        yield Service(name, address, ended)
    except TimeoutError:
        raise CommandFailed(f"the {name} does not serve after {START_SECONDS:g} s") from None
    finally:
        await _stop(name, process, ended, sink)


def service_command(name: str, module: str = "") -> list[str]:
    """The command of a service, or of a module of it, with this Python and without the current
    folder on its path.
    """
    dotted = f"{name}_service.{module}" if module else f"{name}_service"
    return [sys.executable, "-P", "-m", dotted]


async def _wait_for_ready_file(name: str, path: Path, ended: asyncio.Task[int]) -> str:
    """The address in the file that a service writes, whole, once it serves.

    The one place that polls. CommandFailed if the process ends instead.
    """
    while (address := _read_address(path)) is None:
        await asyncio.wait({ended}, timeout=0.02)
        if ended.done():
            raise _start_failed(name, ended.result())
    return address


def _read_address(path: Path) -> str | None:
    try:
        written = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return str(written["address"])


async def _until_end(name: str, process: asyncio.subprocess.Process, sink: Sink) -> int:
    """Hand on what the process writes; its exit code once it has ended."""
    forwarding = asyncio.create_task(_forward(name, process, sink))
    try:
        code = await process.wait()
        # What it left in the pipe; somebody who inherited it may keep it open for ever.
        await asyncio.wait({forwarding}, timeout=1.0)
        return code
    finally:
        forwarding.cancel()


async def _forward(name: str, process: asyncio.subprocess.Process, sink: Sink) -> None:
    if (output := process.stdout) is None:
        return
    try:
        async for line in output:
            sink(name, line.decode(errors="replace").rstrip("\r\n"))
    except ValueError:  # longer than the reader's limit
        sink(name, "(a line too long to show; no more of this log is shown)")
        while await output.read(65_536):
            pass  # or the service would stand still at a full pipe


def _start_failed(name: str, code: int) -> CommandFailed:
    usage = code == _START_ERROR_CODE
    return CommandFailed(
        f"the {name} did not start (exit code {code}); see its output above",
        ExitCode.USAGE if usage else ExitCode.FAILED,
    )


async def _wait_until_healthy(name: str, address: str, ended: asyncio.Task[int]) -> None:
    """Until grpc.health.v1 says SERVING; it streams, so nothing polls."""
    options = [("grpc.enable_http_proxy", 0)]
    async with grpc.aio.insecure_channel(address, options) as channel:
        serving = asyncio.create_task(_until_serving(channel))
        try:
            await asyncio.wait({serving, ended}, return_when=asyncio.FIRST_COMPLETED)
            if not serving.done():
                raise _start_failed(name, ended.result())
            serving.result()
        finally:
            serving.cancel()


async def _until_serving(channel: grpc.aio.Channel) -> None:
    watch = channel.unary_stream(
        "/grpc.health.v1.Health/Watch",
        request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
        response_deserializer=health_pb2.HealthCheckResponse.FromString,
    )
    async for answer in watch(health_pb2.HealthCheckRequest(), wait_for_ready=True):
        if answer.status == health_pb2.HealthCheckResponse.SERVING:
            return


async def _stop(
    name: str, process: asyncio.subprocess.Process, ended: asyncio.Task[int], sink: Sink
) -> None:
    """SIGTERM, then SIGKILL for one that does not end; also if this task is being cancelled."""
    if process.returncode is None:
        process.terminate()
        await asyncio.wait({ended}, timeout=STOP_SECONDS)
    if process.returncode is None:
        sink(name, f"did not stop within {STOP_SECONDS:g} s and is killed")
        process.kill()
    await ended
