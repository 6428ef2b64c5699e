"""A form, filled in field by field: each answer is checked by the rules of turngate_core (B1)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import assert_never

from turngate_client.cli.answers import Answers, NoAnswer
from turngate_core.form_answers import validate_form_answer
from turngate_core.form_fields import (
    BooleanField,
    Form,
    FormField,
    ListField,
    NumberField,
    StringField,
)
from turngate_core.json_text import JsonValue, dump
from turngate_core.number import Number, normal_number

_YES = frozenset({"y", "yes", "true", "1"})
_NO = frozenset({"n", "no", "false", "0"})


async def fill_form(
    form: Form,
    answers: Answers,
    *,
    fields: Iterable[str] | None = None,
    content: dict[str, JsonValue] | None = None,
) -> dict[str, JsonValue]:
    """The answer to a form, `{action, content?, note?}`: accepted, or declined without an answer.

    Fields are asked for in order of definition; an empty line is the default, or leaves an optional
    field out. `fields`: ask for these only, and keep `content` for the others.
    """
    filled: dict[str, JsonValue] = dict(content or {})
    asked = None if fields is None else set(fields)
    try:
        for field in form.fields:
            if asked is None or field.name in asked:
                await _fill(form, field, answers, filled)
    except NoAnswer as none:
        return {"action": "decline", "note": f"Nobody filled the form in: {none}."}
    return {"action": "accept", "content": filled}


async def _fill(
    form: Form, field: FormField, answers: Answers, filled: dict[str, JsonValue]
) -> None:
    text = await answers.ask(
        question_of(form, field),
        lambda answer: problem_of(form, field, answer),
        _options_of(field),
    )
    value = value_of(field, text)
    filled.pop(field.name, None)
    if value is not None:
        filled[field.name] = value


def question_of(form: Form, field: FormField) -> str:
    """What to ask: title, what is wanted, and what an empty line means."""
    words = [field.title or field.name]
    if field.description:
        words.append(f"- {field.description}")
    match field:
        case NumberField():
            words.append("(whole number)" if field.integer else "(number)")
        case BooleanField():
            words.append("(y/n)")
        case ListField():
            words.append("(several, with commas)")
        case StringField():
            if field.format is not None:
                words.append(f"({field.format.value})")
        case _:
            assert_never(field)
    if field.default is not None:
        words.append(f"[{_shown(field.default)}]")
    elif field.name not in form.required:
        words.append("[none]")
    return " ".join(words)


def problem_of(form: Form, field: FormField, text: str) -> str | None:
    """What is wrong with a typed answer, by the same check that the broker makes (F1)."""
    value = value_of(field, text)
    alone = replace(form, fields=(field,), required=form.required & {field.name})
    content: dict[str, JsonValue] = {} if value is None else {field.name: value}
    for violation in validate_form_answer(alone, dump({"action": "accept", "content": content})):
        return violation.message
    return None


def value_of(field: FormField, text: str) -> JsonValue:
    """The value that a typed text stands for; None leaves the field out.

    A text that is none of the field's type stays a text, which the check then refuses.
    """
    if not text:
        if isinstance(field.default, tuple):
            return list(field.default)
        return field.default
    match field:
        case NumberField():
            number = Number(text)
            return text if normal_number(number) is None else number
        case BooleanField():
            word = text.lower()
            return True if word in _YES else False if word in _NO else text
        case ListField():
            return [_option(field, item.strip()) for item in text.split(",") if item.strip()]
        case StringField():
            return _option(field, text)
    assert_never(field)


def _option(field: StringField | ListField, text: str) -> str:
    """An option may be named by its title, too, and in any case of letters."""
    for option in field.options or ():
        if text == option.value:
            return text
    for option in field.options or ():
        if text.casefold() in (option.value.casefold(), (option.title or "").casefold()):
            return option.value
    return text


def _options_of(field: FormField) -> tuple[str, ...]:
    if isinstance(field, StringField | ListField):
        return tuple(option.title or option.value for option in field.options or ())
    return ()


def _shown(default: str | bool | Number | tuple[str, ...]) -> str:
    match default:
        case bool():
            return "y" if default else "n"
        case Number():
            return default.literal
        case str():
            return default
        case tuple():
            return ", ".join(default)
    assert_never(default)
