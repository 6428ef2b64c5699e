"""What a stored log can hold, by the contract, and what of it some logs do hold."""

from __future__ import annotations

from collections.abc import Iterable

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message

from turngate.v1 import event_pb2

READ = "made for whoever reads, of what other events say"
SHOWN = "made for transcripts, of the question and its answers"
NEVER_STORED = {
    **dict.fromkeys(
        (
            "Answer.error_text",
            "Answer.output_json",
            "Interaction.answers",
            "Interaction.arguments_json",
            "Interaction.close_time",
            "Interaction.on_selected_branch",
            "Interaction.render_hint",
            "Interaction.session_id",
            "Interaction.waiting_run_ids",
            "RESULT_KIND_RUN_FAILED",
            "Run.attempt",
            "Run.failure",
            "Run.on_selected_branch",
            "Run.sibling_run_ids",
            "Run.superseded_by_run_id",
            "Run.unplaced",
            "Run.usage",
            "Session.active_run_count",
            "Session.held_message_count",
            "Session.open_interaction_count",
            "Session.queue_pause",
            "Session.selected_node_id",
            "SessionEvent.position",
        ),
        READ,
    ),
    **dict.fromkeys(
        (
            "ApprovalDecision.approved",
            "ApprovalDecision.call_id",
            "ApprovalDecision.create_time",
            "ApprovalDecision.decided_by",
            "ApprovalDecision.grant_scope",
            "ApprovalDecision.imported",
            "ApprovalDecision.interaction_id",
            "ApprovalDecision.reason",
            "ApprovalRequest.call_id",
            "ApprovalRequest.grant_scope",
            "ApprovalRequest.interaction_id",
            "Part.approval_decision",
            "Part.approval_request",
            "Part.render_hint",
        ),
        SHOWN,
    ),
    "HeldMessage.edits_prompt_id": "edits are never held: they enter at once (C2)",
}
"""What a broker writes into no event, and why. What is stored one day leaves this list, and the
next golden set has it."""


def of_the_contract() -> set[str]:
    """Every field and every value of an enum that an event can hold, as `Run.state` and
    `RUN_STATE_PENDING`."""
    found: set[str] = set()
    _walk(event_pb2.SessionEvent.DESCRIPTOR, found, set())
    return found


def of_messages(messages: Iterable[Message]) -> set[str]:
    """What of it is set in these."""
    found: set[str] = set()
    for message in messages:
        _collect(message, found)
    return found


def _walk(message: Descriptor, found: set[str], seen: set[str]) -> None:
    seen.add(message.full_name)
    for field in message.fields:
        found.add(_name(message.name, field))
        if field.enum_type is not None:
            found |= _values(field.enum_type)
        inner = field.message_type
        if inner is not None and _is_ours(inner) and inner.full_name not in seen:
            _walk(inner, found, seen)


def _values(enum: EnumDescriptor) -> set[str]:
    return {value.name for value in enum.values if value.number != 0}


def _collect(message: Message, found: set[str]) -> None:
    for field, value in message.ListFields():
        found.add(_name(message.DESCRIPTOR.name, field))
        if field.enum_type is not None:
            found.add(field.enum_type.values_by_number[value].name)
        elif field.message_type is not None and _is_ours(field.message_type):
            for inner in value if field.is_repeated else (value,):
                _collect(inner, found)


def _is_ours(message: Descriptor) -> bool:
    return message.file.package == "turngate.v1" and not message.GetOptions().map_entry


def _name(message: str, field: FieldDescriptor) -> str:
    return f"{message}.{field.name}"
