"""Which agents a runner serves, and what a person is told when one cannot be."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from runner_service.config import RunnerSettings
from runner_service.loading import load_agents
from turngate_serving.exit import StartError

OWN_AGENT = """
from runner_service.agents.protocol import AgentProfile

class Own:
    profile = AgentProfile("{name}")
    async def tools(self, turn): return []
    async def next_step(self, turn): yield
    async def execute(self, call): raise LookupError

own = Own()
"""
PYDANTIC = """
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel

unnamed = Agent(TestModel())
named = Agent(TestModel(), name="helper")
number = 1
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current folder, from which modules are imported, and forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if name.startswith("served_"):
            del sys.modules[name]


def names(**settings: object) -> list[str]:
    return sorted(load_agents(RunnerSettings.model_validate(settings)))


def problem(**settings: object) -> str:
    with pytest.raises(StartError) as refused:
        names(**settings)
    return str(refused.value)


def test_agents_of_pydantic_ai_have_their_own_name_or_the_attributes(folder: Path) -> None:
    (folder / "served_a.py").write_text(PYDANTIC, encoding="utf-8")
    assert names(agent=("served_a:unnamed", "served_a:named")) == ["helper", "unnamed"]


def test_own_agents_are_served_as_they_are(folder: Path) -> None:
    package = folder / "served_package"
    package.mkdir()
    (package / "own.py").write_text(OWN_AGENT.format(name="mine"), encoding="utf-8")
    assert names(agent=("served_package.own:own",)) == ["mine"]


def test_a_named_demo_stands_beside_imported_agents(folder: Path) -> None:
    (folder / "served_b.py").write_text(PYDANTIC, encoding="utf-8")
    assert names(agent=("served_b:named", "demo")) == ["demo", "helper"]


def test_scripts_stay_without_being_named(folder: Path) -> None:
    (folder / "served_c.py").write_text(PYDANTIC, encoding="utf-8")
    (folder / "trip.yaml").write_text("agents: {trip: {}}\n", encoding="utf-8")
    assert names(agent=("served_c:named",), script=("trip.yaml",)) == ["helper", "trip"]


def test_a_clash_names_the_place(folder: Path) -> None:
    (folder / "served_d.py").write_text(OWN_AGENT.format(name="demo"), encoding="utf-8")
    assert problem(agent=("served_d:own", "demo")) == (
        "served_d:own: another agent has the name 'demo', too"
    )


@pytest.mark.parametrize(
    ("source", "place", "told"),
    [
        ("", "served_e:", "agent served_e:: write it as package.module:attribute"),
        ("", "served_e:nobody", "agent served_e:nobody: there is no 'nobody' in served_e"),
        (PYDANTIC, "served_e:number", "agent served_e:number: it is a int, and neither"),
        ("import nowhere_at_all", "served_e:a", "No module named 'nowhere_at_all'"),
        ("1 / 0", "served_e:a", "ZeroDivisionError: division by zero"),
        ("def f(:", "served_e:a", "SyntaxError"),
    ],
)
def test_what_cannot_be_imported_is_told_with_its_place(
    folder: Path, source: str, place: str, told: str
) -> None:
    (folder / "served_e.py").write_text(source, encoding="utf-8")
    text = problem(agent=(place,))
    assert told in text
    if "Error" in told or "No module" in told:
        assert "served_e.py" in text


def test_a_module_that_is_not_there(folder: Path) -> None:
    assert "No module named 'served_nothing'" in problem(agent=("served_nothing:a",))


def test_without_the_extra_a_person_is_told_what_to_install(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pydantic_ai", None)
    (folder / "served_f.py").write_text("from pydantic_ai import Agent", encoding="utf-8")
    for settings in ({"agent": ("served_f:a",)}, {"model": "openai:gpt-5"}):
        assert problem(**settings).endswith("pip install 'turngate[pydantic-ai]'")


def test_a_model_without_a_key_is_refused_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert "OPENAI_API_KEY" in problem(model="openai:gpt-5")


def test_a_model_with_a_key_is_a_plain_assistant(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    assert names(model="openai:gpt-5") == ["assistant"]


def test_a_model_needs_a_provider() -> None:
    assert problem(model="gpt-5") == "model gpt-5: write it as provider:name"
