"""The end of a server's work: new calls are refused, and streams that would go on for ever end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

import grpc
from grpc import aio

from turngate_core.errors import Reason, Refusal

_Request = TypeVar("_Request")
_Response = TypeVar("_Response")

# Probes ask on while a service stops: they are told so, not refused.
_HEALTH = "/grpc.health.v1.Health/"


def shutting_down() -> Refusal:
    """The refusal of what a service that stops does not begin, or ends."""
    return Refusal(Reason.SHUTTING_DOWN, "the service is stopping")


class Drain(aio.ServerInterceptor):
    """Goes from serving to draining (new calls are refused) to ended (open streams end)."""

    def __init__(self) -> None:
        self._draining = False
        self._ended = asyncio.Event()

    def begin(self) -> None:
        """Refuse new calls from now on, except those of health checks."""
        self._draining = True

    def end(self) -> None:
        """End the streams over `while_serving`: else each of them costs the whole grace."""
        self._ended.set()

    async def intercept_service(
        self,
        continuation: Callable[
            [grpc.HandlerCallDetails],
            Awaitable[grpc.RpcMethodHandler[_Request, _Response] | None],
        ],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler[_Request, _Response] | None:
        """The method's handler. Raises `Refusal` (`SHUTTING_DOWN`) once draining has begun."""
        if self._draining and not handler_call_details.method.startswith(_HEALTH):
            raise shutting_down()
        return await continuation(handler_call_details)

    async def while_serving(self, requests: AsyncIterator[_Request]) -> AsyncIterator[_Request]:
        """A stream's requests, until the drain has ended: then `Refusal` (`SHUTTING_DOWN`).

        Only the reading is given up: a write that is cancelled stays under way in gRPC.
        """
        ended = asyncio.ensure_future(self._ended.wait())
        reading: asyncio.Future[_Request] | None = None
        try:
            while True:
                reading = asyncio.ensure_future(anext(requests))
                await asyncio.wait((reading, ended), return_when=asyncio.FIRST_COMPLETED)
                if not reading.done():
                    raise shutting_down()
                try:
                    request = reading.result()
                except StopAsyncIteration:
                    return
                yield request
        finally:
            ended.cancel()
            if reading is not None:
                reading.cancel()
