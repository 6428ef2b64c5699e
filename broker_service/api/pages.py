"""Pages: sizes and opaque tokens."""

from __future__ import annotations

import base64
import binascii

from turngate_core.errors import Reason, Refusal, invalid_field

DEFAULT_PAGE = 100
PAGE_BYTES = 900 * 1024
"""A page ends before this size, whatever it counts: nothing on the wire exceeds 1 MiB."""


def page_size(given: int, maximum: int) -> int:
    """0 means 100; at most `maximum`."""
    if given < 0:
        raise invalid_field("page_size", "must not be negative")
    return min(given or DEFAULT_PAGE, maximum)


def token(kind: str, *place: int | str) -> str:
    text = "\x1f".join([kind, *map(str, place)])
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def place_of(kind: str, given: str, fields: int) -> list[str] | None:
    """What a token of this list holds; None for the first page. Refuses any other."""
    if not given:
        return None
    try:
        padded = given + "=" * (-len(given) % 4)
        parts = base64.b64decode(padded, altchars=b"-_", validate=True).decode().split("\x1f")
    except (binascii.Error, UnicodeDecodeError, ValueError):
        parts = []
    if len(parts) != fields + 1 or parts[0] != kind:
        raise invalid_token()
    return parts[1:]


def number(text: str) -> int:
    """A number out of a token."""
    if not text.isascii() or not text.isdecimal():
        raise invalid_token()
    return int(text)


def invalid_token() -> Refusal:
    return Refusal(Reason.PAGE_TOKEN_INVALID, "not a page token of this list")
