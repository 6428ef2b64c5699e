"""Interactions: opened when a run parks (R4), found, and refused by name when closed (F6)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from broker_service.domain.decision import RUNNER, Decision
from broker_service.domain.events import InteractionOpened
from broker_service.domain.model import (
    ClientTool,
    GrantScope,
    Interaction,
    InteractionKind,
    InteractionNotice,
    InteractionState,
    RenderHint,
    ToolCall,
)
from broker_service.domain.runs import find_run
from broker_service.domain.state import RunNode, SessionState
from turngate_core.errors import Reason, Refusal, invalid_field
from turngate_core.schema import Schema, SchemaError

CONNECT = "request_connection"

BUILT_IN_KINDS = {"request_input": "elicitation", CONNECT: "connect"}
"""The built-in client tools and the kinds of their render hints (B1, B2)."""

MAX_SCHEMA_BYTES = 64 * 1024
"""Of a declared schema, as JSON text."""


@dataclass(frozen=True, slots=True)
class InteractionRef:
    """Names an interaction: by its id, or by run and call."""

    interaction_id: str = ""
    run_id: str = ""
    call_id: str = ""


def declared_tool(state: SessionState, call: ToolCall) -> ClientTool | None:
    """How the tool of a call was declared: by the run's agent when the call was made (R7), else by
    the session. As for the runner, an agent's own tool goes before the session's of that name.
    """
    if by_agent := state.calls[call.call_id].declaration:
        return by_agent
    for tool in state.config.client_tools:
        if tool.name == call.name:
            return tool
    return None


def declared_by_agent(call: ToolCall, given: ClientTool) -> ClientTool | None:
    """What is kept of an agent's declaration: call and hint have the rest. None for built-in tools.

    Refuses with PROTOCOL_VIOLATION what nobody could answer by.
    """
    if call.name in BUILT_IN_KINDS:
        return None
    problem = ""
    if given.expires_after is not None and given.expires_after <= 0:
        problem = "its expires_after has to be positive"
    elif len(given.output_schema_json.encode()) > MAX_SCHEMA_BYTES:
        problem = f"its output schema is over {MAX_SCHEMA_BYTES} bytes"
    elif given.output_schema_json:
        try:
            Schema(given.output_schema_json)
        except SchemaError as error:
            problem = f"its output schema is no JSON Schema: {error}"
    if problem:
        problem = f"declaration of call {call.call_id}: {problem}"
        raise Refusal(Reason.PROTOCOL_VIOLATION, problem, {"problem": problem})
    return ClientTool(
        name="",
        output_schema_json=given.output_schema_json,
        expires_after=given.expires_after,
        on_expiry=given.on_expiry,
        conflict_policy=given.conflict_policy,
    )


def built_in_kind(tool_name: str, hint: RenderHint | None) -> str:
    """As what clients show a call: by the kind of its hint, else by its tool's name (B1, H3); ""
    if neither is built in.
    """
    if hint and hint.kind in BUILT_IN_KINDS.values():
        return hint.kind
    return BUILT_IN_KINDS.get(tool_name, "")


def hint_for(state: SessionState, run: RunNode, call: ToolCall) -> RenderHint:
    """The hint that the runner gave, else the one that the tool's declaration makes (H1)."""
    if hint := run.hints.get(call.call_id):
        return hint
    tool = declared_tool(state, call)
    kind = (tool.kind if tool else "") or BUILT_IN_KINDS.get(call.name, call.name)
    return RenderHint(call.call_id, kind, tool.params_json if tool else "")


def open_interaction(
    decision: Decision,
    run: RunNode,
    call: ToolCall,
    kind: InteractionKind,
    *,
    grant_scope: GrantScope | None = None,
    notice: InteractionNotice | None = None,
) -> str:
    """Open a fresh question about a call of the run's step (I2). Answers its id."""
    state = decision.state
    config = state.config
    tool = declared_tool(state, call)
    interaction_id = decision.mint("int")
    expires_after = (tool.expires_after if tool else None) or config.interaction_expires_after
    is_client_tool = kind is InteractionKind.CLIENT_TOOL
    opened_for = state.prompts[run.prompt_id].author
    is_connection = is_client_tool and hint_for(state, run, call).kind == BUILT_IN_KINDS[CONNECT]
    interaction = Interaction(
        id=interaction_id,
        run_id=run.id,
        message_id=state.calls[call.call_id].message_id,
        call_id=call.call_id,
        kind=kind,
        state=InteractionState.OPEN,
        tool_name=call.name,
        create_time=decision.now,
        expire_time=decision.now + expires_after if expires_after else None,
        on_expiry=(tool.on_expiry if tool else None) or config.on_expiry,
        conflict_policy=(
            state.conflict_policy(tool.conflict_policy if tool else None)
            if is_client_tool
            else None
        ),
        grant_scope=grant_scope,
        declared=not is_client_tool or call.name in BUILT_IN_KINDS or tool is not None,
        opened_for=opened_for,
        # Who finishes a connection must be the person it was opened for (B2).
        closers=(opened_for,) if opened_for and is_connection else (),
        link=config.interaction_link.replace("{session_id}", state.session.id).replace(
            "{interaction_id}", interaction_id
        ),
        notice=notice,
    )
    decision.emit(InteractionOpened(interaction), actor=RUNNER)
    return interaction_id


