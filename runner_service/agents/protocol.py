"""What an agent is to the runner.

An agent decides what to say and which tools to call; everything else is the runner's: the protocol
of `Execute`, ids, grants, parking, acknowledgements, results of earlier steps, cancel. So the
simplest agent is two functions: `next_step`, which is asked again and again until a step makes no
call, and `execute`, which runs a server tool whose start was granted.

An agent keeps no state between steps: whatever it needs is in the turn that it is handed. Any
runner can go on with the run at any step (R3).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from runner_service.pairing import PairedMessage
from turngate.v1 import interaction_pb2, message_pb2, run_pb2, session_pb2

DEFAULT_HISTORY_WINDOW = 100


@dataclass(frozen=True, slots=True)
class ServerTool:
    """A tool that the runner executes, and what the broker decides its starts by (A1, R4, S1).

    `input_schema_json`: exact text of a JSON Schema; empty: any object. `after_answers`: `None`
    means as `destructive` says. `origin`: where it comes from; part of what makes two calls the
    same for a grant (A3). The permissions and the scope are those of the contract; unspecified
    means that the next setting in order applies.
    """

    name: str
    description: str = ""
    input_schema_json: str = ""
    origin: str = ""
    permission: session_pb2.Permission.ValueType = session_pb2.PERMISSION_UNSPECIFIED
    server_permission: session_pb2.Permission.ValueType = session_pb2.PERMISSION_UNSPECIFIED
    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False
    after_answers: bool | None = None
    grant_scope: message_pb2.GrantScope.ValueType = message_pb2.GRANT_SCOPE_UNSPECIFIED


@dataclass(frozen=True, slots=True)
class Declaration:
    """An agent's word that there are clients that can do a client tool of its own.

    Its calls stay open for them, as those of the session's tools do (D1), and are answered as this
    says. The broker keeps it with each call: an answer does not depend on today's agent (R7).

    `output_schema_json`: what outputs have to fit, exact text of a JSON Schema; empty: any JSON.
    `expires_after`: seconds; `None`, as what is unspecified: the session's setting.
    """

    output_schema_json: str = ""
    expires_after: float | None = None
    on_expiry: interaction_pb2.ExpiryPolicy.ValueType = interaction_pb2.EXPIRY_POLICY_UNSPECIFIED
    conflict_policy: interaction_pb2.ConflictPolicy.ValueType = (
        interaction_pb2.CONFLICT_POLICY_UNSPECIFIED
    )


@dataclass(frozen=True, slots=True)
class ClientTool:
    """A tool that only a client can fulfil. `kind` and `params_json` make its render hint (H1).

    `declaration`: `None` for what the session declares itself, for what is built in, and for a tool
    of which the agent does not know whether any client can do it: the broker settles such a call if
    nobody can (D1).
    """

    name: str
    description: str = ""
    input_schema_json: str = ""
    kind: str = ""
    params_json: str = ""
    origin: str = ""
    declaration: Declaration | None = None


AgentTool: TypeAlias = ServerTool | ClientTool


@dataclass(frozen=True, slots=True)
class AgentProfile:
    """What an agent is, for `DescribeAgents` and for the runner.

    `history_window`: how many messages it wants beside the whole turn (X6). `replays`: it starts
    a turn again from the top at resume (X2).
    """

    name: str
    description: str = ""
    history_window: int = DEFAULT_HISTORY_WINDOW
    replays: bool = False


@dataclass(frozen=True, slots=True)
class Turn:
    """What an agent may know about the turn that it is asked to go on with.

    `history`: well paired (T4), oldest first; `turn_start` is the index in it of the turn's first
    message (T5). `starts_with_branch`: the history begins where the branch begins, nothing was
    trimmed. `tools`: all that is offered, by name: the agent's own, the session's, the built-in
    ones. `trace_context`: of the run, to hand on. `cancelled` is set when the run is being
    cancelled.
    """

    session_id: str
    run_id: str
    attempt: int
    tenant_id: str
    principal: str
    history: Sequence[PairedMessage]
    turn_start: int
    starts_with_branch: bool
    tools: Mapping[str, AgentTool]
    approval_policy: session_pb2.ApprovalPolicy
    trace_context: message_pb2.TraceContext
    cancelled: asyncio.Event


@dataclass(frozen=True, slots=True)
class TextPiece:
    """A piece of the reply's text."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningPiece:
    """A piece of reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class DataPiece:
    """Data of the application's own, complete. `json`: exact JSON text."""

    kind: str
    json: str


