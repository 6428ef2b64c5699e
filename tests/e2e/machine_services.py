"""The real services of the state machine: a broker process whose clock the test sets, clients of
three people, and a runner that is told what to do.
"""

from __future__ import annotations

import asyncio
import struct
import subprocess
import sys
import threading
from collections.abc import Coroutine, Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import TypeVar

from grpc import aio

from broker_service.domain.limits import Limits
from tests.e2e.machine_runner import DEADLINE_SECONDS, ToldRunner
from tests.e2e.pair import Service, clean_environment
from turngate.v1 import runner_pb2_grpc
from turngate_client import (
    TurngateClient,
)

T = TypeVar("T")

PEOPLE = ("ann", "ben", "cai")
BEGINNING = 1_800_000_000_000
FLAGS = (
    "--migrate",
    "--heartbeat=0.1",
    "--silent-runner=300",
    "--retry-pause=0.01",
    "--retry-pause-limit=0.01",
    "--unplaced-after=3600",
)


class OwnBroker(Service):
    """The broker whose clock the test sets."""

    def __init__(self, folder: Path, *flags: str) -> None:
        super().__init__("broker", folder, flags)
        self._clock = folder / "clock"
        self.set_clock(BEGINNING)

    def set_clock(self, now: int) -> None:
        """Milliseconds since the epoch; forwards only."""
        self.now = now
        with self._clock.open("r+b" if self._clock.exists() else "wb") as file:
            file.write(struct.pack("<q", now))

    def spawn(self, *flags: str) -> subprocess.Popen[bytes]:
        program = Path(__file__).with_name("machine_broker.py")
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-P", str(program), str(self._clock), *flags, *self._flags],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.log.parent,
                env=clean_environment(),
            )


class Services:
    """Broker, runner and clients for many conversations, one after the other.

    Their event loop has a thread of its own: hypothesis gives its commands without one.
    """

    def __init__(self, broker: OwnBroker, loop: asyncio.AbstractEventLoop) -> None:
        self.broker = broker
        self.runner = ToldRunner()
        self.clients: dict[str, TurngateClient] = {}
        self._loop = loop

    def run(self, work: Coroutine[object, object, T]) -> T:
        """Do it on the loop, within a bound."""
        done = asyncio.run_coroutine_threadsafe(work, self._loop)
        return done.result(3 * DEADLINE_SECONDS)


@contextmanager
def services(folder: Path, store_url: str, limits: Limits) -> Iterator[Services]:
    """The services, for as long as the block lasts."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    stack = AsyncExitStack()

    async def start() -> Services:
        server = aio.server()
        port = server.add_insecure_port("127.0.0.1:0")
        broker = OwnBroker(
            folder,
            f"--store={store_url}",
            f"--runner=127.0.0.1:{port}",
            f"--max-forks-per-call={limits.max_forks_per_call}",
            f"--runner-retries={limits.attempts}",
            f"--questions-a-step={limits.questions_a_step}",
            f"--questions-a-turn={limits.questions_a_turn}",
            f"--unclaimed-after={limits.unclaimed_after_ms / 1000:g}",
            *FLAGS,
        )
        made = Services(broker, loop)
        runner_pb2_grpc.add_RunnerServiceServicer_to_server(made.runner, server)
        await server.start()
        stack.push_async_callback(server.stop, None)
        stack.callback(broker.kill)
        await asyncio.to_thread(broker.start)
        for name in PEOPLE:
            client = TurngateClient(broker.address, user=name, client_name=f"{name}'s")
            made.clients[name] = await stack.enter_async_context(client)
        return made

    async def end() -> None:
        await stack.aclose()

    try:
        yield asyncio.run_coroutine_threadsafe(start(), loop).result()
    finally:
        asyncio.run_coroutine_threadsafe(end(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
