"""What happens in a session: the events of its log.

Names and fields as in `protos/turngate/v1/event.proto`, where they are documented. Deltas are not
here: they do not move the session's version and the core never sees them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from broker_service.domain.model import (
    ActorKind,
    Answer,
    ClientTool,
    HeldMessage,
    HoldReason,
    Interaction,
    InteractionNotice,
    InteractionState,
    Message,
    OperatorPolicy,
    QueuePause,
    RenderHint,
    ResultKind,
    Run,
    RunChangeCause,
    RunFailure,
    RunState,
    Session,
    ToolResult,
)


@dataclass(frozen=True, slots=True)
class SessionCreated:
    session: Session


@dataclass(frozen=True, slots=True)
class PromptAdded:
    message: Message
    parent_node_id: str = ""
    edits_prompt_id: str = ""
    selected: bool = False
    was_held: bool = False


@dataclass(frozen=True, slots=True)
class MessageHeld:
    held: HeldMessage


@dataclass(frozen=True, slots=True)
class HoldChanged:
    message_id: str
    reason: HoldReason | None = None
    waits_for_run_id: str = ""
    waits_for_interaction_ids: tuple[str, ...] = ()
    branch_node_id: str = ""


@dataclass(frozen=True, slots=True)
class HeldMessageRemoved:
    message_id: str


@dataclass(frozen=True, slots=True)
class QueuePaused:
    pause: QueuePause


@dataclass(frozen=True, slots=True)
class QueueResumed:
    pass


@dataclass(frozen=True, slots=True)
class BranchSelected:
    node_id: str


@dataclass(frozen=True, slots=True)
class InheritedResult:
    call_id: str
    run_id: str


@dataclass(frozen=True, slots=True)
class RunCreated:
    run: Run
    selected: bool = False
    origin_through_message_id: str = ""
    inherited_results: tuple[InheritedResult, ...] = ()
    answered_message_id: str = ""


@dataclass(frozen=True, slots=True)
class RunStateChanged:
    run_id: str
    state: RunState
    attempt: int = 0
    waits_for_interaction_ids: tuple[str, ...] = ()
    failure: RunFailure | None = None
    detail: str = ""
    cause: RunChangeCause | None = None
    unplaced: bool = False


@dataclass(frozen=True, slots=True)
class MessageStarted:
    message_id: str
    run_id: str
    step: int = 0
    attempt: int = 0


@dataclass(frozen=True, slots=True)
class MessageCompleted:
    message: Message


@dataclass(frozen=True, slots=True)
class MessageWithdrawn:
    message_id: str
    run_id: str


@dataclass(frozen=True, slots=True)
class RenderHintAdded:
    message_id: str
    run_id: str
    hint: RenderHint
    declaration: ClientTool | None = None


@dataclass(frozen=True, slots=True)
class ToolStarted:
    call_id: str
    run_id: str
    attempt: int = 0
    idempotent: bool = False


@dataclass(frozen=True, slots=True)
class ToolResultAdded:
    run_id: str
    result: ToolResult
    same_as_run_id: str = ""


@dataclass(frozen=True, slots=True)
class InteractionOpened:
    interaction: Interaction


@dataclass(frozen=True, slots=True)
class AnswerAdded:
    interaction_id: str
    call_id: str
    answer: Answer
    state: InteractionState
    addressed_run_id: str = ""


@dataclass(frozen=True, slots=True)
class InteractionClosed:
    interaction_id: str
    call_id: str
    state: InteractionState
    reason: ResultKind | None = None


@dataclass(frozen=True, slots=True)
class NoticeAdded:
    interaction_id: str
    notice: InteractionNotice


@dataclass(frozen=True, slots=True)
class GrantRevoked:
    grant_id: str


@dataclass(frozen=True, slots=True)
class SessionImported:
    source_session_id: str = ""
    source_tenant_id: str = ""


@dataclass(frozen=True, slots=True)
class SessionDeleted:
    pass


@dataclass(frozen=True, slots=True)
class OperatorPolicyRecorded:
    operator_policy: OperatorPolicy


Event: TypeAlias = (
    SessionCreated
    | PromptAdded
    | MessageHeld
    | HoldChanged
    | HeldMessageRemoved
    | QueuePaused
    | QueueResumed
    | BranchSelected
    | RunCreated
    | RunStateChanged
    | MessageStarted
    | MessageCompleted
    | MessageWithdrawn
    | RenderHintAdded
    | ToolStarted
    | ToolResultAdded
    | InteractionOpened
    | AnswerAdded
    | InteractionClosed
    | NoticeAdded
    | GrantRevoked
    | SessionImported
    | SessionDeleted
    | OperatorPolicyRecorded
)


@dataclass(frozen=True, slots=True)
class SessionEvent:
    """An event with its time and who caused it (P2). Its position is given by the store."""

    event: Event
    create_time: int
    actor: str = ""
    actor_kind: ActorKind | None = None
    tenant_id: str = ""