@dataclass(frozen=True, slots=True)
class CallPiece:
    """A piece of a call's arguments while they are written: a preview.

    `key` is the agent's own name for the call within this step; the `Call` with the same key
    completes it.
    """

    key: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Call:
    """A call, complete. `arguments`: the text as the model wrote it, JSON or not (T2)."""

    name: str
    arguments: str = ""
    provider_call_id: str = ""
    key: str = ""


@dataclass(frozen=True, slots=True)
class ProviderCall:
    """A call that the model's provider has executed itself, with what came of it."""

    name: str
    arguments: str
    outcome: ToolOutcome
    provider_call_id: str = ""


@dataclass(frozen=True, slots=True)
class StepEnd:
    """What is known at the end of a model call; optional, and the last piece."""

    finish_reason: str = ""
    usage: message_pb2.Usage | None = None
    provider_state: message_pb2.ProviderState | None = None


StepPiece: TypeAlias = (
    TextPiece | ReasoningPiece | DataPiece | CallPiece | Call | ProviderCall | StepEnd
)


@dataclass(frozen=True, slots=True)
class GrantedCall:
    """A server call that the broker has granted (A1).

    `arguments`: exact JSON text, checked against the tool's schema, never empty. The
    `idempotency_key` is the same whenever this call is started again (S1). A tool may look at
    `turn.cancelled` and stop early; if it does not end within a grace, it is cancelled.
    """

    call_id: str
    name: str
    arguments: str
    idempotency_key: str
    turn: Turn


@dataclass(frozen=True, slots=True)
class Output:
    """What a tool returns: exact JSON text."""

    json: str


@dataclass(frozen=True, slots=True)
class ToolError:
    """A failure of a tool, as text for the model."""

    text: str


ToolOutcome: TypeAlias = Output | ToolError


class AgentFailure(Exception):
    """Raised by an agent that cannot go on: the run fails by this reason.

    `message` is for people and is shown to clients; no secrets, no exception texts.
    """

    def __init__(
        self,
        reason: run_pb2.RunFailureReason.ValueType,
        message: str,
        *,
        retry_after_ms: int = 0,
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.retry_after_ms = retry_after_ms


class ToolAbandoned(Exception):
    """Raised by a tool that stops because of a cancel: it has no result, the outcome is unknown."""


class Agent(Protocol):
    """An agent that is asked step by step."""

    @property
    def profile(self) -> AgentProfile:
        """What it is, its tools apart."""
        ...

    async def tools(self, turn: Turn | None) -> Sequence[AgentTool]:
        """The tools that it offers in this turn as it stands, so that tools may come and go.

        Asked before each step, and before tools of a step that an earlier attempt left open;
        `turn.tools` has the others: the session's and the built-in ones. `None`: the tools that it
        has for anybody, for `DescribeAgents`. Raises `AgentFailure` to fail the run by name; any
        other exception fails it as `AGENT_ERROR`. It is cancelled when the run is.
        """
        ...

    def next_step(self, turn: Turn) -> AsyncIterator[StepPiece]:
        """The pieces of the next message, in order. A message without calls ends the reply.

        Raises `AgentFailure` to fail the run by name; any other exception fails it as
        `AGENT_ERROR`, without its text. It is cancelled when the run is.
        """
        ...

    async def execute(self, call: GrantedCall) -> ToolOutcome:
        """Run a server tool. Calls of one step run at the same time.

        `AgentFailure` is an error result with its message, and fails the run when the tools of the
        step have ended. Any other exception becomes an error result without its text;
        `ToolAbandoned` leaves the call without a result.
        """
        ...
