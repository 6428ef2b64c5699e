"""A pair of services with the demo's agent, for the pages that talk to one."""

from collections.abc import Iterator

import pytest

from tests.e2e.pair import Pair, new_pair


@pytest.fixture(scope="session")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    folder = tmp_path_factory.mktemp("docs")
    with new_pair(folder, f"sqlite:{folder / 'sessions.db'}", ()) as started:
        yield started
