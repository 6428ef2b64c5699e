"""One attempt to tell a target: the signed request, and what its answer means."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeAlias

import httpx2
from standardwebhooks import Webhook as Signer

from broker_service.webhooks.outbox import Webhook
from broker_service.webhooks.schedule import retry_after_s
from broker_service.webhooks.targets import Target

CONNECT_S = 5.0
"""How long a connection may take to be made: a receiver that is there answers sooner."""

READ_BYTES = 4096
"""So much of a response is read, for the sake of the connection. What it says does not count."""

GONE = 410


@dataclass(frozen=True, slots=True)
class Delivered:
    """The receiver has it."""


@dataclass(frozen=True, slots=True)
class Gone:
    """The receiver wants to be told nothing any more."""


@dataclass(frozen=True, slots=True)
class Failed:
    """It may or may not have arrived. `problem`: for the log; `retry_after_s`: what was asked."""

    problem: str
    retry_after_s: float = 0.0


Outcome: TypeAlias = Delivered | Gone | Failed


def new_client(
    timeout_s: float, transport: httpx2.AsyncBaseTransport | None = None
) -> httpx2.AsyncClient:
    """The HTTP client of all targets; none of them can use up the connections of the others."""
    for name in ("httpx2", "httpcore2"):  # they log addresses, which may be secrets
        logging.getLogger(name).setLevel(logging.WARNING)
    return httpx2.AsyncClient(
        timeout=httpx2.Timeout(timeout_s, connect=min(CONNECT_S, timeout_s)),
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=20),
        follow_redirects=False,
        transport=transport,
    )


async def post(
    client: httpx2.AsyncClient, target: Target, webhook: Webhook, now_ms: int, timeout_s: float
) -> Outcome:
    """Send it once, within `timeout_s` over all. Raises nothing but what is a mistake of ours."""
    now = datetime.fromtimestamp(now_ms / 1000, UTC)
    headers = signed_headers(target, webhook, now)
    outcome: Outcome | None = None
    problem = ""
    try:
        async with (
            asyncio.timeout(timeout_s),
            client.stream(
                "POST", target.url, content=webhook.body.encode(), headers=headers
            ) as response,
        ):
            outcome = _meaning(response, now)
            await _read_on(response)
    except TimeoutError:
        problem = "no answer in time"
    except httpx2.HTTPError as error:
        problem = f"{type(error).__name__}: {error}"[:200]
    # Once the status has come, it counts, whatever happened to the rest.
    return outcome or Failed(problem)


def signed_headers(target: Target, webhook: Webhook, now: datetime) -> dict[str, str]:
    """The headers of the Standard Webhooks specification; one signature for each secret."""
    signatures = [Signer(key).sign(webhook.id, now, webhook.body) for key in target.secrets]
    return {
        "content-type": "application/json",
        "user-agent": "turngate",
        "webhook-id": webhook.id,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": " ".join(signatures),
    }


def _meaning(response: httpx2.Response, now: datetime) -> Outcome:
    if response.is_success:
        return Delivered()
    if response.status_code == GONE:
        return Gone()
    asked = retry_after_s(response.headers.get("retry-after"), now)
    return Failed(f"status {response.status_code}", asked)


async def _read_on(response: httpx2.Response) -> None:
    """A response that is read to its end leaves the connection usable."""
    read = 0
    async for piece in response.aiter_raw():
        read += len(piece)
        if read > READ_BYTES:
            return
