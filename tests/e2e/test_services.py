"""What every operator meets first: health, reflection, start-up errors, what is not built yet."""

from __future__ import annotations

import socket
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.message_factory import GetMessageClass
from grpc import StatusCode, aio
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2

from tests.e2e.pair import Pair, Service, start_error
from tests.e2e.talk import raw_unary, talk
from turngate.v1 import broker_pb2, broker_pb2_grpc, session_pb2
from turngate_client import TurngateClient, TurngateError
from turngate_client.errors import error_from_rpc

SERVICES = {"broker": "turngate.v1.BrokerService", "runner": "turngate.v1.RunnerService"}


def service_of(pair: Pair, name: str) -> Service:
    """The broker or the runner."""
    return pair.broker if name == "broker" else pair.runner


@pytest.mark.parametrize("name", SERVICES)
async def test_both_services_are_healthy_as_a_whole_and_by_name(pair: Pair, name: str) -> None:
    async with aio.insecure_channel(service_of(pair, name).address) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        for asked in ("", SERVICES[name]):
            answer = await stub.Check(health_pb2.HealthCheckRequest(service=asked))
            assert answer.status == health_pb2.HealthCheckResponse.SERVING
        with pytest.raises(aio.AioRpcError) as caught:
            await stub.Check(health_pb2.HealthCheckRequest(service="turngate.v1.Nothing"))
        assert caught.value.code() is StatusCode.NOT_FOUND


@pytest.mark.parametrize("name", SERVICES)
@pytest.mark.parametrize("version", ["v1", "v1alpha"])
async def test_both_services_reflect_under_both_names(pair: Pair, name: str, version: str) -> None:
    request = reflection_pb2.ServerReflectionRequest(file_containing_symbol=SERVICES[name])
    async with aio.insecure_channel(service_of(pair, name).address) as channel:
        path = f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo"
        # The two versions are the same messages under two names.
        stub = channel.stream_stream(
            path,
            request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
            response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
        )
        (answer,) = [answer async for answer in stub(iter([request]))]
    assert answer.file_descriptor_response.file_descriptor_proto


