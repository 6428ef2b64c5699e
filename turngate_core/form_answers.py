"""Is an output a fitting answer to a form (B1, F1)?"""

from __future__ import annotations

from typing import assert_never

from turngate_core.form_fields import (
    BooleanField,
    Form,
    FormField,
    ListField,
    NumberField,
    StringField,
)
from turngate_core.formats import fits_format
from turngate_core.json_text import DEFAULT_LIMITS, JsonLimits, JsonTextError, JsonValue, parse
from turngate_core.number import Number, compare_numbers, is_integral
from turngate_core.violations import Violation, pointer

_ACTIONS = ("accept", "decline", "cancel")
_KEYS = ("action", "content", "note")


def validate_form_answer(
    form: Form, output: str, limits: JsonLimits = DEFAULT_LIMITS
) -> list[Violation]:
    """What is wrong with an answer `{action, content?, note?}`: at most one violation a field.

    Required means present, not null, not `""`, not `[]`; an optional field that is one of these
    counts as left out. Declining and cancelling need no content.
    """
    answer, violations = _object(output, limits)
    if answer is None:
        return violations
    for key in answer:
        if key not in _KEYS:
            message = "unknown key; an answer has action, content and note"
            violations.append(Violation(pointer(key), "unknown_key", message))
    action, content, note = answer.get("action"), answer.get("content"), answer.get("note")
    if action not in _ACTIONS:
        message = "must be accept, decline or cancel"
        violations.append(Violation("/action", "action_unknown", message))
    if note is not None and not isinstance(note, str):
        violations.append(Violation("/note", "wrong_type", "must be a text"))
    if content is not None and not isinstance(content, dict):
        violations.append(Violation("/content", "wrong_type", "must be an object"))
    elif action == "accept":
        violations.extend(_content_violations(form, content or {}))
    return violations


def validate_unsupported_form_answer(
    output: str, limits: JsonLimits = DEFAULT_LIMITS
) -> list[Violation]:
    """An unsupported form that stays open takes any JSON object (D2)."""
    _, violations = _object(output, limits)
    return violations


def _object(output: str, limits: JsonLimits) -> tuple[dict[str, JsonValue] | None, list[Violation]]:
    try:
        value = parse(output, limits)
    except JsonTextError as error:
        return None, [Violation("", error.fault.value, str(error))]
    if not isinstance(value, dict):
        return None, [Violation("", "not_an_object", "must be an object")]
    return value, []


def _content_violations(form: Form, content: dict[str, JsonValue]) -> list[Violation]:
    violations = []
    names = {field.name for field in form.fields}
    for field in form.fields:
        found = _field_problem(field, content.get(field.name), field.name in form.required)
        if found is not None:
            reason, message = found
            violations.append(Violation(pointer("content", field.name), reason, message))
    for name in content:
        if name not in names:
            message = "the form has no such field"
            violations.append(Violation(pointer("content", name), "unknown_field", message))
    return violations


def _field_problem(field: FormField, value: JsonValue, required: bool) -> tuple[str, str] | None:
    """Reason and message of the first thing that is wrong with a field's value."""
    if value is None or value == "" or value == []:
        return ("required", "is required") if required else None
    match field:
        case StringField():
            return _string_problem(field, value)
        case NumberField():
            return _number_problem(field, value)
        case BooleanField():
            return None if isinstance(value, bool) else ("wrong_type", "must be true or false")
        case ListField():
            return _list_problem(field, value)
    assert_never(field)


def _string_problem(field: StringField, value: JsonValue) -> tuple[str, str] | None:
    if not isinstance(value, str):
        return "wrong_type", "must be a text"
    if field.options is not None and value not in {option.value for option in field.options}:
        return "not_an_option", "must be one of the options"
    if field.min_length is not None and len(value) < field.min_length:
        return "too_short", f"must have at least {field.min_length} characters"
    if field.max_length is not None and len(value) > field.max_length:
        return "too_long", f"must have at most {field.max_length} characters"
    if field.format is not None and not fits_format(value, field.format):
        return "wrong_format", f"must be of the format {field.format.value}"
    return None


def _number_problem(field: NumberField, value: JsonValue) -> tuple[str, str] | None:
    if not isinstance(value, Number):
        return "wrong_type", "must be a number"
    if field.integer and not is_integral(value):
        return "wrong_type", "must be an integer"
    if field.minimum is not None and compare_numbers(value, field.minimum) == -1:
        return "too_small", f"must be at least {field.minimum.literal}"
    if field.maximum is not None and compare_numbers(value, field.maximum) == 1:
        return "too_large", f"must be at most {field.maximum.literal}"
    return None


def _list_problem(field: ListField, value: JsonValue) -> tuple[str, str] | None:
    if not isinstance(value, list):
        return "wrong_type", "must be a list of texts"
    items = [item for item in value if isinstance(item, str)]
    if len(items) != len(value):
        return "wrong_type", "must be a list of texts"
    if field.options is not None and not set(items) <= {option.value for option in field.options}:
        return "not_an_option", "must hold only options"
    if field.unique and len(set(items)) != len(items):
        return "not_unique", "must not hold a text twice"
    if field.min_items is not None and len(items) < field.min_items:
        return "too_few", f"must hold at least {field.min_items}"
    if field.max_items is not None and len(items) > field.max_items:
        return "too_many", f"must hold at most {field.max_items}"
    return None
