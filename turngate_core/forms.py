"""Forms (`request_input`): from a model's payload to a canonical form, or why not (B1).

A form is what MCP form elicitation knows: a flat object of strings, numbers, integers, booleans
and lists of strings (`form_fields`). Answers are checked in `form_answers`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from turngate_core.form_fields import (
    BooleanField,
    Form,
    FormField,
    ListField,
    NumberField,
    Option,
    StringField,
)
from turngate_core.formats import canonical_format
from turngate_core.json_text import JsonTextError, JsonValue, parse
from turngate_core.number import Number, compare_numbers, is_integral
from turngate_core.secret_words import asks_for_secret

TOOL_NAME = "request_input"
KIND = "elicitation"


class FormFault(StrEnum):
    """Why a payload is unsupported. The codes of the conformance cases; stable."""

    NOT_AN_OBJECT = "not_an_object"
    MESSAGE_MISSING = "message_missing"
    SCHEMA_MISSING = "schema_missing"
    SCHEMA_ROOT_TYPE = "schema_root_type"
    PROPERTIES_EMPTY = "properties_empty"
    PROPERTY_NOT_OBJECT = "property_not_object"
    TYPE_UNSUPPORTED = "type_unsupported"
    NESTED = "nested"
    ARRAY_ITEMS_NOT_STRING = "array_items_not_string"
    ITEMS_ENUM_NOT_STRINGS = "items_enum_not_strings"
    ARRAY_DEFAULT_NOT_STRINGS = "array_default_not_strings"
    ONE_OF_NEEDS_CONST = "one_of_needs_const"
    OPTIONS_NEED_STRING_TYPE = "options_need_string_type"
    ENUM_NOT_STRINGS = "enum_not_strings"
    DEFAULT_TYPE_MISMATCH = "default_type_mismatch"
    SECRET_SHAPED = "secret_shaped"
    REQUIRED_NOT_STRING_LIST = "required_not_string_list"
    REQUIRED_UNKNOWN = "required_unknown"


_WHAT_IS_WRONG = {
    FormFault.NOT_AN_OBJECT: "the arguments must be an object",
    FormFault.MESSAGE_MISSING: "message must be a text that is not blank",
    FormFault.SCHEMA_MISSING: "requestedSchema must be an object",
    FormFault.SCHEMA_ROOT_TYPE: 'requestedSchema must have the type "object"',
    FormFault.PROPERTIES_EMPTY: "requestedSchema must have at least one property",
    FormFault.PROPERTY_NOT_OBJECT: "it must be an object",
    FormFault.TYPE_UNSUPPORTED: "its type must be string, number, integer, boolean or array",
    FormFault.NESTED: "properties and items within it are not supported; forms are flat",
    FormFault.ARRAY_ITEMS_NOT_STRING: "the items of an array must be of the type string",
    FormFault.ITEMS_ENUM_NOT_STRINGS: "the options of its items must be a list of strings",
    FormFault.ARRAY_DEFAULT_NOT_STRINGS: "its default must be a list of strings",
    FormFault.ONE_OF_NEEDS_CONST: "each described option needs a const that is a string",
    FormFault.OPTIONS_NEED_STRING_TYPE: "only strings and arrays of strings can have options",
    FormFault.ENUM_NOT_STRINGS: "its options must be a list of strings",
    FormFault.DEFAULT_TYPE_MISMATCH: "its default is not of its type",
    FormFault.SECRET_SHAPED: "forms must not ask for secrets",
    FormFault.REQUIRED_NOT_STRING_LIST: "required must be a list of strings",
    FormFault.REQUIRED_UNKNOWN: "required names something that is no property",
}


@dataclass(frozen=True, slots=True)
class UnsupportedForm:
    """A payload that is no form; `field` names the property that decides, if one does."""

    fault: FormFault
    field: str | None = None

    @property
    def text(self) -> str:
        """For the model, so that it can repair its call (D2)."""
        what = _WHAT_IS_WRONG[self.fault]
        return f'property "{self.field}": {what}' if self.field is not None else what


def parse_form(payload: JsonValue) -> Form | UnsupportedForm:
    """The form of a payload, or the first reason why it is none (B1).

    Judged property by property in order of definition, structure before secrecy.
    """
    try:
        return _form(payload)
    except _Unsupported as error:
        return error.form


def parse_form_text(arguments: str) -> Form | UnsupportedForm:
    """`parse_form` of a call's arguments; text that is no JSON is no object either."""
    try:
        return parse_form(parse(arguments) if arguments else {})
    except JsonTextError:
        return UnsupportedForm(FormFault.NOT_AN_OBJECT)


