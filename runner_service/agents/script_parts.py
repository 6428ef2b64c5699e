"""The parts of a script's steps, and the effects of its tools (docs/scripted-agent.md)."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from runner_service.agents.script_types import (
    Duration,
    Json,
    ScriptModel,
    Template,
    did_you_mean,
    problem,
)

Positive: TypeAlias = Annotated[int, Field(ge=1, le=1_000_000)]
FailureReason: TypeAlias = Literal[
    "agent_error",
    "model_authentication",
    "model_rate_limit",
    "model_context_too_long",
    "model_content_filter",
    "model_unavailable",
    "model_bad_request",
    "attempts_exhausted",
    "unplaced",
    "step_limit",
    "question_limit",
    "protocol",
    "unknown_agent",
    "timeout",
    "unexpected",
]


class Wait(ScriptModel):
    """Let time pass."""

    wait: Duration


class WaitForFile(ScriptModel):
    """Go on when a file is there: a gate that a test opens."""

    wait_for_file: Template


class Touch(ScriptModel):
    """Create an empty file: tells a test how far things are."""

    touch: Template


class Die(ScriptModel):
    """Kill the runner's process, as `kill -9` would. `once`: not if this file is there."""

    die: Literal[True]
    once: Template | None = None


class Append(ScriptModel):
    """Append a line to a file."""

    append: Template
    line: Template


class Count(ScriptModel):
    """Add one to the number in a file; `${count}` is then the new number."""

    count: Template


class Text(ScriptModel):
    """Text of the reply, word by word, `pace` apart."""

    text: Template
    pace: Duration = 0.0
    repeat: Positive = 1


class Reasoning(ScriptModel):
    """Reasoning, word by word, `pace` apart."""

    reasoning: Template
    pace: Duration = 0.0
    repeat: Positive = 1


class CallTool(ScriptModel):
    """A call. `id` names its result in later steps; `arguments_text` is passed on as it is."""

    call: str
    id: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")] | None = None
    arguments: Json = None
    arguments_text: str | None = None
    provider_call_id: Template = ""
    times: Positive = 1
    pace: Duration | None = None
    offered_by: Literal["agent", "session", "nobody"] = "agent"
    provider_output: Json = None
    provider_error: Template | None = None

    @property
    def by_provider(self) -> bool:
        """The model's provider executed it; nothing waits for it."""
        return bool({"provider_output", "provider_error"} & self.model_fields_set)

    def labels(self) -> list[str | None]:
        """The names of its results: `id`, or `id_1` and so on if it is made several times."""
        if self.id is None or self.times == 1:
            return [self.id] * self.times
        return [f"{self.id}_{number}" for number in range(1, self.times + 1)]

    @model_validator(mode="after")
    def _fits(self) -> Self:
        given = self.model_fields_set
        if {"arguments", "arguments_text"} <= given:
            raise problem(
                "one_of", "arguments and arguments_text exclude each other", "arguments_text"
            )
        if {"provider_output", "provider_error"} <= given:
            raise problem(
                "one_of", "provider_output and provider_error exclude each other", "provider_error"
            )
        return self


class Fail(ScriptModel):
    """The run fails. `unless_file`, `if_file`: only while that file is not, or is, there."""

    fail: FailureReason
    message: Template = "the script says that the run fails here"
    retry_after: Duration = 0.0
    unless_file: Template | None = None
    if_file: Template | None = None


_PARTS = {
    "text": Text,
    "reasoning": Reasoning,
    "call": CallTool,
    "fail": Fail,
    "wait": Wait,
    "wait_for_file": WaitForFile,
    "touch": Touch,
    "die": Die,
}
_EFFECTS = {
    "append": Append,
    "count": Count,
    "wait": Wait,
    "wait_for_file": WaitForFile,
    "touch": Touch,
    "die": Die,
}


def _has_kind(kinds: dict[str, Any]) -> BeforeValidator:
    def check(data: Any) -> Any:
        if not isinstance(data, dict):
            raise problem("not_a_mapping", f"must be a mapping with one of {', '.join(kinds)}")
        if not any(key in data for key in kinds):
            given = str(next(iter(data), ""))
            guess = did_you_mean(given, kinds)
            raise problem("no_kind", f"must have one of {', '.join(kinds)}{guess}", given)
        return data

    return BeforeValidator(check)


def _tag_by_key(kinds: dict[str, Any]) -> Discriminator:
    return Discriminator(lambda data: next((f"<{key}>" for key in kinds if key in data), None))


Part: TypeAlias = Annotated[
    Annotated[Text, Tag("<text>")]
    | Annotated[Reasoning, Tag("<reasoning>")]
    | Annotated[CallTool, Tag("<call>")]
    | Annotated[Fail, Tag("<fail>")]
    | Annotated[Wait, Tag("<wait>")]
    | Annotated[WaitForFile, Tag("<wait_for_file>")]
    | Annotated[Touch, Tag("<touch>")]
    | Annotated[Die, Tag("<die>")],
    _tag_by_key(_PARTS),
    _has_kind(_PARTS),
]
Effect: TypeAlias = Annotated[
    Annotated[Append, Tag("<append>")]
    | Annotated[Count, Tag("<count>")]
    | Annotated[Wait, Tag("<wait>")]
    | Annotated[WaitForFile, Tag("<wait_for_file>")]
    | Annotated[Touch, Tag("<touch>")]
    | Annotated[Die, Tag("<die>")],
    _tag_by_key(_EFFECTS),
    _has_kind(_EFFECTS),
]
