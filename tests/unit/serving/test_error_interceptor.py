"""E2: errors leave by name, and nothing of the service leaves with them."""

import asyncio
import logging
from typing import Any, cast

import grpc
import pytest
from grpc import aio
from structlog.testing import capture_logs

from tests.unit.serving.echo import (
    DEADLINE_S,
    METHODS,
    SECRET,
    Details,
    Echo,
    Raw,
    call,
    path,
    word,
)
from turngate.v1 import broker_pb2, broker_pb2_grpc
from turngate_core.errors import Reason
from turngate_serving.server import Server, build_server

every_kind = pytest.mark.parametrize("method", METHODS)


async def refused(channel: aio.Channel, method: str, raw: bytes) -> aio.AioRpcError:
    with pytest.raises(aio.AioRpcError) as caught:
        await call(channel, method, raw)
    return caught.value


@every_kind
async def test_what_works_passes_unchanged(channel: aio.Channel, method: str) -> None:
    assert (await call(channel, method, word("hello")))[-1] == "hello"


@every_kind
@pytest.mark.parametrize("cause", ["refuse", "group"])
async def test_a_refusal_arrives_with_its_details(
    channel: aio.Channel, method: str, cause: str
) -> None:
    error = await refused(channel, method, word(cause))
    assert error.code() is grpc.StatusCode.FAILED_PRECONDITION
    assert error.details() == "another answer came first"
    details = Details(error)
    assert details.info.reason == Reason.ALREADY_SETTLED
    assert dict(details.info.metadata) == {"answer_id": "a1"}
    (violation,) = details.bad_request.field_violations
    assert (violation.field, violation.description) == ("output", "is the second")
    assert details.retry.retry_delay.ToMilliseconds() == 1500


@every_kind
@pytest.mark.parametrize("cause", ["leak", "wrong type", "stray cancel"])
async def test_an_unexpected_error_is_logged_under_the_id_that_the_client_gets(
    channel: aio.Channel, method: str, cause: str
) -> None:
    with capture_logs() as lines:
        error = await refused(channel, method, word(cause))
    assert error.code() is grpc.StatusCode.INTERNAL
    info = Details(error).info
    assert info.reason == Reason.INTERNAL
    (line,) = lines
    assert line["error_id"] == info.metadata["error_id"]
    assert line["method"] == path(method)
    assert isinstance(line["exc_info"], BaseException)


@every_kind
async def test_the_text_of_an_exception_never_reaches_the_client(
    channel: aio.Channel, method: str
) -> None:
    error = await refused(channel, method, word("leak"))
    everything = f"{error.details()} {error.trailing_metadata()} {error.debug_error_string()}"
    for secret in (SECRET, "hunter2", "RuntimeError", "Traceback", ".py"):
        assert secret not in everything


@every_kind
@pytest.mark.parametrize("raw", [b"\xff\xff\xff", b"\x0a\x02\xff\xfe"], ids=["torn", "no utf-8"])
async def test_bytes_that_are_no_request_are_refused_by_name(
    channel: aio.Channel, method: str, raw: bytes
) -> None:
    with capture_logs() as lines:
        error = await refused(channel, method, raw)
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert Details(error).info.reason == Reason.MALFORMED_REQUEST
    assert "DecodeError" not in (error.details() or "")
    assert lines == []


@every_kind
async def test_the_service_goes_on_after_each_kind_of_error(
    channel: aio.Channel, method: str
) -> None:
    for raw in (word("leak"), b"\xff", word("refuse"), word("wrong type")):
        await refused(channel, method, raw)
    assert (await call(channel, method, word("still here")))[-1] == "still here"


@every_kind
async def test_an_abort_of_the_handler_stays_as_it_is(channel: aio.Channel, method: str) -> None:
    with capture_logs() as lines:
        error = await refused(channel, method, word("abort"))
    assert (error.code(), error.details()) == (grpc.StatusCode.OUT_OF_RANGE, "mine")
    assert lines == []


async def test_a_method_that_does_not_exist_is_unimplemented(channel: aio.Channel) -> None:
    error = await refused(channel, "Nothing", b"")
    assert error.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_a_blocking_handler_is_not_run(channel: aio.Channel) -> None:
    """It would block all calls, or run on a thread that the service does not expect."""
    with capture_logs() as lines:
        error = await refused(channel, "Blocking", word("x"))
    assert error.code() is grpc.StatusCode.INTERNAL
    assert lines[0]["method"] == path("Blocking")


