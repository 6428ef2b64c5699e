"""The building blocks of a script's schema: strict models, durations, templates, JSON values."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, ClassVar, TypeAlias

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, model_validator
from pydantic_core import PydanticCustomError

from runner_service.agents.placeholders import PlaceholderError, paths_in
from turngate_core.json_text import JsonValue
from turngate_core.number import Number
from turngate_core.schema import Schema, SchemaError

_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0}

ROOTS = frozenset(
    {
        "results",
        "errors",
        "outcomes",
        "user",
        "match",
        "session",
        "run",
        "turn",
        "model_input",
        "arguments",
        "call",
        "count",
    }
)


def problem(kind: str, text: str, *at: str | int) -> PydanticCustomError:
    """An error of a script; `at` leads from the model to the entry that it is about."""
    # The text goes in by value: pydantic would read braces in it as fields.
    return PydanticCustomError(kind, "{text}", {"text": text, "at": at})


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """` (did you mean …?)`, or nothing if no known word is near."""
    close = difflib.get_close_matches(word, list(known), n=1)
    return f" (did you mean {close[0]}?)" if close else ""


class ScriptModel(BaseModel):
    """A mapping of a script: unknown keys are refused, and what belongs together is checked.

    `one_of`: exactly one of these keys has to be there, or at most one if `may_lack_all`.
    """

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, arbitrary_types_allowed=True
    )

    one_of: ClassVar[tuple[str, ...]] = ()
    may_lack_all: ClassVar[bool] = False

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            raise problem("not_a_mapping", "must be a mapping of keys to values")
        for key in data:
            if key not in cls.model_fields:
                guess = did_you_mean(key, cls.model_fields)
                keys = "" if guess else f"; known here are {', '.join(cls.model_fields)}"
                raise problem("unknown_key", f"unknown key {key!r}{guess}{keys}", key)
        given = [key for key in cls.one_of if key in data]
        if len(given) > 1:
            raise problem("one_of", f"{given[0]} and {given[1]} exclude each other", given[1])
        if cls.one_of and not given and not cls.may_lack_all:
            raise problem("one_of", f"one of {', '.join(cls.one_of)} has to be there")
        return data


def _seconds(value: object) -> float:
    match = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise problem("duration", "must be a duration such as 200ms, 1.5s or 2m")
    return float(match.group(1)) * _SECONDS[match.group(2)]


def _template(text: str) -> str:
    try:
        for path in paths_in(text):
            if path.root not in ROOTS:
                guess = did_you_mean(path.root, ROOTS)
                known = "" if guess else f"; known are {', '.join(sorted(ROOTS))}"
                raise problem("placeholder", f"nothing is named {path.root!r}{guess}{known}")
    except PlaceholderError as error:
        raise problem("placeholder", str(error)) from error
    return text


def _json_value(value: Any) -> JsonValue:
    match value:
        case None | bool() | Number():
            return value
        case str():
            return _template(value)
        case int():
            return Number(str(value))
        case list():
            return [_json_value(item) for item in value]
        case dict():
            return {_template(key): _json_value(item) for key, item in value.items()}
    raise problem("json", "is no value that JSON knows")


def _json_object(value: Any) -> dict[str, JsonValue]:
    checked = _json_value(value)
    if not isinstance(checked, dict):
        raise problem("json", "must be a mapping")
    return checked


def _regular_expression(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise problem("regex", f"is no regular expression: {error}") from error
    return text


def check_schema(text: str, key: str = "input_schema") -> None:
    """Raise the script's error for text that is no JSON Schema; `key`: where it stands."""
    try:
        Schema(text)
    except SchemaError as error:
        raise problem("schema", str(error), key) from error


# Written as text, held as seconds.
Duration: TypeAlias = Annotated[float, BeforeValidator(_seconds)]
# A text with placeholders.
Template: TypeAlias = Annotated[str, AfterValidator(_template)]
Regex: TypeAlias = Annotated[str, AfterValidator(_regular_expression)]
# A JSON value whose texts may have placeholders; numbers digit for digit.
Json: TypeAlias = Annotated[Any, BeforeValidator(_json_value)]
JsonObject: TypeAlias = Annotated[Any, BeforeValidator(_json_object)]
