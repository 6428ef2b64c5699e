"""The limits that decisions check before anything is stored (E3). Defaults as published."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """`held_messages`: of a session. `questions_a_turn`, `questions_a_step`: D3.
    `attempts`: hand-overs of a run that may be lost in a row (R6). `unclaimed_after_ms`: D1.
    `compact_after_ms`: W3."""

    held_messages: int = 100
    questions_a_turn: int = 32
    questions_a_step: int = 32
    max_forks_per_call: int = 64
    attempts: int = 5
    compact_after_ms: int = 60_000
    unclaimed_after_ms: int = 600_000