@pytest.mark.parametrize("method", ["Many", "Written", "Chat", "ChatRead"])
async def test_a_cancelled_stream_is_closed_and_is_no_error(
    channel: aio.Channel, echo: Echo, method: str, caplog: pytest.LogCaptureFixture
) -> None:
    with capture_logs() as lines, caplog.at_level(logging.INFO):
        async with asyncio.timeout(DEADLINE_S):
            if method in ("Many", "Written"):
                stream = Raw(channel).many(path(method))(word("wait"))
                await echo.open.wait()
                stream.cancel()
            else:
                chat = Raw(channel).chat(path(method))()
                await chat.write(word("wait"))
                await echo.open.wait()
                chat.cancel()
            await echo.closed.wait()
        # The next call is answered after the server is through with the cancelled one.
        await call(channel, "One", word("after"))
    assert lines == []
    assert caplog.records == []


class Broker(broker_pb2_grpc.BrokerServiceServicer):
    """Has one method of its own; the others are inherited from the generated code."""

    async def SettleToolCall(
        self,
        request: broker_pb2.SettleToolCallRequest,
        context: "aio.ServicerContext[object, object]",
    ) -> broker_pb2.SettleToolCallResponse:
        return broker_pb2.SettleToolCallResponse(run_id=request.output.WhichOneof("kind") or "")


def nested_value(levels: int) -> bytes:
    """A `google.protobuf.Value` of lists in lists, as bytes: no library writes one so deep."""
    value = b"\x08\x00"
    for _ in range(levels):
        as_list = b"\x0a" + varint(len(value)) + value
        value = b"\x32" + varint(len(as_list)) + as_list
    return value


def varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


async def on_broker(method: str, raw: bytes) -> bytes:
    def register(server: aio.Server) -> None:
        # For the types, the inherited methods are abstract; at run time they are not.
        broker = cast(Any, Broker)()
        broker_pb2_grpc.add_BrokerServiceServicer_to_server(broker, server)

    server: Server = await build_server("127.0.0.1:0", register, ["turngate.v1.BrokerService"])
    await server.grpc.start()
    try:
        async with aio.insecure_channel(server.address) as channel:
            full = f"/turngate.v1.BrokerService/{method}"
            return await Raw(channel).one(full)(raw, timeout=DEADLINE_S)
    finally:
        await server.grpc.stop(None)


@pytest.mark.parametrize("levels", [60, 10_000])
async def test_a_value_nested_too_deep_is_refused_by_name(levels: int) -> None:
    """T2, E2: with the library alone this is UNKNOWN with the exception's text."""
    value = nested_value(levels)
    with pytest.raises(aio.AioRpcError) as caught:
        await on_broker("SettleToolCall", b"\x22" + varint(len(value)) + value)
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert Details(caught.value).info.reason == Reason.MALFORMED_REQUEST


async def test_a_value_nested_twenty_deep_is_fine() -> None:
    value = nested_value(20)
    answer = await on_broker("SettleToolCall", b"\x22" + varint(len(value)) + value)
    assert broker_pb2.SettleToolCallResponse.FromString(answer).run_id == "list_value"


async def test_what_is_not_built_yet_says_so_by_name() -> None:
    with pytest.raises(aio.AioRpcError) as caught:
        await on_broker("RetryRun", b"")
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
    info = Details(caught.value).info
    assert info.reason == Reason.NOT_IMPLEMENTED
    assert dict(info.metadata) == {"feature": "RetryRun"}


class Broken(aio.ServerInterceptor):
    """An interceptor that fails before there is a handler."""

    async def intercept_service(self, continuation: object, handler_call_details: object) -> None:
        raise RuntimeError(SECRET)


@every_kind
async def test_an_interceptor_that_fails_leaves_no_client_waiting(echo: Echo, method: str) -> None:
    server = await build_server("127.0.0.1:0", echo.register, [], interceptors=[Broken()])
    await server.grpc.start()
    async with aio.insecure_channel(server.address) as channel:
        with capture_logs() as lines:
            error = await refused(channel, method, word("x"))
    await server.grpc.stop(None)
    assert error.code() is grpc.StatusCode.INTERNAL
    assert Details(error).info.metadata["error_id"] == lines[0]["error_id"]
    assert SECRET not in str(error)


async def test_a_client_that_writes_nothing_is_told_too(echo: Echo) -> None:
    server = await build_server("127.0.0.1:0", echo.register, [], interceptors=[Broken()])
    await server.grpc.start()
    async with aio.insecure_channel(server.address) as channel, asyncio.timeout(DEADLINE_S):
        with capture_logs():
            chat = Raw(channel).chat(path("Chat"))()
            with pytest.raises(aio.AioRpcError) as caught:
                await chat.read()
    await server.grpc.stop(None)
    assert Details(caught.value).info.reason == Reason.INTERNAL
