"""A gRPC server as both services run it: options, health, reflection, start and drain."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import structlog
from grpc import aio

from turngate_serving.drain import Drain
from turngate_serving.error_interceptor import ErrorInterceptor
from turngate_serving.exit import StartError
from turngate_serving.health import SERVICE_NAME as HEALTH_NAME
from turngate_serving.health import Health
from turngate_serving.listen import (
    TcpAddress,
    check_exposure,
    check_free,
    parse_address,
)
from turngate_serving.reflection import add_reflection

log = structlog.stdlib.get_logger(__name__)

# How long a handler that was cancelled may still take to end.
_LAST_WORDS_S = 2.0


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """The transport; times in seconds, sizes in bytes.

    `keepalive_time_s`, `keepalive_timeout_s`: a client that has vanished is found after both
    together; without, its streams stay for two hours. `min_client_ping_s`: clients that ping more
    often are cut off.
    """

    max_receive_bytes: int = 4 * 1024 * 1024
    max_send_bytes: int = 4 * 1024 * 1024
    keepalive_time_s: float = 30.0
    keepalive_timeout_s: float = 20.0
    min_client_ping_s: float = 5.0

    def channel_arguments(self) -> list[tuple[str, int]]:
        """gRPC ignores names that it does not know: each of these has a test."""
        return [
            ("grpc.max_receive_message_length", self.max_receive_bytes),
            ("grpc.max_send_message_length", self.max_send_bytes),
            ("grpc.keepalive_time_ms", round(self.keepalive_time_s * 1000)),
            # `grpc.keepalive_timeout_ms` changes nothing here: this one cuts the connection off.
            ("grpc.http2.ping_timeout_ms", round(self.keepalive_timeout_s * 1000)),
            # Either side may ping, also without a call.
            ("grpc.keepalive_permit_without_calls", 1),
            (
                "grpc.http2.min_ping_interval_without_data_ms",
                round(self.min_client_ping_s * 1000),
            ),
            # Else a stale process steals part of the connections.
            ("grpc.so_reuseport", 0),
        ]


@dataclass(frozen=True, slots=True)
class Server:
    """A server that is bound to `address` (with the real port) and not started."""

    grpc: aio.Server
    address: str
    health: Health
    drain: Drain


async def build_server(
    listen: str,
    register: Callable[[aio.Server], None],
    services: Sequence[str],
    *,
    interceptors: Sequence[aio.ServerInterceptor] = (),
    authenticated: bool = False,
    options: ServerOptions | None = None,
) -> Server:
    """Bind a server for the named services, which `register` adds to it.

    `listen`: `host:port` (port 0: any free one), `[v6]:port` or `unix:/path`; without
    authentication only this machine may reach it (P2). `interceptors` run inside of the one that
    names errors. Raises `StartError`.
    """
    address = parse_address(listen)
    check_exposure(address, authenticated=authenticated)
    check_free(address)

    drain = Drain()
    health = Health(services)
    server = aio.server(
        interceptors=(ErrorInterceptor(), drain, *interceptors),
        options=(options or ServerOptions()).channel_arguments(),
    )
    register(server)
    health.add_to(server)
    add_reflection(server, (*services, HEALTH_NAME), drain)
    try:
        port = server.add_insecure_port(str(address))
    except RuntimeError as error:
        raise StartError(f"cannot listen on {address}: gRPC cannot bind it") from error
    if isinstance(address, TcpAddress):
        address = TcpAddress(address.host, port)
    return Server(server, str(address), health, drain)


Hook = Callable[[], Awaitable[None]]


async def serve_until_signal(
    server: Server,
    *,
    hooks: Sequence[Hook] = (),
    hook_timeout_s: float = 10.0,
    grace_s: float = 5.0,
    stop: asyncio.Event | None = None,
    on_listening: Callable[[str], None] | None = None,
) -> int:
    """Serve until SIGTERM, SIGINT or `stop`, then drain; returns the exit code.

    Drain: not serving, new calls are refused, then the hooks one after the other (each ends its
    streams or hands over its runs, within `hook_timeout_s`), then open calls have `grace_s` to
    end. A second signal stops at once. `on_listening` is told the address once calls are taken.
    """
    stopping = stop or asyncio.Event()
    at_once = asyncio.Event()
    codes: list[int] = []

    def signalled(number: signal.Signals) -> None:
        log.info("signal", name=number.name)
        codes.append(128 + number)
        (at_once if stopping.is_set() else stopping).set()

    loop = asyncio.get_running_loop()
    signals = (signal.SIGTERM, signal.SIGINT)
    for number in signals:
        loop.add_signal_handler(number, signalled, number)
    try:
        await server.grpc.start()
        server.health.serving()
        log.info("listening", address=server.address)
        if on_listening is not None:
            on_listening(server.address)
        await stopping.wait()
        drained = asyncio.ensure_future(_drain(server, hooks, hook_timeout_s, grace_s))
        hurried = asyncio.ensure_future(at_once.wait())
        try:
            await asyncio.wait((drained, hurried), return_when=asyncio.FIRST_COMPLETED)
            if drained.done():
                drained.result()
                log.info("stopped")
                return 0
            log.warning("stopped at once")
            return codes[-1]
        finally:
            drained.cancel()
            hurried.cancel()
            await asyncio.wait((drained, hurried), timeout=_LAST_WORDS_S)
    finally:
        # Also where a start or a drain was cut short; nothing is left to do after a clean one.
        await _stop(server, None)
        for number in signals:
            loop.remove_signal_handler(number)


async def _drain(
    server: Server, hooks: Sequence[Hook], hook_timeout_s: float, grace_s: float
) -> None:
    server.drain.begin()
    server.health.stopping()
    for hook in hooks:
        await _run_hook(hook, hook_timeout_s)
    server.health.end()
    server.drain.end()
    await _stop(server, grace_s)


async def _run_hook(hook: Hook, timeout_s: float) -> None:
    """A hook that fails or hangs is logged and keeps nobody from stopping."""

    async def run() -> None:
        async with asyncio.timeout(timeout_s):
            await hook()

    (outcome,) = await asyncio.gather(run(), return_exceptions=True)
    if isinstance(outcome, BaseException):
        name = getattr(hook, "__qualname__", repr(hook))
        log.error("a drain hook failed", hook=name, exc_info=outcome)


async def _stop(server: Server, grace_s: float | None) -> None:
    try:
        async with asyncio.timeout((grace_s or 0.0) + _LAST_WORDS_S):
            await server.grpc.stop(grace_s)
    except TimeoutError:
        log.error("calls did not end after their cancel")
