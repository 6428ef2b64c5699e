"""Writing frames to a reader that may take none (W4)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

from broker_service.watch.clock import Clock, Deadline
from turngate_core.errors import Refusal


async def deliver(
    frames: AsyncIterator[bytes],
    write: Callable[[bytes], Awaitable[None]],
    *,
    clock: Clock,
    stuck_reader: float,
    too_slow: Callable[[], Refusal],
) -> None:
    """Write all frames; raises `too_slow()` if the reader holds up a write for `stuck_reader` s."""
    loop = asyncio.get_running_loop()
    patience = asyncio.timeout(None)
    stuck = Deadline(clock, stuck_reader, lambda: patience.reschedule(loop.time()))
    try:
        async with patience:
            async for frame in frames:
                stuck.put_off()
                await write(frame)
                stuck.stop()
    except TimeoutError:
        if patience.expired():
            raise too_slow() from None
        raise
    finally:
        stuck.close()
