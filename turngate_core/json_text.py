"""Exact JSON text: the one gate through which arguments and outputs pass (T2).

Python's C scanner reads the text; its hooks keep each number as it was written. What RFC 8259
leaves open and T2 refuses (duplicate keys, NaN, unpaired surrogates, deep nesting) is found by
the same pass or a cheap look at the text; only a refusal pays for finding the place.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import NoReturn, TypeAlias

from turngate_core.number import Number

JsonValue: TypeAlias = "bool | str | Number | list[JsonValue] | dict[str, JsonValue] | None"

DEFAULT_MAX_BYTES = 256 * 1024
DEFAULT_MAX_DEPTH = 64
# Reading and writing recurse once a level; this leaves room within Python's own limit (1,000).
GREATEST_MAX_DEPTH = 256


class JsonFault(StrEnum):
    """Why a text was refused. Stable: clients may switch on it."""

    NOT_JSON = "not_json"
    NOT_FINITE = "not_finite"
    DUPLICATE_KEY = "duplicate_key"
    UNPAIRED_SURROGATE = "unpaired_surrogate"
    TOO_DEEP = "too_deep"
    TOO_LARGE = "too_large"


class JsonTextError(ValueError):
    """A text that T2 refuses, with the place.

    `offset` counts characters from 0; `line` and `column` count from 1.
    """

    def __init__(self, fault: JsonFault, detail: str, text: str, offset: int) -> None:
        self.fault = fault
        self.detail = detail
        self.offset = offset
        self.line = text.count("\n", 0, offset) + 1
        self.column = offset - text.rfind("\n", 0, offset)
        super().__init__(f"{detail} at line {self.line} column {self.column}")


@dataclass(frozen=True, slots=True)
class JsonLimits:
    """`max_bytes` of the text in UTF-8; `max_depth` of arrays and objects, at most 256."""

    max_bytes: int = DEFAULT_MAX_BYTES
    max_depth: int = DEFAULT_MAX_DEPTH

    def __post_init__(self) -> None:
        if not 1 <= self.max_depth <= GREATEST_MAX_DEPTH:
            raise ValueError(f"max_depth must lie between 1 and {GREATEST_MAX_DEPTH}")


DEFAULT_LIMITS = JsonLimits()


def parse(text: str, limits: JsonLimits = DEFAULT_LIMITS) -> JsonValue:
    """The value of a JSON text, numbers as written, keys in their order.

    Raises `JsonTextError` with reason and place.
    """
    return _parse(text, limits, _SCANNER)


def parse_prefix(text: str, limits: JsonLimits = DEFAULT_LIMITS) -> tuple[JsonValue, int]:
    """The value at the beginning of a text, and the offset at which it ends (X3).

    Raises `JsonTextError` as `parse` does.
    """
    _check_size(text, limits)
    return _decode(text, limits, _SCANNER)


def check(text: str, limits: JsonLimits = DEFAULT_LIMITS) -> None:
    """Raise `JsonTextError` unless the text is JSON that T2 accepts; cheaper than `parse`."""
    _parse(text, limits, _CHECKER)


def dump(value: JsonValue) -> str:
    """Compact JSON text: keys in their order, numbers as they were written."""
    parts: list[str] = []
    _write(value, parts)
    return "".join(parts)


class _Refused(Exception):
    """A hook of the scanner met what T2 refuses; the place is found afterwards."""


def _object(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise _Refused
    return value


def _not_finite(_literal: str) -> NoReturn:
    raise _Refused


def _scanner(number: Callable[[str], Number | str]) -> json.JSONDecoder:
    return json.JSONDecoder(
        object_pairs_hook=_object,
        parse_int=number,  # never `int`: it loses `-0` and refuses more than 4,300 digits
        parse_float=number,
        parse_constant=_not_finite,
    )


_SCANNER = _scanner(Number)
_CHECKER = _scanner(str)  # what it reads is thrown away

_SPACE = re.compile(r"[ \t\n\r]*")
_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_RAW_SURROGATE = re.compile("[\ud800-\udfff]")
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
# The parts of a text that matter to depth, keys and constants; other scalars are passed over. A
# string may lack its end: else each quote in it would be tried as a beginning, in quadratic time.
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[{}\[\],]|NaN|-?Infinity', re.DOTALL)


def _skip_space(text: str, offset: int) -> int:
    match = _SPACE.match(text, offset)
    return offset if match is None else match.end()


def _check_size(text: str, limits: JsonLimits) -> None:
    # A character takes at most four bytes, so that most texts need not be encoded to be measured.
    if len(text) * 4 > limits.max_bytes:
        size = len(text.encode("utf-8", "surrogatepass"))
        if size > limits.max_bytes:
            detail = f"{size} bytes, at most {limits.max_bytes} are accepted"
            raise JsonTextError(JsonFault.TOO_LARGE, detail, text, min(limits.max_bytes, len(text)))


def _parse(text: str, limits: JsonLimits, scanner: json.JSONDecoder) -> JsonValue:
    _check_size(text, limits)
    value, end = _decode(text, limits, scanner)
    rest = _skip_space(text, end)
    if rest != len(text):
        raise JsonTextError(JsonFault.NOT_JSON, "text after the end of the value", text, rest)
    return value


def _decode(text: str, limits: JsonLimits, scanner: json.JSONDecoder) -> tuple[JsonValue, int]:
    start = _skip_space(text, 0)
    raw = _RAW_SURROGATE.search(text)
    if raw is not None:
        raise JsonTextError(JsonFault.UNPAIRED_SURROGATE, "unpaired surrogate", text, raw.start())
    # Before the scanner, which recurses: 10,000 levels must not reach it.
    if text.count("[") + text.count("{") > limits.max_depth:
        _check_depth(text, start, limits)
    try:
        value: JsonValue
        value, end = scanner.raw_decode(text, start)
    except json.JSONDecodeError as error:
        detail = error.msg[:1].lower() + error.msg[1:].removesuffix(" at")
        raise JsonTextError(JsonFault.NOT_JSON, detail, text, error.pos) from None
    except _Refused:
        _refuse_at_place(text, start)
    if _SURROGATE_ESCAPE.search(text, start, end):
        for string in _STRING.finditer(text, start, end):
            _check_pairs(text, string.start(), string.group())
    return value, end


def _check_depth(text: str, start: int, limits: JsonLimits) -> None:
    depth = 0
    for token in _TOKEN.finditer(text, start):
        mark = token.group()
        if mark in "[{":
            depth += 1
            if depth > limits.max_depth:
                raise JsonTextError(
                    JsonFault.TOO_DEEP,
                    f"nested deeper than {limits.max_depth} levels",
                    text,
                    token.start(),
                )
        elif mark in "]}":
            depth -= 1
            if depth <= 0:
                return  # the value ends here; what follows is not read


def _check_pairs(text: str, offset: int, string: str) -> None:
    """Refuse a string (with its quotes, at `offset`) in which half of a pair is escaped."""
    if not _SURROGATE_ESCAPE.search(string):
        return
    if not _RAW_SURROGATE.search(_text_of(string)):
        return
    for place in _unpaired_escapes(string):
        raise JsonTextError(
            JsonFault.UNPAIRED_SURROGATE, "unpaired surrogate", text, offset + place
        )


_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|.)", re.DOTALL)


def _unpaired_escapes(string: str) -> Iterator[int]:
    waiting: re.Match[str] | None = None  # an upper half whose lower half has to come next
    for escape in _ESCAPE.finditer(string):
        code = int(escape.group(1), 16) if escape.group(1) else 0
        if waiting is not None:
            pairs = 0xDC00 <= code <= 0xDFFF and escape.start() == waiting.end()
            if not pairs:
                yield waiting.start()
            waiting = None
            if pairs:
                continue
        if 0xD800 <= code <= 0xDBFF:
            waiting = escape
        elif 0xDC00 <= code <= 0xDFFF:
            yield escape.start()
    if waiting is not None:
        yield waiting.start()


def _text_of(string: str) -> str:
    value: str = json.loads(string)
    return value


def _refuse_at_place(text: str, start: int) -> NoReturn:
    """Find the duplicate key or the constant that a hook of the scanner has refused."""
    open_keys: list[set[str] | None] = []  # of each open object the keys seen; None for an array
    key_is_next = False
    for token in _TOKEN.finditer(text, start):
        mark = token.group()
        if mark in "[{":
            open_keys.append(set() if mark == "{" else None)
            key_is_next = mark == "{"
        elif mark in "]}":
            open_keys.pop()
            key_is_next = False
        elif mark == ",":
            key_is_next = open_keys[-1] is not None
        elif mark[0] != '"':
            raise JsonTextError(JsonFault.NOT_FINITE, f"{mark} is no JSON", text, token.start())
        elif key_is_next:
            key_is_next = False
            keys = open_keys[-1]
            key = _text_of(mark)
            if keys is not None and key in keys:
                raise JsonTextError(
                    JsonFault.DUPLICATE_KEY,
                    f"duplicate key {json.dumps(key[:80])}",
                    text,
                    token.start(),
                )
            if keys is not None:
                keys.add(key)
    raise JsonTextError(JsonFault.NOT_JSON, "not JSON", text, start)


def _write(value: JsonValue, parts: list[str]) -> None:
    match value:
        case None:
            parts.append("null")
        case bool():
            parts.append("true" if value else "false")
        case str():
            parts.append(json.dumps(value, ensure_ascii=False))
        case Number():
            parts.append(value.literal)
        case list():
            parts.append("[")
            for index, item in enumerate(value):
                if index:
                    parts.append(",")
                _write(item, parts)
            parts.append("]")
        case dict():
            parts.append("{")
            for index, (key, item) in enumerate(value.items()):
                if index:
                    parts.append(",")
                parts.append(json.dumps(key, ensure_ascii=False))
                parts.append(":")
                _write(item, parts)
            parts.append("}")