@pytest.mark.parametrize("name", SERVICES)
def test_a_port_that_is_taken_is_one_line(name: str, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        flags = [f"--listen={address}"]
        if name == "broker":
            flags.append(f"--store=sqlite:{tmp_path / 'sessions.db'}")
        check_start_error(start_error(name, tmp_path, *flags), address)


def check_start_error(ended: tuple[int, list[str]], *words: str) -> None:
    """One line that has these words, and exit code 2."""
    code, lines = ended
    assert code == 2, lines
    assert len(lines) == 1, lines
    for word in words:
        assert word in lines[0]


def test_a_file_that_another_broker_holds_is_one_line(tmp_path: Path) -> None:
    file = tmp_path / "sessions.db"
    holder = Service("broker", tmp_path, [f"--store=sqlite:{file}"])
    try:
        holder.start()
        flags = ("--listen=127.0.0.1:0", f"--store=sqlite:{file}")
        check_start_error(start_error("broker", tmp_path, *flags), str(file))
    finally:
        holder.kill()


def test_a_folder_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    file = tmp_path / "nowhere" / "sessions.db"
    ended = start_error("broker", tmp_path, "--listen=127.0.0.1:0", f"--store=sqlite:{file}")
    check_start_error(ended, str(file.parent))


def test_a_file_that_is_no_database_is_one_line(tmp_path: Path) -> None:
    file = tmp_path / "letter.txt"
    file.write_text("Dear reader, this is no database. " * 100)
    ended = start_error("broker", tmp_path, "--listen=127.0.0.1:0", f"--store=sqlite:{file}")
    check_start_error(ended, str(file))
    assert file.read_text().startswith("Dear reader")


def test_a_database_of_another_program_is_one_line_and_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "other.db"
    with sqlite3.connect(file) as other:
        other.execute("CREATE TABLE recipes (name TEXT)")
    other.close()
    ended = start_error("broker", tmp_path, "--listen=127.0.0.1:0", f"--store=sqlite:{file}")
    check_start_error(ended, str(file))


@pytest.mark.parametrize(
    ("name", "flag", "words"),
    [
        ("broker", "--store=oracle:there", ("oracle",)),
        ("broker", "--listen=nowhere", ("listen", "nowhere")),
        ("broker", "--lease=0", ("--lease",)),
        ("broker", "--leese=1", ("--leese",)),
        ("runner", "--max-steps=0", ("--max-steps",)),
        ("runner", "--script=nowhere.yaml", ("nowhere.yaml",)),
    ],
)
def test_settings_that_do_not_fit_are_one_line(
    name: str, flag: str, words: tuple[str, ...], tmp_path: Path
) -> None:
    check_start_error(start_error(name, tmp_path, flag), *words)


def test_a_script_that_cannot_be_read_is_one_line_with_its_place(tmp_path: Path) -> None:
    script = tmp_path / "broken.yaml"
    script.write_text("agents:\n  a:\n    otherwise:\n      stepps: []\n")
    ended = start_error("runner", tmp_path, "--listen=127.0.0.1:0", f"--script={script}")
    check_start_error(ended, f"{script}:4:7", "stepps", "steps")


# What is asked for each feature that is no RPC of its own.
FEATURES: dict[str, Any] = {
    "SendMessage.edits_message_id": broker_pb2.SendMessageRequest(
        text="a", edits_message_id="msg_1"
    ),
    "SendMessage.on_busy=ON_BUSY_INTERRUPT": broker_pb2.SendMessageRequest(
        text="a", on_busy=session_pb2.ON_BUSY_INTERRUPT
    ),
    "ListSessions.owner": broker_pb2.ListSessionsRequest(owner="ann"),
    "ListSessions.only_waiting": broker_pb2.ListSessionsRequest(only_waiting=True),
}


def name_session(request: Any, session_id: str) -> None:
    """Fill in the session, where a request names one."""
    if "session_id" in request.DESCRIPTOR.fields_by_name:
        request.session_id = session_id


async def asked(client: TurngateClient, method: str, request: Any) -> TurngateError | None:
    """The error of a call; None if it succeeds."""
    stub = getattr(client.stub, method)
    streams = isinstance(stub, aio.StreamUnaryMultiCallable)
    call = stub(iter([request]) if streams else request)
    try:
        one_answer = isinstance(call, aio.UnaryUnaryCall | aio.StreamUnaryCall)
        await (call if one_answer else call.read())
    except aio.AioRpcError as error:
        return error_from_rpc(error)
    finally:
        call.cancel()
    return None


async def test_what_is_not_built_yet_says_so_by_name(client: TurngateClient) -> None:
    """GetServerInfo lists exactly the calls that are answered with NOT_IMPLEMENTED."""
    listed = list((await client.server_info()).not_implemented)
    methods = broker_pb2.DESCRIPTOR.services_by_name["BrokerService"].methods
    refused = []
    async with talk(client, "form") as trip:
        await trip.start_parked()
        for method in methods:
            request = GetMessageClass(method.input_type)()
            name_session(request, trip.id)
            error = await asked(client, method.name, request)
            if error is not None and error.reason == "NOT_IMPLEMENTED":
                assert error.code is StatusCode.UNIMPLEMENTED
                assert error.metadata["feature"] == method.name
                refused.append(method.name)
        for feature, request in FEATURES.items():
            method_name = feature.partition(".")[0]
            name_session(request, trip.id)
            error = await asked(client, method_name, request)
            if error is not None and error.reason == "NOT_IMPLEMENTED":
                assert error.code is StatusCode.UNIMPLEMENTED
                assert error.metadata["feature"] == feature
                refused.append(feature)
    assert sorted(refused) == sorted(listed)


async def test_a_method_that_does_not_exist_is_unimplemented(pair: Pair) -> None:
    async with aio.insecure_channel(pair.broker.address) as channel:
        with pytest.raises(aio.AioRpcError) as caught:
            await raw_unary(channel, "/turngate.v1.BrokerService/MakeCoffee")(b"")
    assert caught.value.code() is StatusCode.UNIMPLEMENTED


async def test_P2_the_caller_is_whom_the_metadata_names(pair: Pair) -> None:
    """Without authentication: one fixed principal, or the one that the metadata name."""
    async with aio.insecure_channel(pair.broker.address) as channel:
        stub: Any = broker_pb2_grpc.BrokerServiceStub(channel)
        nobody = await stub.CreateSession(broker_pb2.CreateSessionRequest())
        somebody = await stub.CreateSession(
            broker_pb2.CreateSessionRequest(), metadata=(("turngate-user", "eve"),)
        )
    assert nobody.session.owner
    assert somebody.session.owner == "eve"
    assert nobody.session.tenant_id == somebody.session.tenant_id


async def test_E1_sessions_are_created_once_under_one_request_id(client: TurngateClient) -> None:
    first = await client.create_session(agent="echo", request_id="mine-1")
    again = await client.create_session(agent="echo", request_id="mine-1")
    assert first.id == again.id
    with pytest.raises(TurngateError, match="REQUEST_ID_REUSED"):
        await client.create_session(agent="form", request_id="mine-1")
    named = await client.create_session("my-session", agent="echo")
    assert named.id == "my-session"
    with pytest.raises(TurngateError, match="SESSION_ID_TAKEN"):
        await client.create_session("my-session", agent="form")
