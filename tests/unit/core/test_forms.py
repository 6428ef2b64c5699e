"""B1: payloads of forms, in canonical form or with the reason why not."""

from __future__ import annotations

import pytest

from turngate_core.form_fields import Form, ListField, NumberField, Option, StringField
from turngate_core.formats import Format, fits_format
from turngate_core.forms import FormFault, UnsupportedForm, parse_form_text
from turngate_core.secret_words import asks_for_secret


def payload(properties: str, required: str = "[]") -> str:
    return (
        '{"message":"m","requestedSchema":{"type":"object","properties":'
        f'{{{properties}}},"required":{required}}}}}'
    )


def form_of(properties: str, required: str = "[]") -> Form:
    form = parse_form_text(payload(properties, required))
    assert isinstance(form, Form), form
    return form


def fault_of(text: str) -> tuple[FormFault, str | None]:
    form = parse_form_text(text)
    assert isinstance(form, UnsupportedForm), form
    return form.fault, form.field


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", FormFault.MESSAGE_MISSING),  # empty text is `{}` (T2)
        ("{", FormFault.NOT_AN_OBJECT),
        ("null", FormFault.NOT_AN_OBJECT),
        ('{"message":1}', FormFault.MESSAGE_MISSING),
        ('{"message":"m","requestedSchema":null}', FormFault.SCHEMA_MISSING),
        ('{"message":"m","requestedSchema":[]}', FormFault.SCHEMA_MISSING),
        ('{"message":"m","requestedSchema":{"properties":{}}}', FormFault.SCHEMA_ROOT_TYPE),
        ('{"message":"m","requestedSchema":{"type":"object"}}', FormFault.PROPERTIES_EMPTY),
        (payload(""), FormFault.PROPERTIES_EMPTY),
    ],
)
def test_payloads_that_are_no_form(text: str, fault: FormFault) -> None:
    assert fault_of(text) == (fault, None)


@pytest.mark.parametrize(
    ("prop", "fault"),
    [
        ("true", FormFault.PROPERTY_NOT_OBJECT),
        ('{"type":["string","null"]}', FormFault.TYPE_UNSUPPORTED),
        ('{"type":"null"}', FormFault.TYPE_UNSUPPORTED),
        ('{"type":"object","properties":{}}', FormFault.TYPE_UNSUPPORTED),
        ('{"type":"string","properties":{"x":{}}}', FormFault.NESTED),
        ('{"type":"string","items":{"type":"string"}}', FormFault.NESTED),
        ('{"type":"array","items":{"type":"string","properties":{}}}', FormFault.NESTED),
        ('{"type":"array","items":[]}', FormFault.ARRAY_ITEMS_NOT_STRING),
        ('{"type":"array","items":{}}', FormFault.ARRAY_ITEMS_NOT_STRING),
        ('{"type":"array","items":{"type":"object"}}', FormFault.ARRAY_ITEMS_NOT_STRING),
        (
            '{"type":"array","items":{"type":"string"},"enum":[1]}',
            FormFault.ITEMS_ENUM_NOT_STRINGS,
        ),
        (
            '{"type":"array","items":{"type":"string"},"default":"x"}',
            FormFault.ARRAY_DEFAULT_NOT_STRINGS,
        ),
        (
            '{"type":"array","items":{"type":"string"},"default":[1]}',
            FormFault.ARRAY_DEFAULT_NOT_STRINGS,
        ),
        ('{"type":"array","items":{"anyOf":[{"const":1}]}}', FormFault.ONE_OF_NEEDS_CONST),
        ('{"type":"string","oneOf":["a"]}', FormFault.ONE_OF_NEEDS_CONST),
        ('{"type":"number","enum":[1]}', FormFault.OPTIONS_NEED_STRING_TYPE),
        ('{"type":"string","enum":"a"}', FormFault.ENUM_NOT_STRINGS),
        ('{"type":"string","enum":[]}', FormFault.ENUM_NOT_STRINGS),
        ('{"type":"string","default":1}', FormFault.DEFAULT_TYPE_MISMATCH),
        ('{"type":"string","enum":["a"],"default":1}', FormFault.DEFAULT_TYPE_MISMATCH),
        ('{"type":"integer","default":2.5}', FormFault.DEFAULT_TYPE_MISMATCH),
        ('{"type":"integer","default":"2"}', FormFault.DEFAULT_TYPE_MISMATCH),
        ('{"type":"number","default":true}', FormFault.DEFAULT_TYPE_MISMATCH),
        ('{"type":"boolean","default":0}', FormFault.DEFAULT_TYPE_MISMATCH),
        ('{"type":"string","title":"Your API key"}', FormFault.SECRET_SHAPED),
    ],
)
def test_properties_that_no_form_has(prop: str, fault: FormFault) -> None:
    assert fault_of(payload(f'"p":{prop}')) == (fault, "p")


