"""Who calls: tenant, principal, client and trace of a call, from its metadata (P2)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from turngate_core.errors import Refusal, invalid_field

TENANT = "default"
PRINCIPAL = "local"

USER_KEY = "turngate-user"
CLIENT_KEY = "turngate-client"
_TRACEPARENT_KEY = "traceparent"
_TRACESTATE_KEY = "tracestate"
_KEYS = frozenset((USER_KEY, CLIENT_KEY, _TRACEPARENT_KEY, _TRACESTATE_KEY))

_NAME = re.compile(r"[\x20-\x7e]{1,128}")
# W3C Trace Context, level 1: version 00, ids not all zero.
_TRACEPARENT = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
_MAX_TRACESTATE = 512


@dataclass(frozen=True, slots=True)
class Trace:
    """W3C trace context; both are empty where the call has none."""

    traceparent: str = ""
    tracestate: str = ""


NO_TRACE = Trace()


@dataclass(frozen=True, slots=True)
class Caller:
    """`client` is the client's own name, such as a device; empty if it gave none."""

    tenant_id: str
    principal: str
    client: str
    trace: Trace


class WithMetadata(Protocol):
    """The part of a `ServicerContext` that tells who calls."""

    def invocation_metadata(self) -> Iterable[tuple[str, str | bytes]] | None: ...


def caller_of(context: WithMetadata) -> Caller:
    """The caller of a call where no authentication is configured (P2).

    Raises `Refusal` (`INVALID_FIELD`) for a `turngate-user` or `turngate-client` that is given
    twice or is not 1 to 128 printable ASCII characters. A trace context that is not valid is
    dropped, as W3C asks: it never fails a request.
    """
    found: dict[str, str | bytes] = {}
    for key, value in context.invocation_metadata() or ():
        if key in _KEYS:
            if key in found and key in (USER_KEY, CLIENT_KEY):
                raise invalid_field(key, "given more than once in the call's metadata")
            found[key] = value
    if not found:
        return _ANONYMOUS
    return Caller(
        TENANT,
        _name(USER_KEY, found.get(USER_KEY), PRINCIPAL),
        _name(CLIENT_KEY, found.get(CLIENT_KEY), ""),
        _trace(found.get(_TRACEPARENT_KEY), found.get(_TRACESTATE_KEY)),
    )


_ANONYMOUS = Caller(TENANT, PRINCIPAL, "", NO_TRACE)


def _name(key: str, value: str | bytes | None, default: str) -> str:
    if value is None:
        return default
    if isinstance(value, str) and _NAME.fullmatch(value):
        return value
    raise _not_a_name(key)


def _not_a_name(key: str) -> Refusal:
    return invalid_field(key, "has to be 1 to 128 printable ASCII characters")


def _trace(parent: str | bytes | None, state: str | bytes | None) -> Trace:
    if not (isinstance(parent, str) and _TRACEPARENT.fullmatch(parent)):
        return NO_TRACE
    if not (isinstance(state, str) and len(state) <= _MAX_TRACESTATE and state.isascii()):
        state = ""
    return Trace(parent, state)
