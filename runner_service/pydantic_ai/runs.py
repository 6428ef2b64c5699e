"""Runs of Pydantic AI's own graph, each for one thing only: a model call, a tool, a list of tools.

The graph does what it does for any user of Pydantic AI (instructions, hooks, settings, validation);
it is stopped where the runner takes over.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Generic, TypeVar

from pydantic_ai import AgentRun, UserPromptNode
from pydantic_ai.agent import AbstractAgent
from pydantic_ai.capabilities import ReinjectSystemPrompt
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, UserPromptPart
from pydantic_ai.models import Model
from pydantic_ai.toolsets import ExternalToolset
from pydantic_ai.toolsets.abstract import ToolsetTool

from runner_service.agents.protocol import Turn
from runner_service.pydantic_ai.thinking import lacks_thinking, without_budget
from runner_service.pydantic_ai.tools import METADATA_KEY, external_tools

_Deps = TypeVar("_Deps")

# A toolset of this id holds what clients of the session can do.
SESSION_TOOLSET_ID = "session"


@dataclass(frozen=True, slots=True)
class Runs(Generic[_Deps]):
    """How runs of one agent are opened. `model`: instead of the agent's own."""

    agent: AbstractAgent[_Deps, object]
    model: Model | None = None

    def open(
        self,
        messages: Sequence[ModelMessage],
        deps: _Deps,
        turn: Turn | None,
        *,
        instructions: str = "",
        idempotency_key: str = "",
    ) -> AbstractAsyncContextManager[AgentRun[_Deps, object]]:
        """A run that goes on where the messages end; with a key it is that of a granted call."""
        toolsets = []
        if turn is not None and (tools := external_tools(turn.tools.values())):
            toolsets.append(ExternalToolset[_Deps](tools, id=SESSION_TOOLSET_ID))
        return self.agent.iter(
            None,
            message_history=messages,
            deps=deps,
            model=self.model,
            instructions=instructions or None,
            model_settings=without_budget if lacks_thinking(messages) else None,
            toolsets=toolsets,
            capabilities=[ReinjectSystemPrompt[_Deps]()],
            conversation_id=turn.session_id if turn is not None else None,
            metadata={METADATA_KEY: _told(turn, idempotency_key)} if turn is not None else None,
            infer_name=False,
        )

    async def own_tools(
        self, messages: Sequence[ModelMessage], deps: _Deps, turn: Turn | None
    ) -> list[ToolsetTool[_Deps]]:
        """The agent's own tools after these messages, as its hooks leave them."""
        # With an answer at the end the graph prepares its tools and then asks no model.
        begun = messages or [ModelRequest(parts=[UserPromptPart("")])]
        async with self.open([*begun, ModelResponse(parts=[])], deps, None) as run:
            if isinstance(node := run.next_node, UserPromptNode):
                await run.next(node)
            return list((run.ctx.deps.tool_manager.tools or {}).values())


def _told(turn: Turn, idempotency_key: str) -> dict[str, str | int]:
    """What tools and hooks find in `ctx.metadata["turngate"]`; the key is there for a tool only."""
    return {
        **({"idempotency_key": idempotency_key} if idempotency_key else {}),
        "session_id": turn.session_id,
        "run_id": turn.run_id,
        "attempt": turn.attempt,
        "tenant_id": turn.tenant_id,
        "principal": turn.principal,
    }
