"""The values that events are made of: the public messages of the contract as plain, frozen data.

Each class has the name and the field names of its message in `protos/turngate/v1`, where the
meaning of every field is documented; `broker_service/encoding.py` maps one to the other by name,
and a test keeps them the same. Instants are milliseconds since the Unix epoch; durations
milliseconds; JSON is exact text (T2). An enum value that the contract calls UNSPECIFIED is None
here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias


class Role(Enum):
    USER = 1
    ASSISTANT = 2
    SYSTEM = 3


class ToolExecutor(Enum):
    CLIENT = 1
    SERVER = 2
    PROVIDER = 3


class ResultKind(Enum):
    CLIENT = 1
    TOOL = 2
    CALL_REFUSED = 3
    NOT_HANDLED = 4
    UNSUPPORTED_PAYLOAD = 5
    QUESTION_LIMIT = 6
    CANCELLED_BY_USER = 7
    DENIED = 8
    EXPIRED = 9
    RUN_FAILED = 10
    OUTCOME_UNKNOWN = 11


class GrantScope(Enum):
    SESSION = 1
    ONCE = 2


class Permission(Enum):
    ALLOW = 1
    ASK = 2
    DENY = 3
    ALLOW_READS = 4


class OnBusy(Enum):
    HOLD = 1
    REJECT = 2
    INTERRUPT = 3


class ExpiryPolicy(Enum):
    FAIL_CALL = 1
    DENY = 2
    CANCEL_RUN = 3


class ConflictPolicy(Enum):
    FORK = 1
    FIRST_WINS = 2


class InteractionKind(Enum):
    CLIENT_TOOL = 1
    APPROVAL = 2


class InteractionState(Enum):
    OPEN = 1
    ANSWERED = 2
    APPROVED = 3
    DENIED = 4
    CANCELLED = 5
    EXPIRED = 6
    NOT_HANDLED = 7


class InteractionNotice(Enum):
    UNSUPPORTED_PAYLOAD = 1
    UNHANDLED = 2


class RunState(Enum):
    PENDING = 1
    RUNNING = 2
    PARKED = 3
    CANCELLING = 4
    COMPLETED = 5
    FAILED = 6
    CANCELLED = 7


FINAL_STATES = frozenset({RunState.COMPLETED, RunState.FAILED, RunState.CANCELLED})
"""States that a run never leaves (R1)."""

ACTIVE_STATES = frozenset({RunState.PENDING, RunState.RUNNING, RunState.CANCELLING})
"""States of which a branch may have at most one run (R2), and which hold messages (G1)."""


class RunCause(Enum):
    PROMPT = 1
    ANSWER = 2
    SECOND_ANSWER = 3
    RETRY = 4
    REGENERATE = 5


class RunChangeCause(Enum):
    ATTEMPT_LOST = 1
    HANDED_OVER = 2
    CANCELLED_BY_USER = 3
    EXPIRED = 4
    INTERRUPTED = 5
    BRANCH_LEFT = 6
    SESSION_DELETED = 7


class ActorKind(Enum):
    PRINCIPAL = 1
    RUNNER = 2
    BROKER = 3


class RunFailureReason(Enum):
    AGENT_ERROR = 1
    MODEL_AUTHENTICATION = 2
    MODEL_RATE_LIMIT = 3
    MODEL_CONTEXT_TOO_LONG = 4
    MODEL_CONTENT_FILTER = 5
    MODEL_UNAVAILABLE = 6
    MODEL_BAD_REQUEST = 7
    ATTEMPTS_EXHAUSTED = 8
    UNPLACED = 9
    STEP_LIMIT = 10
    QUESTION_LIMIT = 11
    PROTOCOL = 12
    UNKNOWN_AGENT = 13
    TIMEOUT = 14
    IMPORTED = 15


class HoldReason(Enum):
    RUN_ACTIVE = 1
    INTERACTION_OPEN = 2
    QUEUED_BEHIND = 3
    BRANCH_NOT_SELECTED = 4
    QUEUE_PAUSED = 5


class QueuePauseReason(Enum):
    FAILURES = 1
    CANCELLED = 2
    IMPORTED = 3


class TextKind(Enum):
    TEXT = 1
    REASONING = 2


# --- messages ---


@dataclass(frozen=True, slots=True)
class TextPart:
    text: str = ""


@dataclass(frozen=True, slots=True)
class ReasoningPart:
    text: str = ""


@dataclass(frozen=True, slots=True)
class ToolCall:
    call_id: str
    name: str
    arguments_json: str = ""
    malformed_arguments: str = ""
    executor: ToolExecutor | None = None
    provider_call_id: str = ""
    tool_origin: str = ""


@dataclass(frozen=True, slots=True)
class ToolResult:
    call_id: str
    output_json: str | None = None
    error_text: str | None = None
    kind: ResultKind | None = None
    interaction_id: str = ""
    answer_id: str = ""
    create_time: int | None = None
    imported: bool = False


@dataclass(frozen=True, slots=True)
class RenderHint:
    tool_call_id: str
    kind: str = ""
    params_json: str = ""


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    interaction_id: str
    call_id: str
    grant_scope: GrantScope | None = None


@dataclass(frozen=True, slots=True)
class ApprovalDecision:
    interaction_id: str
    call_id: str
    approved: bool = False
    reason: str = ""
    grant_scope: GrantScope | None = None
    decided_by: str = ""
    create_time: int | None = None
    imported: bool = False


@dataclass(frozen=True, slots=True)
class FilePart:
    uri: str = ""
    media_type: str = ""
    name: str = ""
    size_bytes: int = 0


@dataclass(frozen=True, slots=True)
class DataPart:
    kind: str = ""
    json: str = ""


PartContent: TypeAlias = (
    TextPart
    | ReasoningPart
    | ToolCall
    | ToolResult
    | RenderHint
    | ApprovalRequest
    | ApprovalDecision
    | FilePart
    | DataPart
)


@dataclass(frozen=True, slots=True)
class Part:
    content: PartContent | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    input_tokens: int = 0
    output_tokens: int = 0
    cached_input_tokens: int = 0


@dataclass(frozen=True, slots=True)
class ProviderState:
    provider: str = ""
    model: str = ""
    data: bytes = b""


@dataclass(frozen=True, slots=True)
class TraceContext:
    traceparent: str = ""
    tracestate: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    id: str
    role: Role | None = None
    parts: tuple[Part, ...] = ()
    run_id: str = ""
    step: int = 0
    author: str = ""
    create_time: int | None = None
    finish_reason: str = ""
    usage: Usage | None = None
    provider_state: ProviderState | None = None

    def calls(self) -> list[ToolCall]:
        """The tool calls of the message, in call order."""
        return [part.content for part in self.parts if isinstance(part.content, ToolCall)]


# --- sessions ---


@dataclass(frozen=True, slots=True)
class PolicyRule:
    pattern: str = ""
    permission: Permission | None = None


@dataclass(frozen=True, slots=True)
class ApprovalPolicy:
    default_permission: Permission | None = None
    rules: tuple[PolicyRule, ...] = ()
    grant_scope: GrantScope | None = None


@dataclass(frozen=True, slots=True)
class OperatorPolicy:
    id: str
    policy: ApprovalPolicy


@dataclass(frozen=True, slots=True)
class ClientTool:
    name: str
    description: str = ""
    input_schema_json: str = ""
    kind: str = ""
    params_json: str = ""
    output_schema_json: str = ""
    expires_after: int | None = None
    on_expiry: ExpiryPolicy | None = None
    conflict_policy: ConflictPolicy | None = None
    grant_scope: GrantScope | None = None


@dataclass(frozen=True, slots=True)
class SessionConfig:
    agent: str = ""
    client_tools: tuple[ClientTool, ...] = ()
    approval_policy: ApprovalPolicy | None = None
    on_busy: OnBusy | None = None
    retention: int | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    interaction_expires_after: int | None = None
    on_expiry: ExpiryPolicy | None = None
    conflict_policy: ConflictPolicy | None = None
    unclaimed_after: int | None = None
    interaction_link: str = ""
    title: str = ""
    expire_while_open: bool = False


@dataclass(frozen=True, slots=True)
class QueuePause:
    reason: QueuePauseReason | None = None
    run_id: str = ""
    create_time: int | None = None


@dataclass(frozen=True, slots=True)
class Session:
    id: str
    tenant_id: str = ""
    owner: str = ""
    participants: tuple[str, ...] = ()
    config: SessionConfig | None = None
    create_time: int | None = None
    update_time: int | None = None
    selected_node_id: str = ""
    open_interaction_count: int = 0
    held_message_count: int = 0
    active_run_count: int = 0
    queue_pause: QueuePause | None = None


@dataclass(frozen=True, slots=True)
class HeldMessage:
    message: Message
    reason: HoldReason | None = None
    waits_for_run_id: str = ""
    waits_for_interaction_ids: tuple[str, ...] = ()
    branch_node_id: str = ""
    branch_named: bool = False
    interrupting: bool = False
    create_time: int | None = None
    trace_context: TraceContext | None = None
    edits_prompt_id: str = ""


# --- runs and interactions ---


@dataclass(frozen=True, slots=True)
class RunFailure:
    reason: RunFailureReason | None = None
    message: str = ""
    retry_after_ms: int = 0


@dataclass(frozen=True, slots=True)
class Run:
    id: str
    session_id: str = ""
    prompt_id: str = ""
    state: RunState | None = None
    cause: RunCause | None = None
    origin_run_id: str = ""
    supersedes_run_id: str = ""
    superseded_by_run_id: str = ""
    attempt: int = 0
    waits_for_interaction_ids: tuple[str, ...] = ()
    failure: RunFailure | None = None
    agent: str = ""
    create_time: int | None = None
    update_time: int | None = None
    usage: Usage | None = None
    trace_context: TraceContext | None = None
    unplaced: bool = False
    sibling_run_ids: tuple[str, ...] = ()
    on_selected_branch: bool = False
    operator_policy_id: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    id: str
    author: str = ""
    client: str = ""
    create_time: int | None = None
    output_json: str | None = None
    error_text: str | None = None
    approved: bool | None = None
    reason: str = ""
    grant_scope: GrantScope | None = None
    run_id: str = ""
    client_ref: str = ""
    imported: bool = False


@dataclass(frozen=True, slots=True)
class Interaction:
    id: str
    session_id: str = ""
    run_id: str = ""
    message_id: str = ""
    call_id: str = ""
    kind: InteractionKind | None = None
    state: InteractionState | None = None
    tool_name: str = ""
    arguments_json: str = ""
    render_hint: RenderHint | None = None
    answers: tuple[Answer, ...] = ()
    create_time: int | None = None
    close_time: int | None = None
    expire_time: int | None = None
    on_expiry: ExpiryPolicy | None = None
    conflict_policy: ConflictPolicy | None = None
    grant_scope: GrantScope | None = None
    declared: bool = False
    opened_for: str = ""
    closers: tuple[str, ...] = ()
    link: str = ""
    notice: InteractionNotice | None = None
    waiting_run_ids: tuple[str, ...] = ()
    on_selected_branch: bool = False


@dataclass(frozen=True, slots=True)
class Grant:
    id: str
    tool_name: str = ""
    tool_origin: str = ""
    agent: str = ""
    arguments_json: str = ""
    granted_by: str = ""
    create_time: int | None = None
    effective: bool = False


@dataclass(frozen=True, slots=True)
class ProposedTool:
    """What a runner knows about the tool of a server call (A1)."""

    call_id: str
    tool_permission: Permission | None = None
    server_permission: Permission | None = None
    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False
    after_answers: bool | None = None
    grant_scope: GrantScope | None = None
