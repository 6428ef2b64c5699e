"""B1, B2, F1, R4: what a person reads about an answer that does not fit, word for word.

Clients show these texts beside the field, and models repair their calls by them.
"""

from __future__ import annotations

import pytest

from turngate_core.connection import (
    ConnectionFault,
    ConnectionRequest,
    parse_connection_text,
    validate_connection_answer,
)
from turngate_core.form_answers import validate_form_answer, validate_unsupported_form_answer
from turngate_core.form_fields import Form
from turngate_core.forms import FormFault, UnsupportedForm, parse_form_text
from turngate_core.json_text import JsonLimits
from turngate_core.schema import Schema, SchemaError, validate
from turngate_core.violations import Violation, pointer

SMALL = JsonLimits(max_bytes=10)


def form(prop: str, required: str = "") -> Form:
    parsed = parse_form_text(
        f'{{"message":"m","requestedSchema":{{"type":"object","properties":{{"p":{prop}}},'
        f'"required":[{required}]}}}}'
    )
    assert isinstance(parsed, Form), parsed
    return parsed


TEXT = '{"type":"string","minLength":2,"maxLength":4}'
CHOICE = '{"type":"string","enum":["a"]}'
MAIL = '{"type":"string","format":"email"}'
COUNT = '{"type":"integer","minimum":1,"maximum":3}'
PRICE = '{"type":"number","minimum":0.5,"maximum":1.50}'
SURE = '{"type":"boolean"}'
TAGS = '{"type":"array","items":{"type":"string"},"minItems":2,"maxItems":3,"uniqueItems":true}'
PICKS = '{"type":"array","items":{"type":"string","enum":["a","b"]}}'


@pytest.mark.parametrize(
    ("prop", "value", "reason", "message"),
    [
        (TEXT, "1", "wrong_type", "must be a text"),
        (TEXT, '"a"', "too_short", "must have at least 2 characters"),
        (TEXT, '"abcde"', "too_long", "must have at most 4 characters"),
        (CHOICE, '"b"', "not_an_option", "must be one of the options"),
        (MAIL, '"b"', "wrong_format", "must be of the format email"),
        (COUNT, '"1"', "wrong_type", "must be a number"),
        (COUNT, "1.5", "wrong_type", "must be an integer"),
        (COUNT, "0", "too_small", "must be at least 1"),
        (COUNT, "4", "too_large", "must be at most 3"),
        (PRICE, "0.49", "too_small", "must be at least 0.5"),
        (PRICE, "1.51", "too_large", "must be at most 1.50"),
        (SURE, '"yes"', "wrong_type", "must be true or false"),
        (TAGS, '"a"', "wrong_type", "must be a list of texts"),
        (TAGS, '["a",1]', "wrong_type", "must be a list of texts"),
        (TAGS, '["a","a"]', "not_unique", "must not hold a text twice"),
        (TAGS, '["a"]', "too_few", "must hold at least 2"),
        (TAGS, '["a","b","c","d"]', "too_many", "must hold at most 3"),
        (PICKS, '["a","c"]', "not_an_option", "must hold only options"),
    ],
)
def test_b1_a_value_that_does_not_fit(prop: str, value: str, reason: str, message: str) -> None:
    output = f'{{"action":"accept","content":{{"p":{value}}}}}'
    assert validate_form_answer(form(prop), output) == [Violation("/content/p", reason, message)]


@pytest.mark.parametrize(
    ("prop", "values"),
    [
        (TEXT, ['"ab"', '"abcd"']),
        (COUNT, ["1", "3"]),
        (PRICE, ["0.5", "1.5"]),
        (TAGS, ['["a","b"]', '["a","b","c"]']),
        (PICKS, ['["a"]', '["b","a","b"]']),
        ('{"type":"string"}', ['"any"', '"x"']),
        ('{"type":"number"}', ["-1e999", "0.1"]),
        ('{"type":"array","items":{"type":"string"}}', ['["a","a","a","a"]', '["x"]']),
    ],
)
def test_b1_bounds_belong_to_the_range_and_what_is_not_set_binds_nothing(
    prop: str, values: list[str]
) -> None:
    for value in values:
        output = f'{{"action":"accept","content":{{"p":{value}}}}}'
        assert validate_form_answer(form(prop), output) == []


