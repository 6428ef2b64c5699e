"""`grpc.health.v1` for the whole server (the empty name) and for each service.

The library's servicer is not used, since its watches never end: each costs the whole grace when
the server stops.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import grpc
from grpc import aio
from grpc_health.v1 import health_pb2, health_pb2_grpc

from turngate_serving.drain import shutting_down

SERVICE_NAME = "grpc.health.v1.Health"


class Health:
    """What the server says about itself; not serving until told otherwise."""

    def __init__(self, services: Sequence[str]) -> None:
        self._names = frozenset(("", SERVICE_NAME, *services))
        self._serving = False
        self._ended = False
        self._changed = asyncio.Event()

    def add_to(self, server: aio.Server) -> None:
        """Register with a server that has not started."""
        health_pb2_grpc.add_HealthServicer_to_server(self, server)

    def serving(self) -> None:
        """The server takes calls."""
        self._change(serving=True)

    def stopping(self) -> None:
        """Not serving any more."""
        self._change(serving=False)

    def end(self) -> None:
        """End the watches, after they have told the last state."""
        self._ended = True
        self._change(serving=False)

    def _change(self, *, serving: bool) -> None:
        self._serving = serving
        self._changed.set()
        self._changed = asyncio.Event()

    def _response(self) -> health_pb2.HealthCheckResponse:
        states = health_pb2.HealthCheckResponse
        return states(status=states.SERVING if self._serving else states.NOT_SERVING)

    async def Check(
        self,
        request: health_pb2.HealthCheckRequest,
        context: aio.ServicerContext[health_pb2.HealthCheckRequest, health_pb2.HealthCheckResponse],
    ) -> health_pb2.HealthCheckResponse:
        """The state now; `NOT_FOUND` for a name that is not served."""
        if request.service not in self._names:
            await context.abort(grpc.StatusCode.NOT_FOUND, "no such service here")
        return self._response()

    async def List(
        self,
        request: health_pb2.HealthListRequest,
        context: aio.ServicerContext[health_pb2.HealthListRequest, health_pb2.HealthListResponse],
    ) -> health_pb2.HealthListResponse:
        """The state of all names."""
        return health_pb2.HealthListResponse(
            statuses={name: self._response() for name in self._names}
        )

    async def Watch(
        self,
        request: health_pb2.HealthCheckRequest,
        context: aio.ServicerContext[health_pb2.HealthCheckRequest, health_pb2.HealthCheckResponse],
    ) -> None:
        """The state now and at each change; a name that is not served stays `SERVICE_UNKNOWN`."""
        states = health_pb2.HealthCheckResponse
        told: health_pb2.HealthCheckResponse | None = None
        while True:
            # Taken first: a change during the write is seen in the next round.
            changed, ended = self._changed, self._ended
            known = request.service in self._names
            state = self._response() if known else states(status=states.SERVICE_UNKNOWN)
            if state != told:
                await context.write(state)
                told = state
            if ended:
                raise shutting_down()
            await changed.wait()
