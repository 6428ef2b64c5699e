"""The agents of docs/agents.md are those that tests run, and every example is an agent."""

import sys
from pathlib import Path

import pytest

from runner_service.loading import imported_agent
from tests.docs.pages import ROOT, Block, blocks

PAGE = ROOT / "docs" / "agents.md"


def test_the_ten_lines_are_the_example_that_is_run() -> None:
    """`tests/e2e/test_pydantic_agents.py` runs it through both services."""
    [shown] = [block for block in blocks(PAGE) if block.info == "python example"]
    source = (ROOT / "examples" / "travel_agent.py").read_text(encoding="utf-8")
    assert source.partition("\n\n")[2] == shown.body


EXAMPLES = [pytest.param(block, id=block.place) for block in blocks(PAGE, "python")]


@pytest.mark.parametrize("block", EXAMPLES)
def test_every_example_is_an_agent_that_can_be_served(
    block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "served_example", raising=False)
    (tmp_path / "served_example.py").write_text(block.body, encoding="utf-8")
    attributes = ("served", "agent", "echo")
    attribute = next(name for name in attributes if f"\n{name} = " in block.body)
    assert imported_agent(f"served_example:{attribute}").profile.name
    del sys.modules["served_example"]
