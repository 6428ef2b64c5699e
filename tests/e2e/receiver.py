"""A receiver of webhooks, as somebody outside would run it: plain HTTP, one path a target."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from standardwebhooks import Webhook

from tests.e2e.talk import DEADLINE_SECONDS

KEY = bytes(range(32))
SECRET = "whsec_" + base64.b64encode(KEY).decode()


@dataclass(frozen=True, slots=True)
class Call:
    """A request as it came. `status`: what it was answered; 0 if the connection was cut."""

    path: str
    headers: dict[str, str]
    body: str
    status: int

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    def verified(self) -> dict[str, Any]:
        """What it says, once the consumers' own library has verified it."""
        said: dict[str, Any] = Webhook(SECRET).verify(self.body, self.headers)
        assert said == json.loads(self.body)
        return said


@dataclass
class Receiver:
    """`answers`: the status by path, 204 by default; 0 cuts the connection, None never answers."""

    answers: dict[str, int | None] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    port: int = 0
    _came: asyncio.Event = field(default_factory=asyncio.Event)
    _server: asyncio.Server | None = None
    _open: dict[asyncio.StreamWriter, asyncio.Task[Any]] = field(default_factory=dict)

    async def up(self) -> None:
        """Listen, always on the same port."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def down(self) -> None:
        """Connections are refused."""
        assert self._server is not None
        self._server.close()
        for writer in self._open:
            writer.transport.abort()
        if serving := set(self._open.values()):
            await asyncio.wait(serving, timeout=DEADLINE_SECONDS)

    def url(self, path: str) -> str:
        """The address of a target."""
        return f"http://127.0.0.1:{self.port}{path}"

    def at(self, path: str, status: int | None = None) -> list[Call]:
        """What came on a path, of this status if one is given."""
        return [call for call in self.calls if call.path == path and status in (None, call.status)]

    async def until(self, found: Callable[[], bool], what: str) -> None:
        """Wait until a condition on what came holds. Fails by name."""
        try:
            async with asyncio.timeout(DEADLINE_SECONDS):
                while not found():
                    self._came.clear()
                    await self._came.wait()
        except TimeoutError:
            came = [(call.path, call.status, call.body) for call in self.calls]
            raise AssertionError(f"no {what}; there came {came}") from None

    async def received(self, path: str, count: int) -> list[dict[str, Any]]:
        """What the first so many webhooks on a path say, verified, without repetitions."""

        def told() -> dict[str, Call]:
            return {call.id: call for call in self.at(path, 204)}

        await self.until(lambda: len(told()) >= count, f"{count} webhooks on {path}")
        return [call.verified() for call in told().values()]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open[writer] = task
        try:
            while await self._answer(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError):
            return  # the broker has hung up
        finally:
            del self._open[writer]
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = head.strip().split("\r\n")
        method, path, _ = first.split(" ")
        assert method == "POST"
        pairs = (line.split(": ", 1) for line in lines)
        headers = {name.lower(): value for name, value in pairs}
        body = (await reader.readexactly(int(headers["content-length"]))).decode()
        status = self.answers.get(path, 204)
        self.calls.append(Call(path, headers, body, status or 0))
        self._came.set()
        if status is None:
            await reader.read()  # until the broker has had enough
            return False
        if status == 0:
            return False
        writer.write(f"HTTP/1.1 {status} -\r\ncontent-length: 0\r\n\r\n".encode())
        await writer.drain()
        return True


@asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    """A receiver that is up."""
    receiver = Receiver()
    await receiver.up()
    try:
        yield receiver
    finally:
        await receiver.down()


def targets_file(folder: Path, receiver: Receiver, *paths: str, more: str = "") -> Path:
    """The operator's file: a target for each of these paths, called like it."""
    file = folder / "webhooks.toml"
    tables = [
        f'[[target]]\nname = "{path[1:]}"\nurl = "{receiver.url(path)}"\n'
        f'secrets = ["{SECRET}"]\n{more}\n'
        for path in paths
    ]
    file.write_text("\n".join(tables))
    return file
