"""A broker's process that is killed while it commits, and what has to be left of that (E4, S2)."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from broker_service.storage.port import Append, SessionKey, Store, Write
from tests.contract.samples import event, everything, texts, write

ROOT = Path(__file__).parents[2]
WRITERS = 8


def say(line: str) -> None:
    """In the child: one whole line, so that the parent sees it before this process is killed."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def commit_for_ever(store: Store) -> None:
    """In the child: eight writers; says each commit once it was acknowledged."""

    async def writer(number: int) -> None:
        mine, shared = SessionKey("acme", f"w{number}"), SessionKey("umbra", f"w{number}")
        version = 0
        while True:
            both = (
                Append(mine, (event(f"{version}"),), version),
                Append(shared, (event(f"{version}"),), version),
            )
            await store.commit(Write(both))
            version += 1
            say(f"{number} {version}")

    await asyncio.gather(*(writer(number) for number in range(WRITERS)))


@contextmanager
def child(module: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A process that runs a module; killed at the end, if it still runs."""
    process = subprocess.Popen(
        [sys.executable, "-m", module, *arguments], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=30)


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def kill_after(process: subprocess.Popen[str], acknowledged: int) -> dict[int, int]:
    """kill -9 after so many acknowledged commits; answers the newest version of each writer."""
    said = [line(process) for _ in range(acknowledged)]
    process.kill()
    assert process.stdout is not None
    # Through the same buffer as the lines before: `communicate` would read past it.
    said += [late for late in process.stdout.read().split("\n")[:-1] if late]
    newest = dict.fromkeys(range(WRITERS), 0)
    for commit in said:
        writer, version = map(int, commit.split())
        newest[writer] = version
    assert sum(newest.values()) >= acknowledged
    return newest


async def check_what_is_left(store: Store, newest: dict[int, int]) -> None:
    """Every acknowledged commit is there, whole, and the sessions can be written to."""
    for writer, version in newest.items():
        logs = [
            texts(await everything(store, SessionKey(tenant, f"w{writer}")))
            for tenant in ("acme", "umbra")
        ]
        assert logs[0] == logs[1]  # whole writes only
        assert logs[0] == [f"{n}" for n in range(len(logs[0]))]
        # One that was in flight may be there, too.
        assert version <= len(logs[0]) <= version + 1
        head = SessionKey("acme", f"w{writer}")
        await store.commit(write(event("on"), session=head, at=len(logs[0])))
