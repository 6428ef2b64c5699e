"""X3, A3: how far canonical arguments go, at the bounds."""

from __future__ import annotations

import pytest

from turngate_core.canonical_arguments import (
    MAX_CANONICAL_DEPTH,
    MAX_UNWRAPPINGS,
    canonical_key,
    canonical_key_of_text,
)
from turngate_core.json_text import DEFAULT_MAX_BYTES, JsonValue, dump
from turngate_core.number import Number


def nested(depth: int) -> JsonValue:
    value: JsonValue = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("unwrap", [True, False])
def test_nesting_at_the_bound_and_one_beyond(unwrap: bool) -> None:
    key = canonical_key(nested(MAX_CANONICAL_DEPTH), unwrap_strings=unwrap)
    assert key == "[" * (MAX_CANONICAL_DEPTH + 1) + "]" * (MAX_CANONICAL_DEPTH + 1)
    assert canonical_key(nested(MAX_CANONICAL_DEPTH + 1), unwrap_strings=unwrap) is None
    objects: JsonValue = {}
    for _ in range(MAX_CANONICAL_DEPTH):
        objects = {"a": objects}
    assert canonical_key(objects, unwrap_strings=unwrap) is not None
    assert canonical_key({"a": objects}, unwrap_strings=unwrap) is None


def wrapped(times: int) -> JsonValue:
    """A value in so many strings within strings, each within an array."""
    value: JsonValue = []
    for _ in range(times):
        value = [dump(value)]
    return value


def test_unwrapping_at_the_bound_and_one_beyond() -> None:
    key = canonical_key(wrapped(MAX_UNWRAPPINGS), unwrap_strings=True)
    assert key == "[" * (MAX_UNWRAPPINGS + 1) + "]" * (MAX_UNWRAPPINGS + 1)
    assert canonical_key(wrapped(MAX_UNWRAPPINGS + 1), unwrap_strings=True) is None


def test_the_root_may_be_a_string_that_spells_a_value() -> None:
    """It counts as one unwrapping less: there is nothing round it."""
    root = dump(wrapped(MAX_UNWRAPPINGS))
    assert canonical_key(root, unwrap_strings=True) is not None
    assert canonical_key(dump([Number("1.0")]), unwrap_strings=True) == "[1]"


def test_siblings_are_each_unwrapped_as_often() -> None:
    """What one of them used up is not taken from the next."""
    value: JsonValue = [wrapped(MAX_UNWRAPPINGS), wrapped(MAX_UNWRAPPINGS)]
    assert canonical_key(value, unwrap_strings=True) is not None


def test_long_texts_have_keys() -> None:
    """Sizes are judged where a text comes in (T2), not here."""
    long = "x" * DEFAULT_MAX_BYTES
    text = dump([long])
    assert canonical_key_of_text(text, unwrap_strings=False) == text
    spelled = dump({"a": text})
    assert canonical_key_of_text(spelled, unwrap_strings=True) == f'{{"a":{text}}}'


def test_texts_and_keys_are_told_as_they_are() -> None:
    assert canonical_key({"é": "ü"}, unwrap_strings=False) == '{"é":"ü"}'
    assert canonical_key([True, False, None], unwrap_strings=False) == "[true,false,null]"
    assert canonical_key({"b": "0", "a": "1"}, unwrap_strings=True) == '{"a":"1","b":"0"}'


@pytest.mark.parametrize("closers", ["", "}", "}]", "] } ]", "\n]\t}\r] "])
def test_up_to_three_stray_closers_are_passed_over(closers: str) -> None:
    assert canonical_key([f"[1]{closers}"], unwrap_strings=True) == "[[1]]"


@pytest.mark.parametrize("rest", ["]]]]", "x", "[", ",", "]x"])
def test_anything_else_behind_a_value_makes_it_a_text(rest: str) -> None:
    assert canonical_key([f"[1]{rest}"], unwrap_strings=True) == dump([f"[1]{rest}"])