class _Unsupported(Exception):
    def __init__(self, fault: FormFault, field: str | None = None) -> None:
        super().__init__(fault)
        self.form = UnsupportedForm(fault, field)


def _form(payload: JsonValue) -> Form:
    if not isinstance(payload, dict):
        raise _Unsupported(FormFault.NOT_AN_OBJECT)
    message = payload.get("message")
    if not isinstance(message, str) or not message.strip():
        raise _Unsupported(FormFault.MESSAGE_MISSING)
    schema = payload.get("requestedSchema")
    if not isinstance(schema, dict):
        raise _Unsupported(FormFault.SCHEMA_MISSING)
    if schema.get("type") != "object":
        raise _Unsupported(FormFault.SCHEMA_ROOT_TYPE)
    properties = schema.get("properties")
    if not isinstance(properties, dict) or not properties:
        raise _Unsupported(FormFault.PROPERTIES_EMPTY)
    fields = tuple(_field(name, prop) for name, prop in properties.items())
    return Form(message, fields, _required(schema, properties))


def _required(schema: dict[str, JsonValue], properties: dict[str, JsonValue]) -> frozenset[str]:
    required = schema.get("required", [])
    names = _strings(required)
    if names is None:
        raise _Unsupported(FormFault.REQUIRED_NOT_STRING_LIST)
    for name in names:
        if name not in properties:
            raise _Unsupported(FormFault.REQUIRED_UNKNOWN, name)
    return frozenset(names)


def _field(name: str, prop: JsonValue) -> FormField:
    if not isinstance(prop, dict):
        raise _Unsupported(FormFault.PROPERTY_NOT_OBJECT, name)
    kind = prop.get("type")
    if kind not in ("string", "number", "integer", "boolean", "array"):
        raise _Unsupported(FormFault.TYPE_UNSUPPORTED, name)
    items = prop.get("items")
    if "properties" in prop or (kind != "array" and "items" in prop):
        raise _Unsupported(FormFault.NESTED, name)
    if isinstance(items, dict) and ("properties" in items or "items" in items):
        raise _Unsupported(FormFault.NESTED, name)

    field: FormField
    if kind == "array":
        field = _list_field(name, prop)
    else:
        # Options are judged before the type's own rules: those of a number are no options at all.
        options = _options(name, prop, kind)
        if kind == "string":
            field = _string_field(name, prop, options)
        elif kind == "boolean":
            field = _boolean_field(name, prop)
        else:
            field = _number_field(name, prop, integer=kind == "integer")
    if asks_for_secret(name) or asks_for_secret(field.title or ""):
        raise _Unsupported(FormFault.SECRET_SHAPED, name)
    return field


def _options(name: str, prop: dict[str, JsonValue], kind: JsonValue) -> tuple[Option, ...] | None:
    described = _described_options(name, prop)
    if described is None and "enum" not in prop:
        return None
    if kind != "string":
        raise _Unsupported(FormFault.OPTIONS_NEED_STRING_TYPE, name)
    if "enum" in prop:
        return _listed_options(name, prop, described, FormFault.ENUM_NOT_STRINGS)
    return described


def _listed_options(
    name: str,
    schema: dict[str, JsonValue],
    described: tuple[Option, ...] | None,
    fault: FormFault,
) -> tuple[Option, ...]:
    """Options of an `enum`; titles come from described options or from MCP's older `enumNames`."""
    values = _strings(schema.get("enum"))
    if not values:
        raise _Unsupported(fault, name)
    if described is not None:
        by_value = {option.value: option for option in described}
        return tuple(by_value.get(value, Option(value)) for value in values)
    titles = _strings(schema.get("enumNames"))
    if titles is not None and len(titles) == len(values):
        return tuple(Option(value, title) for value, title in zip(values, titles, strict=True))
    return tuple(Option(value) for value in values)


def _described_options(name: str, schema: dict[str, JsonValue]) -> tuple[Option, ...] | None:
    for keyword in ("oneOf", "anyOf"):
        if keyword in schema:
            break
    else:
        return None
    items = schema[keyword]
    if not isinstance(items, list) or not items:
        raise _Unsupported(FormFault.ONE_OF_NEEDS_CONST, name)
    options = []
    for item in items:
        value = item.get("const") if isinstance(item, dict) else None
        if not isinstance(item, dict) or not isinstance(value, str):
            raise _Unsupported(FormFault.ONE_OF_NEEDS_CONST, name)
        options.append(Option(value, _text(item, "title"), _text(item, "description")))
    return tuple(options)


