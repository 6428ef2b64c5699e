"""Agents of Pydantic AI with effects, for tests of both services: `--agent=served_agents:...`."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from pydantic_ai import Agent, RunContext

from runner_service.agents.effects import count_up
from runner_service.pydantic_ai import idempotency_key

counting = Agent("openai:gpt-5", name="counting")


@counting.tool
def count(ctx: RunContext[object], key: str, dies: str = "never") -> int:
    """Counts up a file of this name, and dies before or behind that if it is told to."""
    if dies == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    number = count_up(Path(key))
    Path(f"{key}.key").write_text(idempotency_key(ctx), encoding="utf-8")
    if dies == "after":
        os.kill(os.getpid(), signal.SIGKILL)
    return number