def find_interaction(state: SessionState, ref: InteractionRef) -> Interaction:
    """The interaction that a request names, open or closed.

    Refuses with INTERACTION_NOT_FOUND, RUN_NOT_FOUND, TOOL_CALL_NOT_IN_RUN (F7) or CALL_NOT_OPEN.
    """
    if ref.interaction_id:
        interaction = state.interactions.get(ref.interaction_id)
        if interaction is None:
            raise Refusal(
                Reason.INTERACTION_NOT_FOUND,
                f"no interaction {ref.interaction_id} in this session",
                {"interaction_id": ref.interaction_id},
            )
        if ref.call_id not in ("", interaction.call_id):
            raise invalid_field("interaction.call_id", "is not the call of that interaction")
        if ref.run_id:
            _check_owner(state, ref.run_id, interaction.call_id)
        return interaction
    _check_owner(state, ref.run_id, ref.call_id)
    interaction_id = state.calls[ref.call_id].interaction_id
    if not interaction_id:
        raise Refusal(
            Reason.CALL_NOT_OPEN,
            f"call {ref.call_id} waits for nobody",
            {"run_id": ref.run_id, "call_id": ref.call_id},
        )
    return state.interactions[interaction_id]


def _check_owner(state: SessionState, run_id: str, call_id: str) -> None:
    run = find_run(state, run_id)
    if not state.owns_call(run, call_id):
        raise Refusal(
            Reason.TOOL_CALL_NOT_IN_RUN,
            f"call {call_id} is not one of run {run_id}",
            {"run_id": run_id, "call_id": call_id, "legacy_code": "40003"},
        )


def addressed_run(state: SessionState, waiting: list[RunNode], named_run_id: str) -> RunNode:
    """The run that the request names or, by interaction alone, the one of the selected branch, else
    the first that waits. A superseded one means its successor (F8).

    Refuses with RUN_CANCELLED one that waits for nothing any more, whoever else does (F6).
    """
    assert waiting, "a question that is not closed has a live run that waits for it"
    if named_run_id:
        successor = state.successor(named_run_id)
        for run in waiting:
            if run.id == successor:
                return run
        named = state.runs[successor]
        if not named.live:
            raise Refusal(
                Reason.RUN_CANCELLED,
                f"run {named.id} waits for nothing any more",
                {"run_id": named.id},
            )
    for run in waiting:
        if state.on_selected_branch(run.id):
            return run
    return waiting[0]


def refuse_other_closer(decision: Decision, interaction: Interaction) -> None:
    """Only those whom an interaction names may close it, if it names any (B2, P1)."""
    if interaction.closers and decision.actor.name not in interaction.closers:
        raise Refusal(
            Reason.NOT_THE_CLOSER,
            "somebody else has to close this question",
            {"interaction_id": interaction.id},
        )


def refuse_kind(interaction: Interaction, expected: InteractionKind) -> None:
    """A decision for a client tool, or an output for an approval, is refused (F1)."""
    if interaction.kind is not expected:
        kind = interaction.kind.name if interaction.kind else ""
        verb = "decided" if interaction.kind is InteractionKind.APPROVAL else "settled"
        raise Refusal(
            Reason.WRONG_INTERACTION_KIND,
            f"interaction {interaction.id} is to be {verb}: it is of kind {kind}",
            {"interaction_id": interaction.id, "kind": kind},
        )


def refuse_if_closed_without_answer(interaction: Interaction) -> None:
    """An answer that comes too late is refused by name and changes nothing (F6)."""
    if interaction.state is InteractionState.EXPIRED:
        raise Refusal(
            Reason.INTERACTION_EXPIRED,
            "the question has expired",
            {"interaction_id": interaction.id, "expired_at": instant(interaction.close_time)},
        )
    if interaction.state is InteractionState.CANCELLED:
        raise Refusal(
            Reason.INTERACTION_CANCELLED,
            "the question was cancelled",
            {"interaction_id": interaction.id},
        )
    if interaction.state is InteractionState.NOT_HANDLED:
        raise Refusal(
            Reason.INTERACTION_NOT_HANDLED,
            "the broker settled the question itself",
            {"interaction_id": interaction.id},
        )


def first_answer_metadata(interaction: Interaction) -> dict[str, str]:
    """What ALREADY_SETTLED names: the first answer, its run and time (F5)."""
    first = interaction.answers[0]
    return {
        "interaction_id": interaction.id,
        "answer_id": first.id,
        "run_id": first.run_id,
        "answered_at": instant(first.create_time),
    }


def instant(millis: int | None) -> str:
    """RFC 3339, UTC, as error metadata tell instants."""
    moment = datetime.fromtimestamp((millis or 0) / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
