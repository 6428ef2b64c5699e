"""The runner as a process: start, start-up errors, stop, sudden death."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import pytest
from grpc import aio
from grpc_health.v1 import health_pb2, health_pb2_grpc

from runner_service.agents.effects import wait_for_file
from tests.e2e.runner.broker_side import (
    DEADLINE_SECONDS,
    BrokerSide,
    answered,
    calls,
    client_output,
    start,
    text_of,
    user,
)
from turngate.v1 import runner_pb2, runner_pb2_grpc
from turngate_client.errors import error_from_rpc


class Process:
    """A runner that serves."""

    def __init__(self, process: asyncio.subprocess.Process, address: str) -> None:
        self.process = process
        self.address = address

    async def end(self) -> int:
        """Wait for its end; the exit code."""
        async with asyncio.timeout(DEADLINE_SECONDS):
            return await self.process.wait()


@asynccontextmanager
async def process(folder: Path, *flags: str) -> AsyncIterator[Process]:
    """A runner on a free port, its files in the folder."""
    ready = folder / "ready.json"
    ready.unlink(missing_ok=True)
    child = await spawn(
        "--listen=127.0.0.1:0", f"--ready-file={ready}", f"--data-dir={folder}", *flags
    )
    try:
        ended = asyncio.ensure_future(child.wait())
        there = asyncio.ensure_future(wait_for_file(ready, asyncio.Event()))
        await asyncio.wait(
            {ended, there}, timeout=DEADLINE_SECONDS, return_when=asyncio.FIRST_COMPLETED
        )
        assert there.done(), "the runner did not start"
        yield Process(child, json.loads(ready.read_text())["address"])
    finally:
        if child.returncode is None:
            child.kill()
        await child.wait()


async def spawn(*flags: str) -> asyncio.subprocess.Process:
    """The runner's command."""
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "runner_service",
        *flags,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )


async def start_error(flags: Sequence[str]) -> tuple[int, str]:
    """Exit code and output of a runner that cannot start."""
    child = await spawn(*flags)
    async with asyncio.timeout(DEADLINE_SECONDS):
        _, output = await child.communicate()
    return child.returncode or 0, output.decode()


async def test_it_serves_soon_and_is_healthy(tmp_path: Path) -> None:
    begin = time.monotonic()
    async with process(tmp_path) as runner:
        took = time.monotonic() - begin
        async with aio.insecure_channel(runner.address) as channel:
            health = health_pb2_grpc.HealthStub(channel)
            answer = await health.Check(
                health_pb2.HealthCheckRequest(service="turngate.v1.RunnerService")
            )
            assert answer.status == health_pb2.HealthCheckResponse.SERVING
            stub = runner_pb2_grpc.RunnerServiceStub(channel)
            described = await stub.DescribeAgents(runner_pb2.DescribeAgentsRequest())
    assert [agent.name for agent in described.agents] == ["demo"]
    # The target is 1.5 s on a quiet machine; this one also runs other tests.
    assert took < 6


async def test_an_address_that_is_taken_is_one_line(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        code, output = await start_error([f"--listen={address}"])
    assert code == 2
    assert address in output
    assert len(output.splitlines()) == 1


async def test_a_script_that_cannot_be_read_is_one_line_with_its_place(tmp_path: Path) -> None:
    script = tmp_path / "bad.yaml"
    script.write_text("agents:\n  a:\n    turns:\n      - stps: []\n", encoding="utf-8")
    code, output = await start_error(["--listen=127.0.0.1:0", f"--script={script}"])
    assert code == 2
    assert f"{script}:4:9: unknown key 'stps' (did you mean steps?)" in output
    assert len(output.splitlines()) == 1


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--script=/no/such/file.yaml"], "/no/such/file.yaml: No such file"),
        (["--agent=nobody"], "no agent 'nobody'; there are demo"),
        (["--listen=nowhere"], "not an address"),
        (["--max-steps=0"], "--max-steps"),
    ],
)
async def test_settings_that_cannot_be_are_one_line(flags: list[str], told: str) -> None:
    code, output = await start_error(["--listen=127.0.0.1:0", *flags])
    assert code == 2
    assert told in output
    assert len(output.splitlines()) == 1


async def test_two_scripts_with_one_agent_are_refused(tmp_path: Path) -> None:
    for name in ("one.yaml", "two.yaml"):
        (tmp_path / name).write_text("agents: {same: {}}\n", encoding="utf-8")
    flags = [f"--script={tmp_path / name}" for name in ("one.yaml", "two.yaml")]
    code, output = await start_error(["--listen=127.0.0.1:0", *flags])
    assert code == 2
    assert "'same'" in output


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_an_idle_runner_at_once(tmp_path: Path, number: signal.Signals) -> None:
    async with process(tmp_path) as runner:
        begin = time.monotonic()
        runner.process.send_signal(number)
        assert await runner.end() == 0
        assert time.monotonic() - begin < 5


