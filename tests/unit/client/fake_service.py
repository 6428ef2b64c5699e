"""A process that behaves like a service, or misbehaves: python fake_service.py NAME MODE ..."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
from grpc_health.v1 import health_pb2


class Health:
    """grpc.health.v1 as far as a start needs it."""

    def __init__(self, *, serving: bool) -> None:
        self._serving = serving

    async def watch(
        self,
        request: health_pb2.HealthCheckRequest,
        context: grpc.aio.ServicerContext[
            health_pb2.HealthCheckRequest, health_pb2.HealthCheckResponse
        ],
    ) -> AsyncIterator[health_pb2.HealthCheckResponse]:
        """NOT_SERVING, and soon after it SERVING, if ever."""
        yield health_pb2.HealthCheckResponse(status=health_pb2.HealthCheckResponse.NOT_SERVING)
        if self._serving:
            yield health_pb2.HealthCheckResponse(status=health_pb2.HealthCheckResponse.SERVING)
        await asyncio.Event().wait()


async def serve(name: str, mode: str, flags: list[str]) -> int:
    """Serve until SIGTERM; the exit code."""
    if mode == "port-taken":
        print(f"turngate-{name}: the port is taken", file=sys.stderr)
        return 2
    server = grpc.aio.server()
    health = Health(serving=mode != "unhealthy")
    handler = grpc.unary_stream_rpc_method_handler(
        health.watch,
        health_pb2.HealthCheckRequest.FromString,
        health_pb2.HealthCheckResponse.SerializeToString,
    )
    server.add_generic_rpc_handlers(
        [grpc.method_handlers_generic_handler("grpc.health.v1.Health", {"Watch": handler})]
    )
    address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    await server.start()
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stopped.set if mode != "deaf" else lambda: None)
    ready = Path(flags[flags.index("--ready-file") + 1])
    half = ready.with_suffix(".half")
    half.write_text(json.dumps({"address": address}))
    half.replace(ready)
    print(f"pid {os.getpid()} flags {' '.join(flags)}", flush=True)
    if mode == "dies":
        loop.call_later(0.3, os._exit, 7)
    await stopped.wait()
    print("stopped", flush=True)
    await server.stop(None)
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(serve(sys.argv[1], sys.argv[2], sys.argv[3:])))