def test_first_property_decides_and_structure_comes_before_secrecy() -> None:
    assert fault_of(payload('"ok":{"type":"string"},"password":{},"b":1')) == (
        FormFault.TYPE_UNSUPPORTED,
        "password",
    )
    assert fault_of(payload('"password":{"type":"string"},"b":1'))[0] is FormFault.SECRET_SHAPED
    assert fault_of(payload('"password":{"type":"string"}', '["ghost"]'))[1] == "password"


@pytest.mark.parametrize(
    ("required", "fault"),
    [
        ("null", FormFault.REQUIRED_NOT_STRING_LIST),
        ("[1]", FormFault.REQUIRED_NOT_STRING_LIST),
        ('["ghost"]', FormFault.REQUIRED_UNKNOWN),
    ],
)
def test_required(required: str, fault: FormFault) -> None:
    assert fault_of(payload('"p":{"type":"string"}', required))[0] is fault


def test_a_default_outside_the_options_is_dropped() -> None:
    form = form_of(
        '"s":{"type":"string","enum":["a"],"default":"b"},'
        '"l":{"type":"array","items":{"type":"string","enum":["a"]},"default":["a","b"]},'
        '"k":{"type":"string","enum":["a"],"default":"a"}'
    )
    s, many, k = form.fields
    assert isinstance(s, StringField)
    assert isinstance(many, ListField)
    assert isinstance(k, StringField)
    assert (s.default, many.default, k.default) == (None, None, "a")


def test_an_integral_default_fits_an_integer_however_it_is_written() -> None:
    (field,) = form_of('"n":{"type":"integer","default":2.0}').fields
    assert isinstance(field, NumberField)
    assert field.default is not None
    assert field.default.literal == "2.0"


def test_titles_of_options_survive() -> None:
    """MCP has three spellings: described options, `enumNames`, described items."""
    form = form_of(
        '"a":{"type":"string","oneOf":[{"const":"x","title":"X","description":"d"}]},'
        '"b":{"type":"string","enum":["x"],"enumNames":["X"]},'
        '"c":{"type":"array","items":{"anyOf":[{"const":"x","title":"X"}]}}'
    )
    options = [field.options for field in form.fields if isinstance(field, StringField | ListField)]
    assert options == [(Option("x", "X", "d"),), (Option("x", "X"),), (Option("x", "X"),)]


def test_declared_options_win_over_described_and_misplaced_ones() -> None:
    form = form_of(
        '"a":{"type":"string","enum":["p"],"oneOf":[{"const":"p","title":"P"},{"const":"q"}]},'
        '"b":{"type":"array","items":{"type":"string"},"oneOf":[{"const":"p"}]}'
    )
    a, b = form.fields
    assert isinstance(a, StringField)
    assert isinstance(b, ListField)
    assert (a.options, b.options) == ((Option("p", "P"),), (Option("p"),))


def test_bounds_that_are_none_bind_nothing() -> None:
    (field,) = form_of('"s":{"type":"string","minLength":-1,"maxLength":"3"}').fields
    assert isinstance(field, StringField)
    assert (field.min_length, field.max_length) == (None, None)


def test_names_like_those_of_object_prototypes_are_names() -> None:
    assert form_of('"__proto__":{"type":"string"}').fields[0].name == "__proto__"


@pytest.mark.parametrize(
    "name",
    [
        "password",
        "PASSWORD",
        "userPassword",
        "user_passwd",
        "pass-code is no word, passcode is",
        "passPhrase",
        "client secret",
        "credentials",
        "accessToken",
        "token1",
        "token_budget_token",
        "apiKey",
        "APIKey",
        "apikey",
        "API-Key",
        "MY_API_KEY",
        "access  key",
        "privateKey2",
        "\uff50\uff41\uff53\uff53\uff57\uff4f\uff52\uff44",
    ],
)
def test_names_that_ask_for_a_secret(name: str) -> None:
    assert asks_for_secret(name)


@pytest.mark.parametrize(
    "name",
    [
        "token_budget",
        "token count",
        "tokenCount",
        "secretary",
        "passwordless",
        "tokenizer",
        "key",
        "api",
        "keyApi",
        "monkey",
        "accesskeyboard",
        "public key",
        "",
        "passport",
    ],
)
def test_names_that_do_not(name: str) -> None:
    assert not asks_for_secret(name)


@pytest.mark.parametrize(
    ("format", "good", "bad"),
    [
        (Format.EMAIL, "a@b.se", "a.b.se"),
        (Format.URI, "https://x.y/z?q", "no uri"),
        (Format.DATE, "2024-02-29", "2023-02-29"),
        (Format.DATE_TIME, "2024-02-29T10:00:00Z", "2024-02-29"),
        (Format.TIME, "10:00:00Z", "25:00:00Z"),
        (Format.CRON, "*/5 0 1,15 * MON-FRI", "every day"),
        (Format.CRON, "@daily", "* * * *"),
    ],
)
def test_formats_bind(format: Format, good: str, bad: str) -> None:
    assert fits_format(good, format)
    assert not fits_format(bad, format)


def test_the_model_is_told_which_property_is_wrong() -> None:
    form = parse_form_text(payload('"place":{"type":"object"}'))
    assert isinstance(form, UnsupportedForm)
    assert form.text.startswith('property "place": ')