async def test_a_stop_lets_a_run_end_and_hands_over_what_does_not(tmp_path: Path) -> None:
    """A short attempt ends by itself; a long one is refused by name, so that another takes it."""
    script = tmp_path / "script.yaml"
    script.write_text(
        """
agents:
  a:
    turns:
      - when: {text: short}
        steps: [{parts: [{text: one}, {wait_for_file: gate}, {text: two}]}]
      - when: {text: long}
        steps: [{parts: [{text: one}, {wait_for_file: never}]}]
""",
        encoding="utf-8",
    )
    async with (
        process(tmp_path, f"--script={script}", "--drain-timeout=2") as runner,
        aio.insecure_channel(runner.address) as channel,
    ):
        stub = runner_pb2_grpc.RunnerServiceStub(channel)
        short = await BrokerSide(stub, start("a", [user("short")]), [user("short")]).open()
        long = await BrokerSide(stub, start("a", [user("long")]), [user("long")]).open()
        await short.until("text_delta")
        await long.until("text_delta")
        runner.process.terminate()
        (tmp_path / "gate").touch()
        assert (await short.run()).end == "completed"
        with pytest.raises(aio.AioRpcError) as refused:
            await long.run()
        assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
        assert error_from_rpc(refused.value).reason == "SHUTTING_DOWN"
        assert await runner.end() == 0


@pytest.mark.parametrize(("when", "effects"), [("before", False), ("after", True)])
async def test_a_runner_that_dies_in_a_tool_has_had_the_effect_or_not(
    tmp_path: Path, when: str, effects: bool
) -> None:
    """S1, scenario 6: a script can say at which point the process is killed."""
    script = tmp_path / "script.yaml"
    does = "[{die: true}, {count: n}]" if when == "before" else "[{count: n}, {die: true}]"
    script.write_text(
        f"""
agents:
  a:
    tools: {{pay: {{does: {does}}}}}
    turns: [{{steps: [{{parts: [{{call: pay}}]}}]}}]
""",
        encoding="utf-8",
    )
    async with (
        process(tmp_path, f"--script={script}") as runner,
        aio.insecure_channel(runner.address) as channel,
    ):
        stub = runner_pb2_grpc.RunnerServiceStub(channel)
        broker = await BrokerSide(stub, start("a", [user("x")]), [user("x")]).open()
        with pytest.raises(aio.AioRpcError) as lost:
            await broker.run()
        assert lost.value.code() is grpc.StatusCode.UNAVAILABLE
        assert await runner.end() == -signal.SIGKILL
    assert (tmp_path / "n").exists() is effects


async def test_any_runner_goes_on_with_the_run(tmp_path: Path) -> None:
    """R3: a runner keeps nothing between attempts; another process resumes after the answer."""
    trip = user("I want to plan a trip")
    async with process(tmp_path) as first, aio.insecure_channel(first.address) as channel:
        stub = runner_pb2_grpc.RunnerServiceStub(channel)
        broker = await BrokerSide(stub, start("demo", [trip]), [trip]).open()
        form = (await broker.run()).messages[0]
    answer = client_output(
        calls(form)[0].call_id,
        '{"action":"accept","content":{"city":"Visby","nights":3,"room":"suite"}}',
    )
    history = [trip, answered(form, answer)]
    async with process(tmp_path) as second, aio.insecure_channel(second.address) as channel:
        stub = runner_pb2_grpc.RunnerServiceStub(channel)
        broker = await BrokerSide(stub, start("demo", history, attempt=2), history).open()
        heard = await broker.run()
        history = [*history, answered(heard.messages[0], *heard.results.values())]
        history += [heard.messages[1], user("actually in euro", "p2")]
        broker = await BrokerSide(stub, start("demo", history, run_id="r2"), history).open()
        second_reply = await broker.run()
    assert text_of(heard.messages[0]).startswith("Visby for 3 nights")
    assert (
        calls(heard.messages[0])[0].arguments_json == '{"city":"Visby","nights":3,"room":"suite"}'
    )
    assert "Your booking has the number 1" in text_of(heard.messages[1])
    assert (tmp_path / "bookings.txt").read_text() == "Visby, 3 nights, suite room\n"
    assert "actually in euro" in text_of(second_reply.messages[0])
