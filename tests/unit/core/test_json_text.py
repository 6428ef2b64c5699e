"""T2: exact JSON text; scenario 9: hostile and huge values."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.core.json_values import values
from turngate_core.json_text import (
    JsonFault,
    JsonLimits,
    JsonTextError,
    JsonValue,
    check,
    dump,
    parse,
    parse_prefix,
)
from turngate_core.number import Number


def refusal(text: str, limits: JsonLimits | None = None) -> JsonTextError:
    """The error of a text that has to be refused, by `parse` and by `check` alike."""
    with pytest.raises(JsonTextError) as by_parse:
        parse(text, limits or JsonLimits())
    with pytest.raises(JsonTextError) as by_check:
        check(text, limits or JsonLimits())
    first, second = by_parse.value, by_check.value
    assert (first.fault, first.offset) == (second.fault, second.offset)
    return first


@pytest.mark.parametrize(
    "text",
    [
        '{"b":1,"a":2}',  # key order
        "1.0",
        "-0",
        "9007199254740993",
        "9223372036854775807",
        "1e400",
        "1e999999999",
        "0.10000000000000000000000000001",
        "9" * 5000,  # more digits than Python's own conversion takes
        '"é\u2028😀"',
        '{"__proto__":{"x":1}}',
        "{}",
        "null",
        "[]",
        '""',
    ],
)
def test_accepted_text_comes_back_as_it_was(text: str) -> None:
    assert dump(parse(text)) == text
    check(text)


def test_numbers_stay_as_written() -> None:
    assert parse("[1, 1.0, 1e0, -0, 18446744073709551617]") == [
        Number("1"),
        Number("1.0"),
        Number("1e0"),
        Number("-0"),
        Number("18446744073709551617"),
    ]


@given(values)
def test_round_trip(value: JsonValue) -> None:
    """What is written is read back as the same, and is the JSON that others read too."""
    text = dump(value)
    assert parse(text) == value
    json.loads(text)


@given(values)
def test_text_of_others_is_read_alike(value: JsonValue) -> None:
    """Escapes and whitespace as another writer makes them change nothing."""
    text = dump(value)
    spelled = json.dumps(json.loads(text, parse_float=str, parse_int=str), indent=1)
    assert parse(spelled) == parse(json.dumps(json.loads(spelled)))


@pytest.mark.parametrize(
    ("text", "fault", "offset"),
    [
        ("", JsonFault.NOT_JSON, 0),
        ("  ", JsonFault.NOT_JSON, 2),
        ("{", JsonFault.NOT_JSON, 1),
        ("[1,]", JsonFault.NOT_JSON, 3),
        ('{"a":1} x', JsonFault.NOT_JSON, 8),
        ("01", JsonFault.NOT_JSON, 1),
        ("1.", JsonFault.NOT_JSON, 1),
        ("+1", JsonFault.NOT_JSON, 0),
        ("'a'", JsonFault.NOT_JSON, 0),
        ('"a\x00"', JsonFault.NOT_JSON, 2),
        ("\ufeff{}", JsonFault.NOT_JSON, 0),
        ("\u00a01", JsonFault.NOT_JSON, 0),
        ("NaN", JsonFault.NOT_FINITE, 0),
        ('{"NaN": [1, Infinity]}', JsonFault.NOT_FINITE, 12),
        ('["-Infinity", -Infinity]', JsonFault.NOT_FINITE, 14),
        ('{"a":1,"b":{"a":2},"a":3}', JsonFault.DUPLICATE_KEY, 19),
        ('[{"a":1},{"a":1,"\\u0061":2}]', JsonFault.DUPLICATE_KEY, 16),
        ('{"k":["a","a"],"x":"k","k":1}', JsonFault.DUPLICATE_KEY, 23),
        ('"\\ud800"', JsonFault.UNPAIRED_SURROGATE, 1),
        ('["ok \\ud83d\\ude00", "\\ude00"]', JsonFault.UNPAIRED_SURROGATE, 21),
        ('"\\ud83d \\ude00"', JsonFault.UNPAIRED_SURROGATE, 1),
        ('"\\ud83d\\ud83d\\ude00"', JsonFault.UNPAIRED_SURROGATE, 1),
        ('{"\\udfff":1}', JsonFault.UNPAIRED_SURROGATE, 2),
        ('"\ud800"', JsonFault.UNPAIRED_SURROGATE, 1),
    ],
)
def test_refusal_names_reason_and_place(text: str, fault: JsonFault, offset: int) -> None:
    error = refusal(text)
    assert (error.fault, error.offset) == (fault, offset)


def test_place_is_told_in_line_and_column() -> None:
    error = refusal('{\n  "a": 1,\n  "a": 2\n}')
    assert (error.line, error.column) == (3, 3)
    assert str(error) == 'duplicate key "a" at line 3 column 3'


@pytest.mark.parametrize(
    "text", ['"\\ud83d\\ude00"', '"\\\\ud800"', '"\\\\\\\\ud800"', '{"\\ud83d\\ude00":"\\\\udfff"}']
)
def test_pairs_and_escaped_backslashes_are_no_half_surrogates(text: str) -> None:
    check(text)


def test_escaped_nul_is_text() -> None:
    assert parse('"a\\u0000b"') == "a\x00b"


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_nesting_at_the_limit_and_one_beyond(opening: str, closing: str) -> None:
    limits = JsonLimits(max_depth=64)
    check(opening * 64 + "1" + closing * 64, limits)
    error = refusal(opening * 65 + "1" + closing * 65, limits)
    assert (error.fault, error.offset) == (JsonFault.TOO_DEEP, 64 * len(opening))


@pytest.mark.parametrize("text", ["[" * 10_000, "[" * 10_000 + "]" * 10_000, '{"a":' * 10_000])
def test_hostile_depth_is_refused_by_name(text: str) -> None:
    assert refusal(text).fault is JsonFault.TOO_DEEP


def test_many_brackets_side_by_side_or_in_strings_are_not_deep() -> None:
    check("[" + ",".join(["[]"] * 500) + "]")
    check('["' + "[{" * 500 + '\\"[["]')


def test_depth_of_what_follows_a_prefix_is_not_judged() -> None:
    for rest in ("[" * 500, "]" * 10 + "[" * 500):
        assert parse_prefix('{"a":1}' + rest) == ({"a": Number("1")}, 7)


@pytest.mark.parametrize("character", ["a", "é", "😀"])
def test_size_counts_bytes_at_the_limit_and_one_beyond(character: str) -> None:
    width = len(character.encode())
    limits = JsonLimits(max_bytes=2 + 10 * width)
    check('"' + character * 10 + '"', limits)
    assert refusal('"' + character * 10 + '" ', limits).fault is JsonFault.TOO_LARGE


def test_hostile_quotes_take_linear_time() -> None:
    """An unterminated string full of escaped quotes must not be tried from each of them."""
    text = "[" * 65 + '"' + '\\"' * 100_000
    began = time.monotonic()
    refusal(text)
    assert time.monotonic() - began < 2.0


def test_a_depth_that_cannot_be_read_is_no_setting() -> None:
    with pytest.raises(ValueError, match="max_depth"):
        JsonLimits(max_depth=10_000)


@given(st.text(alphabet='[]{}",:\\u0dD8NaInfity1e.- \n', max_size=40))
def test_any_text_is_read_or_refused_by_name(text: str) -> None:
    try:
        value = parse(text)
    except JsonTextError:
        assert 0 <= refusal(text).offset <= len(text)
    else:
        assert parse(dump(value)) == value
