"""Transcripts as the runner sees them, Turngate's own and foreign ones (T1, X7)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from turngate_core.policy import GrantScope
from turngate_core.synthetic import SyntheticReason


class ResultSource(StrEnum):
    """Who gave a result. `IMPORTED` ones are history: they fulfil nothing (P3)."""

    UNKNOWN = "unknown"
    CLIENT = "client"
    SERVER_TOOL = "server_tool"
    BROKER = "broker"
    IMPORTED = "imported"


@dataclass(frozen=True, slots=True)
class TextPart:
    """Text, and whatever else says nothing about calls."""

    text: str


@dataclass(frozen=True, slots=True)
class CallPart:
    """A tool call. `arguments` is JSON text; empty text means `{}` (T2).

    `agent` and `origin` (of the tool, e.g. its server) count for grants only (A3).
    """

    call_id: str
    tool: str
    arguments: str
    agent: str = ""
    origin: str = ""


@dataclass(frozen=True, slots=True)
class ResultPart:
    """The result of a call. `output` is JSON text; `None` is an absent output, still a result.

    `tool` and `arguments`: what a foreign result says of its call itself (X7).
    """

    call_id: str
    output: str | None
    is_error: bool = False
    synthetic: SyntheticReason | None = None
    source: ResultSource = ResultSource.UNKNOWN
    tool: str | None = None
    arguments: str | None = None


@dataclass(frozen=True, slots=True)
class DecisionPart:
    """A person's decision on the approval of a call; `reason` is for the model (A2).

    `scope`: how far this person lets an approval reach; the stricter wins (A3). Imported ones
    are history: they grant nothing (P3).
    """

    call_id: str
    approved: bool
    scope: GrantScope | None = None
    reason: str = ""
    imported: bool = False
    tool: str | None = None
    arguments: str | None = None


TranscriptPart: TypeAlias = TextPart | CallPart | ResultPart | DecisionPart


@dataclass(frozen=True, slots=True)
class TranscriptMessage:
    """`role` may be any text in a foreign transcript; only exactly `user` begins a turn (T5)."""

    role: str
    parts: tuple[TranscriptPart, ...]


def turn_start_index(messages: tuple[TranscriptMessage, ...]) -> int:
    """Where the current turn starts: the last message with exactly the role `user`, else 0 (T5).

    To be computed on the stored branch, never on what was trimmed for a model.
    """
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].role == "user":
            return index
    return 0
