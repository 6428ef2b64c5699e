"""The manual of the scripted agent is true: its examples are read, its tables are complete."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest
from pydantic import BaseModel

from runner_service.agents import script, script_parts
from runner_service.agents.script_loader import parse_script
from runner_service.agents.script_types import ROOTS, ScriptModel

MANUAL = (Path(__file__).parents[3] / "docs" / "scripted-agent.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```yaml\n(.*?)^```$", MANUAL, re.DOTALL | re.MULTILINE)
MODELS = [
    one
    for module in (script, script_parts)
    for one in vars(module).values()
    if isinstance(one, type) and issubclass(one, BaseModel) and one is not ScriptModel
]


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 10


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda text: text.split()[1].rstrip(":"))
def test_an_example_is_a_good_script(example: str) -> None:
    parse_script(example, "example.yaml")


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_every_key_stands_in_the_table(model: type[BaseModel]) -> None:
    table = MANUAL[MANUAL.index("## All keys") :]
    missing = [name for name in model.model_fields if f"`{name}`" not in table]
    assert not missing


def test_every_outcome_reason_and_root_is_explained() -> None:
    words = {*get_args(script.Outcome), *get_args(script_parts.FailureReason)}
    missing = {word for word in words if f"`{word}`" not in MANUAL}
    missing |= {root for root in ROOTS if not re.search(rf"\| .*`{root}\b", MANUAL)}
    assert not missing
