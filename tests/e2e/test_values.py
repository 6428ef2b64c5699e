"""Hostile and huge values (scenario 9) over the real wire: exact, or refused with their place."""

from __future__ import annotations

import json

import grpc
import pytest
from google.protobuf.json_format import ParseDict
from google.protobuf.struct_pb2 import Value
from grpc import StatusCode, aio

from tests.e2e.pair import Pair
from tests.e2e.talk import VISBY, log_of, of_kind, raw_stream, raw_unary, refusal, talk
from turngate.v1 import broker_pb2, message_pb2
from turngate_client import TurngateClient, TurngateError
from turngate_client.errors import error_from_rpc

ARGUMENTS = (
    '{"z":9007199254740993,"a":1.0,"nul":"\\u0000","sep":"\u2028\u2029","big":1e400,"__proto__":{}}'
)
OUTPUT = (
    '{"z": 9007199254740993, "a": 1.0, "b": -0, "big": 1e400, "max": 9223372036854775807,'
    ' "nul": "\\u0000", "sep": "\u2028", "emoji": "\U0001f3e8", "__proto__": {"x": null},'
    ' "pair": "\\ud83d\\ude00", "": []}'
)
DEPTH = 64
BYTES = 256 * 1024


def nested(depth: int) -> str:
    """JSON text nested so deep."""
    return "[" * depth + "]" * depth


def results_in(messages: list[message_pb2.Message]) -> list[message_pb2.ToolResult]:
    """The results of a transcript."""
    return [p.tool_result for m in messages for p in m.parts if p.HasField("tool_result")]


async def test_T2_values_of_a_client_arrive_letter_for_letter(client: TurngateClient) -> None:
    """At the events, in the transcript, in the inbox, and at the model."""
    async with talk(client, "exact") as trip:
        run_id, (question,) = await trip.start_parked()
        assert trip.view.calls(run_id)[0].call.arguments_json == ARGUMENTS
        (listed,) = await trip.session.open_interactions()
        assert listed.arguments_json == ARGUMENTS
        assert listed.render_hint.kind == "measurement"

        answered = await trip.session.settle_json(question, OUTPUT)
        model_input = json.loads(await trip.completed(answered.run_id))
        assert model_input[1]["calls"][0]["arguments"] == ARGUMENTS
        assert model_input[1]["results"][0]["output"] == OUTPUT
        log = await log_of(trip.session)
        (added,) = of_kind(log, "tool_result_added")
        assert added.tool_result_added.result.output_json == OUTPUT
        (result,) = results_in(await trip.session.transcript())
        assert result.output_json == OUTPUT


async def test_T2_values_of_a_server_tool_arrive_letter_for_letter(
    client: TurngateClient, pair: Pair
) -> None:
    async with talk(client, "exact_server") as trip:
        model_input = json.loads(await trip.completed(await trip.start()))
        arguments = '{"z":9007199254740993,"a":1.0}'
        assert model_input[1]["calls"][0]["arguments"] == arguments
        output = '{"z":9007199254740993,"a":1.0,"list":[1e400,-0]}'
        assert model_input[1]["results"][0]["output"] == output
        assert pair.file(f"note-{trip.id}").read_text() == arguments + "\n"
        (result,) = results_in(await trip.session.transcript())
        assert result.output_json == output


async def test_T2_arguments_of_a_model_that_are_no_json_go_back_to_it(
    client: TurngateClient, pair: Pair
) -> None:
    async with talk(client, "malformed") as trip:
        run_id = await trip.start()
        assert await trip.completed(run_id) == "refused, then done."
        first, second = trip.view.calls(run_id)
        assert first.call.malformed_arguments == '{"a": 1, "a": 2}'
        assert second.call.arguments_json == "", "empty text means {}, and is kept as it came"
        assert pair.count(f"note-{trip.id}") == 1


@pytest.mark.parametrize(
    "text", ["nul \x00 and bell \x07", "\u2028\u2029\ufeff", "\U0001f3e8 e\u0301 \u202e", "  \n "]
)
async def test_T1_the_text_of_a_message_arrives_letter_for_letter(
    client: TurngateClient, text: str
) -> None:
    async with talk(client, "echo") as trip:
        run_id = await trip.start(text)
        assert await trip.completed(run_id) == f"You said: {text}"
        transcript = await trip.session.transcript()
        assert transcript[0].parts[0].text.text == text


