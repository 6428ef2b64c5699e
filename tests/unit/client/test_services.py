"""Two child processes: both serve before anybody goes on, and none is ever left behind."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from turngate_client.cli import services
from turngate_client.cli.output import CommandFailed, ExitCode
from turngate_client.cli.services import running_pair
from turngate_client.cli.starting import until_one_ends

FAKE = Path(__file__).with_name("fake_service.py")


class Pair:
    """Starts a pair of fakes; `lines`: what they wrote, as `name: line`."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.lines: list[str] = []
        self.modes = {"broker": "good", "runner": "good"}
        self._folder = folder
        patch.setattr(services, "service_command", self._command)
        self.running = running_pair(
            folder,
            lambda name, line: self.lines.append(f"{name}: {line}"),
            broker_flags=["--store", "here"],
            runner_flags=[],
        )

    def _command(self, name: str) -> list[str]:
        return [sys.executable, str(FAKE), name, self.modes[name]]

    def pids(self) -> list[int]:
        """The processes that were started."""
        return [int(line.split()[2]) for line in self.lines if " pid " in line]

    def alive(self) -> list[int]:
        """Those of them that are still there."""
        return [pid for pid in self.pids() if _is_alive(pid)]


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture
def pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pair:
    return Pair(tmp_path, monkeypatch)


async def test_both_serve_then_the_broker_stops_first(pair: Pair) -> None:
    async with pair.running as running:
        assert running.broker.address != running.runner.address
        assert len(pair.alive()) == 2
    assert not pair.alive()
    broker_flags = next(line for line in pair.lines if line.startswith("broker: pid"))
    assert f"--store here --runner {running.runner.address}" in broker_flags
    assert [line for line in pair.lines if "stopped" in line] == [
        "broker: stopped",
        "runner: stopped",
    ]


async def test_a_service_that_cannot_start_ends_with_2_and_takes_the_other_along(
    pair: Pair,
) -> None:
    pair.modes["broker"] = "port-taken"
    with pytest.raises(CommandFailed, match="the broker did not start") as caught:
        async with pair.running:
            pytest.fail("nothing serves")
    assert caught.value.code == ExitCode.USAGE
    assert "broker: turngate-broker: the port is taken" in pair.lines
    assert len(pair.pids()) == 1
    assert not pair.alive()


async def test_a_service_that_is_not_healthy_in_time_is_stopped(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "START_SECONDS", 2.0)
    pair.modes["runner"] = "unhealthy"
    with pytest.raises(CommandFailed, match="the runner does not serve after 2 s"):
        async with pair.running:
            pytest.fail("the runner is not healthy")
    assert len(pair.pids()) == 1
    assert not pair.alive()


async def test_one_that_dies_is_told_by_name(pair: Pair) -> None:
    pair.modes["runner"] = "dies"
    with pytest.raises(CommandFailed, match="the runner has ended with exit code 7"):
        async with pair.running as running:
            await asyncio.wait_for(until_one_ends(running), 20)
    assert not pair.alive()


async def test_one_that_does_not_stop_is_killed(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "STOP_SECONDS", 0.3)
    pair.modes["broker"] = "deaf"
    async with pair.running:
        pass
    assert "broker: did not stop within 0.3 s and is killed" in pair.lines
    assert not pair.alive()


async def test_a_cancelled_start_leaves_nothing_behind(pair: Pair) -> None:
    pair.modes["broker"] = "unhealthy"  # the start waits for it

    async def start() -> None:
        async with pair.running:
            pytest.fail("the broker is not healthy")

    starting = asyncio.create_task(start())
    async with asyncio.timeout(20):
        while len(pair.pids()) < 2:
            await asyncio.wait({starting}, timeout=0.02)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert not pair.alive()
