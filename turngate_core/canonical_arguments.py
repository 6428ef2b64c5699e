"""Canonical arguments: when are two calls the same call (X3, A3)?"""

from __future__ import annotations

import json
import re

from turngate_core.json_text import (
    DEFAULT_MAX_DEPTH,
    JsonLimits,
    JsonTextError,
    JsonValue,
    parse,
    parse_prefix,
)
from turngate_core.number import Number, number_key

# Strings may spell values that hold strings that spell values. Both bounds are far above what a
# model writes; what lies beyond has no key (X3), so that hostile text costs little.
MAX_CANONICAL_DEPTH = 200
MAX_UNWRAPPINGS = 16

# Sizes were checked where the text came in (T2); here only nesting is dangerous.
_LIMITS = JsonLimits(max_bytes=2**31, max_depth=DEFAULT_MAX_DEPTH)
_SPELLS_A_VALUE = re.compile(r"[ \t\n\r]*[{\[]")
_STRAY_CLOSERS = re.compile(r"[ \t\n\r]*(?:[}\]][ \t\n\r]*){0,3}")


class _NotCanonical(Exception):
    pass


def canonical_key(value: JsonValue, *, unwrap_strings: bool) -> str | None:
    """A text that is equal for equal arguments, or `None` for what cannot be canonical.

    Keys are sorted at every depth, array order is kept, numbers count by value, and null at the
    root is `{}`. `unwrap_strings`: a string that holds the JSON text of an object or array counts
    as that value, with up to three stray closing brackets (X3); grants look at the arguments
    without that (A3).

    No key have: unpaired surrogates, literals that are no JSON number, and nesting over 200
    levels.
    """
    parts: list[str] = []
    try:
        if unwrap_strings and isinstance(value, str):
            value = _unwrapped(value, 0)
        _write({} if value is None else value, parts, 0, 0 if unwrap_strings else None)
        key = "".join(parts)
        key.encode("utf-8")
    except (_NotCanonical, UnicodeEncodeError):
        return None
    return key


def canonical_key_of_text(text: str | None, *, unwrap_strings: bool) -> str | None:
    """`canonical_key` of JSON text; absent and empty text are `{}`, no JSON has no key."""
    if text is None or text == "":
        return canonical_key(None, unwrap_strings=unwrap_strings)
    try:
        value = parse(text, _LIMITS)
    except JsonTextError:
        return None
    return canonical_key(value, unwrap_strings=unwrap_strings)


def _unwrapped(string: str, unwrappings: int) -> JsonValue:
    """The object or array that a string spells, else the string itself."""
    if not _SPELLS_A_VALUE.match(string):
        return string
    try:
        value, end = parse_prefix(string, _LIMITS)
    except JsonTextError:
        return string
    if not _STRAY_CLOSERS.fullmatch(string, end):
        return string
    if unwrappings >= MAX_UNWRAPPINGS:
        raise _NotCanonical
    return value


def _write(value: JsonValue, parts: list[str], depth: int, unwrappings: int | None) -> None:
    """`unwrappings`: how often strings around this value were unwrapped; `None`: they are not."""
    if depth > MAX_CANONICAL_DEPTH:
        raise _NotCanonical
    if isinstance(value, str) and unwrappings is not None:
        unwrapped = _unwrapped(value, unwrappings)
        if not isinstance(unwrapped, str):
            value, unwrappings = unwrapped, unwrappings + 1
    match value:
        case None:
            parts.append("null")
        case bool():
            parts.append("true" if value else "false")
        case str():
            parts.append(json.dumps(value, ensure_ascii=False))
        case Number():
            number = number_key(value)
            if number is None:
                raise _NotCanonical
            parts.append(number)
        case list():
            parts.append("[")
            for index, item in enumerate(value):
                if index:
                    parts.append(",")
                _write(item, parts, depth + 1, unwrappings)
            parts.append("]")
        case dict():
            parts.append("{")
            for index, key in enumerate(sorted(value)):
                if index:
                    parts.append(",")
                parts.append(json.dumps(key, ensure_ascii=False))
                parts.append(":")
                _write(value[key], parts, depth + 1, unwrappings)
            parts.append("}")
