"""The stores that keep the contract. A new store is one more harness, no other test."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from broker_service.storage.port import Store
from tests.contract.harness import Harness, SqliteHarness
from tests.contract.postgres_harness import PostgresHarness
from tests.contract.postgres_server import PostgresServer, shared_server

STORES = ["sqlite", "postgres"]


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    """A PostgreSQL for all tests of the run. Where there is none, they are skipped by name; in CI
    they fail."""
    with shared_server(tmp_path_factory) as server:
        yield server


@pytest.fixture(params=STORES)
def harness(request: pytest.FixtureRequest, tmp_path: Path) -> Harness:
    if request.param == "sqlite":
        return SqliteHarness(tmp_path)
    server: PostgresServer = request.getfixturevalue("postgres")
    return PostgresHarness(server.new_schema())


@pytest.fixture
async def store(harness: Harness) -> AsyncIterator[Store]:
    opened = await harness.open()
    yield opened
    await opened.close()
