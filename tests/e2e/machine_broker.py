"""A broker as a process, but for its clock: that of its store stands still until a test sets it.

`python machine_broker.py CLOCK FLAG...`: the first 8 bytes of the file CLOCK are the time, in
milliseconds since the Unix epoch. Leases never run out, and no cancel reaches its grace: a test
sets the clock by hours.
"""

from __future__ import annotations

import mmap
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

from broker_service import server
from broker_service.config import BrokerSettings
from broker_service.storage.port import Store
from broker_service.storage.postgres import open_postgres
from broker_service.storage.sqlite import open_sqlite
from turngate_serving.exit import run_service
from turngate_serving.flags import parse_settings
from turngate_serving.logs import configure_logs

FOR_EVER_S = 1e7


def clock_of(path: Path) -> Callable[[], int]:
    """The clock that a file holds."""
    with path.open("rb") as file:
        pages = mmap.mmap(file.fileno(), 8, access=mmap.ACCESS_READ)

    def now() -> int:
        (instant,) = struct.unpack("<q", pages[:8])
        return int(instant)

    return now


def main() -> int:
    now = clock_of(Path(sys.argv[1]))

    async def connect(url: str, *, migrate: bool = False) -> Store:
        if url.startswith("sqlite:"):
            return open_sqlite(url.removeprefix("sqlite:"), now)
        return await open_postgres(url, migrate=migrate, clock=now)

    settings = parse_settings(BrokerSettings, sys.argv[2:], program="broker", description="")
    configure_logs("broker", settings.log_level)
    patient = settings.model_copy(update={"lease": FOR_EVER_S, "cancel_grace": FOR_EVER_S})
    with patch.object(server, "connect_store", connect):
        return run_service("broker", lambda: server.serve(patient))


if __name__ == "__main__":
    sys.exit(main())
