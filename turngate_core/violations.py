"""What is wrong with an answer or with arguments: at most one violation a field (F1, E2)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Violation:
    """`path`: JSON pointer into the checked text, `""` for the whole; `reason`: a stable code."""

    path: str
    reason: str
    message: str


def pointer(*steps: str | int) -> str:
    """A JSON pointer (RFC 6901): `pointer("content", "a/b")` is `/content/a~1b`."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps)
