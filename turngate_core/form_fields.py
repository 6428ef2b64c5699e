"""The canonical form of a form: its fields, each with what binds an answer (B1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from turngate_core.formats import Format
from turngate_core.json_text import JsonValue
from turngate_core.number import Number


@dataclass(frozen=True, slots=True)
class Option:
    """One choice; `title` and `description` are for people."""

    value: str
    title: str | None = None
    description: str | None = None


@dataclass(frozen=True, slots=True)
class StringField:
    """A text, or one of `options`. Lengths count characters."""

    name: str
    title: str | None
    description: str | None
    format: Format | None
    options: tuple[Option, ...] | None
    min_length: int | None
    max_length: int | None
    default: str | None


@dataclass(frozen=True, slots=True)
class NumberField:
    """A number, without a fraction if `integer`; the bounds belong to the range."""

    name: str
    title: str | None
    description: str | None
    integer: bool
    minimum: Number | None
    maximum: Number | None
    default: Number | None


@dataclass(frozen=True, slots=True)
class BooleanField:
    """Yes or no."""

    name: str
    title: str | None
    description: str | None
    default: bool | None


@dataclass(frozen=True, slots=True)
class ListField:
    """A list of strings, or several of `options`."""

    name: str
    title: str | None
    description: str | None
    options: tuple[Option, ...] | None
    min_items: int | None
    max_items: int | None
    unique: bool
    default: tuple[str, ...] | None


FormField: TypeAlias = StringField | NumberField | BooleanField | ListField


@dataclass(frozen=True, slots=True)
class Form:
    """The canonical form of a payload; fields in order of definition."""

    message: str
    fields: tuple[FormField, ...]
    required: frozenset[str]


def canonical_property(field: FormField) -> dict[str, JsonValue]:
    """A field as JSON Schema, in canonical form: options where they belong, formats by name."""
    prop: dict[str, JsonValue] = {}
    match field:
        case StringField():
            prop["type"] = "string"
            if field.options is not None:
                prop["enum"] = [option.value for option in field.options]
            if field.format is not None:
                prop["format"] = field.format.value
        case NumberField():
            prop["type"] = "integer" if field.integer else "number"
        case BooleanField():
            prop["type"] = "boolean"
        case ListField():
            items: dict[str, JsonValue] = {"type": "string"}
            if field.options is not None:
                items["enum"] = [option.value for option in field.options]
            prop["type"], prop["items"] = "array", items
    if field.default is not None:
        prop["default"] = list(field.default) if isinstance(field.default, tuple) else field.default
    return prop
