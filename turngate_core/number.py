"""Numbers of JSON text, kept as they were written and compared by value (T2, X3).

Nothing here ever expands an exponent: `1e999999999` costs as much as `1`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

_LITERAL = re.compile(r"(-?)(0|[1-9][0-9]*)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?")

# An exponent written with more digits than this is no number of this world; Python's own limit
# for the conversion of digits to integers (4,300) lies above it.
MAX_EXPONENT_DIGITS = 1000

# Integers of this size and more cannot be told from their neighbours once they were a double:
# 2^53 + 1 becomes 2^53.
EXACT_INTEGER_BOUND = 2**53


@dataclass(frozen=True, slots=True)
class Number:
    """A number as it stands in JSON text: `1.0`, `1e400` and 2^63 survive (T2)."""

    literal: str


@dataclass(frozen=True, slots=True)
class NormalNumber:
    """A number's value: `digits` times ten to the `exponent`.

    `digits` has no zeros at either end; zero is `("", 0)` and never negative.
    """

    negative: bool
    digits: str
    exponent: int


def normal_number(number: Number) -> NormalNumber | None:
    """The value of a number, the same for all its spellings.

    `None` if the literal is no JSON number, or its exponent has over 1,000 digits.
    """
    match = _LITERAL.fullmatch(number.literal)
    if match is None:
        return None
    sign, whole, fraction, exponent_text = match.groups()
    fraction = fraction or ""
    digits = (whole + fraction).lstrip("0")
    significant = digits.rstrip("0")
    if not significant:
        return NormalNumber(False, "", 0)
    if exponent_text and len(exponent_text) > MAX_EXPONENT_DIGITS:
        return None
    exponent = int(exponent_text or "0") - len(fraction) + len(digits) - len(significant)
    return NormalNumber(sign == "-", significant, exponent)


def number_key(number: Number) -> str | None:
    """One text for all spellings of a value: `1`, `1.0` and `10e-1` are `1`; `-0` is `0`."""
    normal = normal_number(number)
    if normal is None:
        return None
    if not normal.digits:
        return "0"
    sign = "-" if normal.negative else ""
    exponent = f"e{normal.exponent}" if normal.exponent else ""
    return f"{sign}{normal.digits}{exponent}"


def is_integral(number: Number) -> bool:
    """True if the value has no fraction: `2`, `2.0` and `1e400` are integral, `2.5` is not."""
    normal = normal_number(number)
    return normal is not None and normal.exponent >= 0


def compare_numbers(left: Number, right: Number) -> int | None:
    """-1, 0 or 1 as `left` is less than, equal to or greater than `right`; `None` if neither."""
    a, b = normal_number(left), normal_number(right)
    if a is None or b is None:
        return None
    a_sign = (-1 if a.negative else 1) if a.digits else 0
    b_sign = (-1 if b.negative else 1) if b.digits else 0
    if a_sign != b_sign:
        return -1 if a_sign < b_sign else 1
    if a == b:
        return 0
    # The place of the first digit decides; at the same place, digits compare like text.
    a_size = (len(a.digits) + a.exponent, a.digits)
    b_size = (len(b.digits) + b.exponent, b.digits)
    return a_sign if a_size > b_size else -a_sign


def number_is_exact_in_double(number: Number) -> bool:
    """True if the value survives a detour through an IEEE double (T2).

    False for `1e400`, 2^53 + 1 and `0.1`-like decimals that a double only comes near to.
    """
    if normal_number(number) is None:
        return False
    as_double = float(number.literal)
    if as_double in (float("inf"), float("-inf")):
        return False
    return number_key(Number(str(Decimal(as_double)))) == number_key(number)


def double_literal(value: float) -> str | None:
    """JSON text of a double that a client typed by hand (`google.protobuf.Value`), or `None`.

    Refused are NaN, infinities, and everything from ±2^53 on: there a double no longer says which
    integer was meant (T2). Integral values are written as integers: a typed `5` stays `5`.
    """
    if not abs(value) < EXACT_INTEGER_BOUND:
        return None
    return str(int(value)) if value == int(value) else repr(value)