def _string_field(
    name: str, prop: dict[str, JsonValue], options: tuple[Option, ...] | None
) -> StringField:
    default = prop.get("default")
    if "default" in prop and not isinstance(default, str):
        raise _Unsupported(FormFault.DEFAULT_TYPE_MISMATCH, name)
    if options is not None and default not in {option.value for option in options}:
        default = None  # options bind, for a default too
    return StringField(
        name,
        _text(prop, "title"),
        _text(prop, "description"),
        canonical_format(prop.get("format")),
        options,
        _size(prop, "minLength"),
        _size(prop, "maxLength"),
        default if isinstance(default, str) else None,
    )


def _number_field(name: str, prop: dict[str, JsonValue], *, integer: bool) -> NumberField:
    default = prop.get("default")
    fits = isinstance(default, Number) and (is_integral(default) or not integer)
    if "default" in prop and not fits:
        raise _Unsupported(FormFault.DEFAULT_TYPE_MISMATCH, name)
    minimum, maximum = prop.get("minimum"), prop.get("maximum")
    return NumberField(
        name,
        _text(prop, "title"),
        _text(prop, "description"),
        integer,
        minimum if isinstance(minimum, Number) else None,
        maximum if isinstance(maximum, Number) else None,
        default if isinstance(default, Number) else None,
    )


def _boolean_field(name: str, prop: dict[str, JsonValue]) -> BooleanField:
    default = prop.get("default")
    if "default" in prop and not isinstance(default, bool):
        raise _Unsupported(FormFault.DEFAULT_TYPE_MISMATCH, name)
    return BooleanField(
        name,
        _text(prop, "title"),
        _text(prop, "description"),
        default if isinstance(default, bool) else None,
    )


def _list_field(name: str, prop: dict[str, JsonValue]) -> ListField:
    items = prop.get("items")
    if not isinstance(items, dict):
        raise _Unsupported(FormFault.ARRAY_ITEMS_NOT_STRING, name)
    # MCP writes described options of items without a type of their own.
    described_only = "type" not in items and ("anyOf" in items or "oneOf" in items)
    if items.get("type") != "string" and not described_only:
        raise _Unsupported(FormFault.ARRAY_ITEMS_NOT_STRING, name)
    options = _item_options(name, items, prop)
    default = None
    if "default" in prop:
        default = _strings(prop["default"])
        if default is None:
            raise _Unsupported(FormFault.ARRAY_DEFAULT_NOT_STRINGS, name)
        if options is not None and not set(default) <= {option.value for option in options}:
            default = None  # options bind, for a default too
    return ListField(
        name,
        _text(prop, "title"),
        _text(prop, "description"),
        options,
        _size(prop, "minItems"),
        _size(prop, "maxItems"),
        prop.get("uniqueItems") is True,
        default,
    )


def _item_options(
    name: str, items: dict[str, JsonValue], prop: dict[str, JsonValue]
) -> tuple[Option, ...] | None:
    """Options stand in the items; those that were put on the array itself are moved there."""
    for schema in (items, prop):
        described = _described_options(name, schema)
        if "enum" in schema:
            return _listed_options(name, schema, described, FormFault.ITEMS_ENUM_NOT_STRINGS)
        if described is not None:
            return described
    return None


def _strings(value: JsonValue) -> tuple[str, ...] | None:
    if not isinstance(value, list):
        return None
    strings = tuple(item for item in value if isinstance(item, str))
    return strings if len(strings) == len(value) else None


def _text(schema: dict[str, JsonValue], key: str) -> str | None:
    value = schema.get(key)
    return value if isinstance(value, str) else None


# No text and no list is longer (T2's limits lie far below), so greater bounds bind nothing.
_GREATEST_SIZE = Number(str(10**9))


def _size(schema: dict[str, JsonValue], key: str) -> int | None:
    """A bound of a length; what is none (a text, -1, 2.5) binds nothing."""
    value = schema.get(key)
    if not isinstance(value, Number) or not is_integral(value):
        return None
    if compare_numbers(value, Number("0")) == -1 or compare_numbers(value, _GREATEST_SIZE) == 1:
        return None
    return int(float(value.literal))
