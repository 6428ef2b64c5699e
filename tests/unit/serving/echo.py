"""A service with a method of each kind that does what the word in the request says."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, cast

import grpc
from google.protobuf.wrappers_pb2 import StringValue
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status
from grpc import aio

from turngate_core.errors import Reason, Refusal

SERVICE = "turngate.test.Echo"
SECRET = "postgresql://admin:hunter2@db"
METHODS = ("One", "Many", "Written", "Collected", "Chat", "ChatRead")
DEADLINE_S = 10.0

Context = aio.ServicerContext


class Echo:
    """`open`: streams that wait now; `closed`: set when one of them was left."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.closed = asyncio.Event()
        self.stop = asyncio.Event()

    async def act(self, word: str, context: "Context[Any, Any]") -> StringValue:
        match word:
            case "refuse":
                raise Refusal(
                    Reason.ALREADY_SETTLED,
                    "another answer came first",
                    {"answer_id": "a1"},
                    [("output", "is the second")],
                    retry_after_ms=1500,
                )
            case "leak":
                raise RuntimeError(SECRET)
            case "abort":
                await context.abort(grpc.StatusCode.OUT_OF_RANGE, "mine")
            case "wrong type":
                return cast(StringValue, None)
            case "stray cancel":
                future = asyncio.get_running_loop().create_future()
                future.cancel()
                await future
            case "group":
                async with asyncio.TaskGroup() as group:
                    group.create_task(self.act("refuse", context))
            case "wait":
                self.open.set()
                try:
                    await self.stop.wait()
                finally:
                    self.closed.set()
        return StringValue(value=word)

    async def One(self, request: StringValue, context: "Context[Any, Any]") -> StringValue:
        return await self.act(request.value, context)

    async def Many(
        self, request: StringValue, context: "Context[Any, Any]"
    ) -> AsyncIterator[StringValue]:
        yield StringValue(value="first")
        yield await self.act(request.value, context)

    async def Written(self, request: StringValue, context: "Context[Any, Any]") -> None:
        await context.write(StringValue(value="first"))
        await context.write(await self.act(request.value, context))

    async def Collected(
        self, requests: AsyncIterator[StringValue], context: "Context[Any, Any]"
    ) -> StringValue:
        return StringValue(
            value=",".join([(await self.act(one.value, context)).value async for one in requests])
        )

    async def Chat(
        self, requests: AsyncIterator[StringValue], context: "Context[Any, Any]"
    ) -> AsyncIterator[StringValue]:
        async for one in requests:
            yield await self.act(one.value, context)

    async def ChatRead(self, requests: object, context: "Context[Any, Any]") -> None:
        while (one := await context.read()) is not aio.EOF:
            await context.write(await self.act(one.value, context))

    def Blocking(self, request: StringValue, context: object) -> StringValue:
        return request

    def register(self, server: aio.Server) -> None:
        shapes: dict[str, Any] = {
            "One": grpc.unary_unary_rpc_method_handler,
            "Many": grpc.unary_stream_rpc_method_handler,
            "Written": grpc.unary_stream_rpc_method_handler,
            "Collected": grpc.stream_unary_rpc_method_handler,
            "Chat": grpc.stream_stream_rpc_method_handler,
            "ChatRead": grpc.stream_stream_rpc_method_handler,
            "Blocking": grpc.unary_unary_rpc_method_handler,
        }
        handlers = {
            name: shape(getattr(self, name), StringValue.FromString, StringValue.SerializeToString)
            for name, shape in shapes.items()
        }
        server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(SERVICE, handlers)])


def path(method: str) -> str:
    return f"/{SERVICE}/{method}"


def word(text: str) -> bytes:
    return StringValue(value=text).SerializeToString()


class Raw:
    """The methods of a channel over bytes."""

    def __init__(self, channel: aio.Channel) -> None:
        self._channel = channel

    def one(self, full: str) -> "aio.UnaryUnaryMultiCallable[bytes, bytes]":
        return self._channel.unary_unary(full)

    def many(self, full: str) -> "aio.UnaryStreamMultiCallable[bytes, bytes]":
        return self._channel.unary_stream(full)

    def collected(self, full: str) -> "aio.StreamUnaryMultiCallable[bytes, bytes]":
        return self._channel.stream_unary(full)

    def chat(self, full: str) -> "aio.StreamStreamMultiCallable[bytes, bytes]":
        return self._channel.stream_stream(full)


async def call(channel: aio.Channel, method: str, raw: bytes) -> list[str]:
    """Send these bytes to the method, whatever its kind; the words that come back."""
    to, full = Raw(channel), path(method)
    if method in ("Many", "Written"):
        answers = [answer async for answer in to.many(full)(raw, timeout=DEADLINE_S)]
    elif method == "Collected":
        answers = [await to.collected(full)(iter([raw]), timeout=DEADLINE_S)]
    elif method in ("Chat", "ChatRead"):
        answers = [answer async for answer in to.chat(full)(iter([raw]), timeout=DEADLINE_S)]
    else:
        answers = [await to.one(full)(raw, timeout=DEADLINE_S)]
    return [StringValue.FromString(answer).value for answer in answers]


class Details:
    """What an error carries; fails if it is not exactly one `ErrorInfo` of ours (E2)."""

    def __init__(self, error: aio.AioRpcError) -> None:
        trailers = dict(error.trailing_metadata())
        raw = trailers["grpc-status-details-bin"]
        assert isinstance(raw, bytes)
        self.size = len(raw)
        self.status = Status.FromString(raw)
        assert self.status.code == error.code().value[0]
        self.bad_request = BadRequest()
        self.retry = RetryInfo()
        infos = []
        for detail in self.status.details:
            info = ErrorInfo()
            if detail.Unpack(info):
                infos.append(info)
            else:
                assert detail.Unpack(self.bad_request) or detail.Unpack(self.retry)
        (self.info,) = infos
        assert self.info.domain == "turngate"
