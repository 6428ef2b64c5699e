"""An error as docs/errors.md shows it: what was called, and what came."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable
from dataclasses import dataclass

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message as Proto
from grpc import aio

from turngate_client import TurngateError
from turngate_client.errors import error_from_rpc

# What differs from run to run. Ids and cursors are numbered in the order in which they stand there.
_MINTED = re.compile(r"\b([a-z]+)_(?:[0-9A-Z]{16}|[0-9a-f]{20})\b")
_CURSOR = re.compile(r"(?<![\w-])(?=[\w-]*[A-Z])[\w-]{28}(?![\w-])")
_ERROR_ID = re.compile(r"\b[0-9a-f]{16}\b")
_TIME = re.compile(r"\b20\d\d-\d\d-\d\dT[\d:.]+Z")


@dataclass(frozen=True)
class Refused:
    """A call and its error. `request`: as JSON, or in words where it is no message."""

    method: str
    request: str
    error: TurngateError

    def block(self) -> str:
        """The call; code, reason and message; then metadata, violations and the time to wait."""
        error = self.error
        lines = [
            f"{self.method} {self.request}",
            f"{error.code.name} {error.reason}: {error.message}",
            *(f"  {key}: {value}" for key, value in sorted(error.metadata.items())),
            *(f"  violation: {one.field}: {one.description}" for one in error.violations),
        ]
        if error.retry_after is not None:
            lines.append(f"  retry after: {error.retry_after:g} s")
        return stable("\n".join(lines))


async def refused(method: str, request: Proto | str, call: Awaitable[object]) -> Refused:
    """The error with which a call ends; fails if it has none."""
    try:
        answer = await call
    except aio.AioRpcError as error:
        said = request if isinstance(request, str) else as_json(request)
        return Refused(method, said, error_from_rpc(error))
    raise AssertionError(f"{method} was answered: {answer}")


def as_json(request: Proto) -> str:
    """A request on one line, with the names of the contract."""
    fields = MessageToDict(request, preserving_proto_field_name=True)
    return json.dumps(fields, ensure_ascii=False)


def stable(text: str) -> str:
    """The text with placeholders for all that differs from run to run."""
    names: dict[str, str] = {}
    counts: dict[str, int] = {}

    def number(kind: str, found: str) -> str:
        if found not in names:
            counts[kind] = counts.get(kind, 0) + 1
            names[found] = f"{kind}{counts[kind]}"
        return names[found]

    text = _MINTED.sub(lambda match: number(f"{match[1]}_", match[0]), text)
    text = _CURSOR.sub(lambda match: number("cursor-", match[0]), text)
    text = _ERROR_ID.sub("0123456789abcdef", text)
    return _TIME.sub("2026-03-01T12:00:00Z", text)
