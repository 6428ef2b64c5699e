"""The schema of a script: agents, their tools, turns and steps (docs/scripted-agent.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias

from pydantic import BaseModel, BeforeValidator, Discriminator, Field, Tag, model_validator

from runner_service.agents.placeholders import PlaceholderError, parse_path, paths_in
from runner_service.agents.protocol import DEFAULT_HISTORY_WINDOW
from runner_service.agents.script_parts import CallTool, Effect, Fail, Part, Positive
from runner_service.agents.script_types import (
    Duration,
    Json,
    JsonObject,
    Regex,
    ScriptModel,
    Template,
    check_schema,
    did_you_mean,
    problem,
)
from turngate_core import connection, forms
from turngate_core.json_text import dump

Permission: TypeAlias = Literal["allow", "ask", "deny", "allow_reads"]
Outcome: TypeAlias = Literal[
    "answered",
    "accepted",
    "declined",
    "cancelled",
    "failed",
    "done",
    "error",
    "denied",
    "expired",
    "refused",
    "not_handled",
    "unsupported",
    "question_limit",
    "cancelled_by_user",
    "run_failed",
    "outcome_unknown",
]
BUILT_IN_TOOLS = (forms.TOOL_NAME, connection.TOOL_NAME)


class ServerTool(ScriptModel):
    """A tool that the runner executes: `does` its effects in order, then gives what it returns."""

    one_of: ClassVar[tuple[str, ...]] = ("output", "output_text", "output_bytes", "error")
    may_lack_all: ClassVar[bool] = True

    executor: Literal["server"] = "server"
    description: str = ""
    input_schema: JsonObject = None
    origin: str | None = None
    permission: Permission | None = None
    server_permission: Permission | None = None
    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False
    after_answers: bool | None = None
    grant_scope: Literal["once", "session"] | None = None
    does: list[Effect] = Field(default_factory=list)
    output: Json = None
    output_text: str | None = None
    output_bytes: Annotated[int, Field(ge=2, le=16 * 1024 * 1024)] | None = None
    error: Template | None = None
    on_cancel: Literal["finish", "stop"] = "finish"

    @model_validator(mode="after")
    def _schema_fits(self) -> Self:
        check_schema(schema_text(self.input_schema) or "{}")
        return self


class ClientTool(ScriptModel):
    """A tool that only a client can fulfil. `kind` and `params` are its render hint.

    `declared`: its calls stay open for a client that can do it; what follows is for such tools.
    """

    executor: Literal["client"]
    description: str = ""
    input_schema: JsonObject = None
    kind: str = ""
    params: JsonObject = None
    declared: bool = False
    output_schema: JsonObject = None
    expires_after: Annotated[Duration, Field(gt=0)] | None = None
    on_expiry: Literal["fail_call", "deny", "cancel_run"] | None = None
    conflict_policy: Literal["fork", "first_wins"] | None = None

    @model_validator(mode="after")
    def _fits(self) -> Self:
        check_schema(schema_text(self.input_schema) or "{}")
        check_schema(schema_text(self.output_schema) or "{}", "output_schema")
        for key in ("output_schema", "expires_after", "on_expiry", "conflict_policy"):
            if key in self.model_fields_set and not self.declared:
                raise problem("declared", f"{key} is for a tool with declared: true", key)
        return self


def schema_text(value: Any) -> str:
    """A mapping of a script as JSON text; empty if it is not given."""
    return "" if value is None else dump(value)


def _tool_tag(data: Any) -> str:
    is_client = isinstance(data, Mapping) and data.get("executor") == "client"
    return "<client>" if is_client else "<server>"


Tool: TypeAlias = Annotated[
    Annotated[ServerTool, Tag("<server>")] | Annotated[ClientTool, Tag("<client>")],
    Discriminator(_tool_tag),
]


def _as_list(value: Any) -> Any:
    return value if isinstance(value, list) else [value]


class Condition(ScriptModel):
    """When a step is taken: by the outcome of a call, or by a value; or of several conditions."""

    one_of: ClassVar[tuple[str, ...]] = ("call", "value", "any", "all", "none")

    call: str | None = None
    outcome: Annotated[list[Outcome], BeforeValidator(_as_list)] = Field(default_factory=list)
    value: str | None = None
    equals: Json = None
    matches: Regex | None = None
    exists: bool | None = None
    any: list[Condition] | None = None
    all: list[Condition] | None = None
    none: list[Condition] | None = None

    def below(self) -> list[Condition]:
        """The conditions that this one is made of."""
        return [*(self.any or ()), *(self.all or ()), *(self.none or ())]

    @model_validator(mode="after")
    def _fits(self) -> Self:
        given = self.model_fields_set
        if ("outcome" in given) != ("call" in given):
            raise problem("condition", "call and outcome belong together")
        tests = given & {"equals", "matches", "exists"}
        if len(tests) != (1 if "value" in given else 0):
            raise problem("condition", "value takes exactly one of equals, matches, exists")
        if self.value is not None:
            try:
                parse_path(self.value)
            except PlaceholderError as error:
                raise problem("condition", str(error), "value") from error
        return self


class Usage(ScriptModel):
    """What the model call used."""

    input_tokens: Annotated[int, Field(ge=0)] = 0
    output_tokens: Annotated[int, Field(ge=0)] = 0
    cached_input_tokens: Annotated[int, Field(ge=0)] = 0


class Step(ScriptModel):
    """One message of the assistant. Without a call (or a failure) it ends the reply."""

    parts: list[Part]
    when: Condition | None = None
    times: Positive = 1
    finish_reason: str | None = None
    usage: Usage | None = None

    @property
    def calls(self) -> list[CallTool]:
        """Its calls, in order."""
        return [part for part in self.parts if isinstance(part, CallTool)]

    @property
    def ends_reply(self) -> bool:
        """Nothing follows it: all that it calls is executed by the provider."""
        goes_on = any(not call.by_provider for call in self.calls)
        return not goes_on and not any(isinstance(part, Fail) for part in self.parts)


class TurnCondition(ScriptModel):
    """Which messages of the user a turn answers: those in which the expression is found."""

    text: Regex


class Turn(ScriptModel):
    """The reply to one message of the user."""

    when: TurnCondition | None = None
    steps: Annotated[list[Step], Field(min_length=1)]

    @model_validator(mode="after")
    def _fits(self) -> Self:
        labels: list[str] = []
        for index, step in enumerate(self.steps):
            for label in _labels(step):
                if label in labels:
                    raise problem(
                        "label", f"two calls of this turn have the id {label!r}", "steps", index
                    )
                labels.append(label)
        for index, step in enumerate(self.steps):
            for name in _names_of_results(step):
                if name not in labels:
                    guess = did_you_mean(name, labels)
                    raise problem(
                        "label", f"no call of this turn has the id {name!r}{guess}", "steps", index
                    )
            is_last = index == len(self.steps) - 1
            if step.when is None and step.ends_reply and not is_last:
                raise problem(
                    "unreachable",
                    "no step is ever reached after one that makes no call: it ends the reply",
                    "steps",
                    index + 1,
                )
        return self


class Agent(ScriptModel):
    """An agent of a script."""

    description: str = ""
    history_window: Annotated[int, Field(ge=0, le=100_000)] = DEFAULT_HISTORY_WINDOW
    tools: dict[str, Tool] = Field(default_factory=dict)
    turns: list[Turn] = Field(default_factory=list)
    otherwise: Turn | None = None

    @model_validator(mode="after")
    def _fits(self) -> Self:
        for name in BUILT_IN_TOOLS:
            if name in self.tools:
                raise problem("built_in", f"{name} is built in and cannot be declared", "tools")
        known = [*self.tools, *BUILT_IN_TOOLS]
        for index, turn in enumerate(self.turns):
            _check_tools(turn, known, "turns", index)
        if self.otherwise is not None:
            _check_tools(self.otherwise, known, "otherwise")
            if self.otherwise.when is not None:
                raise problem("when", "otherwise takes no condition", "otherwise", "when")
        return self


class Script(ScriptModel):
    """A whole script: agents by name."""

    agents: Annotated[dict[str, Agent], Field(min_length=1)]


def _labels(step: Step) -> Iterator[str]:
    for call in step.calls:
        yield from (label for label in call.labels() if label is not None)


def _all_conditions(condition: Condition | None) -> Iterator[Condition]:
    if condition is not None:
        yield condition
        for below in condition.below():
            yield from _all_conditions(below)


def _check_tools(turn: Turn, known: list[str], *at: str | int) -> None:
    for step_index, step in enumerate(turn.steps):
        for part_index, part in enumerate(step.parts):
            if not isinstance(part, CallTool) or part.by_provider:
                continue
            if part.offered_by == "agent" and part.call not in known:
                raise problem(
                    "tool",
                    f"no tool is named {part.call!r}{did_you_mean(part.call, known)}; a call of a"
                    " session's tool says offered_by: session, of no tool at all offered_by:"
                    " nobody",
                    *(*at, "steps", step_index, "parts", part_index, "call"),
                )


def _names_of_results(step: Step) -> Iterator[str]:
    for condition in _all_conditions(step.when):
        if condition.call is not None:
            yield condition.call
        if condition.value is not None:
            yield from _label_of(condition.value)
    for part in step.parts:
        for text in _texts(part):
            for path in paths_in(text):
                yield from _label_of(path.text)


def _label_of(path: str) -> Iterator[str]:
    parsed = parse_path(path)
    if parsed.root in ("results", "errors", "outcomes") and parsed.keys:
        yield str(parsed.keys[0])


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, BaseModel):
        # Not templates: the exact text of arguments, the name of a tool.
        fields = dict(value)
        for key in fields.keys() - {"arguments_text", "call"}:
            yield from _texts(fields[key])
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _texts(key)
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
