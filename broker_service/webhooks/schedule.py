"""When a webhook that did not arrive is sent again."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

PAUSES_S = (5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400)
"""The schedule that the Standard Webhooks specification recommends; 75 hours in all."""

JITTER = 0.2
"""By so much of itself a pause may be longer: what failed together does not come back together."""

LONGEST_RETRY_AFTER_S = 86_400.0
"""What a receiver may ask for at most: as long as the longest pause."""


def pause_s(failures: int, first_s: float, chance: float) -> float | None:
    """The pause after so many failures (at least one); None: it is given up.

    `first_s`: the first pause; the others keep their ratio to it. `chance`: from 0 to 1.
    """
    if failures > len(PAUSES_S):
        return None
    return PAUSES_S[failures - 1] / PAUSES_S[0] * first_s * (1 + JITTER * chance)


def retry_after_s(header: str | None, now: datetime) -> float:
    """What `Retry-After` asks for, in seconds or as a date; 0 for what is neither, or past."""
    text = (header or "").strip()
    if re.fullmatch(r"\d{1,9}", text, re.ASCII):
        return min(float(text), LONGEST_RETRY_AFTER_S)
    try:
        at = parsedate_to_datetime(text)
    except ValueError:
        return 0.0
    if at.tzinfo is None:  # "-0000", as old servers write it
        at = at.replace(tzinfo=UTC)
    return min(max((at - now).total_seconds(), 0.0), LONGEST_RETRY_AFTER_S)
