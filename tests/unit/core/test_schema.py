"""R4, T2: JSON Schema over JSON text, exact and bounded."""

from __future__ import annotations

import pytest

from turngate_core.schema import MAX_VIOLATIONS, Schema, SchemaError, validate

SCHEMA = """{"type": "object", "required": ["id"], "additionalProperties": false, "properties": {
  "id": {"type": "integer", "maximum": 9007199254740992},
  "pin": {"const": 9007199254740993},
  "name": {"type": "string", "pattern": "^(a+)+$"},
  "tags": {"type": "array", "items": {"type": "string"}}}}"""


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ('{"id":1}', {}),
        ('{"id":1.0}', {}),
        ('{"id":9007199254740992,"pin":9007199254740993}', {}),
        ("{}", {"/id": "required"}),
        ('{"id":9007199254740993}', {"/id": "maximum"}),
        ('{"id":1e999999999}', {"/id": "maximum"}),
        ('{"id":1,"pin":9007199254740992}', {"/pin": "const"}),
        ('{"id":"1","x/y":2}', {"/id": "type", "/x~1y": "unknown_property"}),
        ('{"id":1,"tags":["a",2]}', {"/tags/1": "type"}),
        ("[", {"": "not_json"}),
        ('{"id":1,"id":2}', {"": "duplicate_key"}),
        ('{"id":1e99999999999999999999999}', {"": "number_out_of_range"}),
    ],
)
def test_violations_name_place_and_reason(text: str, places: dict[str, str]) -> None:
    found = {violation.path: violation.reason for violation in validate(SCHEMA, text)}
    assert found == places


def test_patterns_take_linear_time() -> None:
    assert [v.reason for v in validate(SCHEMA, '{"id":1,"name":"' + "a" * 5000 + '!"}')] == [
        "pattern"
    ]


def test_violations_are_bounded() -> None:
    many = '{"tags":[' + ",".join(["1"] * 500) + "]}"
    violations = validate(SCHEMA, many)
    assert len(violations) == MAX_VIOLATIONS
    assert all(len(violation.message) <= 200 for violation in violations)


@pytest.mark.parametrize(
    "schema",
    [
        "{",
        "3",
        '{"type":"nope"}',
        '{"pattern":"("}',
        '{"$ref":"http://127.0.0.1:1/x"}',
        '{"$ref":"#/definitions/none"}',
        '{"type":"object","type":"object"}',
    ],
)
def test_what_is_no_schema_is_refused(schema: str) -> None:
    with pytest.raises(SchemaError):
        Schema(schema)


def test_nothing_is_ever_fetched() -> None:
    with pytest.raises(SchemaError, match="Retrieval is disabled"):
        Schema('{"$ref":"http://127.0.0.1:1/x"}')


def test_true_and_false_are_schemas() -> None:
    assert Schema("true").violations('{"a":1}') == []
    assert [v.path for v in Schema("false").violations("1")] == [""]


@pytest.mark.parametrize("pattern", ["(?=a)b", "(a)\\\\1"])
def test_a_pattern_that_takes_more_than_linear_time_is_refused(pattern: str) -> None:
    """Look-around and back references: a model's text would decide how long a check takes."""
    with pytest.raises(SchemaError, match="not a JSON Schema"):
        Schema(f'{{"pattern":"{pattern}"}}')
