"""B1: the whole of a form as clients get it, from the payload and back to JSON Schema."""

from __future__ import annotations

import pytest

from turngate_core.form_fields import (
    BooleanField,
    Form,
    FormField,
    ListField,
    NumberField,
    Option,
    StringField,
    canonical_property,
)
from turngate_core.formats import Format, canonical_format, fits_format
from turngate_core.forms import FormFault, UnsupportedForm, parse_form_text
from turngate_core.json_text import dump
from turngate_core.number import Number

MANY = '"minItems":1,"maxItems":2,"uniqueItems":true,"default":["a"]'
TITLED = '[{"const":"a","title":"A"}]'
ABOUT = '"title":"T","description":"D"'


def field_of(prop: str) -> FormField:
    form = parse_form_text(
        f'{{"message":"m","requestedSchema":{{"type":"object","properties":{{"p":{prop}}}}}}}'
    )
    assert isinstance(form, Form), form
    (field,) = form.fields
    return field


@pytest.mark.parametrize(
    ("prop", "field"),
    [
        (
            f'{{"type":"string",{ABOUT},"format":"email","minLength":0,"maxLength":9,"default":"d"}}',
            StringField("p", "T", "D", Format.EMAIL, None, 0, 9, "d"),
        ),
        ('{"type":"string"}', StringField("p", None, None, None, None, None, None, None)),
        (
            f'{{"type":"integer",{ABOUT},"minimum":1,"maximum":9.0,"default":2}}',
            NumberField("p", "T", "D", True, Number("1"), Number("9.0"), Number("2")),
        ),
        (
            f'{{"type":"number",{ABOUT},"minimum":"1","maximum":true,"default":2.5}}',
            NumberField("p", "T", "D", False, None, None, Number("2.5")),
        ),
        (f'{{"type":"boolean",{ABOUT},"default":false}}', BooleanField("p", "T", "D", False)),
        ('{"type":"boolean"}', BooleanField("p", None, None, None)),
        (
            f'{{"type":"array",{ABOUT},"items":{{"type":"string","enum":["a","b"]}},{MANY}}}',
            ListField("p", "T", "D", (Option("a"), Option("b")), 1, 2, True, ("a",)),
        ),
        (
            '{"type":"array","items":{"type":"string"},"uniqueItems":"yes"}',
            ListField("p", None, None, None, None, None, False, None),
        ),
    ],
)
def test_a_field_has_all_that_binds_and_all_that_is_shown(prop: str, field: FormField) -> None:
    assert field_of(prop) == field


@pytest.mark.parametrize(
    ("prop", "canonical"),
    [
        ('{"type":"string","minLength":1}', '{"type":"string"}'),
        ('{"type":"string","format":"E-Mail"}', '{"type":"string","format":"email"}'),
        (
            '{"type":"string","oneOf":[{"const":"a","title":"A"}],"default":"a"}',
            '{"type":"string","enum":["a"],"default":"a"}',
        ),
        ('{"type":"integer","default":2.0}', '{"type":"integer","default":2.0}'),
        ('{"type":"number","default":1e400}', '{"type":"number","default":1e400}'),
        ('{"type":"boolean","default":false}', '{"type":"boolean","default":false}'),
        (
            '{"type":"array","items":{"type":"string"},"enum":["a","b"],"default":["b"]}',
            '{"type":"array","items":{"type":"string","enum":["a","b"]},"default":["b"]}',
        ),
        (
            '{"type":"array","items":{"type":"string"}}',
            '{"type":"array","items":{"type":"string"}}',
        ),
    ],
)
def test_the_canonical_property(prop: str, canonical: str) -> None:
    assert dump(canonical_property(field_of(prop))) == canonical


@pytest.mark.parametrize(
    ("bound", "size"),
    [
        ("0", 0),
        ("2.0", 2),
        ("1e1", 10),
        ("1000000000", 10**9),
        ("1000000001", None),
        ("1e999999999", None),
        ("-1", None),
        ("-0", 0),
        ("2.5", None),
        ("null", None),
        ('"3"', None),
    ],
)
def test_a_bound_of_a_length(bound: str, size: int | None) -> None:
    field = field_of(f'{{"type":"string","minLength":{bound}}}')
    assert isinstance(field, StringField)
    assert field.min_length == size


