"""Settling client-tool calls (F1, F2, F4 to F7)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from broker_service.domain.decision import Decision
from broker_service.domain.events import AnswerAdded
from broker_service.domain.forks import fork_for_second_answer, open_fork, open_second_fork
from broker_service.domain.interactions import (
    InteractionRef,
    addressed_run,
    built_in_kind,
    declared_tool,
    find_interaction,
    refuse_if_closed_without_answer,
    refuse_kind,
    refuse_other_closer,
)
from broker_service.domain.model import (
    Answer,
    Interaction,
    InteractionKind,
    InteractionNotice,
    InteractionState,
    ResultKind,
    ToolResult,
)
from broker_service.domain.runs import add_result, resume_if_free, share_result
from broker_service.domain.state import SessionState, answer_digest
from turngate_core import connection, forms
from turngate_core.connection import (
    ConnectionFault,
    parse_connection_text,
    validate_connection_answer,
)
from turngate_core.errors import Reason, Refusal
from turngate_core.form_answers import validate_form_answer, validate_unsupported_form_answer
from turngate_core.forms import UnsupportedForm, parse_form_text
from turngate_core.ids import copy_message_id
from turngate_core.schema import validate
from turngate_core.violations import Violation


@dataclass(frozen=True, slots=True)
class SettleToolCall:
    """Exactly one of `output_json` (valid JSON text, T2) and `error_text`."""

    ref: InteractionRef
    output_json: str | None = None
    error_text: str | None = None
    tool_name: str = ""
    client_ref: str = ""


@dataclass(frozen=True, slots=True)
class Settled:
    """`run_id`: the run that goes on with the answer; `superseded_run_id`: the one that it retired.
    `acted_on_run_id`: after successors were followed (F8).
    """

    interaction_id: str
    answer_id: str
    run_id: str
    fork_opened: bool
    superseded_run_id: str
    acted_on_run_id: str
    message_id: str
    client_ref: str


def settle_tool_call(decision: Decision, command: SettleToolCall) -> Settled:
    """The first answer to a run that parked itself opens a fork (F2); an answer to another open
    call of the step is collected by that fork (F4); a second answer to the same call opens a
    sibling branch (F5).
    """
    state = decision.state
    interaction = find_interaction(state, command.ref)
    refuse_kind(interaction, InteractionKind.CLIENT_TOOL)
    if command.tool_name and command.tool_name != interaction.tool_name:
        raise Refusal(
            Reason.TOOL_NAME_MISMATCH,
            f"the call is one of {interaction.tool_name}",
            {"tool_name": command.tool_name, "expected": interaction.tool_name},
        )
    refuse_other_closer(decision, interaction)
    refuse_if_closed_without_answer(interaction)
    is_second = interaction.state is InteractionState.ANSWERED
    if is_second and (repeated := _repeated(decision, interaction, command)):
        return repeated
    _check_output(state, interaction, command.output_json)
    waiting = state.waiting_runs(interaction.id)
    if is_second:
        addressed = fork_for_second_answer(
            state, interaction, command.ref.run_id, decision.limits.max_forks_per_call
        )
    else:
        addressed = addressed_run(state, waiting, command.ref.run_id)
    answer_id = decision.mint("ans")
    result = ToolResult(
        call_id=interaction.call_id,
        output_json=command.output_json,
        error_text=command.error_text,
        kind=ResultKind.CLIENT,
        interaction_id=interaction.id,
        answer_id=answer_id,
        create_time=decision.now,
    )
    collected = addressed.collecting and not is_second
    goes_on_id = addressed.id if collected else decision.mint("run")
    answer = Answer(
        id=answer_id,
        author=decision.actor.name,
        client=decision.client,
        create_time=decision.now,
        run_id=goes_on_id,
        client_ref=command.client_ref,
    )
    decision.emit(
        AnswerAdded(
            interaction.id, interaction.call_id, answer, InteractionState.ANSWERED, addressed.id
        )
    )
    # What closes a question closes it for every run that waits for it (F4).
    goes_on = addressed
    if is_second:
        goes_on = open_second_fork(decision, addressed, goes_on_id, interaction)
    elif not collected:
        goes_on = open_fork(decision, addressed, goes_on_id, interaction)
    add_result(decision, goes_on, result)
    resume_if_free(decision, goes_on)
    for run in waiting:
        if run is not addressed:
            share_result(decision, run, result, goes_on.id)
            resume_if_free(decision, run)
    settled = _settled(state, interaction, answer, fork_opened=not collected)
    return replace(settled, acted_on_run_id=addressed.id)


def _check_output(state: SessionState, interaction: Interaction, output: str | None) -> None:
    """An output is checked against the form or the schema of its tool; an error text needs no
    check.
    """
    if output is None:
        return
    violations = _violations(state, interaction, output)
    if violations:
        raise Refusal(
            Reason.INVALID_ANSWER,
            "the answer does not fit; the question stays open",
            {"interaction_id": interaction.id},
            [(f"output{v.path.replace('/', '.')}", v.message) for v in violations],
        )


def _violations(state: SessionState, interaction: Interaction, output: str) -> list[Violation]:
    kind = built_in_kind(interaction.tool_name, interaction.render_hint)
    if kind == forms.KIND:
        form = parse_form_text(interaction.arguments_json)
        unsupported = isinstance(form, UnsupportedForm)
        if unsupported or interaction.notice is InteractionNotice.UNSUPPORTED_PAYLOAD:
            return validate_unsupported_form_answer(output)
        assert not isinstance(form, UnsupportedForm)
        return validate_form_answer(form, output)
    if kind == connection.KIND:
        request = parse_connection_text(interaction.arguments_json)
        return (
            []
            if isinstance(request, ConnectionFault)
            else validate_connection_answer(request, output)
        )
    tool = declared_tool(state, state.calls[interaction.call_id].call)
    if tool and tool.output_schema_json:
        return validate(tool.output_schema_json, output)
    return []


def _repeated(
    decision: Decision, interaction: Interaction, command: SettleToolCall
) -> Settled | None:
    """The same principal repeating the same answer gets the first outcome (F5)."""
    digests = decision.state.answer_digests
    digest = answer_digest(command.output_json, command.error_text)
    for answer in interaction.answers:
        if answer.author == decision.actor.name and digests[answer.id] == digest:
            return _settled(decision.state, interaction, answer, fork_opened=False)
    return None


def _settled(
    state: SessionState, interaction: Interaction, answer: Answer, *, fork_opened: bool
) -> Settled:
    run = state.runs[answer.run_id]
    return Settled(
        interaction_id=interaction.id,
        answer_id=answer.id,
        run_id=run.id,
        fork_opened=fork_opened,
        superseded_run_id=run.supersedes,
        acted_on_run_id=run.id,
        message_id=copy_message_id(interaction.message_id, run.id),
        client_ref=answer.client_ref,
    )
