"""The two services as a user starts them: processes, real ports, a store of their own."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from turngate_client import RetryPolicy, TurngateClient

START_SECONDS = 30.0
# A stop may take the drain and the grace of the services (15 s by default).
STOP_SECONDS = 30.0
SHOWN_LOG_CHARACTERS = 6_000

# Short times, so that a takeover after a kill does not hold up the suite.
QUICK = (
    "--lease=1",
    "--heartbeat=0.2",
    "--retry-pause=0.05",
    "--retry-pause-limit=0.2",
    "--unplaced-after=1",
)
# A stopping runner lets its attempts come to an end for a while; gated ones never do.
QUICK_RUNNER = ("--drain-timeout=1",)


class StartFailed(AssertionError):
    """A service that does not serve; the text has the end of its log."""


class Service:
    """One service: `broker` or `runner`. Its log is one file, over all its lives.

    `folder`: for log and ready file. After the first start it keeps its port.
    """

    def __init__(self, name: str, folder: Path, flags: Sequence[str]) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        self.address = ""
        self.lives = 0
        self._ready = folder / f"{name}.ready"
        self._flags = tuple(flags)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until it serves. Raises `StartFailed` with the end of its log."""
        self._ready.unlink(missing_ok=True)
        listen = self.address or "127.0.0.1:0"
        self._process = self.spawn(f"--listen={listen}", f"--ready-file={self._ready}")
        self.lives += 1
        looks = int(START_SECONDS / 0.02)
        for _ in range(looks):
            if self._ready.exists():
                self.address = str(json.loads(self._ready.read_text())["address"])
                return
            if (code := self._ended_within(0.02)) is not None:
                raise StartFailed(
                    f"the {self.name} ended with exit code {code} at its start; its log ends:\n"
                    f"{self.log_tail()}"
                )
        self.kill()
        raise StartFailed(
            f"the {self.name} does not serve after {START_SECONDS:g} s; its log ends:\n"
            f"{self.log_tail()}"
        )

    def spawn(self, *flags: str) -> subprocess.Popen[bytes]:
        """The process with these flags and its own, not waited for."""
        with self.log.open("ab") as log:
            return subprocess.Popen(
                service_command(self.name, *flags, *self._flags),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.log.parent,
                env=clean_environment(),
            )

    async def restart(self) -> None:
        """Start it again, on the same port, while this loop goes on."""
        await asyncio.to_thread(self.start)

    def kill(self) -> None:
        """`kill -9`, also of one that is frozen; returns when it is gone. Idempotent."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal: SIGSTOP freezes it, SIGCONT lets it go on."""
        assert self._process is not None, f"the {self.name} does not run"
        self._process.send_signal(number)

    async def stop(self) -> int:
        """SIGTERM, as an operator stops it; its exit code. Fails by name if it does not end."""
        self.signal(signal.SIGTERM)
        return await asyncio.to_thread(self.end)

    def end(self) -> int:
        """Wait for its end, and answer its exit code. Fails by name if it does not come."""
        assert self._process is not None, f"the {self.name} does not run"
        code = self._ended_within(STOP_SECONDS)
        assert code is not None, (
            f"the {self.name} does not end within {STOP_SECONDS:g} s; its log ends:\n"
            f"{self.log_tail()}"
        )
        self._process = None
        return code

    @property
    def runs(self) -> bool:
        """Whether the process is there."""
        return self._process is not None and self._process.poll() is None

    def log_tail(self, since: int = 0) -> str:
        """The end of its log, of what came after byte `since`."""
        if not self.log.exists():
            return "(no log)"
        with self.log.open("rb") as log:
            log.seek(since)
            return log.read().decode(errors="replace")[-SHOWN_LOG_CHARACTERS:]

    def log_size(self) -> int:
        """How long its log is."""
        return self.log.stat().st_size if self.log.exists() else 0

    def _ended_within(self, seconds: float) -> int | None:
        assert self._process is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(seconds)
        return None


@dataclass(frozen=True)
class Pair:
    """A broker and its runner. `data`: the folder in which scripted tools keep their files."""

    broker: Service
    runner: Service
    data: Path

    def client(self, user: str = "ann", client_name: str = "laptop") -> TurngateClient:
        """A client of this broker. Use it in `async with`."""
        return TurngateClient(
            self.broker.address,
            user=user,
            client_name=client_name,
            retry=RetryPolicy(timeout=30.0, longest_pause=0.2),
        )

    def file(self, name: str) -> Path:
        """A file of the scripted tools: a gate, a marker, a counter."""
        return self.data / name

    def open_gate(self, name: str) -> None:
        """Let go on what waits for this file."""
        self.file(name).touch()

    def count(self, name: str) -> int:
        """The number in a tool's own counter."""
        file = self.file(name)
        return int(file.read_text()) if file.exists() else 0

    def logs(self, since: tuple[int, int] = (0, 0)) -> list[tuple[str, str]]:
        """Title and end of each service's log."""
        return [
            (f"log of the {service.name}", service.log_tail(offset))
            for service, offset in zip((self.broker, self.runner), since, strict=True)
        ]

    def log_sizes(self) -> tuple[int, int]:
        """How long the logs are, for `logs`."""
        return self.broker.log_size(), self.runner.log_size()


@contextlib.contextmanager
def new_pair(
    folder: Path,
    store_url: str,
    scripts: Sequence[Path],
    *,
    broker_flags: Sequence[str] = QUICK,
    runner_flags: Sequence[str] = QUICK_RUNNER,
    start_runner: bool = True,
) -> Iterator[Pair]:
    """A pair that serves, and is gone at the end in whatever way that comes.

    With `start_runner=False` the runner has an address but is down: a test starts it.
    """
    data = folder / "data"
    data.mkdir()
    script_flags = [f"--script={script}" for script in scripts]
    with contextlib.ExitStack() as stack:
        runner = Service("runner", folder, [f"--data-dir={data}", *script_flags, *runner_flags])
        stack.callback(runner.kill)
        runner.start()  # also to learn its port
        if not start_runner:
            runner.kill()
        broker = Service(
            "broker",
            folder,
            [f"--store={store_url}", "--migrate", f"--runner={runner.address}", *broker_flags],
        )
        stack.callback(broker.kill)
        broker.start()
        yield Pair(broker, runner, data)


def service_command(name: str, *flags: str) -> list[str]:
    """The command of a service, without the current folder on its path."""
    return [sys.executable, "-P", "-m", f"{name}_service", *flags]


def clean_environment() -> dict[str, str]:
    """The environment without settings of Turngate that a developer may have."""
    return {key: value for key, value in os.environ.items() if not key.startswith("TURNGATE_")}


def start_error(name: str, folder: Path, *flags: str) -> tuple[int, list[str]]:
    """Exit code and output lines of a service that cannot start, in this folder."""
    done = subprocess.run(
        service_command(name, *flags),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        cwd=folder,
        env=clean_environment(),
        timeout=START_SECONDS,
        check=False,
    )
    return done.returncode, (done.stdout + done.stderr).splitlines()
