"""B1, F1: answers to forms, with one violation a field."""

from __future__ import annotations

import pytest

from turngate_core.connection import ConnectionRequest, parse_connection_text
from turngate_core.connection import validate_connection_answer as connection_answer
from turngate_core.form_answers import validate_form_answer, validate_unsupported_form_answer
from turngate_core.form_fields import Form
from turngate_core.forms import parse_form_text

PAYLOAD = """{"message": "m", "requestedSchema": {"type": "object", "properties": {
  "place": {"type": "string", "minLength": 2, "maxLength": 5},
  "mail": {"type": "string", "format": "email"},
  "size": {"type": "string", "enum": ["s", "m"]},
  "count": {"type": "integer", "minimum": 1, "maximum": 9007199254740992},
  "price": {"type": "number", "minimum": 0.5},
  "sure": {"type": "boolean"},
  "tags": {"type": "array", "items": {"type": "string", "enum": ["a", "b", "c"]},
           "minItems": 1, "maxItems": 2, "uniqueItems": true},
  "a/b": {"type": "string", "maxLength": 1}
}, "required": ["place", "sure"]}}"""


def form() -> Form:
    parsed = parse_form_text(PAYLOAD)
    assert isinstance(parsed, Form)
    return parsed


def problems(output: str) -> dict[str, str]:
    violations = validate_form_answer(form(), output)
    found = {violation.path: violation.reason for violation in violations}
    assert len(found) == len(violations), "more than one violation for a field"
    return found


def content_problems(content: str, place: str = '"Visby"') -> dict[str, str]:
    comma = "," if content else ""
    base = f'"place":{place},"sure":false'
    return problems(f'{{"action":"accept","content":{{{base}{comma}{content}}}}}')


def test_a_fitting_answer() -> None:
    assert content_problems("") == {}
    assert (
        content_problems(
            '"mail":"a@b.se","size":"m","count":3.0,"price":5e-1,"tags":["a","b"],"a/b":"x"'
        )
        == {}
    )


@pytest.mark.parametrize("empty", ["null", '""', "[]"])
def test_required_is_present_and_not_empty(empty: str) -> None:
    assert content_problems("", place=empty) == {"/content/place": "required"}


@pytest.mark.parametrize("empty", ["null", '""', "[]"])
def test_an_empty_optional_field_counts_as_left_out(empty: str) -> None:
    assert content_problems(f'"mail":{empty},"size":{empty},"count":{empty},"tags":{empty}') == {}


def test_false_is_an_answer() -> None:
    assert content_problems("") == {}
    assert problems('{"action":"accept","content":{"place":"Visby"}}') == {
        "/content/sure": "required"
    }


@pytest.mark.parametrize("output", ['{"action":"accept"}', '{"action":"accept","content":null}'])
def test_accepting_without_content_misses_each_required_field(output: str) -> None:
    assert problems(output) == {"/content/place": "required", "/content/sure": "required"}


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_declining_and_cancelling_need_no_content(action: str) -> None:
    assert problems(f'{{"action":"{action}"}}') == {}
    assert problems(f'{{"action":"{action}","note":"why"}}') == {}
    assert problems(f'{{"action":"{action}","content":{{}},"note":null}}') == {}


@pytest.mark.parametrize(
    ("content", "path", "reason"),
    [
        ('"mail":"nobody"', "/content/mail", "wrong_format"),
        ('"mail":5', "/content/mail", "wrong_type"),
        ('"size":"xl"', "/content/size", "not_an_option"),
        ('"count":0', "/content/count", "too_small"),
        ('"count":1.5', "/content/count", "wrong_type"),
        ('"count":"3"', "/content/count", "wrong_type"),
        ('"count":true', "/content/count", "wrong_type"),
        ('"count":9007199254740993', "/content/count", "too_large"),  # exact beyond 2^53
        ('"count":1e999999999', "/content/count", "too_large"),
        ('"price":0.49999999999999999999999', "/content/price", "too_small"),
        ('"sure2":true', "/content/sure2", "unknown_field"),
        ('"tags":"a"', "/content/tags", "wrong_type"),
        ('"tags":["a",1]', "/content/tags", "wrong_type"),
        ('"tags":["a","z"]', "/content/tags", "not_an_option"),
        ('"tags":["a","a"]', "/content/tags", "not_unique"),
        ('"tags":["a","b","c"]', "/content/tags", "too_many"),
        ('"a/b":"xy"', "/content/a~1b", "too_long"),
    ],
)
def test_what_does_not_fit_is_named_by_field(content: str, path: str, reason: str) -> None:
    assert content_problems(content) == {path: reason}


