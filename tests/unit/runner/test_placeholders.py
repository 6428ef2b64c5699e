"""Placeholders of scripts."""

from __future__ import annotations

import pytest

from runner_service.agents.placeholders import (
    PlaceholderError,
    Scope,
    fill_text,
    fill_value,
    has_placeholder,
    paths_in,
)
from turngate_core.json_text import JsonValue, dump, parse

SCOPE: Scope = {
    "results": parse(
        '{"form":{"content":{"city":"Visby","first name":"Ada","big":9007199254740993,'
        '"list":[1,{"x":"y"}],"none":null}}}'
    ),
    "late": lambda: "computed",
}


@pytest.mark.parametrize(
    ("template", "filled"),
    [
        ("to ${results.form.content.city}!", "to Visby!"),
        ('${results.form.content["first name"]}', "Ada"),
        ("${results.form.content.first name}", "Ada"),
        ("${results.form.content.big}", "9007199254740993"),
        ("${results.form.content.list[1].x}", "y"),
        ("${results.form.content.list[-1]}", '{"x":"y"}'),
        ("${results.form.content.list}", '[1,{"x":"y"}]'),
        ("${results.form.content.none}", "null"),
        ("${late}", "computed"),
        ("${results.form.content.nights|two}", "two"),
        ("${results.form.content.nights|}", ""),
        ("${ results.form.content.city | nowhere}", "Visby"),
        ("$${results} costs $5", "${results} costs $5"),
    ],
)
def test_text_is_filled_in(template: str, filled: str) -> None:
    assert fill_text(template, SCOPE) == filled


@pytest.mark.parametrize(
    ("template", "filled"),
    [
        ('"${results.form.content.big}"', "9007199254740993"),
        ('"n: ${results.form.content.big}"', '"n: 9007199254740993"'),
        ('{"${late}":["${results.form.content.list}"]}', '{"computed":[[1,{"x":"y"}]]}'),
        ('[1.0,true,null,"plain"]', '[1.0,true,null,"plain"]'),
    ],
)
def test_values_keep_their_kind_and_their_digits(template: str, filled: str) -> None:
    """T2: a text that is one placeholder becomes the value itself."""
    value: JsonValue = parse(template)
    assert dump(fill_value(value, SCOPE)) == filled


@pytest.mark.parametrize(
    "template", ["${results.nothing}", "${results.form.content.list[7]}", "${nobody}"]
)
def test_nothing_there_is_an_error_that_shows_how_to_give_a_default(template: str) -> None:
    with pytest.raises(PlaceholderError, match=r"a default can follow"):
        fill_text(template, SCOPE)


@pytest.mark.parametrize("template", ["${", "${results.}", "${.a}", "${a[}", "${a b}"])
def test_what_cannot_be_read_is_an_error(template: str) -> None:
    with pytest.raises(PlaceholderError):
        list(paths_in(template))


def test_an_escaped_placeholder_is_none() -> None:
    assert not has_placeholder("costs $5, $${no}")
    assert has_placeholder("${yes}")
