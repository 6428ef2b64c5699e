"""The command: its help teaches, its exit codes tell what happened, its output is for both."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import sys

import grpc
import pytest
from typer.testing import CliRunner

from tests.unit.client.fake_broker import Failure, FakeBroker, frame, serving
from tests.unit.client.logs import answered_session, parked_session
from turngate.v1 import broker_pb2 as pb
from turngate_client.cli.app import app
from turngate_client.cli.grpcurl_lines import grpcurl_lines
from turngate_client.cli.output import visible

COMMANDS = [
    "demo",
    "up",
    "broker",
    "runner",
    "new",
    "sessions",
    "send",
    "watch",
    "tree",
    "inbox",
    "answer",
    "approve",
    "deny",
]


def test_the_help_names_every_command_and_the_exit_codes() -> None:
    shown = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "100"}).output
    for command in COMMANDS:
        assert f" {command} " in shown
    assert "Exit codes" in shown


@pytest.mark.parametrize("command", ["demo", "up", "send", "watch", "answer", "new"])
def test_the_help_of_a_command_shows_an_example(command: str) -> None:
    shown = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "100"}).output
    assert "Example" in shown
    assert f"turngate {command}" in shown


@pytest.mark.parametrize(
    "arguments",
    [
        ["no-such-command"],
        ["send", "s-1"],
        ["demo", "--keep", "--broker", "127.0.0.1:1"],
        ["answer", "s-1", "i-1"],
        ["answer", "s-1", "i-1", "{no json"],
        ["answer", "s-1", "i-1", "{}", "--error", "both"],
        ["sessions", "--user", "Åsa"],
    ],
)
def test_wrong_use_ends_with_2(arguments: list[str]) -> None:
    assert CliRunner().invoke(app, arguments).exit_code == 2


async def turngate(*arguments: str) -> tuple[int, str, str]:
    """The command as a process of its own: exit code, output, errors."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        "from turngate_client.cli import main; main()",
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, errors = await asyncio.wait_for(process.communicate(), 60)
    return process.returncode or 0, output.decode(), errors.decode()


async def test_a_started_and_a_refused_message() -> None:
    started = pb.SendMessageResponse(
        outcome=pb.SEND_OUTCOME_STARTED, run_id="r-1", message_id="m-1"
    )
    refused = Failure(grpc.StatusCode.FAILED_PRECONDITION, "SESSION_BUSY", "the branch is busy")
    async with serving(FakeBroker(sends=[started, started, refused])) as broker:
        to = ("send", "s-1", "hi", "--broker", broker.address)
        assert await turngate(*to) == (0, "m-1  STARTED run r-1\n", "")
        code, output, _ = await turngate(*to, "--json")
        assert (code, json.loads(output)["run_id"]) == (0, "r-1")
        code, output, errors = await turngate(*to)
    assert (code, output) == (1, "")
    assert errors == "turngate: SESSION_BUSY: the branch is busy\n"


async def test_a_broker_that_is_not_there_is_told_in_plain_words() -> None:
    code, output, errors = await turngate("watch", "s-1", "--broker", "127.0.0.1:1")
    assert (code, output) == (1, "")
    assert errors.startswith("turngate: cannot reach the broker: ")


async def test_watch_tells_a_session_without_colours_in_a_pipe() -> None:
    frames = [frame("x", answered_session().events)]
    async with serving(FakeBroker(watches=[(frames, None)])) as broker:
        code, output, errors = await turngate("watch", "s-1", "--once", "--broker", broker.address)
    assert (code, errors) == (0, "")
    assert "\x1b" not in output
    for line in (
        "user: a trip, please",
        "agent: Visby it is.",  # streamed in two pieces
        "  ⌗ render hint for c-1: kind elicitation, params {}",
        "  r-2, a fork, goes on with the answer; it supersedes r-1",
    ):
        assert line in output.splitlines()


@pytest.mark.parametrize("as_json", [True, False])
async def test_a_reader_that_goes_away_ends_the_command_quietly(as_json: bool) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    frames = [frame("x", answered_session().events)]
    async with serving(FakeBroker(watches=[(frames, None)])) as broker:
        flags = ["--json"] if as_json else []
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", "from turngate_client.cli import main; main()"),
            *("watch", "s-1", "--once", "--broker", broker.address, *flags),
            stdout=writing,
            stderr=asyncio.subprocess.PIPE,
        )
        os.close(writing)
        _, errors = await asyncio.wait_for(process.communicate(), 60)
    assert (process.returncode, errors) == (1, b"")


async def test_watch_as_json_gives_each_event_once() -> None:
    log = answered_session().events
    broken = Failure(grpc.StatusCode.UNAVAILABLE, "SHUTTING_DOWN")
    broker = FakeBroker(
        watches=[
            ([frame("x", log[:9], live=False)], broken),
            ([frame("y", log[5:])], None),
        ]
    )
    async with serving(broker):
        code, output, _ = await turngate(
            "watch", "s-1", "--json", "--once", "--broker", broker.address
        )
    positions = [int(json.loads(line)["position"]) for line in output.splitlines()]
    assert (code, positions) == (0, list(range(1, len(log) + 1)))


async def test_tree_shows_superseded_runs_and_held_messages() -> None:
    log = parked_session()
    log.held("q-1", text="Is breakfast included?")
    async with serving(FakeBroker(watches=[([frame("x", log.events)], None)])) as broker:
        _, parked, _ = await turngate("tree", "s-1", "--broker", broker.address)
    assert "r-1 PARKED" in parked
    assert "Is breakfast included?  HELD INTERACTION_OPEN" in parked
    frames = [frame("x", answered_session().events)]
    async with serving(FakeBroker(watches=[(frames, None)])) as broker:
        _, answered, _ = await turngate("tree", "s-1", "--broker", broker.address)
    assert "superseded by r-2" in answered
    assert "Visby it is." in answered


def test_by_hand_lines_are_shell_safe_json() -> None:
    lines = grpcurl_lines("127.0.0.1:1", "s-1", "it's a trip", "$(no)", '{"n":9007199254740993}')
    send = shlex.split(lines[2])
    assert json.loads(send[send.index("-d") + 1]) == {"session_id": "s-1", "text": "it's a trip"}
    [settle] = [line for line in lines if line.endswith("/SettleToolCall")]
    request = shlex.split(settle)[3].replace("$ID", "i-1")
    assert json.loads(request)["interaction"] == {"interaction_id": "i-1"}
    assert json.loads(request)["output"] == {"n": 9007199254740993}


def test_what_steers_a_terminal_is_made_visible() -> None:
    assert visible("a\x1b[2Jb\r\n\tc\x9b") == "a␛[2Jb␍\n\tc\ufffd"
    assert visible("naïve 👩\u200d🚀 日本") == "naïve 👩\u200d🚀 日本"