@pytest.mark.parametrize(
    ("prop", "options"),
    [
        ('{"type":"string","enum":["a","b"],"enumNames":["A"]}', (Option("a"), Option("b"))),
        ('{"type":"string","enum":["a"],"enumNames":[1]}', (Option("a"),)),
        ('{"type":"string","anyOf":[{"const":"a","title":1}]}', (Option("a"),)),
        # oneOf is looked at before anyOf.
        ('{"type":"string","anyOf":[{"const":"a"}],"oneOf":[{"const":"b"}]}', (Option("b"),)),
        ('{"type":"string","enum":["a"],"oneOf":[{"const":"z"}]}', (Option("a"),)),
        # Options of the items win over those on the array.
        (
            '{"type":"array","enum":["z"],"items":{"oneOf":[{"const":"a","description":"d"}]}}',
            (Option("a", None, "d"),),
        ),
        ('{"type":"array","items":{"type":"string","anyOf":[{"const":"a"}]}}', (Option("a"),)),
        (
            f'{{"type":"array","items":{{"type":"string","enum":["b","a"],"oneOf":{TITLED}}}}}',
            (Option("b"), Option("a", "A")),
        ),
    ],
)
def test_options_in_all_their_spellings(prop: str, options: tuple[Option, ...]) -> None:
    field = field_of(prop)
    assert isinstance(field, StringField | ListField)
    assert field.options == options


def test_a_default_list_within_its_options_stays() -> None:
    inside = field_of('{"type":"array","items":{"enum":["a","b"],"type":"string"},"default":[]}')
    assert isinstance(inside, ListField)
    assert inside.default == ()


@pytest.mark.parametrize(
    ("prop", "fault"),
    [
        ('{"type":"array","items":{"items":{}}}', FormFault.NESTED),
        ('{"type":"array","properties":{},"items":{"type":"string"}}', FormFault.NESTED),
        ('{"type":"array"}', FormFault.ARRAY_ITEMS_NOT_STRING),
        ('{"type":"array","items":{"enum":["a"]}}', FormFault.ARRAY_ITEMS_NOT_STRING),
        (
            '{"type":"array","items":{"type":"integer","oneOf":[{"const":"a"}]}}',
            FormFault.ARRAY_ITEMS_NOT_STRING,
        ),
        ('{"type":"string","oneOf":[]}', FormFault.ONE_OF_NEEDS_CONST),
        ('{"type":"string","oneOf":{}}', FormFault.ONE_OF_NEEDS_CONST),
        ('{"type":"string","oneOf":[{"title":"A"}]}', FormFault.ONE_OF_NEEDS_CONST),
        ('{"type":"boolean","oneOf":[{"const":"a"}]}', FormFault.OPTIONS_NEED_STRING_TYPE),
        ('{"type":"string","enum":["a",1]}', FormFault.ENUM_NOT_STRINGS),
        ('{"type":"array","items":{"type":"string","enum":[]}}', FormFault.ITEMS_ENUM_NOT_STRINGS),
        ('{"type":"array","items":{"type":"string"},"title":"PIN token"}', FormFault.SECRET_SHAPED),
    ],
)
def test_what_no_form_has_is_told_with_its_property(prop: str, fault: FormFault) -> None:
    parsed = parse_form_text(
        f'{{"message":"m","requestedSchema":{{"type":"object","properties":{{"p":{prop}}}}}}}'
    )
    assert parsed == UnsupportedForm(fault, "p")


def test_required_names_and_the_message_survive() -> None:
    form = parse_form_text(
        '{"message":" Where to? ","requestedSchema":{"type":"object","properties":'
        '{"a":{"type":"string"},"b":{"type":"string"}},"required":["b"]}}'
    )
    assert isinstance(form, Form)
    assert (form.message, form.required) == (" Where to? ", frozenset({"b"}))


@pytest.mark.parametrize(
    ("name", "format"),
    [
        ("email", Format.EMAIL),
        (" URL ", Format.URI),
        ("DateTime", Format.DATE_TIME),
        ("text-area", Format.MULTILINE),
        ("crontab", Format.CRON),
        ("hologram", None),
    ],
)
def test_formats_are_known_in_any_spelling(name: str, format: Format | None) -> None:
    assert canonical_format(name) is format


def test_a_format_that_is_no_text_is_none() -> None:
    assert canonical_format(Number("1")) is None
    assert canonical_format(None) is None


def test_any_text_is_multiline_and_spaces_round_a_schedule_are_nothing() -> None:
    assert fits_format("one\ntwo", Format.MULTILINE)
    assert fits_format(" @daily\n", Format.CRON)
