"""The outermost interceptor: no error leaves a service but by name (E2).

It turns a `Refusal` into its status, any other exception into `INTERNAL` with an id under which
the traceback is logged, and bytes that are no valid request into `MALFORMED_REQUEST`. `grpc.aio`
by itself answers all of these with `UNKNOWN` and the exception's text, and it parses a request
before any handler runs and serializes the response after it. So what is handed to it takes and
returns bytes, and both steps are done here, where errors have names.
"""

from __future__ import annotations

import asyncio
import inspect
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress
from types import TracebackType
from typing import Any, NoReturn, TypeAlias, TypeVar, cast

import grpc
import structlog
from google.protobuf.message import DecodeError
from grpc import aio

from turngate_core.errors import Reason, Refusal
from turngate_serving.errors import wire_status

_MALFORMED = "the request is no valid message: not parsable, bad UTF-8, or nested too deep"

_ABORT_TIMEOUT_S = 10.0
_FIRST_WRITE_S = 1.0

log = structlog.stdlib.get_logger(__name__)

_Request = TypeVar("_Request")
_Response = TypeVar("_Response")

# Messages of every type pass through here, and only their own handler knows which.
_Message: TypeAlias = Any
_Context: TypeAlias = "aio.ServicerContext[_Message, _Message]"
_Handler: TypeAlias = "grpc.RpcMethodHandler[_Message, _Message]"
_Parse: TypeAlias = Callable[[bytes], _Message]
_Serialize: TypeAlias = Callable[[_Message], bytes]
_Coroutine: TypeAlias = "Callable[[_Message, _Context], Awaitable[_Message]]"
_Generator: TypeAlias = "Callable[[_Message, _Context], AsyncGenerator[_Message, None]]"


