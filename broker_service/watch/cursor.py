"""Cursors: opaque names of places in one session's log (W2).

28 URL-safe characters, the Base64 of

    version (1 byte) | digest of the session (8) | position (8, big-endian) | digest of these (4)

The digests keep garbled and foreign cursors from being taken for a place; they are no secret and no
proof of anything: what a caller may see is decided before its cursor is looked at.
"""

from __future__ import annotations

import base64
import re
import struct
from functools import lru_cache
from hashlib import blake2b

from broker_service.storage.port import SessionKey
from turngate_core.errors import Reason, Refusal

_VERSION = 1
_BODY = struct.Struct(">B8sQ")
_CHECK_BYTES = 4
_TEXT = re.compile(r"[A-Za-z0-9_-]{28}")  # 21 bytes: no padding, and one text a cursor only


def cursor_at(key: SessionKey, position: int) -> str:
    """The cursor just after the entry at `position`; 0: before the first entry."""
    body = _BODY.pack(_VERSION, _session_digest(key), position)
    return base64.urlsafe_b64encode(body + _check(body)).decode("ascii")


def position_of(key: SessionKey, cursor: str, last_position: int) -> int:
    """The position that a cursor names; the empty text is the start of the log, 0.

    `last_position`: of the session's newest entry. Refuses with CURSOR_INVALID, CURSOR_FOREIGN (of
    another session) and CURSOR_FUTURE (the log is shorter).
    """
    if not cursor:
        return 0
    if not _TEXT.fullmatch(cursor):
        raise _invalid()
    data = base64.urlsafe_b64decode(cursor)
    body, check = data[:-_CHECK_BYTES], data[-_CHECK_BYTES:]
    version, digest, position = _BODY.unpack(body)
    if check != _check(body) or version != _VERSION:
        raise _invalid()
    if digest != _session_digest(key):
        raise Refusal(Reason.CURSOR_FOREIGN, "the cursor is of another session")
    if position > last_position:
        raise Refusal(Reason.CURSOR_FUTURE, "the cursor is ahead of the session's log")
    return int(position)


def _invalid() -> Refusal:
    return Refusal(Reason.CURSOR_INVALID, "this is not a cursor of this service")


def _check(body: bytes) -> bytes:
    return blake2b(body, digest_size=_CHECK_BYTES, person=b"turngate-cursor").digest()


@lru_cache(maxsize=4096)
def _session_digest(key: SessionKey) -> bytes:
    # The length keeps ("a", "bc") and ("ab", "c") apart, whatever characters ids may have.
    named = f"{len(key.tenant_id)}:{key.tenant_id}{key.session_id}"
    return blake2b(named.encode(), digest_size=8, person=b"turngate-cursor").digest()
