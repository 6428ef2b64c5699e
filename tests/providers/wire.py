"""What the server needs to know of a wire, and what the wires have in common."""

import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from tests.providers.refusal import Refused
from tests.providers.script import Answer, BrokenOff, Failure, Request, Silence, Wire
from turngate_core.json_text import JsonValue

# What goes out in a stream: a frame, or a moment in which none does.
Frame: TypeAlias = "str | Silence | BrokenOff"


class Admitted(Protocol):
    """A request that the provider would answer."""

    @property
    def request(self) -> Request: ...

    def whole(self, answer: Answer) -> str:
        """The answer as one JSON text."""
        ...

    def frames(self, answer: Answer) -> Iterator[Frame]:
        """The answer as server-sent events."""
        ...


class Endpoint(Protocol):
    """One wire of a server. It remembers what it minted."""

    @property
    def wire(self) -> Wire: ...

    @property
    def path(self) -> str: ...

    def admit(self, headers: Mapping[str, str], body: dict[str, Any], exact: JsonValue) -> Admitted:
        """Checks all that the provider checks; raises `Refused`.

        `exact` is the body with numbers as written; header names are lower case.
        """
        ...

    def failure(self, failure: Failure) -> Refused:
        """The wire's status and error object for a failure of the script."""
        ...

    def error(self, refused: Refused) -> dict[str, object]:
        """The body of an error answer."""
        ...


def mint(prefix: str, digits: int = 24) -> str:
    """A new id, as long as the provider's."""
    return prefix + secrets.token_hex(digits)[:digits]


def chunks(text: str, size: int) -> Sequence[str]:
    """The text in pieces of `size` characters; nothing for no text."""
    return [text[start : start + size] for start in range(0, len(text), size)]


def event(data: dict[str, object], name: str | None = None) -> str:
    """A server-sent event."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(data)}\n\n"