class ErrorInterceptor(aio.ServerInterceptor):
    """Has to be the first of a server's interceptors: then it sees what the others raise, too."""

    def __init__(self) -> None:
        # A method's handler is the same object for each call: it is wrapped once.
        self._wrapped: dict[str, tuple[_Handler, _Handler]] = {}

    async def intercept_service(
        self,
        continuation: Callable[
            [grpc.HandlerCallDetails],
            Awaitable[grpc.RpcMethodHandler[_Request, _Response] | None],
        ],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler[_Request, _Response] | None:
        """The method's handler, wrapped; `None` (`UNIMPLEMENTED`) for unknown methods."""
        method = handler_call_details.method
        # What is raised here would leave the client without any answer.
        try:
            handler = await continuation(handler_call_details)
        except Refusal as refusal:
            return _refusing(refusal)
        except Exception:
            error_id = _new_error_id()
            log.exception("unexpected error", error_id=error_id, method=method)
            return _refusing(_internal(error_id))
        if handler is None:
            return None
        known = self._wrapped.get(method)
        if known is None or known[0] is not handler:
            known = (handler, _wrapped(method, handler))
            self._wrapped[method] = known
        return known[1]


class _ErrorsByName:
    """Around all that a handler does: an exception that comes by becomes a status."""

    __slots__ = ("_context", "_method")

    def __init__(self, method: str, context: _Context) -> None:
        self._method = method
        self._context = context

    async def __aenter__(self) -> None:
        pass

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None or _is_of_grpc(error, self._context):
            return
        refusal = _refusal_in(error)
        if refusal is None:
            error_id = _new_error_id()
            log.error("unexpected error", error_id=error_id, method=self._method, exc_info=error)
            refusal = _internal(error_id)
        await _abort(self._context, refusal)


def _is_of_grpc(error: BaseException, context: _Context) -> bool:
    """Whether it has to reach gRPC as it is: a status that was sent, a client that has gone."""
    if isinstance(error, asyncio.CancelledError):
        # Nobody cancelled this call if its task was not asked to end: then something that it waited
        # for was cancelled, and gRPC would leave the client waiting.
        task = asyncio.current_task()
        return task is None or task.cancelling() > 0
    if isinstance(error, aio.UsageError):
        return context.done()
    return isinstance(error, aio.BaseError) or not isinstance(error, Exception | BaseExceptionGroup)


def _refusal_in(error: BaseException) -> Refusal | None:
    """The refusal that an exception is, or that a group holds and nothing else beside it."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, BaseExceptionGroup):
        found = [_refusal_in(one) for one in error.exceptions]
        return found[0] if None not in found else None
    return None


def _wrapped(method: str, handler: _Handler) -> _Handler:
    """The handler over bytes, with errors by name."""
    # The types know the handlers of synchronous servers only.
    behavior = cast(
        "_Coroutine | _Generator",
        handler.unary_unary
        or handler.unary_stream
        or handler.stream_unary
        or handler.stream_stream,
    )
    if not (inspect.iscoroutinefunction(behavior) or inspect.isasyncgenfunction(behavior)):
        return _refusing(_why_not_async(method, behavior))
    parse = _parser(handler.request_deserializer or _as_it_is)
    serialize = handler.response_serializer or _as_it_is

    # A stream of requests is parsed inside of the handler, whenever it reads.
    first = _as_it_is if handler.request_streaming else parse
    reads = parse if handler.request_streaming else None
    if not handler.response_streaming:
        one = _answering(method, cast("_Coroutine", behavior), first, serialize)
        if handler.request_streaming:
            return grpc.stream_unary_rpc_method_handler(one, reads)
        return grpc.unary_unary_rpc_method_handler(one)
    writes = None
    if inspect.isasyncgenfunction(behavior):
        many = _yielding(method, cast("_Generator", behavior), first, serialize)
    else:
        # Handlers that call `context.write` themselves: serialized inside of the handler, too.
        many = _answering(method, cast("_Coroutine", behavior), first, _as_it_is)
        writes = handler.response_serializer
    if handler.request_streaming:
        return grpc.stream_stream_rpc_method_handler(many, reads, writes)
    return grpc.unary_stream_rpc_method_handler(many, None, writes)


def _answering(
    method: str, behavior: _Coroutine, parse: _Parse, serialize: _Serialize
) -> _Coroutine:
    async def answer(request: _Message, context: _Context) -> _Message:
        async with _ErrorsByName(method, context):
            return serialize(await behavior(parse(request), context))

    return answer


def _yielding(
    method: str, behavior: _Generator, parse: _Parse, serialize: _Serialize
) -> _Coroutine:
    # A coroutine that writes, where gRPC would iterate: so a cancel arrives here, and the
    # generator is closed in this task and at once.
    async def write_all(request: _Message, context: _Context) -> None:
        async with (
            _ErrorsByName(method, context),
            aclosing(behavior(parse(request), context)) as messages,
        ):
            async for message in messages:
                await context.write(serialize(message))

    return write_all


def _refusing(refusal: Refusal) -> _Handler:
    """A handler for calls of any shape."""

    async def refuse(requests: _Message, context: _Context) -> None:
        # A client whose first write fails, since the call is over, reports that write and not the
        # refusal. So it may write first; one that waits for us is not kept waiting.
        with suppress(TimeoutError):
            async with asyncio.timeout(_FIRST_WRITE_S):
                await context.read()
        await _abort(context, refusal)

    return grpc.stream_stream_rpc_method_handler(cast(Any, refuse))


def _why_not_async(method: str, behavior: object) -> Refusal:
    """What a servicer inherits from the generated code is not built yet; the rest is a mistake."""
    name = method.rpartition("/")[2]
    if getattr(behavior, "__module__", "").endswith("_pb2_grpc"):
        return Refusal(Reason.NOT_IMPLEMENTED, f"{name} is not built yet", {"feature": name})
    error_id = _new_error_id()
    log.error("a handler is no async function", error_id=error_id, method=method)
    return _internal(error_id)


def _parser(deserialize: _Parse) -> _Parse:
    def parse(raw: bytes) -> _Message:
        try:
            return deserialize(raw)
        except (DecodeError, ValueError, RecursionError):
            raise Refusal(Reason.MALFORMED_REQUEST, _MALFORMED) from None

    return parse


def _as_it_is(message: _Message) -> _Message:
    return message


async def _abort(context: _Context, refusal: Refusal) -> NoReturn:
    """Send the status; it goes after what was written, so a client that reads nothing delays it."""
    status = wire_status(refusal)
    try:
        async with asyncio.timeout(_ABORT_TIMEOUT_S):
            await context.abort(status.code, status.message, status.trailers)
    except TimeoutError:
        # gRPC has the status and sends it if the client reads on; nobody has to wait for that.
        raise asyncio.CancelledError from None


def _new_error_id() -> str:
    return secrets.token_hex(8)


def _internal(error_id: str) -> Refusal:
    return Refusal(
        Reason.INTERNAL,
        f"something unexpected happened; it was logged under the id {error_id}",
        {"error_id": error_id},
    )
