"""Clients in other languages: the stubs of gen/ compile, and talk to a running pair."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.builds import BUILD_SECONDS, LANGUAGES, Language
from tests.e2e.pair import Pair, new_pair

CONVERSATION = Path(__file__).parent / "conversation.yaml"
CLIENT_SECONDS = 40.0


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    with new_pair(tmp_path, f"sqlite:{tmp_path / 'sessions.db'}", [CONVERSATION]) as started:
        yield started


@pytest.fixture(params=LANGUAGES, ids=lambda language: language.name)
def client(request: pytest.FixtureRequest) -> list[str]:
    """A client's command. Without its toolchain the test is skipped by name; in CI it fails."""
    language: Language = request.param
    if language.missing:
        lacks = f"the {language.name} client needs {', '.join(language.missing)}"
        if os.environ.get("CI"):
            pytest.fail(lacks)
        pytest.skip(lacks)
    return language.built()


# A first build on a machine fetches and compiles what the client needs.
@pytest.mark.timeout(BUILD_SECONDS + CLIENT_SECONDS)
def test_a_client_answers_a_form_and_reads_the_reply(client: list[str], pair: Pair) -> None:
    """Create, send, watch until the form, settle (F1), watch until the fork is completed (F2)."""
    answer = {"action": "accept", "content": {"city": "Visby", "nights": 3}}
    done = subprocess.run(
        [*client, pair.broker.address, json.dumps(answer)],
        capture_output=True,
        text=True,
        timeout=CLIENT_SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"{done.stderr}\n{pair.logs()}"
    form, reply = done.stdout.splitlines()
    assert json.loads(form)["message"] == "Where would you like to go?"
    assert reply == "Off to Visby."
