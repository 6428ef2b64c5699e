"""docs/settings.md has the tables that the code makes; with TURNGATE_WRITE_DOCS it gets them."""

import os
import re
import tomllib

import pytest

from broker_service.config import BrokerSettings
from runner_service.config import RunnerSettings
from tests.docs.pages import ROOT, blocks, page
from turngate_serving.settings import Settings, settings_table

PAGE = ROOT / "docs" / "settings.md"
CLASSES: list[type[Settings]] = [BrokerSettings, RunnerSettings]


@pytest.mark.parametrize("settings", CLASSES)
def test_the_table_is_the_one_of_the_code(settings: type[Settings]) -> None:
    text = page("docs/settings.md")
    around = re.compile(rf"(<!-- table: {settings.section} -->\n)(.*?)(<!-- end -->)", re.S)
    found = around.search(text)
    assert found is not None
    if os.environ.get("TURNGATE_WRITE_DOCS"):
        written = text[: found.start(2)] + settings_table(settings) + text[found.end(2) :]
        PAGE.write_text(written, encoding="utf-8")
        found = around.search(written)
        assert found is not None
    assert found[2] == settings_table(settings)


def test_the_example_has_settings_that_there_are() -> None:
    [example] = blocks(PAGE, "toml")
    tables = tomllib.loads(example.body)
    for settings in CLASSES:
        assert set(tables[settings.section]) <= set(settings.model_fields)
        settings(**tables[settings.section])
