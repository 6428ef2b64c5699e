"""X3: canonical arguments; A3: grants look at them without unwrapping strings."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.core.json_values import values
from turngate_core.canonical_arguments import canonical_key, canonical_key_of_text
from turngate_core.json_text import JsonValue, dump
from turngate_core.number import Number


def keys(*texts: str | None, unwrap: bool = True) -> set[str | None]:
    return {canonical_key_of_text(text, unwrap_strings=unwrap) for text in texts}


def _reversed(value: JsonValue) -> JsonValue:
    """The same value with the keys of all objects in reverse order."""
    if isinstance(value, dict):
        return {key: _reversed(value[key]) for key in reversed(value)}
    if isinstance(value, list):
        return [_reversed(item) for item in value]
    return value


@given(values, st.booleans())
def test_key_order_counts_at_no_depth(value: JsonValue, unwrap: bool) -> None:
    key = canonical_key(value, unwrap_strings=unwrap)
    assert key is not None
    assert canonical_key(_reversed(value), unwrap_strings=unwrap) == key


@given(values)
def test_a_key_is_its_own_canonical_text(value: JsonValue) -> None:
    """The key is JSON of an equal value: two values have one key only if they are equal."""
    key = canonical_key(value, unwrap_strings=False)
    assert canonical_key_of_text(key, unwrap_strings=False) == key


@given(values)
def test_a_value_equals_the_string_that_spells_it(value: JsonValue) -> None:
    if not isinstance(value, dict | list):
        value = [value]
    spelled: JsonValue = {"a": dump(value)}
    plain: JsonValue = {"a": value}
    assert canonical_key(spelled, unwrap_strings=True) == canonical_key(plain, unwrap_strings=True)
    assert canonical_key(spelled, unwrap_strings=False) != canonical_key(
        plain, unwrap_strings=False
    )


@pytest.mark.parametrize("unwrap", [True, False])
def test_absent_null_and_empty_are_one_at_the_root_only(unwrap: bool) -> None:
    assert keys(None, "", "null", "{}", " { } ", unwrap=unwrap) == {"{}"}
    assert len(keys('{"a":null}', '{"a":{}}', "{}", "[]", '""', unwrap=unwrap)) == 5


def test_null_properties_count() -> None:
    assert len(keys('{"a":1}', '{"a":1,"b":null}')) == 2


def test_array_order_counts() -> None:
    assert len(keys("[1,2]", "[2,1]")) == 2


def test_numbers_count_by_value() -> None:
    assert len(keys('{"n":1}', '{"n":1.0}', '{"n":1e0}', '{"n":10e-1}')) == 1
    assert len(keys('{"n":9007199254740993}', '{"n":9007199254740992}')) == 2
    assert len(keys('{"n":1e999999999}', '{"n":10e999999998}')) == 1
    assert len(keys('{"n":5}', '{"n":"5"}')) == 2


@pytest.mark.parametrize("scalar", ["true", "5", "null", '"x"', "1e5"])
def test_strings_that_spell_scalars_stay_strings(scalar: str) -> None:
    spelled = json.dumps({"v": scalar})
    assert len(keys(spelled, f'{{"v":{scalar}}}')) == 2


@pytest.mark.parametrize(
    ("string", "is_the_value"),
    [
        ('{"z":1}', True),
        (' \n{"z" : 1}\t', True),
        ('{"z":1.0}', True),
        ('{"z":1}}', True),
        ('{"z":1}} ] }', True),
        ('{"z":1}}}}}', False),
        ('{"z":1})', False),
        ('{"z":1}x', False),
        ('{"z":1}{', False),
        ('x{"z":1}', False),
        ('{"z":1', False),
        ('{"z":1,"z":1}', False),
        ("{z:1}", False),
        ('\u00a0{"z":1}', False),
    ],
)
def test_what_a_string_may_spell(string: str, is_the_value: bool) -> None:
    spelled: JsonValue = {"o": string}
    value: JsonValue = {"o": {"z": Number("1")}}
    one_call = canonical_key(spelled, unwrap_strings=True) == canonical_key(
        value, unwrap_strings=True
    )
    assert one_call is is_the_value


def test_unwrapping_goes_on_inside_and_at_the_root() -> None:
    inside = dump({"a": [dump({"b": dump([Number("1")])})]})
    assert keys(dump(inside), inside, '{"a":[{"b":[1]}]}') == {'{"a":[{"b":[1]}]}'}
    assert keys('"{}"') == {"{}"}
    assert keys('"{}"', "{}", unwrap=False) == {'"{}"', "{}"}


@pytest.mark.parametrize(
    "value",
    [
        {"a": "\ud800"},
        {"\udfff": 1},
        {"a": Number("NaN")},
        [Number("1e" + "9" * 2000)],
    ],
)
@pytest.mark.parametrize("unwrap", [True, False])
def test_what_cannot_be_canonical_has_no_key(value: JsonValue, unwrap: bool) -> None:
    assert canonical_key(value, unwrap_strings=unwrap) is None


@pytest.mark.parametrize("text", ["{", "[" * 10_000, '{"a":1,"a":1}', '"\\ud800"', "NaN", "x"])
def test_text_that_is_refused_has_no_key(text: str) -> None:
    assert keys(text) == {None}


def test_endless_wrapping_has_no_key() -> None:
    """Strings within strings cost their nesting; far beyond what a model writes there is no key."""
    text = "[]"
    for _ in range(60):
        text = '["' + text.replace("\\", "\\u005c").replace('"', "\\u0022") + '"]'
    assert keys(text) == {None}
