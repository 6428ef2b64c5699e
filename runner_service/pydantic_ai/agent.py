"""An agent of Pydantic AI as one that a runner serves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Generic, TypeVar, cast

import structlog
from pydantic_ai.agent import AbstractAgent
from pydantic_ai.exceptions import AgentRunError
from pydantic_ai.models import Model, infer_model

from runner_service.agents.protocol import (
    DEFAULT_HISTORY_WINDOW,
    AgentFailure,
    AgentProfile,
    AgentTool,
    GrantedCall,
    StepPiece,
    ToolOutcome,
    Turn,
)
from runner_service.pydantic_ai.calls import run_call
from runner_service.pydantic_ai.failures import failure_of
from runner_service.pydantic_ai.history import history_of
from runner_service.pydantic_ai.provider_state import ModelId, id_of
from runner_service.pydantic_ai.runs import Runs
from runner_service.pydantic_ai.sessions import Sessions
from runner_service.pydantic_ai.steps import step
from runner_service.pydantic_ai.tools import agent_tools
from turngate.v1 import run_pb2

log = structlog.stdlib.get_logger(__name__)

_Deps = TypeVar("_Deps")


class PydanticAgent(Generic[_Deps]):
    """Serves an agent of Pydantic AI as it is, with what its runs need.

    An agent without dependencies needs none of this: `turngate runner --agent module:agent` wraps
    it by itself.
    """

    def __init__(
        self,
        agent: AbstractAgent[_Deps, object],
        *,
        deps: _Deps | None = None,
        make_deps: Callable[[Turn], _Deps | Awaitable[_Deps]] | None = None,
        name: str = "",
        model: Model | str | None = None,
        history_window: int = DEFAULT_HISTORY_WINDOW,
    ) -> None:
        """`deps`: the dependencies of every run. `make_deps`: makes them for a turn instead, sync
        or async; it is asked before each model call and each tool. `name`: under which it is
        served, by default its own. `model`: instead of its own. `history_window`: how many messages
        it wants beside the whole turn (X6).

        Raises `UserError` of Pydantic AI for a model that cannot be used.
        """
        own = agent.model if model is None else model
        known = infer_model(own) if isinstance(own, str) else own
        self._agent = agent
        self._deps = deps
        self._make_deps = make_deps
        self._model = id_of(known) if isinstance(known, Model) else ModelId("", "")
        self._runs = Runs(agent, known if isinstance(known, Model) else None)
        self._sessions = Sessions(agent)
        kinds = agent.output_type
        self._is_text_final = kinds is str or (isinstance(kinds, (list, tuple)) and str in kinds)
        self._profile = AgentProfile(
            name=name or agent.name or "",
            description=agent.description or "",
            history_window=history_window,
        )

    @property
    def profile(self) -> AgentProfile:
        """What it is."""
        return self._profile

    def named(self, name: str) -> None:
        """Give it a name if it has none."""
        if not self._profile.name:
            self._profile = AgentProfile(
                name=name,
                description=self._profile.description,
                history_window=self._profile.history_window,
            )

    async def tools(self, turn: Turn | None) -> Sequence[AgentTool]:
        """Those of the agent and its toolsets, as its hooks leave them for this turn."""
        error: BaseException | None = None
        for _ in range(2):
            [listed] = await asyncio.gather(self._listed(turn), return_exceptions=True)
            if not isinstance(listed, BaseException):
                return listed
            if isinstance(listed, AgentFailure):
                raise listed
            # A tool server that went away may be back by now.
            self._sessions.renew()
            error = listed
        log.error("tools cannot be listed", agent=self._profile.name, exc_info=error)
        raise AgentFailure(
            run_pb2.RUN_FAILURE_REASON_AGENT_ERROR,
            f"the tools of {self._profile.name!r} cannot be listed",
        ) from error

    async def next_step(self, turn: Turn) -> AsyncGenerator[StepPiece, None]:
        """One answer of the model, as the agent's instructions, hooks and settings make it."""
        history = history_of(turn, self._model)
        deps = await self._deps_of(turn)
        await self._sessions.open()
        try:
            async with (
                self._runs.open(
                    history.messages, deps, turn, instructions=history.instructions
                ) as run,
                aclosing(step(run, self._model, is_text_final=self._is_text_final)) as pieces,
            ):
                async for piece in pieces:
                    yield piece
        except (AgentRunError, ExceptionGroup) as error:
            failure = failure_of(error)
            if failure is None:
                raise
            # Without the provider's own text, which may repeat what people said.
            kind = type(error).__name__
            log.warning("a model call failed", agent=self._profile.name, error=kind)
            raise failure from error

    async def execute(self, call: GrantedCall) -> ToolOutcome:
        """Run a tool of the agent's or of one of its toolsets."""
        deps = await self._deps_of(call.turn)
        await self._sessions.open()
        messages = history_of(call.turn, self._model).messages
        return await run_call(self._runs, call, messages, deps)

    async def close(self) -> None:
        """Close sessions with tool servers."""
        await self._sessions.close()

    async def _listed(self, turn: Turn | None) -> list[AgentTool]:
        messages = [] if turn is None else history_of(turn, self._model).messages
        deps = await self._deps_of(turn)
        await self._sessions.open()
        tools = await self._runs.own_tools(messages, deps, turn)
        return agent_tools(tools, self._profile.name)

    async def _deps_of(self, turn: Turn | None) -> _Deps:
        if turn is None or self._make_deps is None:
            # An agent without dependencies has the type `None` for them.
            return cast(_Deps, self._deps)
        made = self._make_deps(turn)
        return await made if isinstance(made, Awaitable) else made
