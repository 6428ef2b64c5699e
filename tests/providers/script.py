"""What the model behind a fake provider answers, the same for every wire.

A script is a function from a request to a step. A step is an `Answer` (parts in order) or a
`Failure`. `in_turn` and `by_conversation` make scripts from lists.
"""

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from turngate_core.json_text import JsonValue

Wire = Literal["openai_chat", "openai_responses", "anthropic_messages"]


# --- what a request says, whatever its wire ---


@dataclass(frozen=True, slots=True)
class Said:
    """Text of a message; `role` is the wire's own word (user, assistant, system, developer)."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class Called:
    """A tool call in the history; `arguments` is the JSON text, digit for digit."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Returned:
    """The result of a tool call in the history, its text parts joined."""

    id: str
    output: str


@dataclass(frozen=True, slots=True)
class Reasoned:
    """Reasoning in the history, as the model once gave it."""

    text: str


Item: TypeAlias = Said | Called | Returned | Reasoned


@dataclass(frozen=True, slots=True)
class Request:
    """A request that was not refused. `body` is the JSON as sent, numbers as written."""

    wire: Wire
    model: str
    stream: bool
    tools: tuple[str, ...]
    history: tuple[Item, ...]
    body: JsonValue

    @property
    def prompt(self) -> str:
        """The last text of a user; "" if there is none."""
        return next((i.text for i in reversed(self._said) if i.role == "user"), "")

    @property
    def returned(self) -> list[Returned]:
        """The results that came after all that the model said, in their order."""
        fresh: list[Returned] = []
        for item in reversed(self.history):
            match item:
                case Returned():
                    fresh.insert(0, item)
                case Called() | Reasoned() | Said(role="assistant"):
                    break
                case Said():
                    pass
        return fresh

    @property
    def results(self) -> dict[str, str]:
        """The outputs of `returned` by the tool's name; of several calls of a tool, the last."""
        names = {i.id: i.name for i in self.history if isinstance(i, Called)}
        return {names[result.id]: result.output for result in self.returned}

    @property
    def _said(self) -> list[Said]:
        return [item for item in self.history if isinstance(item, Said)]


# --- what the model answers ---


@dataclass(frozen=True, slots=True)
class Text:
    text: str
    chunk: int = 12
    """Characters in each delta."""


@dataclass(frozen=True, slots=True)
class Reasoning:
    """Reasoning before what follows. Left out where the request or the wire asks for none."""

    text: str
    chunk: int = 12


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call. `arguments` goes out character by character as it is, valid JSON or not.

    A wire that has no place for text that is no JSON (Anthropic without streaming) fails by name.
    Without an id, the server mints one as the provider does.
    """

    name: str
    arguments: str = "{}"
    id: str | None = None
    chunk: int = 7


class Silence:
    """The model says nothing until `end` is called. Once in an answer, for one request.

    `begun` and `abandoned` tell a test, in whatever thread or loop, that the silence was reached
    and that the client went away in it.
    """

    def __init__(self) -> None:
        self.begun: Future[None] = Future()
        self.abandoned: Future[None] = Future()
        self._ended: Future[None] = Future()

    def end(self) -> None:
        """Lets the answer go on."""
        self._ended.set_result(None)

    async def last(self) -> None:
        """Waits for the end; what the server does."""
        self.begun.set_result(None)
        try:
            await asyncio.shield(asyncio.wrap_future(self._ended))
        except asyncio.CancelledError:
            self.abandoned.set_result(None)
            raise


@dataclass(frozen=True, slots=True)
class BrokenOff:
    """The connection breaks here, in the middle of the answer."""


FailureKind = Literal[
    "authentication",
    "permission",
    "rate_limit",
    "quota",
    "context_too_long",
    "content_filter",
    "server_error",
    "overloaded",
]


@dataclass(frozen=True, slots=True)
class Failure:
    """An error in place of an answer; within an answer, the error event of the stream.

    `retry_after` is in seconds, sent as the header of that name.
    """

    kind: FailureKind
    retry_after: int | None = None


Part: TypeAlias = Text | Reasoning | ToolCall | Silence | BrokenOff | Failure
Finish = Literal["stop", "length", "content_filter"]


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens, as the provider counts them; `input` includes what was read from the cache."""

    input: int = 100
    output: int = 20
    cached: int = 0
    reasoning: int = 0


@dataclass(frozen=True, slots=True)
class Answer:
    """Parts in order. `finish` "stop" becomes the wire's word for tool calls if there are any."""

    parts: tuple[Part, ...]
    finish: Finish = "stop"
    usage: Usage = field(default_factory=Usage)

    @property
    def calls(self) -> bool:
        """Whether the model calls tools in it."""
        return any(isinstance(part, ToolCall) for part in self.parts)


def answer(*parts: Part | str, finish: Finish = "stop", usage: Usage | None = None) -> Answer:
    """An answer of these parts; a string stands for `Text`."""
    typed = tuple(Text(part) if isinstance(part, str) else part for part in parts)
    return Answer(typed, finish, usage or Usage())


Step: TypeAlias = Answer | Failure
Script: TypeAlias = Callable[[Request], Step]


class ScriptEnded(LookupError):
    """A request came for which the script has no step; the message names the request."""


def in_turn(*steps: Step | Script) -> Script:
    """Answers the first request with the first step, and so on; a function computes its step."""
    remaining = list(steps)
    lock = threading.Lock()

    def script(request: Request) -> Step:
        with lock:
            if not remaining:
                raise ScriptEnded(f"no step is left for the prompt {request.prompt!r}")
            step = remaining.pop(0)
        return step(request) if callable(step) else step

    return script


def by_conversation(scripts: Mapping[str, Sequence[Step | Script]]) -> Script:
    """Several conversations at once: the first key that a user text contains chooses the list."""
    turns = {marker: in_turn(*steps) for marker, steps in scripts.items()}

    def script(request: Request) -> Step:
        texts = [i.text for i in request.history if isinstance(i, Said) and i.role == "user"]
        for marker, turn in turns.items():
            if any(marker in text for text in texts):
                return turn(request)
        raise ScriptEnded(f"no conversation matches the prompt {request.prompt!r}")

    return script
