"""JSON Schema over JSON text, exact for numbers of any size (T2, R4)."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import TypeAlias

import jsonschema_rs

from turngate_core.json_text import DEFAULT_LIMITS, JsonLimits, JsonTextError, JsonValue, parse
from turngate_core.number import Number
from turngate_core.violations import Violation, pointer

# What the library reads. It compares `Decimal` exactly and never expands an exponent.
_Plain: TypeAlias = "bool | str | Decimal | list[_Plain] | dict[str, _Plain] | None"

# More violations help nobody, and error details are limited (E2).
MAX_VIOLATIONS = 32


class SchemaError(ValueError):
    """A text that is no JSON Schema. The message says what is wrong and holds no secret."""


class Schema:
    """A compiled schema: compile once, then check many texts.

    Patterns are matched in linear time. References lead nowhere outside the schema: nothing is
    ever fetched. `format` is checked.
    """

    def __init__(self, schema: str, limits: JsonLimits = DEFAULT_LIMITS) -> None:
        """Raises `SchemaError` for text that is no JSON or no schema."""
        try:
            value = parse(schema, limits)
        except JsonTextError as error:
            raise SchemaError(f"the schema is no JSON: {error}") from error
        if not isinstance(value, bool | dict):
            raise SchemaError("a schema must be an object, true or false")
        try:
            self._validator = jsonschema_rs.validator_for(
                schema,
                validate_formats=True,
                offline=True,
                pattern_options=jsonschema_rs.RegexOptions(),
            )
        except ValueError as error:
            first_line = (str(error).splitlines() or [""])[0]
            raise SchemaError(f"not a JSON Schema: {first_line}") from error

    def violations(self, text: str, limits: JsonLimits = DEFAULT_LIMITS) -> list[Violation]:
        """What is wrong with a JSON text: at most one violation a place, at most 32 in all.

        Text that T2 refuses gives the one violation that says so.
        """
        try:
            value = parse(text, limits)
        except JsonTextError as error:
            return [Violation("", error.fault.value, str(error))]
        return self.violations_of_value(value)

    def violations_of_value(self, value: JsonValue) -> list[Violation]:
        """`violations` of a value that is parsed already."""
        try:
            plain = _plain(value)
        except InvalidOperation:
            return [Violation("", "number_out_of_range", "holds a number out of any range")]
        found: dict[str, Violation] = {}
        for error in self._validator.iter_errors(plain):
            for violation in _violations(error):
                found.setdefault(violation.path, violation)
            if len(found) >= MAX_VIOLATIONS:
                break
        return list(found.values())[:MAX_VIOLATIONS]


def validate(schema: str, text: str, limits: JsonLimits = DEFAULT_LIMITS) -> list[Violation]:
    """`Schema(schema).violations(text)`; the schemas used last are kept compiled."""
    return _compiled(schema).violations(text, limits)


@lru_cache(maxsize=256)
def _compiled(schema: str) -> Schema:
    return Schema(schema)


def _violations(error: jsonschema_rs.ValidationError) -> list[Violation]:
    """A missing or surplus property is a violation of that property, not of its object."""
    kind, path = error.kind, error.instance_path
    if isinstance(kind, jsonschema_rs.ValidationErrorKind.Required):
        return [Violation(pointer(*path, str(kind.property)), "required", "is required")]
    if isinstance(kind, jsonschema_rs.ValidationErrorKind.AdditionalProperties):
        return [
            Violation(pointer(*path, name), "unknown_property", "the schema has no such property")
            for name in kind.unexpected
        ]
    return [Violation(pointer(*path), kind.name, _shortened(error.message))]


def _shortened(message: str) -> str:
    return message if len(message) <= 200 else message[:197] + "..."


def _plain(value: JsonValue) -> _Plain:
    if isinstance(value, Number):
        return Decimal(value.literal)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return value
