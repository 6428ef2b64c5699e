"""A throw-away PostgreSQL for tests (tools/postgres.sh)."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from broker_service.storage.postgres_driver import connect

SCRIPT = Path(__file__).parents[2] / "tools" / "postgres.sh"


class PostgresServer:
    """A server that runs. `folder` and `url` are as tools/postgres.sh prints them."""

    def __init__(self, folder: str, url: str) -> None:
        self.folder = folder
        self.url = url

    def new_schema(self) -> str:
        """The address of a store of its own, still without tables."""
        name = f"t{uuid4().hex}"
        ask(self.url, f"CREATE SCHEMA {name}")
        return f"{self.url}&search_path={name}"

    def control(self, action: str) -> None:
        """`restart`, `down`, `up` or `stop`."""
        _run(action, self.folder)


def start() -> PostgresServer:
    """Start a server; the caller stops it."""
    folder, url = _run("start").split()
    return PostgresServer(folder, url)


def ask(url: str, question: str, *values: object) -> list[Sequence[Any]]:
    """Ask over a connection of its own, also from within a running event loop."""

    async def answer() -> list[Sequence[Any]]:
        connection = await connect(url, {}, timeout_s=30)
        try:
            return await connection.fetch(question, *values)
        finally:
            await connection.close()

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(lambda: asyncio.run(answer())).result(timeout=60)


@contextmanager
def shared_server(folders: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    """One server for all workers of a run: the first one starts it, the last one stops it."""
    base = folders.getbasetemp()
    if os.environ.get("PYTEST_XDIST_WORKER"):
        base = base.parent
    users = base / "postgres.json"
    with _exclusive(users) as state:
        if not state:
            server = start()
            state.update(folder=server.folder, url=server.url, workers=0)
        state["workers"] += 1
        server = PostgresServer(state["folder"], state["url"])
    try:
        yield server
    finally:
        with _exclusive(users) as state:
            state["workers"] -= 1
            if state["workers"] == 0:
                server.control("stop")
                state.clear()


@contextmanager
def _exclusive(path: Path) -> Iterator[dict[str, Any]]:
    """The content of a file, for one process at a time."""
    with path.open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        state: dict[str, Any] = json.loads(file.read() or "{}")
        yield state
        file.seek(0)
        file.truncate()
        file.write(json.dumps(state))


def _run(*arguments: str) -> str:
    done = subprocess.run(
        [SCRIPT, *arguments], capture_output=True, text=True, timeout=120, check=False
    )
    if done.returncode == 0:
        return done.stdout
    why = f"needs PostgreSQL: {done.stderr.strip() or done.returncode}"
    if os.environ.get("CI") or "not installed" not in why:
        pytest.fail(why)
    pytest.skip(why)
