"""A broker's process as far as the store goes, for tests that kill one: `FILE TASK`."""

from __future__ import annotations

import asyncio
import resource
import sys
from pathlib import Path

from broker_service.storage.port import StoreUnavailable
from broker_service.storage.sqlite import open_sqlite
from tests.contract.crash import commit_for_ever, say
from tests.contract.samples import S, event, write


async def wait_to_be_killed() -> None:
    await asyncio.get_running_loop().create_future()


async def commit_all_the_time(path: Path) -> None:
    await commit_for_ever(open_sqlite(path))


async def commit_twenty(path: Path) -> None:
    store = open_sqlite(path)
    for version in range(20):
        await store.commit(write(event(f"{version}"), at=version))
    say("done")
    await wait_to_be_killed()


async def run_out_of_space(path: Path) -> None:
    """Says what a commit answers before, while and after files cannot grow."""
    store = open_sqlite(path)
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)

    async def attempt(version: int) -> None:
        try:
            await store.commit(write(event("x" * 200_000), at=version))
        except StoreUnavailable as error:
            say(f"{type(error).__name__}: {error}")
        else:
            say("stored")
        say(f"at {await store.last_position(S)}")

    await attempt(0)
    size = path.with_name(f"{path.name}-wal").stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20_000, unlimited[1]))
    await attempt(1)
    await asyncio.gather(attempt(1), attempt(1))
    resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
    await attempt(1)
    await store.close()


async def hold(path: Path) -> None:
    open_sqlite(path)
    say("open")
    await wait_to_be_killed()


TASKS = {
    task.__name__: task for task in (commit_all_the_time, commit_twenty, run_out_of_space, hold)
}

if __name__ == "__main__":
    asyncio.run(TASKS[sys.argv[2]](Path(sys.argv[1])))
