"""What the pages show is real: Python compiles, requests parse, and what says `run` is run."""

import ast
import asyncio
import json
import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from grpc_health.v1 import health_pb2

from tests.docs.pages import PAGES, ROOT, Block, blocks, name_of, page
from tests.e2e.pair import Pair
from turngate.v1 import broker_pb2, run_pb2, runner_pb2
from turngate_client import SessionView, TurngateClient

SERVICES = {
    "grpc.health.v1.Health": health_pb2.DESCRIPTOR,
    "turngate.v1.BrokerService": broker_pb2.DESCRIPTOR,
    "turngate.v1.RunnerService": runner_pb2.DESCRIPTOR,
}
GUIDES = ("docs/clients.md", "docs/runners.md")
QUIET_SECONDS = 20.0

ALL = [block for path in PAGES for block in blocks(path)]


def of(*languages: str) -> list[Any]:
    found = [block for block in ALL if block.info.split(" ")[0] in languages]
    return [pytest.param(block, id=block.place) for block in found]


def requests(block: Block) -> Iterator[tuple[str, str]]:
    """Method and JSON of each request of a block; `$S` is the broker's service.

    A stream of requests is one JSON value a line.
    """
    lexer = shlex.shlex(block.body, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words = list(lexer)
    starts = [place for place, word in enumerate(words) if word == "grpcurl"]
    for start, end in pairwise([*starts, len(words)]):
        command = words[start:end]
        if "-d" not in command:
            continue
        body = command[command.index("-d") + 1]
        name = next(word for word in command if re.fullmatch(r"(\$S|[\w.]+)/\w+", word))
        name = name.replace("$S", "turngate.v1.BrokerService")
        for value in body.strip().split("\n") if "\n" in body else [body]:
            yield name, value


def request_of(name: str) -> Message:
    service, method = name.split("/")
    found = SERVICES[service].services_by_name[service.rsplit(".", 1)[1]].methods_by_name[method]
    return GetMessageClass(found.input_type)()


def test_every_block_says_what_it_is() -> None:
    known = {"sh", "console", "python", "json", "text", "yaml", "toml", "proto", "mermaid", ""}
    assert [b.place for b in ALL if b.info.split(" ")[0] not in known] == []


@pytest.mark.parametrize("block", of("python"))
def test_python_compiles(block: Block) -> None:
    compile(block.body, block.place, "exec", dont_inherit=True)


@pytest.mark.parametrize("block", of("json"))
def test_json_is_json(block: Block) -> None:
    for value in block.body.split("\n\n"):
        json.loads(value)


@pytest.mark.parametrize("block", of("sh"))
def test_requests_of_grpcurl_lines_are_requests(block: Block) -> None:
    for name, body in requests(block):
        json_format.Parse(body, request_of(name))


@pytest.mark.parametrize("block", of("sh"))
def test_shell_is_shell(block: Block) -> None:
    checked = subprocess.run(["bash", "-n"], input=block.body, text=True, capture_output=True)
    assert checked.returncode == 0, f"{block.place}: {checked.stderr}"


@pytest.mark.parametrize("guide", GUIDES)
async def test_a_guide_runs_as_it_is_written(guide: str, pair: Pair, grpcurl: str) -> None:
    """One after the other, each once the services have nothing more to do."""
    shell: list[str] = []
    async with TurngateClient(pair.broker.address, user="ann") as client:
        for block in blocks(ROOT / guide):
            if not block.info.endswith(" run"):
                continue
            await nothing_is_running(client)
            if block.info.startswith("python"):
                names: dict[str, Any] = {}  # each imports what it needs
                exec(compile(block.body, block.place, "exec", dont_inherit=True), names)
                async with asyncio.timeout(QUIET_SECONDS):
                    await names[first_function(block)](client)
                continue
            await asyncio.to_thread(run_shell, block, shell, pair, grpcurl)


def first_function(block: Block) -> str:
    nodes = ast.parse(block.body).body
    return next(node.name for node in nodes if isinstance(node, ast.AsyncFunctionDef))


async def nothing_is_running(client: TurngateClient) -> None:
    """Wait until every run has ended or is parked, as a person does who reads on meanwhile."""
    async for session in client.sessions():

        def rests(view: SessionView) -> bool:
            busy = {run_pb2.RUN_STATE_PENDING, run_pb2.RUN_STATE_RUNNING}
            return all(run.run.state not in busy for run in view.runs.values())

        rest = client.session(session.id).until(
            lambda view: rests(view) or None, QUIET_SECONDS, "nothing is running"
        )
        await rest


async def test_the_first_call_of_the_readme_works_pasted_as_one_block(
    pair: Pair, grpcurl: str
) -> None:
    """Nothing waits between its lines but they themselves; the answer opens a fork (F2)."""
    block = one_block("README.md", "sh grpcurl")
    own = replace(block, body=block.body.replace('"trip"', '"readme"'))
    await asyncio.to_thread(run_shell, own, [], pair, grpcurl)
    async with TurngateClient(pair.broker.address) as client:
        nodes = await client.session("readme").tree(include_superseded=True)
    assert [node.run.id for node in nodes if node.run.superseded_by_run_id]


def run_shell(block: Block, before: list[str], pair: Pair, grpcurl: str) -> None:
    """A block in the shell of those before it: only their variables are set anew."""
    body = block.body.replace("127.0.0.1:50051", pair.broker.address)
    body = body.replace("127.0.0.1:50052", pair.runner.address)
    folder = str(Path(grpcurl).parent)
    script = "\n".join(["set -euo pipefail", f"PATH={shlex.quote(folder)}:$PATH", *before, body])
    done = subprocess.run(
        ["bash", "-c", script + '\necho "ID is ${ID-}"\n'],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, f"{block.place}:\n{done.stdout}\n{done.stderr}"
    before += [line for line in body.splitlines() if re.fullmatch(r"[BRS]=\S+", line)]
    found = re.findall(r"^ID is (.+)$", done.stdout, re.M)
    before += [f"ID={shlex.quote(one)}" for one in found]


def test_the_readme_shows_what_the_demo_prints() -> None:
    """The lines of the README come in this order in a real run; ids and times are its own."""
    shown = one_block("README.md", "text demo-output")
    command = one_block("README.md", "sh demo")
    answers = re.search(r"printf '([^']*)'", command.body)
    assert answers is not None
    done = subprocess.run(
        [ROOT / ".venv" / "bin" / "turngate", "demo"],
        input=answers[1].replace("\\n", "\n"),
        capture_output=True,
        text=True,
        timeout=90,
    )
    assert done.returncode == 0, done.stderr
    printed = iter(without_ids(done.stdout).splitlines())
    for line in without_ids(shown.body).splitlines():
        assert line in printed, f"not printed, or not in this place: {line!r}"


def one_block(name: str, info: str) -> Block:
    found = [block for block in blocks(ROOT / name) if block.info == info]
    assert len(found) == 1, f"{name} has {len(found)} blocks of {info!r}"
    return found[0]


def without_ids(text: str) -> str:
    return re.sub(r"\b(run|int|msg|call|ans)_\w+", r"\1_…", text)


def test_the_pages_are_found() -> None:
    names = {name_of(path) for path in PAGES}
    assert {"README.md", "docs/rules.md", "docs/clients.md"} <= names
    assert page("README.md").startswith("# Turngate")
