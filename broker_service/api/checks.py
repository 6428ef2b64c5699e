"""Checks of single fields: what does not fit is refused with its place; nothing is stored."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum
from typing import TypeVar

from google.protobuf.message import Message
from google.protobuf.struct_pb2 import Value

from broker_service.config import PublishedLimits
from turngate_core.errors import Reason, Refusal, invalid_field
from turngate_core.ids import is_message_id
from turngate_core.json_text import JsonFault, JsonLimits, JsonTextError, check, dump
from turngate_core.number import double_literal

_REQUEST_ID = re.compile(r"[\x20-\x7e]{1,128}")


def required(field: str, value: str) -> str:
    if not value:
        raise invalid_field(field, "has to be given")
    return value


def identifier(field: str, value: str) -> str:
    """An id that a client may choose: 1 to 128 characters of `A-Z a-z 0-9 _ . : -`."""
    if not is_message_id(value):
        raise invalid_field(field, "has to be 1 to 128 characters of A-Z a-z 0-9 _ . : -")
    return value


def request_id(value: str) -> str:
    """1 to 128 printable ASCII characters, or empty (E1)."""
    if value and not _REQUEST_ID.fullmatch(value):
        raise invalid_field("request_id", "has to be 1 to 128 printable ASCII characters")
    return value


def size(field: str, limit: str, text: str, maximum: int) -> str:
    """At most `maximum` bytes of UTF-8. Refuses with LIMIT_EXCEEDED (E3)."""
    actual = len(text.encode())
    if actual > maximum:
        raise over(field, limit, maximum, actual, "bytes")
    return text


def characters(field: str, limit: str, text: str, maximum: int) -> str:
    """At most `maximum` Unicode code points. Refuses with LIMIT_EXCEEDED (E3)."""
    if len(text) > maximum:
        raise over(field, limit, maximum, len(text), "characters")
    return text


_E = TypeVar("_E", bound=Enum)


def enum_value(field: str, cls: type[_E], number: int) -> _E | None:
    """The value of a contract's number, None for UNSPECIFIED. Unknown numbers are refused."""
    if not number:
        return None
    try:
        return cls(number)
    except ValueError:
        raise invalid_field(field, f"has no value {number}") from None


_ANY_NUMBER = ("Permission", "GrantScope")
"""Enums of which an unknown value has a meaning: it asks, or is the stricter one (A1, A3)."""


def known_enums(field: str, message: Message) -> None:
    """Refuse numbers that the contract's enums do not have, at any depth."""
    for descriptor, value in message.ListFields():
        place = f"{field}.{descriptor.name}"
        if descriptor.message_type is not None and descriptor.message_type.GetOptions().map_entry:
            continue
        values = value if descriptor.is_repeated else [value]
        for index, item in enumerate(values):
            at = f"{place}[{index}]" if descriptor.is_repeated else place
            if descriptor.message_type is not None:
                known_enums(at, item)
            elif (
                descriptor.enum_type is not None
                and descriptor.enum_type.name not in _ANY_NUMBER
                and item not in descriptor.enum_type.values_by_number
            ):
                raise invalid_field(at, f"has no value {item}")


def count(field: str, limit: str, items: Iterable[object], maximum: int) -> None:
    """At most so many. Refuses with LIMIT_EXCEEDED (E3)."""
    actual = sum(1 for _ in items)
    if actual > maximum:
        raise over(field, limit, maximum, actual, "entries")


def over(field: str, limit: str, maximum: int, actual: int, unit: str) -> Refusal:
    """The refusal of a field that is over a limit."""
    return Refusal(
        Reason.LIMIT_EXCEEDED,
        f"{field}: {actual} {unit}, at most {maximum} are accepted",
        {"limit": limit, "maximum": str(maximum), "actual": str(actual), "field": field},
        [(field, f"at most {maximum} {unit}")],
    )


def json_text(field: str, text: str, limits: PublishedLimits) -> str:
    """Exact JSON text, kept as it came (T2). Refuses with INVALID_JSON or LIMIT_EXCEEDED."""
    try:
        check(text, JsonLimits(limits.json_bytes, limits.json_depth))
    except JsonTextError as error:
        if error.fault is JsonFault.TOO_LARGE:
            actual = len(text.encode())
            raise over(field, "json_bytes", limits.json_bytes, actual, "bytes") from error
        raise Refusal(
            Reason.INVALID_JSON,
            f"{field}: {error}",
            {
                "field": field,
                "problem": error.fault.value,
                "offset": str(error.offset),
                "line": str(error.line),
                "column": str(error.column),
            },
            [(field, str(error))],
        ) from error
    return text


def json_object(field: str, text: str, limits: PublishedLimits) -> str:
    """The exact text of a JSON object; empty text stands for `{}`."""
    if text and not json_text(field, text, limits).lstrip(" \t\r\n").startswith("{"):
        raise invalid_field(field, "has to be a JSON object")
    return text


def json_of_value(field: str, value: Value, limits: PublishedLimits) -> str:
    """The JSON text of a hand-typed value; numbers that a double may have changed are refused.

    How deep it may be is judged by its text, as everywhere: what protobuf parses is 100 levels of
    messages deep at most.
    """
    parts: list[str] = []
    _write_value(field, value, parts)
    return json_text(field, "".join(parts), limits)


def _write_value(field: str, value: Value, parts: list[str]) -> None:
    match value.WhichOneof("kind"):
        case "null_value":
            parts.append("null")
        case "bool_value":
            parts.append("true" if value.bool_value else "false")
        case "number_value":
            parts.append(_number(field, value.number_value))
        case "string_value":
            parts.append(_string(value.string_value))
        case "list_value":
            parts.append("[")
            for index, item in enumerate(value.list_value.values):
                parts.append("," if index else "")
                _write_value(f"{field}[{index}]", item, parts)
            parts.append("]")
        case "struct_value":
            parts.append("{")
            for index, key in enumerate(value.struct_value.fields):
                parts.append(("," if index else "") + _string(key) + ":")
                item = value.struct_value.fields[key]
                _write_value(f"{field}.{key}", item, parts)
            parts.append("}")
        case _:
            raise invalid_field(field, "is an empty value")


def _number(field: str, number: float) -> str:
    literal = double_literal(number)
    if literal is None:
        raise invalid_field(
            field, "not finite, or beyond 2^53 and may have lost digits; send JSON text instead"
        )
    return literal


def _string(text: str) -> str:
    return dump(text)