@pytest.mark.parametrize(
    ("place", "reason"), [('"V"', "too_short"), ('"Visby!"', "too_long"), ('"😀😀😀😀😀"', None)]
)
def test_lengths_count_characters(place: str, reason: str | None) -> None:
    assert content_problems("", place=place).get("/content/place") == reason


def test_each_wrong_field_is_named_once() -> None:
    assert problems('{"action":"accept","content":{"place":1,"mail":2,"x":3}}') == {
        "/content/place": "wrong_type",
        "/content/mail": "wrong_type",
        "/content/sure": "required",
        "/content/x": "unknown_field",
    }


@pytest.mark.parametrize(
    ("output", "path", "reason"),
    [
        ("{", "", "not_json"),
        ('{"action":"accept","action":"cancel"}', "", "duplicate_key"),
        ('"accept"', "", "not_an_object"),
        ("{}", "/action", "action_unknown"),
        ('{"action":"Accept"}', "/action", "action_unknown"),
        ('{"action":["accept"]}', "/action", "action_unknown"),
        ('{"action":"cancel","extra":1}', "/extra", "unknown_key"),
        ('{"action":"cancel","note":1}', "/note", "wrong_type"),
        ('{"action":"cancel","content":[]}', "/content", "wrong_type"),
    ],
)
def test_the_answer_itself_has_a_form(output: str, path: str, reason: str) -> None:
    assert problems(output) == {path: reason}


def test_an_unsupported_form_takes_any_object() -> None:
    """D2: one that stays open."""
    assert validate_unsupported_form_answer('{"anything":[1]}') == []
    assert validate_unsupported_form_answer('{"action":"decline"}') == []
    assert [v.reason for v in validate_unsupported_form_answer("[]")] == ["not_an_object"]


def connection_problems(output: str) -> dict[str, str]:
    request = parse_connection_text('{"integration":"calendar"}')
    assert isinstance(request, ConnectionRequest)
    return {v.path: v.reason for v in connection_answer(request, output)}


def test_b2_fitting_connection_answers() -> None:
    assert (
        connection_problems('{"connected":true,"integration":"calendar","reference":"conn_42"}')
        == {}
    )
    for reason in ("declined", "cancelled", "timeout", "failed"):
        assert (
            connection_problems(
                f'{{"connected":false,"integration":"calendar","reason":"{reason}","detail":"d"}}'
            )
            == {}
        )


@pytest.mark.parametrize(
    ("output", "path", "reason"),
    [
        ('{"integration":"calendar"}', "/connected", "wrong_type"),
        ('{"connected":"true","integration":"calendar"}', "/connected", "wrong_type"),
        ('{"connected":true,"integration":"mail"}', "/integration", "other_integration"),
        ('{"connected":true}', "/integration", "other_integration"),
        (
            '{"connected":true,"integration":"calendar","reason":"failed"}',
            "/reason",
            "reason_of_success",
        ),
        (
            '{"connected":false,"integration":"calendar","reason":"bored"}',
            "/reason",
            "reason_unknown",
        ),
        ('{"connected":true,"integration":"calendar","x":1}', "/x", "unknown_key"),
        (
            '{"connected":true,"integration":"calendar","accessToken":"a"}',
            "/accessToken",
            "credential",
        ),
        (
            '{"connected":true,"integration":"calendar","reference":"Bearer abcdefghijklmn0p"}',
            "/reference",
            "credential",
        ),
        (
            '{"connected":true,"integration":"calendar","reference":"eyJhbGciOiJ9.eyJzdWIiOiIx.c"}',
            "/reference",
            "credential",
        ),
        (
            '{"connected":false,"integration":"calendar","detail":"see db://u:pw@host"}',
            "/detail",
            "credential",
        ),
        (
            '{"connected":true,"integration":"calendar","reference":{"id":1}}',
            "/reference",
            "wrong_type",
        ),
    ],
)
def test_b2_what_is_wrong_with_a_connection_answer(output: str, path: str, reason: str) -> None:
    assert connection_problems(output) == {path: reason}


@pytest.mark.parametrize("detail", ["basic authentication failed", "wrong password: try again"])
def test_b2_plain_words_are_no_credentials(detail: str) -> None:
    answer = f'{{"connected":false,"integration":"calendar","detail":"{detail}"}}'
    assert connection_problems(answer) == {}


@pytest.mark.parametrize("text", ["[]", "{}", '{"integration":" "}', '{"integration":1}', "{"])
def test_b2_a_payload_names_an_integration(text: str) -> None:
    assert not isinstance(parse_connection_text(text), ConnectionRequest)
