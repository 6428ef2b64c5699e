"""PostgreSQL's own errors in the words of the port."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

from broker_service.storage.port import StoreUnavailable
from broker_service.storage.postgres_driver import DRIVER_ERRORS, sqlstate

_REASONS = {
    "08": "the connection to the database was lost",
    "25006": "the database is read-only",
    "28": "the database refuses the credentials",
    "3D000": "the database does not exist",
    "42501": "access is not permitted",
    "53100": "the disk is full",
    "53200": "there is not enough memory",
    "53300": "the database has too many connections",
    "57P": "the database is stopping or starting",
    "42P01": "a table is missing",
}


class LostRace(Exception):
    """Another replica came in between: nothing is stored, the same may succeed now."""


FAILURES: tuple[type[Exception], ...] = (*DRIVER_ERRORS, LostRace)
"""What a transaction fails with; the refusal of one write is none of these."""

OPENING_ERRORS: tuple[type[Exception], ...] = (*DRIVER_ERRORS, StoreUnavailable, ValueError)
"""What making a connection fails with; ValueError: the address has a port that is no number."""


def store_error(error: BaseException) -> StoreUnavailable:
    """The port's error for a failure; its text names no address and no statement (E2)."""
    code = sqlstate(error)
    for prefix, reason in _REASONS.items():
        if code.startswith(prefix):
            return StoreUnavailable(f"the store is unavailable: {reason}")
    if code:
        return StoreUnavailable(f"the store is unavailable: PostgreSQL error {code}")
    if isinstance(error, LostRace):
        return StoreUnavailable("the store is unavailable: other brokers come in between each time")
    if isinstance(error, TimeoutError):
        return StoreUnavailable("the store is unavailable: the database does not answer in time")
    return StoreUnavailable("the store is unavailable: the database cannot be reached")


def is_race(error: BaseException) -> bool:
    """Whether another replica came in between, so that the same may succeed now: a deadlock, or a
    row that both of them made."""
    return isinstance(error, LostRace) or sqlstate(error) in ("40001", "40P01", "23505")


def concerns_values(error: BaseException) -> bool:
    """Whether the values of one statement are to blame, and not the store."""
    return isinstance(error, ValueError) or sqlstate(error)[:2] in ("22", "23", "54")


def place(url: str) -> str:
    """Where `url` leads, without what may be secret in it: host, port and database."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or next(iter(parse_qs(parts.query).get("host", [])), "localhost")
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "postgresql:"
    return f"postgresql://{host}{port}{parts.path}"
