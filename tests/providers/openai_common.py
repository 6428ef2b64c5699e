"""What both wires of OpenAI share: keys, models, errors, names of tools.

Errors have `{"error": {"message", "type", "param", "code"}}`: platform.openai.com/docs, guide
"Error codes". The wording is the service's own, as its users report it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field
from pydantic_core import ErrorDetails

from tests.providers.refusal import Refused
from tests.providers.script import Failure

# API reference, "function.name": a-z, A-Z, 0-9, or contain underscores and dashes, with a maximum
# length of 64.
ToolName = Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]+$", max_length=64)]


@dataclass(frozen=True, slots=True)
class Model:
    """`reasons`: a reasoning model; it takes other parameters than one that does not."""

    reasons: bool


MODELS = {
    "gpt-4.1": Model(reasons=False),
    "gpt-4o": Model(reasons=False),
    "gpt-5": Model(reasons=True),
    "gpt-5-mini": Model(reasons=True),
}


def check_key(headers: Mapping[str, str], key: str) -> None:
    """Guide "Error codes": 401, Invalid Authentication and Incorrect API key provided."""
    given = headers.get("authorization", "")
    if not given.startswith("Bearer ") or given == "Bearer ":
        raise Refused(
            401,
            "You didn't provide an API key. You need to provide your API key in an Authorization "
            "header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY).",
        )
    if given != f"Bearer {key}":
        raise Refused(401, f"Incorrect API key provided: {given[7:15]}***.", code="invalid_api_key")


def model_named(name: str) -> Model:
    """Guide "Error codes": a model that does not exist is a 404 with `model_not_found`."""
    if name not in MODELS:
        raise Refused(
            404,
            f"The model `{name}` does not exist or you do not have access to it.",
            code="model_not_found",
        )
    return MODELS[name]


def check_tool_names(names: Iterable[str], param: str) -> None:
    """Each tool has its name for itself.

    OpenAI documents no rule; a call could not be told apart. The fakes are stricter here.
    """
    seen: set[str] = set()
    for index, name in enumerate(names):
        if name in seen:
            raise Refused(400, f"Duplicate tool name: '{name}'.", param=f"{param}[{index}]")
        seen.add(name)


def check_schema(name: str, schema: object, strict: bool, place: str) -> None:
    """Guide "Function calling": parameters are a JSON schema of an object; and "Strict mode"."""

    def refused(why: str) -> Refused:
        return Refused(
            400,
            f"Invalid schema for function '{name}': {why}",
            param=place,
            code="invalid_function_parameters",
        )

    if schema is None:
        return
    if not isinstance(schema, dict) or schema.get("type") != "object":
        found = schema.get("type") if isinstance(schema, dict) else None
        raise refused(
            f"schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{found}\"'."
        )
    if not strict:
        return
    if schema.get("additionalProperties") is not False:
        raise refused(
            "In context=(), 'additionalProperties' is required to be supplied and to be false."
        )
    missing = set(schema.get("properties") or {}) - set(schema.get("required") or [])
    if missing:
        raise refused(
            "In context=(), 'required' is required to be supplied and to be an array including "
            f"every key in properties. Missing '{min(missing)}'."
        )


def fault(body: dict[str, Any], error: ErrorDetails) -> Refused:
    """A fault of the request's form in OpenAI's words; the codes are those of the service."""
    place = _place(body, error["loc"])
    context: dict[str, Any] = error.get("ctx", {})
    given = error["input"]
    match error["type"]:
        case "missing":
            return _bad(
                f"Missing required parameter: '{place}'.", place, "missing_required_parameter"
            )
        case "extra_forbidden":
            return _bad(f"Unknown parameter: '{place}'.", place, "unknown_parameter")
        case "literal_error" | "union_tag_invalid":
            expected = context.get("expected") or context["expected_tags"]
            value = context.get("tag", given)
            return _bad(
                f"Invalid value: '{value}'. Supported values are: {expected}.",
                place,
                "invalid_value",
            )
        case "string_pattern_mismatch":
            return _bad(
                f"Invalid '{place}': string does not match pattern. Expected a string that matches "
                f"the pattern '{context['pattern']}'.",
                place,
                "invalid_value",
            )
        case "string_too_long":
            return _bad(
                f"Invalid '{place}': string too long. Expected a string with maximum length "
                f"{context['max_length']}, but got a string with length {len(given)} instead.",
                place,
                "string_above_max_length",
            )
        case "string_too_short":
            return _bad(
                f"Invalid '{place}': empty string. Expected a string with minimum length 1, but "
                "got an empty string instead.",
                place,
                "empty_string",
            )
        case "too_short":
            return _bad(
                f"Invalid '{place}': empty array. Expected an array with minimum length 1, but got "
                "an empty array instead.",
                place,
                "empty_array",
            )
        case "too_long":
            return _bad(
                f"Invalid '{place}': array too long. Expected an array with maximum length "
                f"{context['max_length']}, but got an array with length "
                f"{context['actual_length']} instead.",
                place,
                "array_above_max_length",
            )
        case "greater_than_equal":
            return _bad(
                f"Invalid '{place}': integer below minimum value. Expected a value >= "
                f"{context['ge']}, but got {given} instead.",
                place,
                "integer_below_min_value",
            )
        case kind:
            expected = kind.removesuffix("_type")
            return _bad(
                f"Invalid type for '{place}': expected {_A.get(expected, expected)}, but got "
                f"{_A.get(type(given).__name__, type(given).__name__)} instead.",
                place,
                "invalid_type",
            )


_A = {
    "string": "a string", "str": "a string", "int": "an integer", "float": "a decimal",
    "bool": "a boolean", "dict": "an object", "model": "an object", "list": "an array",
    "NoneType": "null", "model_attributes": "an object",
}  # fmt: skip


def _bad(message: str, param: str, code: str) -> Refused:
    return Refused(400, message, param=param, code=code)


def _place(body: object, location: tuple[int | str, ...]) -> str:
    # The tags of unions are in pydantic's location, but not in the request.
    place, here = "", body
    for number, step in enumerate(location, 1):
        if isinstance(step, int):
            place += f"[{step}]"
            here = here[step] if isinstance(here, list) and step < len(here) else None
        elif not isinstance(here, dict) or step in here or number == len(location):
            place += f".{step}" if place else step
            here = here.get(step) if isinstance(here, dict) else None
    return place


def error_body(refused: Refused) -> dict[str, object]:
    """The body of an error answer."""
    return {"error": error_object(refused)}


def error_object(refused: Refused) -> dict[str, object]:
    """The error object itself, as it stands in bodies and streams."""
    return {
        "message": refused.message,
        "type": refused.type,
        "param": refused.param,
        "code": refused.code,
    }


def failure(failure: Failure) -> Refused:
    """Guide "Error codes" for each; 429 and 503 may come with `retry-after`."""
    headers = {} if failure.retry_after is None else {"retry-after": str(failure.retry_after)}
    match failure.kind:
        case "authentication":
            return Refused(401, "Incorrect API key provided: sk-old***.", code="invalid_api_key")
        case "permission":
            return Refused(
                403,
                "Country, region, or territory not supported",
                type="request_forbidden",
                code="unsupported_country_region_territory",
            )
        case "rate_limit":
            return Refused(
                429,
                "Rate limit reached for requests",
                type="requests",
                code="rate_limit_exceeded",
                headers=headers,
            )
        case "quota":
            return Refused(
                429,
                "You exceeded your current quota, please check your plan and billing details.",
                type="insufficient_quota",
                code="insufficient_quota",
            )
        case "context_too_long":
            return Refused(
                400,
                "This model's maximum context length is 128000 tokens. However, your messages "
                "resulted in 130000 tokens. Please reduce the length of the messages.",
                param="messages",
                code="context_length_exceeded",
            )
        case "content_filter":
            return Refused(
                400,
                "Invalid prompt: your prompt was flagged as potentially violating our usage "
                "policy. Please try again with a different prompt.",
                code="invalid_prompt",
            )
        case "server_error":
            return Refused(
                500,
                "The server had an error while processing your request. Sorry about that!",
                type="server_error",
                code="server_error",
                headers=headers,
            )
        case "overloaded":
            return Refused(
                503,
                "The engine is currently overloaded, please try again later.",
                type="service_unavailable_error",
                code="server_is_overloaded",
                headers=headers,
            )
