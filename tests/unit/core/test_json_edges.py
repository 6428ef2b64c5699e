"""T2: the edges of what is refused, and the words in which it is told."""

from __future__ import annotations

import pytest

from turngate_core.json_text import (
    JsonFault,
    JsonLimits,
    JsonTextError,
    check,
    dump,
    parse,
    parse_prefix,
)


def refused(text: str, limits: JsonLimits | None = None) -> tuple[JsonFault, int, str]:
    with pytest.raises(JsonTextError) as error:
        parse(text, limits or JsonLimits())
    return error.value.fault, error.value.offset, str(error.value)


@pytest.mark.parametrize("half", ["d800", "DBFF", "dc00", "DFFF", "daff", "dd00"])
def test_each_half_alone_is_refused_at_its_place(half: str) -> None:
    assert refused(f'"ok\\u{half}"') == (
        JsonFault.UNPAIRED_SURROGATE,
        3,
        "unpaired surrogate at line 1 column 4",
    )


@pytest.mark.parametrize(
    "pair", ["\\ud800\\udc00", "\\udbff\\udfff", "\\ud800\\udfff", "\\udbff\\udc00"]
)
def test_pairs_at_the_edges_are_characters(pair: str) -> None:
    check(f'"{pair}"')
    check(f'"\\ud7ff{pair}\\ue000\\n"')


@pytest.mark.parametrize(
    ("string", "offset"),
    [
        ("\\ud800\\ud800", 1),
        ("\\ud800\\ue000", 1),
        ("\\ud800\\udbff", 1),
        ("\\ud800x\\udc00", 1),
        ("\\ud800\\n\\udc00", 1),
        ("\\udc00\\ud800", 1),
        ("\\ud800\\udc00\\udc00", 13),
        ("\\ud800\\udc00\\ud800", 13),
        ("\\ud800\\udc00\\n\\udfff", 15),
        ("\\ud7ff\\udfff", 7),
        ("\\udbff\\udfff\\ud800", 13),
    ],
)
def test_the_first_half_that_stands_alone_is_the_place(string: str, offset: int) -> None:
    assert refused(f'"{string}"')[:2] == (JsonFault.UNPAIRED_SURROGATE, offset)


def test_keys_and_texts_are_written_as_they_are() -> None:
    """Not in escapes: what a person reads in a log or an export is the text."""
    assert dump({"é😀": ["ü\n"]}) == '{"é😀":["ü\\n"]}'


def test_a_half_in_a_later_string_or_a_key_is_found() -> None:
    assert refused('["\\ud800\\udc00",{"\\udc00":1}]')[:2] == (JsonFault.UNPAIRED_SURROGATE, 18)


def test_what_follows_a_prefix_may_hold_halves_in_escapes() -> None:
    """X3: only the value is read."""
    value, end = parse_prefix('"a" "\\ud800"')
    assert (value, end) == ("a", 3)


@pytest.mark.parametrize(
    ("text", "fault", "offset", "told"),
    [
        ("[1] 2", "not_json", 4, "text after the end of the value at line 1 column 5"),
        ("[1,", "not_json", 3, "expecting value at line 1 column 4"),
        ('"a', "not_json", 0, "unterminated string starting at line 1 column 1"),
        ("[\nNaN]", "not_finite", 2, "NaN is no JSON at line 2 column 1"),
        ("[1,-Infinity]", "not_finite", 3, "-Infinity is no JSON at line 1 column 4"),
        ('{"a":{"b":1,"b":2}}', "duplicate_key", 12, 'duplicate key "b" at line 1 column 13'),
        ('[{"a":[{"a":1}],"a":2}]', "duplicate_key", 16, 'duplicate key "a" at line 1 column 17'),
        (
            '{"x":["a"],"a":["a"],"a":1}',
            "duplicate_key",
            21,
            'duplicate key "a" at line 1 column 22',
        ),
    ],
)
def test_a_refusal_says_what_and_where(text: str, fault: str, offset: int, told: str) -> None:
    assert refused(text) == (JsonFault(fault), offset, told)


def test_a_long_duplicate_key_is_cut_at_80_characters() -> None:
    key = "k" * 81
    told = refused(f'{{"{key}":1,"{key}":2}}')[2]
    assert told == f'duplicate key "{"k" * 80}" at line 1 column 88'


def test_space_round_a_value_is_nothing_and_other_space_is_no_json() -> None:
    assert parse(" \t\r\n[ ]\n\r\t ") == []
    assert refused("[]\x0b")[:2] == (JsonFault.NOT_JSON, 2)


def test_depth_says_the_limit_and_the_place() -> None:
    assert refused('["[",[[1]]]', JsonLimits(max_depth=2)) == (
        JsonFault.TOO_DEEP,
        6,
        "nested deeper than 2 levels at line 1 column 7",
    )
    check('[[1],[2],{"a":3}]', JsonLimits(max_depth=2))


def test_one_level_is_the_least_and_256_the_greatest_depth() -> None:
    check("[1]", JsonLimits(max_depth=1))
    check("[" * 256 + "]" * 256, JsonLimits(max_depth=256))
    for depth in (0, 257):
        with pytest.raises(ValueError, match="max_depth must lie between 1 and 256"):
            JsonLimits(max_depth=depth)


def test_size_is_told_in_bytes_at_the_place_of_the_limit() -> None:
    assert refused('"éé"', JsonLimits(max_bytes=5)) == (
        JsonFault.TOO_LARGE,
        4,
        "6 bytes, at most 5 are accepted at line 1 column 5",
    )
    assert refused('"\n\na"', JsonLimits(max_bytes=3))[1:] == (
        3,
        "5 bytes, at most 3 are accepted at line 3 column 1",
    )


def test_halves_count_as_three_bytes_until_they_are_refused() -> None:
    assert refused('"\ud800"', JsonLimits(max_bytes=4))[0] is JsonFault.TOO_LARGE
    assert refused('"\ud800"', JsonLimits(max_bytes=5))[0] is JsonFault.UNPAIRED_SURROGATE


def test_a_prefix_has_the_same_limits() -> None:
    with pytest.raises(JsonTextError, match="at most 3"):
        parse_prefix('"aaa"', JsonLimits(max_bytes=3))
    with pytest.raises(JsonTextError, match="deeper than 1"):
        parse_prefix("[[1]] x", JsonLimits(max_depth=1))


def test_a_text_may_begin_with_a_new_line() -> None:
    assert refused("\nx")[2] == "expecting value at line 2 column 1"
