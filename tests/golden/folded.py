"""What a log folds to, as text: what people see of a session. It names each thing by itself, so
that what later versions add to the state does not change it.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

from google.protobuf import json_format

from broker_service.domain.events import SessionEvent
from broker_service.domain.grants import grants_of_branch
from broker_service.domain.model import Answer, Interaction, Part, TextPart, ToolCall, ToolResult
from broker_service.domain.state import RunNode, SessionState
from broker_service.encoding import to_proto
from tests.unit.broker.conversation import transcript_of


def folded(state: SessionState, log: list[SessionEvent]) -> str:
    """Session, tree, questions, queue, grants, and the transcript of every branch's end."""
    return "\n".join(_lines(state, log)) + "\n"


def _lines(state: SessionState, log: list[SessionEvent]) -> Iterator[str]:
    session = state.session
    deleted = " deleted" if state.deleted else ""
    yield f"session {session.id} tenant {session.tenant_id} owner {session.owner}{deleted}"
    yield f"events {state.version} selected {state.selected or '-'}"
    yield f"config {_json(state.config)}"
    for policy_id, policy in state.operator_policies.items():
        yield f"policy {policy_id} {_json(policy)}"
    for node_id in state.nodes:
        if prompt := state.prompts.get(node_id):
            edits = f" edits {prompt.edits_prompt_id}" if prompt.edits_prompt_id else ""
            yield (
                f"prompt {node_id} {prompt.role.name} by {prompt.author or '-'} "
                f"after {prompt.parent_id or '-'}{edits}"
            )
        else:
            yield _run(state.runs[node_id])
    for interaction in state.interactions.values():
        yield _interaction(interaction)
        yield from (f"  {_answer(answer)}" for answer in interaction.answers)
    for record in state.calls.values():
        if record.started:
            result = _name(record.result.kind) if record.result else "-"
            yield (
                f"start of {record.call.call_id} by {record.started_by} attempt "
                f"{record.started_in} idempotent {record.idempotent} result {result}"
            )
        if record.declaration:
            yield f"declaration of {record.call.call_id} {_json(record.declaration)}"
    if pause := state.queue_pause:
        yield f"queue paused {_name(pause.reason)} run {pause.run_id or '-'}"
    for held in state.held:
        waits = ",".join((held.waits_for_run_id, *held.waits_for_interaction_ids))
        yield (
            f"held {held.message.id} {_name(held.reason)} at {held.branch_node_id} waits {waits} "
            f"named {held.branch_named} interrupting {held.interrupting}"
        )
    for node_id in state.nodes:
        if state.children.get(node_id):
            continue
        yield f"branch to {node_id}"
        for grant in grants_of_branch(state, node_id):
            yield f"  grant {grant.id} {grant.tool_name} by {grant.granted_by} {grant.effective}"
        for message in transcript_of(state, log, state.path_to(node_id), with_hints=True):
            yield f"  {message.id} {_name(message.role)}"
            yield from (f"    {_part(part)}" for part in message.parts)


def _run(run: RunNode) -> str:
    said = f"run {run.id} of {run.prompt_id} {run.state.name} {run.cause.name}"
    said += f" attempt {run.attempt} step {run.step}"
    if run.origin_id:
        said += f" copies {run.origin_id} through {run.origin_through or '-'}"
    if run.superseded_by:
        said += f" superseded by {run.superseded_by}"
    if run.waits:
        said += f" waits {','.join(run.waits)}"
    if run.failure:
        said += f" failure {_name(run.failure.reason)}: {run.failure.message}"
    if run.operator_policy_id:
        said += f" policy {run.operator_policy_id}"
    results = [f"{call}:{_name(result.kind)}" for call, result in run.results.items()]
    return said + (f" results {' '.join(results)}" if results else "")


def _interaction(interaction: Interaction) -> str:
    return (
        f"interaction {interaction.id} {_name(interaction.kind)} {interaction.tool_name} of "
        f"{interaction.call_id} in {interaction.run_id} {_name(interaction.state)} "
        f"notice {_name(interaction.notice)} expires {interaction.expire_time} "
        f"closed {interaction.close_time}"
    )


def _answer(answer: Answer) -> str:
    what = answer.approved if answer.approved is not None else "answers"
    return f"{answer.id} {what} by {answer.author} for {answer.run_id} imported {answer.imported}"


def _part(part: Part) -> str:
    match part.content:
        case TextPart(text):
            return f"text {text}"
        case ToolCall():
            return f"call {part.content.call_id} {part.content.name} {part.content.arguments_json}"
        case ToolResult():
            result = part.content
            said = result.output_json if result.error_text is None else f"error {result.error_text}"
            return f"result of {result.call_id} {_name(result.kind)} {said}"
        case other:
            return f"{type(other).__name__} {_json(other)}"


def _json(value: object) -> str:
    """As the contract has it: what is not set is left out, whatever there may be one day."""
    return json_format.MessageToJson(to_proto(value), indent=None)


def _name(value: Enum | None) -> str:
    return value.name if value else "-"