@pytest.mark.parametrize(
    ("text", "offset", "line", "column"),
    [
        ('{"a": 1, "a": 2}', 9, 1, 10),
        ('{"a":\n NaN}', 7, 2, 2),
        ("[Infinity]", 1, 1, 2),
        ('["\\ud800"]', 2, 1, 3),
        ('["a\x00b"]', 3, 1, 4),
        ("[1,]", 3, 1, 4),
        ("[1] x", 4, 1, 5),
        ("\ufeff{}", 0, 1, 1),
        ("[01]", 2, 1, 3),
        ("", 0, 1, 1),
        (nested(DEPTH + 1), DEPTH, 1, DEPTH + 1),
        (nested(10_000), DEPTH, 1, DEPTH + 1),
    ],
    ids=lambda value: repr(value)[:20] if isinstance(value, str) else "",
)
async def test_T2_what_is_no_json_is_refused_with_its_place(
    client: TurngateClient, text: str, offset: int, line: int, column: int
) -> None:
    async with talk(client, "measure") as trip:
        _, (question,) = await trip.start_parked()
        error = await refusal(
            trip.session.settle_json(question, text, request_id="r"), "INVALID_JSON"
        )
        assert error.code is StatusCode.INVALID_ARGUMENT
        assert error.metadata["field"] == "output_json"
        assert error.metadata["problem"]
        place = tuple(int(error.metadata[key]) for key in ("offset", "line", "column"))
        assert place == (offset, line, column)
        assert [violation.field for violation in error.violations] == ["output_json"]
        assert trip.view.open_interactions() == [question]
        answered = await trip.session.settle_json(question, "null", request_id="r")
        assert await trip.completed(answered.run_id) == "Measured: answered."


@pytest.mark.parametrize(
    "text",
    [
        nested(DEPTH - 1),
        nested(DEPTH),
        json.dumps("x" * (BYTES - 3)),
        json.dumps("x" * (BYTES - 2)),
    ],
    ids=["depth-1", "depth", "bytes-1", "bytes"],
)
async def test_E3_json_up_to_the_limit_is_accepted(client: TurngateClient, text: str) -> None:
    async with talk(client, "measure") as trip:
        _, (question,) = await trip.start_parked()
        answered = await trip.session.settle_json(question, text)
        assert await trip.completed(answered.run_id) == "Measured: answered."
        (call,) = trip.view.calls(answered.run_id)
        assert call.result is not None
        assert call.result.output_json == text


async def test_E3_json_over_the_limit_is_refused_with_the_limit(client: TurngateClient) -> None:
    async with talk(client, "measure") as trip:
        _, (question,) = await trip.start_parked()
        text = json.dumps("x" * (BYTES - 1))
        error = await refusal(trip.session.settle_json(question, text), "LIMIT_EXCEEDED")
        assert error.metadata["limit"] == "json_bytes"
        assert error.metadata["maximum"] == str(BYTES)
        assert error.metadata["actual"] == str(BYTES + 1)
        assert trip.view.open_interactions() == [question]


