"""The beginning of a session (P2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from broker_service.domain import fold, gate
from broker_service.domain.decision import Actor, Decision
from broker_service.domain.events import PromptAdded, SessionCreated, SessionEvent
from broker_service.domain.limits import Limits
from broker_service.domain.model import Message, OperatorPolicy, Role, Session, TraceContext


@dataclass(frozen=True, slots=True)
class CreateSession:
    """`session` is complete but for its times. `messages`: valid first messages (T1), ids already
    minted.
    """

    session: Session
    messages: tuple[Message, ...] = ()
    trace_context: TraceContext | None = None


def create_session(
    command: CreateSession,
    now: int,
    actor: Actor,
    mint: Callable[[str], str],
    limits: Limits,
    operator_policy: OperatorPolicy | None = None,
) -> tuple[Decision, str]:
    """The first decision of a log, and the run that it started ("" if none).

    A run starts if the first messages end with a user's.
    """
    session = replace(command.session, create_time=now, update_time=now)
    first = SessionEvent(SessionCreated(session), now, actor.name, actor.kind, session.tenant_id)
    decision = Decision(
        fold.begin(first),
        now,
        actor,
        mint,
        limits,
        operator_policy=operator_policy,
        events=[first],
    )
    parent = ""
    run_id = ""
    last = len(command.messages) - 1
    for index, message in enumerate(command.messages):
        if index == last and message.role is Role.USER:
            run_id = gate.enter(decision, message, parent, trace_context=command.trace_context)
        else:
            stored = replace(message, create_time=now)
            decision.emit(PromptAdded(stored, parent_node_id=parent, selected=True))
        parent = message.id
    return decision, run_id
