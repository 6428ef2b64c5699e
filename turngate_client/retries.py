"""When a call is made again, and after which pause."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import grpc

from turngate_client.errors import error_from_rpc

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How long and how often. All times in seconds.

    `timeout`: for a call with all its retries; for a watch, since its last frame.
    `first_pause`: before the second attempt; it doubles up to `longest_pause`, and up to a quarter
    of it is cut off by chance, so that many clients do not come back in one instant.
    """

    timeout: float = 30.0
    first_pause: float = 0.1
    longest_pause: float = 5.0

    def pause_before(self, attempt: int, chance: float) -> float:
        """The pause before attempt 2, 3, ...; `chance` in [0, 1)."""
        pause = self.first_pause * 2.0 ** min(attempt - 2, 30)
        return min(pause, self.longest_pause) * (1.0 - chance / 4)


async def pause(seconds: float) -> None:
    """Wait between two attempts: the one place in the client that waits for nothing but time."""
    await asyncio.sleep(seconds)


async def call_with_retries(call: Callable[[float], Awaitable[T]], policy: RetryPolicy) -> T:
    """The answer of `call(timeout in seconds)`, made again while the service cannot be reached.

    Only `UNAVAILABLE` is tried again. That is safe for what reads, and for what carries a request
    id: repeated with the same one, it gets the first answer (E1). Raises TurngateError.
    """
    deadline = time.monotonic() + policy.timeout
    attempt = 1
    while True:
        try:
            return await call(max(deadline - time.monotonic(), 0.001))
        except grpc.aio.AioRpcError as rpc_error:
            error = error_from_rpc(rpc_error)
        attempt += 1
        wait = max(policy.pause_before(attempt, random.random()), error.retry_after or 0.0)
        if error.code is not grpc.StatusCode.UNAVAILABLE or time.monotonic() + wait >= deadline:
            raise error
        await pause(wait)