@pytest.mark.parametrize("unit", ["x", "\U0001f3e8"], ids=["ascii", "four bytes each"])
async def test_E3_the_text_of_a_message_one_below_at_and_above_the_limit(
    client: TurngateClient, unit: str
) -> None:
    size = len(unit.encode())
    async with talk(client, "form") as trip:
        await trip.start_parked()
        for count in (BYTES // size - 1, BYTES // size):
            sent = await trip.session.send(unit * count)
            assert sent.held.message.parts[0].text.text == unit * count
        error = await refusal(trip.session.send(unit * (BYTES // size) + "x"), "LIMIT_EXCEEDED")
        assert error.metadata["limit"] == "text_bytes"
        assert error.metadata["actual"] == str(BYTES + 1)
        assert len((await trip.session.held_messages()).messages) == 2


async def test_E3_the_limits_are_published(client: TurngateClient) -> None:
    limits = {limit.name: limit.value for limit in (await client.server_info()).limits}
    assert limits["json_bytes"] == limits["text_bytes"] == BYTES
    assert limits["json_depth"] == DEPTH


async def settle_value(
    client: TurngateClient, session_id: str, interaction_id: str, output: Value
) -> broker_pb2.SettleToolCallResponse:
    """An answer as a value, as grpcurl sends it."""
    request = broker_pb2.SettleToolCallRequest(
        session_id=session_id,
        interaction=broker_pb2.InteractionRef(interaction_id=interaction_id),
        output=output,
    )
    try:
        return await client.stub.SettleToolCall(request)
    except aio.AioRpcError as error:
        raise error_from_rpc(error) from None


@pytest.mark.parametrize("number", [2.0**53 + 2, -(2.0**53) - 2, 1e300, float("nan")])
async def test_T2_a_value_with_a_number_beyond_2_53_is_refused(
    client: TurngateClient, number: float
) -> None:
    """2^53+1 becomes 2^53 before it is sent; so 2^53 itself is refused as well."""
    async with talk(client, "measure") as trip:
        _, (question,) = await trip.start_parked()
        value = Value()
        value.struct_value.fields["n"].list_value.values.add().number_value = number
        error = await refusal(settle_value(client, trip.id, question.id, value), "INVALID_FIELD")
        assert [violation.field for violation in error.violations] == ["output.n[0]"]
        assert trip.view.open_interactions() == [question]


async def test_T2_2_53_plus_1_in_a_value_is_refused_since_it_lost_a_digit(
    client: TurngateClient,
) -> None:
    async with talk(client, "measure") as trip:
        _, (question,) = await trip.start_parked()
        value = ParseDict({"n": 9007199254740993}, Value())
        await refusal(settle_value(client, trip.id, question.id, value), "INVALID_FIELD")


async def test_T2_a_value_is_kept_as_plain_json(client: TurngateClient) -> None:
    async with talk(client, "measure") as trip:
        _, (question,) = await trip.start_parked()
        value = ParseDict({"n": 2**53 - 1, "five": 5, "text": "a\u2028", "no": None}, Value())
        answered = await settle_value(client, trip.id, question.id, value)
        await trip.completed(answered.run_id)
        (call,) = trip.view.calls(answered.run_id)
        assert call.result is not None
        assert json.loads(call.result.output_json) == {
            "n": 2**53 - 1,
            "five": 5,
            "text": "a\u2028",
            "no": None,
        }
        assert "5.0" not in call.result.output_json


async def test_E1_an_odd_request_id_is_refused(client: TurngateClient) -> None:
    async with talk(client, "form") as trip:
        _, (form,) = await trip.start_parked()
        for request_id in ("x" * 129, "å", "a\nb"):
            error = await refusal(
                trip.session.settle(form, VISBY, request_id=request_id), "INVALID_FIELD"
            )
            assert [violation.field for violation in error.violations] == ["request_id"]
        answered = await trip.session.settle(form, VISBY, request_id="x" * 128)
        await trip.completed(answered.run_id)


def deep_value(depth: int) -> bytes:
    """A `SettleToolCallRequest` whose `output` is nested so deep that no client could write it."""

    def field(number: int, body: bytes) -> bytes:
        size, length = len(body), bytearray()
        while size > 0x7F:
            length.append(size & 0x7F | 0x80)
            size >>= 7
        return bytes([number << 3 | 2, *length, size]) + body

    value = b"\x20\x01"  # bool_value: true
    for _ in range(depth):
        value = field(6, field(1, value))  # list_value.values
    return field(4, value)


@pytest.mark.parametrize(
    ("method", "body"),
    [
        ("SendMessage", b"\xff\xff\xff\xff"),
        ("SendMessage", b"\x0a\x04\xff\xfe\xfd\xfc"),  # a text field that is no UTF-8
        ("SendMessage", b"\x0a\x7f"),  # cut off
        ("SettleToolCall", deep_value(200)),
        ("WatchSession", b"\xff\xff\xff\xff"),
    ],
    ids=["garbage", "no UTF-8", "cut off", "value nested too deep", "garbage to a stream"],
)
async def test_E2_bytes_that_do_not_parse_are_refused_by_name(
    client: TurngateClient, pair: Pair, method: str, body: bytes
) -> None:
    """E2: no exception's text leaves the service, and it stays up."""
    async with aio.insecure_channel(pair.broker.address) as channel:
        path = f"/turngate.v1.BrokerService/{method}"
        call = (raw_stream if method == "WatchSession" else raw_unary)(channel, path)
        with pytest.raises(aio.AioRpcError) as caught:
            await call(body)
    error = error_from_rpc(caught.value)
    assert error.code is StatusCode.INVALID_ARGUMENT
    assert error.reason == "MALFORMED_REQUEST"
    assert "Traceback" not in error.message
    assert "google" not in error.message
    async with talk(client, "echo") as trip:
        assert await trip.completed(await trip.start("still up")) == "You said: still up"


async def test_E2_a_request_over_the_wires_own_limit_is_refused_and_the_service_stays_up(
    client: TurngateClient, pair: Pair
) -> None:
    async with talk(client, "echo") as trip:
        with pytest.raises(TurngateError) as caught:
            await trip.session.send("x" * (5 * 1024 * 1024))
        assert caught.value.code is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert await trip.completed(await trip.start("ok")) == "You said: ok"
        assert pair.broker.runs
