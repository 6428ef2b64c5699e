"""Connections (`request_connection`): payload and answer (B2). References only, no credentials."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from turngate_core.json_text import DEFAULT_LIMITS, JsonLimits, JsonTextError, JsonValue, parse
from turngate_core.secret_words import asks_for_secret, holds_credential
from turngate_core.violations import Violation, pointer

TOOL_NAME = "request_connection"
KIND = "connect"


class ConnectionFault(StrEnum):
    """Why a payload asks for no connection."""

    NOT_AN_OBJECT = "not_an_object"
    INTEGRATION_MISSING = "integration_missing"


@dataclass(frozen=True, slots=True)
class ConnectionRequest:
    """`integration` names what to connect to; all else in the payload is for the client."""

    integration: str


_KEYS = ("connected", "integration", "reference", "reason", "detail")
_REASONS = ("declined", "cancelled", "timeout", "failed")


def parse_connection(payload: JsonValue) -> ConnectionRequest | ConnectionFault:
    """The request of a payload `{integration, ...}`, or why it is none."""
    if not isinstance(payload, dict):
        return ConnectionFault.NOT_AN_OBJECT
    integration = payload.get("integration")
    if not isinstance(integration, str) or not integration.strip():
        return ConnectionFault.INTEGRATION_MISSING
    return ConnectionRequest(integration)


def parse_connection_text(arguments: str) -> ConnectionRequest | ConnectionFault:
    """`parse_connection` of a call's arguments; text that is no JSON is no object either."""
    try:
        return parse_connection(parse(arguments) if arguments else {})
    except JsonTextError:
        return ConnectionFault.NOT_AN_OBJECT


def validate_connection_answer(
    request: ConnectionRequest, output: str, limits: JsonLimits = DEFAULT_LIMITS
) -> list[Violation]:
    """What is wrong with an answer `{connected, integration, reference?, reason?, detail?}`.

    At most one violation a field; a credential anywhere in it is refused (B2).
    """
    try:
        answer = parse(output, limits)
    except JsonTextError as error:
        return [Violation("", error.fault.value, str(error))]
    if not isinstance(answer, dict):
        return [Violation("", "not_an_object", "must be an object")]
    violations = []
    for key in (*_KEYS, *(key for key in answer if key not in _KEYS)):
        found = _problem(request, answer, key)
        if found is not None:
            violations.append(Violation(pointer(key), *found))
    return violations


def _problem(
    request: ConnectionRequest, answer: dict[str, JsonValue], key: str
) -> tuple[str, str] | None:
    value = answer.get(key)
    if key not in _KEYS:
        if asks_for_secret(key):
            return "credential", "credentials are never taken, only references to them"
        return "unknown_key", "unknown key"
    if key == "connected":
        return None if isinstance(value, bool) else ("wrong_type", "must be true or false")
    if key == "integration":
        if value == request.integration:
            return None
        return "other_integration", f"must be {request.integration}"
    if value is None:
        return None
    if not isinstance(value, str):
        return "wrong_type", "must be a text"
    if holds_credential(value):
        return "credential", "credentials are never taken, only references to them"
    if key == "reason" and answer.get("connected") is True:
        return "reason_of_success", "is only for what was not connected"
    if key == "reason" and value not in _REASONS:
        return "reason_unknown", "must be declined, cancelled, timeout or failed"
    return None
