"""A broker's process as far as the store goes, for tests that kill one: `URL`."""

from __future__ import annotations

import asyncio
import sys

from broker_service.storage.postgres import open_postgres
from tests.contract.crash import commit_for_ever


async def main(url: str) -> None:
    await commit_for_ever(await open_postgres(url))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
