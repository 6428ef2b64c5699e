"""`turngate migrate`: a store is made, or brought up to this version, before a broker serves it."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from tests.contract.postgres_server import PostgresServer
from tests.e2e.pair import QUICK, Service
from tests.e2e.talk import DEADLINE_SECONDS
from turngate_client import TurngateClient


async def migrate(store: str) -> tuple[int, str, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-c", "from turngate_client.cli import main; main()", "migrate", "--store", store),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(DEADLINE_SECONDS):
        said, problems = await process.communicate()
    assert process.returncode is not None
    return process.returncode, said.decode(), problems.decode()


async def test_a_broker_serves_postgresql_once_it_is_migrated(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    store = postgres.new_schema()
    code, said, _ = await migrate(store)
    assert code == 0
    assert said.startswith("the store has schema version ")
    broker = Service("broker", tmp_path, [f"--store={store}", *QUICK])
    broker.start()
    try:
        async with TurngateClient(broker.address) as client:
            session = await client.create_session("first")
            assert [one.id async for one in client.sessions()] == [session.id]
    finally:
        broker.kill()


async def test_what_keeps_a_store_from_migrating_is_one_line(tmp_path: Path) -> None:
    code, _, problems = await migrate(f"sqlite:{tmp_path / 'nowhere' / 'sessions.db'}")
    assert code == 2
    assert len(problems.strip().splitlines()) == 1
    assert "nowhere" in problems
