"""Agents of Pydantic AI (docs/agents.md). Needs the extra `pydantic-ai`."""

from runner_service.pydantic_ai.agent import PydanticAgent
from runner_service.pydantic_ai.calls import idempotency_key

__all__ = ["PydanticAgent", "idempotency_key"]
