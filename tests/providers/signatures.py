"""Signatures of thinking blocks: minted by the fake of Anthropic, and checked by it.

A signature is opaque to clients. Here it says which model thought what after which conversation,
sealed with a key that all servers share: it outlives a restart, as the provider's do.
"""

import base64
import binascii
import hashlib
import hmac
import json
from dataclasses import asdict, dataclass

_KEY = b"the key of the fake provider"


@dataclass(frozen=True, slots=True)
class Sealed:
    """What a signature vouches for; texts and conversations as digests."""

    model: str
    thinking: str
    prefix: str


def digest(value: object) -> str:
    """A short digest of plain JSON data."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def sign(sealed: Sealed) -> str:
    """The signature."""
    content = json.dumps(asdict(sealed)).encode()
    return base64.b64encode(_mac(content) + content).decode()


def opened(signature: str) -> Sealed | None:
    """What the signature vouches for; None if it was not minted here."""
    try:
        raw = base64.b64decode(signature, validate=True)
    except binascii.Error:
        return None
    mac, content = raw[:16], raw[16:]
    if not hmac.compare_digest(mac, _mac(content)):
        return None
    return Sealed(**json.loads(content))


def _mac(content: bytes) -> bytes:
    return hmac.new(_KEY, content, hashlib.sha256).digest()[:16]
