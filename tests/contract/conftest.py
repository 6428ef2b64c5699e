"""The stores that keep the contract. A new store is one more harness, no other test."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from broker_service.storage.port import Store
from tests.contract.harness import Harness, SqliteHarness

HARNESSES = {"sqlite": SqliteHarness}


@pytest.fixture(params=sorted(HARNESSES))
def harness(request: pytest.FixtureRequest, tmp_path: Path) -> Harness:
    return HARNESSES[request.param](tmp_path)


@pytest.fixture
async def store(harness: Harness) -> AsyncIterator[Store]:
    opened = harness.open()
    yield opened
    await opened.close()
