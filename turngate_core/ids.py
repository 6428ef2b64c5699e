"""Ids of messages: what a client may choose, and how the copies of a fork are named (T3).

The copy that run `r-2` has of message `m-1` is `m-1@r-2`. A copy of a copy keeps the original's
id: run `r-3`, a fork of `r-2`, has `m-1@r-3`. A client can so compute each id and go back from
it. `@` stands in no id that a client or a service mints.
"""

from __future__ import annotations

import re

_MESSAGE_ID = re.compile(r"[A-Za-z0-9_.:-]{1,128}")


def is_message_id(text: str) -> bool:
    """True for an id that a client may give to a message: 1 to 128 of `A-Z a-z 0-9 _ . : -`."""
    return _MESSAGE_ID.fullmatch(text) is not None


def copy_message_id(message_id: str, run_id: str) -> str:
    """The id of the copy that the run has of a message, or of any copy of that message."""
    base, _ = split_message_id(message_id)
    return f"{base}@{run_id}"


def split_message_id(message_id: str) -> tuple[str, str | None]:
    """The original's id, and the run whose copy this is; `None` for an original."""
    base, at, run_id = message_id.partition("@")
    return (base, run_id) if at else (base, None)
