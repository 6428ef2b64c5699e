"""Where in its script a turn stands: computed from the history alone, so that any runner goes on.

Each message of the assistant in the turn was one step. Steps whose condition does not hold are
passed over; conditions look at results of earlier steps only, and these never change, so the way
through the steps is the same each time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from runner_service.agents.placeholders import Scope, look_up, parse_path
from runner_service.agents.protocol import Turn as AgentTurn
from runner_service.agents.script import Agent, Condition, Step, Turn
from runner_service.pairing import PairedMessage
from turngate.v1 import message_pb2
from turngate_core import connection, forms
from turngate_core.canonical_arguments import canonical_key
from turngate_core.json_text import JsonLimits, JsonTextError, JsonValue, dump, parse
from turngate_core.number import Number

_LIMITS = JsonLimits(max_bytes=2**31, max_depth=256)

_OUTCOMES = {
    message_pb2.RESULT_KIND_CALL_REFUSED: "refused",
    message_pb2.RESULT_KIND_NOT_HANDLED: "not_handled",
    message_pb2.RESULT_KIND_UNSUPPORTED_PAYLOAD: "unsupported",
    message_pb2.RESULT_KIND_QUESTION_LIMIT: "question_limit",
    message_pb2.RESULT_KIND_CANCELLED_BY_USER: "cancelled_by_user",
    message_pb2.RESULT_KIND_DENIED: "denied",
    message_pb2.RESULT_KIND_EXPIRED: "expired",
    message_pb2.RESULT_KIND_RUN_FAILED: "run_failed",
    message_pb2.RESULT_KIND_OUTCOME_UNKNOWN: "outcome_unknown",
}
_ACTIONS = {"accept": "accepted", "decline": "declined", "cancel": "cancelled"}


@dataclass(frozen=True, slots=True)
class Position:
    """`step`: the next one; `None` if the script has nothing more to say."""

    step: Step | None
    scope: Scope


def find_position(agent: Agent, turn: AgentTurn, fallback: Turn) -> Position:
    """The step that comes next, and what its placeholders may name."""
    said = turn.history[turn.turn_start :]
    user_text = _text(said[0].message) if said else ""
    script_turn, match = _choose(agent, turn, user_text, fallback)
    results: dict[str, tuple[message_pb2.ToolCall, message_pb2.ToolResult]] = {}
    scope = _scope(turn, user_text, match, results)
    waiting = [m for m in said if m.message.role == message_pb2.ROLE_ASSISTANT]
    for step in _expanded(script_turn.steps):
        if step.when is not None and not holds(step.when, scope, results):
            continue
        if not waiting:
            return Position(step, scope)
        results.update(_labelled(step, waiting.pop(0)))
    return Position(None, scope)


def holds(
    condition: Condition,
    scope: Scope,
    results: dict[str, tuple[message_pb2.ToolCall, message_pb2.ToolResult]],
) -> bool:
    """Whether a condition holds."""
    if condition.call is not None:
        found = results.get(condition.call)
        return found is not None and bool(outcomes_of(*found) & set(condition.outcome))
    if condition.value is not None:
        there, value = look_up(parse_path(condition.value), scope)
        if condition.exists is not None:
            return there == condition.exists
        if condition.matches is not None:
            text = value if isinstance(value, str) else dump(value)
            return there and re.search(condition.matches, text) is not None
        return there and _same(value, condition.equals)
    if condition.any is not None:
        return any(holds(one, scope, results) for one in condition.any)
    if condition.all is not None:
        return all(holds(one, scope, results) for one in condition.all)
    return not any(holds(one, scope, results) for one in condition.none or ())


def outcomes_of(call: message_pb2.ToolCall, result: message_pb2.ToolResult) -> set[str]:
    """The words for what became of a call, the most exact one included; read from types (X4)."""
    if result.kind in _OUTCOMES:
        return {_OUTCOMES[result.kind]}
    if result.WhichOneof("outcome") == "error_text":
        return {"error"}
    if result.kind != message_pb2.RESULT_KIND_CLIENT:
        return {"done"}
    words = {"answered"}
    output = output_of(result)
    if not isinstance(output, dict):
        return words
    if call.name == forms.TOOL_NAME and isinstance(action := output.get("action"), str):
        words.add(_ACTIONS.get(action, "answered"))
    elif call.name == connection.TOOL_NAME:
        words.add(_connected(output))
    return words


def output_of(result: message_pb2.ToolResult) -> JsonValue:
    """The output as a value; null if there is none or it cannot be read."""
    try:
        return parse(result.output_json, _LIMITS) if result.output_json else None
    except JsonTextError:
        return None


def _connected(output: dict[str, JsonValue]) -> str:
    if output.get("connected") is True:
        return "accepted"
    reason = output.get("reason")
    return reason if reason in ("declined", "cancelled") else "failed"


def _choose(
    agent: Agent, turn: AgentTurn, user_text: str, fallback: Turn
) -> tuple[Turn, re.Match[str] | None]:
    """The first turn whose expression is found; else, of those without one, the next in order."""
    matched = _matching(agent, user_text)
    if matched is not None:
        return matched
    # How many earlier messages took one of them; unknown where the beginning was trimmed.
    if turn.starts_with_branch:
        before = sum(
            message.message.role == message_pb2.ROLE_USER
            and _matching(agent, _text(message.message)) is None
            for message in turn.history[: turn.turn_start]
        )
        in_order = [one for one in agent.turns if one.when is None]
        if before < len(in_order):
            return in_order[before], None
    return agent.otherwise or fallback, None


def _matching(agent: Agent, user_text: str) -> tuple[Turn, re.Match[str]] | None:
    for one in agent.turns:
        if one.when is not None and (match := re.search(one.when.text, user_text)):
            return one, match
    return None


def _expanded(steps: Sequence[Step]) -> Iterator[Step]:
    for step in steps:
        for _ in range(step.times):
            yield step


def _labelled(
    step: Step, said: PairedMessage
) -> Iterator[tuple[str, tuple[message_pb2.ToolCall, message_pb2.ToolResult]]]:
    """The results of a message by the names that the step gives to its calls."""
    labels = [label for call in step.calls for label in call.labels()]
    calls = [p.tool_call for p in said.message.parts if p.HasField("tool_call")]
    results = {result.call_id: result for result in said.results}
    results.update(
        (p.tool_result.call_id, p.tool_result)
        for p in said.message.parts
        if p.HasField("tool_result")
    )
    for label, call in zip(labels, calls, strict=False):
        if label is not None and call.call_id in results:
            yield label, (call, results[call.call_id])


def _scope(
    turn: AgentTurn,
    user_text: str,
    match: re.Match[str] | None,
    results: dict[str, tuple[message_pb2.ToolCall, message_pb2.ToolResult]],
) -> Scope:
    def outputs() -> JsonValue:
        return {
            label: output_of(result)
            for label, (_, result) in results.items()
            if result.WhichOneof("outcome") != "error_text"
        }

    def errors() -> JsonValue:
        return {
            label: result.error_text
            for label, (_, result) in results.items()
            if result.WhichOneof("outcome") == "error_text"
        }

    def outcomes() -> JsonValue:
        # The most exact word: `answered` only where there is no other.
        return {
            label: sorted(outcomes_of(*found), key=lambda word: word == "answered")[0]
            for label, found in results.items()
        }

    number = sum(m.message.role == message_pb2.ROLE_USER for m in turn.history)
    scope: dict[str, JsonValue | Callable[[], JsonValue]] = {
        "results": outputs,
        "errors": errors,
        "outcomes": outcomes,
        "user": {"text": user_text, "principal": turn.principal, "tenant": turn.tenant_id},
        "match": _groups(match),
        "session": {"id": turn.session_id},
        "run": {"id": turn.run_id, "attempt": Number(str(turn.attempt))},
        "turn": {"number": Number(str(number))},
        "model_input": lambda: model_input(turn),
    }
    return scope


def model_input(turn: AgentTurn) -> JsonValue:
    """The history as a model would be shown it (T4), as one JSON value."""
    return [_shown(said) for said in turn.history]


def _shown(said: PairedMessage) -> JsonValue:
    shown: dict[str, JsonValue] = {
        "role": message_pb2.Role.Name(said.message.role).removeprefix("ROLE_").lower(),
        "text": _text(said.message),
    }
    calls: list[JsonValue] = [
        {
            "call_id": part.tool_call.call_id,
            "tool": part.tool_call.name,
            "arguments": part.tool_call.malformed_arguments or part.tool_call.arguments_json,
        }
        for part in said.message.parts
        if part.HasField("tool_call")
    ]
    if calls:
        shown["calls"] = calls
        shown["results"] = [_shown_result(result) for result in said.results]
    return shown


def _shown_result(result: message_pb2.ToolResult) -> JsonValue:
    kind = message_pb2.ResultKind.Name(result.kind).removeprefix("RESULT_KIND_").lower()
    shown: dict[str, JsonValue] = {"call_id": result.call_id, "kind": kind}
    if result.WhichOneof("outcome") == "error_text":
        shown["error"] = result.error_text
    else:
        shown["output"] = result.output_json
    return shown


def _text(message: message_pb2.Message) -> str:
    return "".join(part.text.text for part in message.parts if part.HasField("text"))


def _groups(match: re.Match[str] | None) -> JsonValue:
    if match is None:
        return None
    numbered: dict[str, JsonValue] = {
        str(number): match.group(number) for number in range((match.re.groups or 0) + 1)
    }
    return {**numbered, **match.groupdict()}


def _same(left: JsonValue, right: JsonValue) -> bool:
    if left is None or right is None:
        return left is right
    key = canonical_key(left, unwrap_strings=False)
    return key is not None and key == canonical_key(right, unwrap_strings=False)