@pytest.mark.parametrize(
    ("output", "path", "reason", "message"),
    [
        ("[]", "", "not_an_object", "must be an object"),
        (
            "{",
            "",
            "not_json",
            "expecting property name enclosed in double quotes at line 1 column 2",
        ),
        ('{"action":"ok"}', "/action", "action_unknown", "must be accept, decline or cancel"),
        ('{"action":"cancel","note":1}', "/note", "wrong_type", "must be a text"),
        ('{"action":"cancel","content":1}', "/content", "wrong_type", "must be an object"),
        ('{"action":"accept"}', "/content/p", "required", "is required"),
        (
            '{"action":"cancel","x":1}',
            "/x",
            "unknown_key",
            "unknown key; an answer has action, content and note",
        ),
        (
            '{"action":"accept","content":{"p":"a","q":1}}',
            "/content/q",
            "unknown_field",
            "the form has no such field",
        ),
    ],
)
def test_b1_an_answer_that_is_none(output: str, path: str, reason: str, message: str) -> None:
    needed = form('{"type":"string"}', '"p"')
    assert validate_form_answer(needed, output) == [Violation(path, reason, message)]


def test_d2_an_answer_to_an_unsupported_form() -> None:
    assert validate_unsupported_form_answer("1") == [
        Violation("", "not_an_object", "must be an object")
    ]


def test_t2_limits_hold_for_answers() -> None:
    """As the caller sets them: the service's, not the default ones."""
    too_large = [
        Violation("", "too_large", "32 bytes, at most 10 are accepted at line 1 column 11")
    ]
    output = '{"connected":true,"action":"aaa"}'[:32]
    assert validate_form_answer(form(TEXT), output, SMALL) == too_large
    assert validate_unsupported_form_answer(output, SMALL) == too_large
    assert validate_connection_answer(ConnectionRequest("x"), output, SMALL) == too_large
    assert Schema("true").violations(output, SMALL) == too_large
    assert validate("true", output, SMALL) == too_large
    with pytest.raises(SchemaError, match="at most 10 are accepted"):
        Schema('{"type":"object"}', SMALL)


@pytest.mark.parametrize(
    ("answer", "path", "reason", "message"),
    [
        ("1", "", "not_an_object", "must be an object"),
        (
            "{",
            "",
            "not_json",
            "expecting property name enclosed in double quotes at line 1 column 2",
        ),
        ('{"integration":"mail"}', "/connected", "wrong_type", "must be true or false"),
        ('{"connected":true}', "/integration", "other_integration", "must be mail"),
        ('{"connected":true,"integration":"mail","x":1}', "/x", "unknown_key", "unknown key"),
        (
            '{"connected":true,"integration":"mail","token":"a"}',
            "/token",
            "credential",
            "credentials are never taken, only references to them",
        ),
        (
            '{"connected":true,"integration":"mail","reference":"sk-abcdefghijklmnop"}',
            "/reference",
            "credential",
            "credentials are never taken, only references to them",
        ),
        (
            '{"connected":true,"integration":"mail","detail":1}',
            "/detail",
            "wrong_type",
            "must be a text",
        ),
        (
            '{"connected":true,"integration":"mail","reason":"failed"}',
            "/reason",
            "reason_of_success",
            "is only for what was not connected",
        ),
        (
            '{"connected":false,"integration":"mail","reason":"no"}',
            "/reason",
            "reason_unknown",
            "must be declined, cancelled, timeout or failed",
        ),
    ],
)
def test_b2_an_answer_to_a_connection(answer: str, path: str, reason: str, message: str) -> None:
    found = validate_connection_answer(ConnectionRequest("mail"), answer)
    assert found == [Violation(path, reason, message)]


def test_b2_each_wrong_field_is_named_once_known_ones_first() -> None:
    answer = '{"x":1,"detail":2,"reason":"no","y":3,"reference":4}'
    found = validate_connection_answer(ConnectionRequest("mail"), answer)
    assert [violation.path for violation in found] == [
        "/connected",
        "/integration",
        "/reference",
        "/reason",
        "/detail",
        "/x",
        "/y",
    ]


