"""Does what came out match what a case expects?"""

from __future__ import annotations

from tests.conformance.case_files import JsonObject
from turngate_core.degradation import DEGRADED_PREFIX
from turngate_core.json_text import JsonValue
from turngate_core.number import Number, number_key


def matches(area: str, expected: JsonObject, got: JsonObject) -> bool:
    """True if everything that is expected came out; what a case does not name is not judged."""
    return all(_entry_matches(area, key, value, got) for key, value in expected.items())


def _entry_matches(area: str, key: str, expected: JsonValue, got: JsonObject) -> bool:
    if key not in got:
        return False
    match area, key:
        case "extraction", "verdicts":
            return _equal(_without_false_error(expected), got[key])
        case "elicitation", "canonical_properties":
            return _covers_each(expected, got[key])
        case "degrade", "settlements":
            return _settlements_match(expected, got[key])
        case _:
            return _equal(expected, got[key])


def _equal(expected: JsonValue, got: JsonValue) -> bool:
    match expected, got:
        case "<any>", _:
            return True
        case str(), str():
            return expected.replace("{{DEGRADED}}", DEGRADED_PREFIX) == got
        case Number(), Number():
            return number_key(expected) == number_key(got)
        case list(), list():
            return len(expected) == len(got) and all(map(_equal, expected, got))
        case dict(), dict():
            same_keys = expected.keys() == got.keys()
            return same_keys and all(_equal(value, got[key]) for key, value in expected.items())
        case _:
            return expected is got  # null, true and false


def _without_false_error(verdicts: JsonValue) -> JsonValue:
    """`is_error: false` says the same as its absence."""
    if not isinstance(verdicts, list):
        return verdicts
    return [
        {key: value for key, value in verdict.items() if (key, value) != ("is_error", False)}
        if isinstance(verdict, dict)
        else verdict
        for verdict in verdicts
    ]


def _covers_each(expected: JsonValue, got: JsonValue) -> bool:
    """Of each property that is named, the things that are named."""
    if not isinstance(expected, dict) or not isinstance(got, dict):
        return False
    return all(_covers(value, got.get(name)) for name, value in expected.items())


def _covers(expected: JsonValue, got: JsonValue) -> bool:
    if not isinstance(expected, dict) or not isinstance(got, dict):
        return False
    return all(key in got and _equal(value, got[key]) for key, value in expected.items())


def _settlements_match(expected: JsonValue, got: JsonValue) -> bool:
    if not isinstance(expected, list) or not isinstance(got, list) or len(expected) != len(got):
        return False
    return all(map(_settlement_matches, expected, got))


def _settlement_matches(expected: JsonValue, got: JsonValue) -> bool:
    if not isinstance(expected, dict) or not isinstance(got, dict):
        return False
    prefix = expected.get("prefix")
    if isinstance(prefix, str):
        value = got.get("value")
        whole = prefix.replace("{{DEGRADED}}", DEGRADED_PREFIX)
        if not isinstance(value, str) or not value.startswith(whole):
            return False
    return _covers({key: value for key, value in expected.items() if key != "prefix"}, got)
