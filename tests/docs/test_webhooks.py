"""docs/webhooks.md: the files of targets can be read, and the receiver verifies what is sent."""

from __future__ import annotations

import json
import threading
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import HTTPServer
from pathlib import Path
from typing import Any

import httpx2
import pytest

from broker_service.webhooks.outbox import Webhook
from broker_service.webhooks.posting import signed_headers
from broker_service.webhooks.schedule import PAUSES_S
from broker_service.webhooks.targets import CLOSED, OPENED, Target, read_targets
from tests.docs.pages import ROOT, Block, blocks, page, rows

PAGE = ROOT / "docs/webhooks.md"
SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
KEY = bytes(range(32))


@pytest.fixture(autouse=True)
def secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPS_SECRET", SECRET)
    monkeypatch.setenv("CHAT_SECRET", SECRET)


@pytest.mark.parametrize("block", [pytest.param(b, id=b.place) for b in blocks(PAGE, "toml")])
def test_a_file_of_targets_can_be_read(block: Block, tmp_path: Path) -> None:
    (tmp_path / "ops.secret").write_text(SECRET)
    (tmp_path / "webhooks.toml").write_text(block.body)
    targets = read_targets(tmp_path / "webhooks.toml")
    assert [target.name for target in targets] == [
        target["name"] for target in tomllib.loads(block.body)["target"]
    ]
    assert all(KEY in target.secrets for target in targets)


def test_types_pauses_and_keys_are_those_of_the_code() -> None:
    tables = [cells[0].strip("`") for cells in rows(page("docs/webhooks.md"))]
    assert {OPENED, CLOSED} <= set(tables)
    told = "5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h and 24 h"
    units = {"s": 1, "min": 60, "h": 3600}
    pauses = [part.split() for part in told.replace(" and", ",").split(", ")]
    assert tuple(int(number) * units[unit] for number, unit in pauses) == PAUSES_S
    assert told in " ".join(page("docs/webhooks.md").split())


@contextmanager
def serving(receiver: Any) -> Iterator[str]:
    """The page's receiver, on a free port."""
    server = HTTPServer(("127.0.0.1", 0), receiver)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()


def test_the_receiver_takes_what_is_signed_once_and_nothing_else(
    capsys: pytest.CaptureFixture[str],
) -> None:
    [block] = [b for b in blocks(PAGE, "python") if b.info == "python receiver"]
    [said] = [json.loads(b.body) for b in blocks(PAGE, "json")]
    names: dict[str, Any] = {"__name__": "receiver"}
    exec(compile(block.body, block.place, "exec"), names)
    webhook = Webhook("ops", "whk_1", json.dumps(said))
    target = Target("ops", "", (b"o" * 24, KEY))
    headers = signed_headers(target, webhook, datetime.now(UTC))
    forged = signed_headers(Target("ops", "", (b"x" * 32,)), webhook, datetime.now(UTC))
    with serving(names["Receiver"]) as url, httpx2.Client(trust_env=False) as client:
        for sent, status in ((headers, 204), (headers, 204), (forged, 401)):
            answer = client.post(url, content=webhook.body, headers=sent)
            assert answer.status_code == status
    assert capsys.readouterr().out.splitlines() == [json.dumps(said)]
