"""A broker at the wire that plays what a test has written down, and records what it was asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Never, TypeVar

import grpc
from google.protobuf.any_pb2 import Any as AnyMessage
from google.rpc import error_details_pb2, status_pb2

from turngate.v1 import broker_pb2 as pb
from turngate.v1.event_pb2 import SessionEvent
from turngate.v1.session_pb2 import Session


@dataclass(frozen=True)
class Failure:
    """An error as the services send it (E2); without a reason, as a proxy would."""

    code: grpc.StatusCode
    reason: str = ""
    message: str = "no"
    metadata: dict[str, str] = field(default_factory=dict)
    violations: tuple[tuple[str, str], ...] = ()

    def status(self) -> bytes:
        """The encoded google.rpc.Status."""
        details = []
        info = error_details_pb2.ErrorInfo(
            reason=self.reason, domain="turngate", metadata=self.metadata
        )
        details.append(packed(info))
        if self.violations:
            bad = error_details_pb2.BadRequest(
                field_violations=[
                    error_details_pb2.BadRequest.FieldViolation(field=path, description=text)
                    for path, text in self.violations
                ]
            )
            details.append(packed(bad))
        number, _ = self.code.value
        status = status_pb2.Status(code=number, message=self.message, details=details)
        return bytes(status.SerializeToString())


def packed(detail: error_details_pb2.ErrorInfo | error_details_pb2.BadRequest) -> AnyMessage:
    """A detail of a status."""
    box = AnyMessage()
    box.Pack(detail)
    return box


Request = TypeVar("Request")
Response = TypeVar("Response")


async def fail(context: grpc.aio.ServicerContext[Request, Response], failure: Failure) -> Never:
    """End the call with the failure."""
    trailers: tuple[tuple[str, bytes], ...] = ()
    if failure.reason:
        trailers = (("grpc-status-details-bin", failure.status()),)
    await context.abort(failure.code, failure.message, trailers)


# One watch: its frames, then how it ends: with an error, in order, or not at all.
Watch = tuple[list[pb.WatchSessionResponse], Failure | None]


class FakeBroker:
    """`sends` and `watches`: what the next calls get, in order; the last watch stays open."""

    def __init__(
        self,
        *,
        sends: Iterable[Failure | pb.SendMessageResponse] = (),
        watches: Iterable[Watch] = (),
    ) -> None:
        self.sends = list(sends)
        self.watches = list(watches)
        self.send_requests: list[pb.SendMessageRequest] = []
        self.watch_requests: list[pb.WatchSessionRequest] = []
        self.metadata: list[dict[str, str]] = []
        self.address = ""
        self.more: asyncio.Queue[pb.WatchSessionResponse] = asyncio.Queue()
        self.watched = asyncio.Semaphore(0)  # released by each watch

    def handlers(self) -> grpc.GenericRpcHandler:
        """What it can do; all else is unimplemented."""
        return grpc.method_handlers_generic_handler(
            "turngate.v1.BrokerService",
            {
                "SendMessage": grpc.unary_unary_rpc_method_handler(
                    self.send_message,
                    pb.SendMessageRequest.FromString,
                    pb.SendMessageResponse.SerializeToString,
                ),
                "GetSession": grpc.unary_unary_rpc_method_handler(
                    self.get_session,
                    pb.GetSessionRequest.FromString,
                    pb.GetSessionResponse.SerializeToString,
                ),
                "WatchSession": grpc.unary_stream_rpc_method_handler(
                    self.watch_session,
                    pb.WatchSessionRequest.FromString,
                    pb.WatchSessionResponse.SerializeToString,
                ),
            },
        )

    async def send_message(
        self,
        request: pb.SendMessageRequest,
        context: grpc.aio.ServicerContext[pb.SendMessageRequest, pb.SendMessageResponse],
    ) -> pb.SendMessageResponse:
        self.send_requests.append(request)
        self.metadata.append(
            {key: str(value) for key, value in context.invocation_metadata() or ()}
        )
        answer = self.sends.pop(0)
        if isinstance(answer, Failure):
            await fail(context, answer)
        return answer

    async def get_session(
        self,
        request: pb.GetSessionRequest,
        context: grpc.aio.ServicerContext[pb.GetSessionRequest, pb.GetSessionResponse],
    ) -> pb.GetSessionResponse:
        return pb.GetSessionResponse(session=Session(id=request.session_id))

    async def watch_session(
        self,
        request: pb.WatchSessionRequest,
        context: grpc.aio.ServicerContext[pb.WatchSessionRequest, pb.WatchSessionResponse],
    ) -> AsyncIterator[pb.WatchSessionResponse]:
        self.watch_requests.append(request)
        self.watched.release()
        frames, end = self.watches.pop(0)
        for frame in frames:
            yield frame
        if end is not None:
            await fail(context, end)
        while not self.watches:
            yield await self.more.get()


@asynccontextmanager
async def serving(broker: FakeBroker) -> AsyncIterator[FakeBroker]:
    """The fake on a free port of this machine; its `address` is set."""
    server = grpc.aio.server()
    server.add_generic_rpc_handlers([broker.handlers()])
    broker.address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    await server.start()
    try:
        yield broker
    finally:
        await server.stop(None)


def frame(
    cursor: str, events: Iterable[SessionEvent] = (), *, live: bool = True
) -> pb.WatchSessionResponse:
    """A frame of a watch."""
    return pb.WatchSessionResponse(events=events, cursor=cursor, live=live)
