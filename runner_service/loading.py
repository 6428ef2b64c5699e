"""Which agents a runner serves: scripts, imported objects, a plain assistant on any model."""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import TypeGuard

from runner_service.agents.protocol import Agent, AgentProfile
from runner_service.agents.script_loader import ScriptError
from runner_service.agents.scripted import DEMO_SCRIPT, scripted_agents
from runner_service.config import RunnerSettings
from turngate_serving.exit import StartError

ASSISTANT = "assistant"

_INSTALL = "install it with: pip install 'turngate[pydantic-ai]'"


def load_agents(settings: RunnerSettings) -> dict[str, Agent]:
    """The agents that are to be served, by name. Raises `StartError`."""
    places = [value for value in settings.agent if ":" in value]
    names = [value for value in settings.agent if ":" not in value]
    scripted, builtin = _scripted(settings.script, settings.data_path)
    if (places or settings.model) and not names:
        # Who brings agents of their own serves those; the demo only by its name.
        for name in builtin:
            del scripted[name]
    for name in names:
        if name not in scripted:
            raise StartError(f"no agent {name!r}; there are {', '.join(sorted(scripted))}")
    agents = {name: scripted[name] for name in names} if names else scripted
    for place in places:
        _add(agents, imported_agent(place), place)
    if settings.model:
        _add(agents, plain_assistant(settings.model), f"model {settings.model}")
    return agents


def imported_agent(place: str) -> Agent:
    """The agent at `package.module:attribute`. Raises `StartError`.

    It is an agent of Pydantic AI, or an object that is an `Agent` of ours.
    """
    module_name, _, attribute = place.partition(":")
    if not module_name or not attribute:
        raise StartError(f"agent {place}: write it as package.module:attribute")
    # As `python -m` has it; the command's own folder stands there otherwise.
    if not {"", os.getcwd()} & set(sys.path):
        sys.path.insert(0, os.getcwd())
    with _ToldAt(f"agent {place}"):
        found: object = importlib.import_module(module_name)
    for step in attribute.split("."):
        if not hasattr(found, step):
            raise StartError(f"agent {place}: there is no {step!r} in {module_name}")
        found = getattr(found, step)
    if _is_agent(found):
        return _named(found, attribute)
    if "pydantic_ai" in sys.modules:
        with _ToldAt(f"agent {place}"):
            from pydantic_ai.agent import AbstractAgent

            from runner_service.pydantic_ai import PydanticAgent

            if isinstance(found, AbstractAgent):
                return _named(PydanticAgent(found), attribute)
    raise StartError(
        f"agent {place}: it is a {type(found).__name__}, and neither an agent of Pydantic AI nor an"
        " object that fulfils runner_service.agents.protocol.Agent"
    )


def plain_assistant(model: str) -> Agent:
    """An agent with no instructions and no tools of its own. Raises `StartError`."""
    if ":" not in model:
        raise StartError(f"model {model}: write it as provider:name")
    with _ToldAt(f"model {model}"):
        from pydantic_ai import Agent as PydanticAiAgent

        from runner_service.pydantic_ai import PydanticAgent

        return PydanticAgent(PydanticAiAgent(name=ASSISTANT), model=model)


def _scripted(files: Iterable[str], data_dir: Path) -> tuple[dict[str, Agent], set[str]]:
    """All agents of scripts, and which of them are built in."""
    agents: dict[str, Agent] = {}
    try:
        agents.update(scripted_agents(DEMO_SCRIPT, data_dir))
        builtin = set(agents)
        for file in files:
            found = scripted_agents(Path(file), data_dir)
            for name in found.keys() & agents.keys() - builtin:
                raise StartError(f"{file}: another script has an agent {name!r}, too")
            builtin -= found.keys()
            agents.update(found)
    except ScriptError as error:
        raise StartError(str(error)) from error
    return agents, builtin


def _add(agents: dict[str, Agent], agent: Agent, place: str) -> None:
    name = agent.profile.name
    if name in agents:
        raise StartError(f"{place}: another agent has the name {name!r}, too")
    agents[name] = agent


def _is_agent(found: object) -> TypeGuard[Agent]:
    parts = ("profile", "tools", "next_step", "execute")
    return not isinstance(found, type) and all(hasattr(found, part) for part in parts)


def _named(agent: Agent, attribute: str) -> Agent:
    if not isinstance(agent.profile, AgentProfile):
        raise StartError(f"{attribute}: its profile is no AgentProfile")
    if not agent.profile.name and hasattr(agent, "named"):
        agent.named(attribute.rpartition(".")[2])
    if not agent.profile.name:
        raise StartError(f"{attribute}: its profile has no name")
    return agent


class _ToldAt:
    """Turns whatever the user's own code raises into a `StartError` that names the place."""

    def __init__(self, what: str) -> None:
        self._what = what

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not isinstance(error, Exception) or isinstance(error, StartError):
            return
        text = f"{self._what}: {type(error).__name__}: {error}{_place(error)}"
        if isinstance(error, ModuleNotFoundError) and _is_of_the_extra(error):
            text = f"{text}; {_INSTALL}"
        raise StartError(text) from error


def _is_of_the_extra(error: ModuleNotFoundError) -> bool:
    return (error.name or "").partition(".")[0] in ("pydantic_ai", "openai", "anthropic", "mcp")


def _place(error: Exception) -> str:
    """Where in a file of the user's own it happened."""
    if isinstance(error, SyntaxError):
        return ""  # its text has the place
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not _is_installed(frame.filename)]
    return f" ({own[-1].filename}:{own[-1].lineno})" if own else ""


def _is_installed(file: str) -> bool:
    return file.startswith(("<", _HERE)) or "site-packages" in file


_HERE = str(Path(__file__).parent)
