"""Numbers by value, never expanded (T2, X3)."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given

from tests.unit.core.json_values import literals
from turngate_core.number import (
    Number,
    compare_numbers,
    double_literal,
    is_integral,
    number_is_exact_in_double,
    number_key,
)


def exact(literal: str) -> Fraction:
    """The value by Python's own exact arithmetic (small exponents only)."""
    return Fraction(literal)


@given(literals, literals)
def test_comparison_agrees_with_exact_arithmetic(left: str, right: str) -> None:
    a, b = exact(left), exact(right)
    assert compare_numbers(Number(left), Number(right)) == (a > b) - (a < b)
    assert (number_key(Number(left)) == number_key(Number(right))) == (a == b)


@given(literals)
def test_integral_agrees_with_exact_arithmetic(literal: str) -> None:
    assert is_integral(Number(literal)) == (exact(literal).denominator == 1)


@given(literals)
def test_key_is_a_number_of_the_same_value(literal: str) -> None:
    key = number_key(Number(literal))
    assert key is not None
    assert exact(key) == exact(literal)


@pytest.mark.parametrize(
    ("spellings", "key"),
    [
        (["1", "1.0", "1e0", "10e-1", "0.1E+1"], "1"),
        (["0", "-0", "0.000", "-0e999999999999999999999"], "0"),
        (["1e999999999", "10e999999998", "0.1e1000000000"], "1e999999999"),
        (["-1.50", "-15e-1"], "-15e-1"),
    ],
)
def test_spellings_of_one_value_have_one_key(spellings: list[str], key: str) -> None:
    assert {number_key(Number(spelling)) for spelling in spellings} == {key}


@pytest.mark.parametrize(
    "literal", ["NaN", "", "01", "1.", ".5", "+1", "0x1", "1e", "1_0", "\u0661"]
)
def test_what_is_no_json_number_has_no_key(literal: str) -> None:
    assert number_key(Number(literal)) is None


def test_an_absurd_exponent_has_no_key() -> None:
    assert number_key(Number("1e" + "9" * 1000)) is not None
    assert number_key(Number("1e" + "9" * 1001)) is None


@pytest.mark.parametrize(
    ("literal", "survives"),
    [
        ("1", True),
        ("9007199254740992", True),
        ("9007199254740993", False),
        ("0.5", True),
        ("0.1", False),
        ("1e400", False),
        ("1e999999999", False),
        ("-0", True),
    ],
)
def test_exact_in_double(literal: str, survives: bool) -> None:
    assert number_is_exact_in_double(Number(literal)) is survives


@pytest.mark.parametrize(
    ("value", "literal"),
    [
        (5.0, "5"),
        (-0.5, "-0.5"),
        (2.0**53 - 1, "9007199254740991"),
        (2.0**53, None),  # what a client typed as 2^53 + 1 arrives as this
        (-(2.0**53), None),
        (1e300, None),
        (float("nan"), None),
        (float("inf"), None),
    ],
)
def test_hand_typed_doubles(value: float, literal: str | None) -> None:
    assert double_literal(value) == literal
