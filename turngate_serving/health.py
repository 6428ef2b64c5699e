"""`grpc.health.v1` for the whole server (the empty name) and for each service."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from grpc import aio
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from turngate_serving.drain import Drain, shutting_down

# Its requests and responses are of several types.
_Context: TypeAlias = "aio.ServicerContext[Any, Any]"

SERVICE_NAME = "grpc.health.v1.Health"


class Health:
    """What the server says about itself; not serving until told otherwise."""

    def __init__(self, services: Sequence[str]) -> None:
        self._names = ("", SERVICE_NAME, *services)
        self._servicer = health.aio.HealthServicer()

    async def add_to(self, server: aio.Server, drain: Drain) -> None:
        """Register with a server that has not started."""
        await self._say(health_pb2.HealthCheckResponse.NOT_SERVING)
        health_pb2_grpc.add_HealthServicer_to_server(
            _Service(self._servicer, self._names, drain), server
        )

    async def serving(self) -> None:
        """The server takes calls."""
        await self._say(health_pb2.HealthCheckResponse.SERVING)

    async def stopping(self) -> None:
        """Not serving any more, for good."""
        await self._servicer.enter_graceful_shutdown()

    async def _say(self, status: int) -> None:
        for name in self._names:
            await self._servicer.set(name, status)


class _Service:
    """The library's servicer, with a watch that ends when the server does, and `List`."""

    def __init__(
        self, servicer: health.aio.HealthServicer, names: Sequence[str], drain: Drain
    ) -> None:
        self._servicer = servicer
        self._names = names
        self._drain = drain

    async def Check(
        self, request: health_pb2.HealthCheckRequest, context: _Context
    ) -> health_pb2.HealthCheckResponse:
        return await self._servicer.Check(request, context)

    async def List(
        self, request: health_pb2.HealthListRequest, context: _Context
    ) -> health_pb2.HealthListResponse:
        response = health_pb2.HealthListResponse()
        for name in self._names:
            asked = health_pb2.HealthCheckRequest(service=name)
            response.statuses[name].CopyFrom(await self.Check(asked, context))
        return response

    async def Watch(self, request: health_pb2.HealthCheckRequest, context: _Context) -> None:
        if not await self._drain.until_ended(self._servicer.Watch(request, context)):
            # The watch may have been ended before it could say so.
            await context.write(
                health_pb2.HealthCheckResponse(status=health_pb2.HealthCheckResponse.NOT_SERVING)
            )
            raise shutting_down()