def test_b2_null_is_left_out() -> None:
    answer = '{"connected":true,"integration":"mail","reason":null,"detail":null,"reference":null}'
    assert validate_connection_answer(ConnectionRequest("mail"), answer) == []


@pytest.mark.parametrize(
    ("arguments", "parsed"),
    [
        ("[]", ConnectionFault.NOT_AN_OBJECT),
        ("{", ConnectionFault.NOT_AN_OBJECT),
        ("", ConnectionFault.INTEGRATION_MISSING),  # empty text is `{}` (T2)
        ('{"integration":" "}', ConnectionFault.INTEGRATION_MISSING),
        ('{"integration":1}', ConnectionFault.INTEGRATION_MISSING),
        ('{"integration":"mail","scopes":["read"]}', ConnectionRequest("mail")),
    ],
)
def test_b2_what_a_payload_asks_for(
    arguments: str, parsed: ConnectionRequest | ConnectionFault
) -> None:
    assert parse_connection_text(arguments) == parsed


@pytest.mark.parametrize(
    ("schema", "text", "path", "reason", "message"),
    [
        ('{"required":["a"]}', "{}", "/a", "required", "is required"),
        (
            '{"properties":{"a":true},"additionalProperties":false}',
            '{"b":1}',
            "/b",
            "unknown_property",
            "the schema has no such property",
        ),
        ('{"type":"string"}', "1", "", "type", '1 is not of type "string"'),
        (
            "true",
            "1e99999999999999999999999",
            "",
            "number_out_of_range",
            "holds a number out of any range",
        ),
        ("true", "[1", "", "not_json", "expecting ',' delimiter at line 1 column 3"),
    ],
)
def test_r4_arguments_that_do_not_fit(
    schema: str, text: str, path: str, reason: str, message: str
) -> None:
    assert validate(schema, text) == [Violation(path, reason, message)]


def test_r4_only_the_first_violation_of_a_place_is_told() -> None:
    found = validate('{"type":"string","const":"a"}', "1")
    assert len(found) == 1


def test_r4_formats_are_checked_and_nested_values_too() -> None:
    schema = '{"properties":{"a":{"items":{"format":"email","type":"string"}}}}'
    assert validate(schema, '{"a":["a@b.se"]}') == []
    found = validate(schema, '{"a":["a@b.se","nobody",7]}')
    assert [(v.path, v.reason) for v in found] == [("/a/1", "format"), ("/a/2", "type")]


@pytest.mark.parametrize(("length", "shown"), [(200, 200), (201, 200)])
def test_e2_a_long_message_is_cut_at_200_characters(length: int, shown: int) -> None:
    text = "x" * (length - len('"" is not of type "number"'))
    (violation,) = validate('{"type":"number"}', f'"{text}"')
    assert len(violation.message) == shown
    assert violation.message.endswith("..." if length > shown else '" is not of type "number"')


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ("{", "the schema is no JSON: expecting property name enclosed in double quotes at line 1"),
        ("3", "a schema must be an object, true or false"),
        ('{"pattern":"("}', "not a JSON Schema: "),
    ],
)
def test_r4_a_schema_that_is_none_says_why(schema: str, told: str) -> None:
    with pytest.raises(SchemaError) as refused:
        Schema(schema)
    assert str(refused.value).startswith(told)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("payload", "told"),
    [
        ("[]", "the arguments must be an object"),
        ("{}", "message must be a text that is not blank"),
        ('{"message":" "}', "message must be a text that is not blank"),
    ],
)
def test_d2_a_model_is_told_what_is_wrong_with_the_whole(payload: str, told: str) -> None:
    parsed = parse_form_text(payload)
    assert isinstance(parsed, UnsupportedForm)
    assert parsed.text == told
    assert parsed.field is None


def test_d2_a_required_name_without_a_property_is_named() -> None:
    parsed = parse_form_text(
        '{"message":"m","requestedSchema":{"type":"object","properties":{"a":{"type":"string"}},'
        '"required":["a","ghost"]}}'
    )
    assert parsed == UnsupportedForm(FormFault.REQUIRED_UNKNOWN, "ghost")


def test_a_pointer_escapes_what_rfc_6901_escapes() -> None:
    assert pointer() == ""
    assert pointer("a/b", "~", 0) == "/a~1b/~0/0"
    assert pointer("~1") == "/~01"
