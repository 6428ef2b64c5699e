"""Pairs of services for the end-to-end tests; their logs are shown where a test fails.

Every test that has a broker runs on each store: the fixture `store_url` stands behind all of them.
A test of what only one store has says so with `@pytest.mark.store("sqlite")`. Each worker has one
pair a store for the tests that need no other settings.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

import pytest
import pytest_asyncio

from tests.contract.postgres_server import PostgresServer, shared_server
from tests.e2e.pair import QUICK, QUICK_RUNNER, Pair, new_pair
from turngate_client import TurngateClient

SCRIPTS = Path(__file__).parent / "scripts"

ALL_STORES = ("sqlite", "postgres")
# TURNGATE_E2E_STORES=sqlite leaves the other out, for a quick look.
STORES = tuple(os.environ.get("TURNGATE_E2E_STORES", ",".join(ALL_STORES)).split(","))

LOGS: pytest.StashKey[Callable[[], list[tuple[str, str]]]] = pytest.StashKey()


class StartPair(Protocol):
    """Starts a pair of the test's own."""

    def __call__(
        self,
        *,
        broker_flags: tuple[str, ...] = ...,
        runner_flags: tuple[str, ...] = ...,
        start_runner: bool = ...,
        scripts: tuple[Path, ...] = ...,
    ) -> Pair: ...


def pytest_configure(config: pytest.Config) -> None:
    if unknown := set(STORES) - set(ALL_STORES):
        raise pytest.UsageError(f"TURNGATE_E2E_STORES: no store {unknown}; there are {ALL_STORES}")
    config.addinivalue_line("markers", "store(name): end to end, a test of what this store has")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Each test on each store, or on the one that it is marked with."""
    marked = metafunc.definition.get_closest_marker("store")
    if "store_url" in metafunc.fixturenames:
        stores = [name for name in STORES if marked is None or name in marked.args]
        metafunc.parametrize("store_url", stores, indirect=True, scope="session")
    else:
        assert marked is None, f"{metafunc.definition.name} has no store: it needs no mark"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Iterator[None]:
    report = yield
    assert isinstance(report, pytest.TestReport)
    if report.failed and LOGS in item.stash:
        report.sections.extend(item.stash[LOGS]())
    return report


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    """A PostgreSQL for all tests of the run. Where there is none, they are skipped by name; in CI
    they fail."""
    with shared_server(tmp_path_factory) as server:
        yield server


@pytest.fixture(scope="session")
def store_url(request: pytest.FixtureRequest) -> Callable[[Path], str]:
    """Makes the address of a fresh store, for a folder in which its files may lie."""
    name: str = request.param
    if name == "sqlite":
        return lambda folder: f"sqlite:{folder / 'sessions.db'}"
    server: PostgresServer = request.getfixturevalue("postgres")
    return lambda _: server.new_schema()


@pytest.fixture(scope="session")
def shared_pair(
    tmp_path_factory: pytest.TempPathFactory, store_url: Callable[[Path], str]
) -> Iterator[Pair]:
    """The pair of all tests that need no other settings."""
    folder = tmp_path_factory.mktemp("pair")
    with new_pair(folder, store_url(folder), all_scripts()) as pair:
        yield pair


@pytest.fixture
def pair(shared_pair: Pair, request: pytest.FixtureRequest) -> Pair:
    """The shared pair, with what it logs during this test."""
    sizes = shared_pair.log_sizes()
    request.node.stash[LOGS] = lambda: shared_pair.logs(sizes)
    return shared_pair


@pytest_asyncio.fixture
async def client(pair: Pair) -> AsyncIterator[TurngateClient]:
    """A client of the shared pair."""
    async with pair.client() as connected:
        yield connected


@pytest.fixture
def start_pair(
    tmp_path: Path, store_url: Callable[[Path], str], request: pytest.FixtureRequest
) -> Iterator[StartPair]:
    """Starts a pair for a test that needs other settings, or a store of its own."""
    with ExitStack() as stack:

        def start(
            *,
            broker_flags: tuple[str, ...] = (),
            runner_flags: tuple[str, ...] = (),
            start_runner: bool = True,
            scripts: tuple[Path, ...] = (),
        ) -> Pair:
            started = stack.enter_context(
                new_pair(
                    tmp_path,
                    store_url(tmp_path),
                    scripts or all_scripts(),
                    broker_flags=(*QUICK, *broker_flags),
                    runner_flags=(*QUICK_RUNNER, *runner_flags),
                    start_runner=start_runner,
                )
            )
            request.node.stash[LOGS] = started.logs
            return started

        yield start


@pytest.fixture
def killable(pair: Pair) -> Iterator[Pair]:
    """The shared pair for a test that kills or stops services; afterwards both are up again.

    Tests of one worker follow each other, and the sessions of a test are its own.
    """
    yield pair
    for service in (pair.runner, pair.broker):
        if not service.runs:
            service.start()


def all_scripts() -> tuple[Path, ...]:
    """The conversations of the end-to-end tests."""
    return tuple(sorted(SCRIPTS.glob("*.yaml")))
