"""Requests as commands of the core: checked field by field, then translated."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from broker_service.api import checks
from broker_service.config import PublishedLimits
from broker_service.domain.approvals import DecideApproval
from broker_service.domain.cancel import CancelRun
from broker_service.domain.gate import EditMessage, SendMessage
from broker_service.domain.interactions import BUILT_IN_KINDS, MAX_SCHEMA_BYTES, InteractionRef
from broker_service.domain.model import (
    ClientTool,
    DataPart,
    FilePart,
    GrantScope,
    Message,
    OnBusy,
    Part,
    Role,
    Session,
    SessionConfig,
    TextPart,
    TraceContext,
)
from broker_service.domain.sessions import CreateSession
from broker_service.domain.settlement import SettleToolCall
from broker_service.encoding import from_proto
from broker_service.sessions import mint
from turngate.v1 import broker_pb2, message_pb2
from turngate_core.errors import Reason, Refusal, invalid_field
from turngate_core.schema import Schema, SchemaError
from turngate_serving.caller import Caller

MAX_PARTS = 100
MAX_FIRST_MESSAGES = 100
MAX_CLIENT_TOOLS = 100
MAX_RULES = 200
MAX_LABELS = 32
MAX_PARTICIPANTS = 100
MAX_NAME = 128
MAX_TITLE = 256
MAX_SHORT_TEXT = 4 * 1024
MAX_LINK = 2 * 1024
MAX_CONFIG_BYTES = 900 * 1024
"""What is told with a session has to fit into one message, which is 1 MiB or so at most."""


def create_session(
    request: broker_pb2.CreateSessionRequest,
    caller: Caller,
    limits: PublishedLimits,
    default_agent: str,
) -> CreateSession:
    """Refuses what does not fit, field by field."""
    session_id = mint("ses")
    if request.session_id:
        session_id = checks.identifier("session_id", request.session_id)
    checks.count("participants", "participants", request.participants, MAX_PARTICIPANTS)
    for index, participant in enumerate(request.participants):
        checks.characters(f"participants[{index}]", "name", participant, MAX_NAME)
    checks.characters("owner", "name", request.owner, MAX_NAME)
    config_bytes = request.config.ByteSize()
    if config_bytes > MAX_CONFIG_BYTES:
        raise checks.over("config", "config_bytes", MAX_CONFIG_BYTES, config_bytes, "bytes")
    checks.known_enums("config", request.config)
    config = from_proto(SessionConfig, request.config)
    _check_config(config, limits)
    session = Session(
        id=session_id,
        tenant_id=caller.tenant_id,
        owner=request.owner or caller.principal,
        participants=tuple(request.participants),
        config=replace(config, agent=config.agent or default_agent),
    )
    return CreateSession(
        session, _first_messages(request.messages, caller, limits), trace_context(caller)
    )


def send_message(
    request: broker_pb2.SendMessageRequest, caller: Caller, limits: PublishedLimits
) -> SendMessage | EditMessage:
    if request.edits_message_id and request.branch_node_id:
        raise invalid_field("branch_node_id", "not together with edits_message_id")
    if request.message_id:
        checks.identifier("message_id", request.message_id)
    message = Message(
        id=request.message_id or mint("msg"),
        role=Role.USER,
        parts=content("", request.text, request.parts, limits),
        author=caller.principal,
    )
    on_busy = checks.enum_value("on_busy", OnBusy, request.on_busy)
    if request.edits_message_id:
        return EditMessage(
            message=message,
            prompt_id=request.edits_message_id,
            on_busy=on_busy,
            keep_running=request.keep_running,
            trace_context=trace_context(caller),
        )
    return SendMessage(
        message=message,
        branch_node_id=request.branch_node_id,
        on_busy=on_busy,
        trace_context=trace_context(caller),
    )


def content(
    place: str,
    text: str,
    parts: Iterable[message_pb2.Part],
    limits: PublishedLimits,
) -> tuple[Part, ...]:
    """What clients send: text, files and data only (T1). Exactly one of `text` and `parts`."""
    given = tuple(from_proto(Part, part) for part in parts)
    if bool(text) == bool(given):
        raise invalid_field(f"{place}text", "exactly one of text and parts has to be given")
    if text:
        given = (Part(TextPart(text)),)
    checks.count(f"{place}parts", "parts", given, MAX_PARTS)
    for index, part in enumerate(given):
        _check_part(f"{place}text" if text else f"{place}parts[{index}]", part, limits)
    _check_whole(f"{place}text" if text else f"{place}parts", given, limits)
    return given


def _check_part(place: str, part: Part, limits: PublishedLimits) -> None:
    match part.content:
        case TextPart():
            pass  # of the texts counts what they come to
        case FilePart(uri, media_type, name, size_bytes):
            checks.required(f"{place}.file.uri", uri)
            checks.size(f"{place}.file.uri", "link", uri, MAX_LINK)
            checks.characters(f"{place}.file.name", "name", name, MAX_NAME)
            checks.characters(f"{place}.file.media_type", "name", media_type, MAX_NAME)
            if not 0 <= size_bytes < 2**53:
                raise invalid_field(f"{place}.file.size_bytes", "has to be from 0 to below 2^53")
        case DataPart(kind, json):
            checks.characters(f"{place}.data.kind", "name", kind, MAX_NAME)
            checks.json_text(f"{place}.data.json", json, limits)
        case _:
            raise invalid_field(place, "clients send text, files and data only")


def _check_whole(place: str, parts: tuple[Part, ...], limits: PublishedLimits) -> None:
    """The text of a message, and all that it holds, in bytes."""
    text_bytes = total = 0
    for part in parts:
        match part.content:
            case TextPart(text):
                text_bytes += len(text.encode())
            case FilePart(uri, media_type, name):
                total += sum(len(held.encode()) for held in (uri, media_type, name))
            case DataPart(kind, json):
                total += len(kind.encode()) + len(json.encode())
    total += text_bytes
    if text_bytes > limits.text_bytes:
        raise checks.over(place, "text_bytes", limits.text_bytes, text_bytes, "bytes")
    if total > limits.message_bytes:
        raise checks.over(place, "message_bytes", limits.message_bytes, total, "bytes")


def _first_messages(
    messages: Iterable[message_pb2.Message], caller: Caller, limits: PublishedLimits
) -> tuple[Message, ...]:
    first: list[Message] = []
    seen: set[str] = set()
    for index, proto in enumerate(messages):
        place = f"messages[{index}]."
        role = checks.enum_value(f"{place}role", Role, proto.role)
        if role is None:
            raise invalid_field(f"{place}role", "has to be given")
        if role is Role.SYSTEM and index:
            raise invalid_field(f"{place}role", "a system message comes first only")
        message_id = proto.id or mint("msg")
        checks.identifier(f"{place}id", message_id)
        if message_id in seen:
            raise invalid_field(f"{place}id", "stands twice")
        seen.add(message_id)
        first.append(
            Message(
                id=message_id,
                role=role,
                parts=content(place, "", proto.parts, limits),
                author=caller.principal if role is Role.USER else "",
            )
        )
    checks.count("messages", "first_messages", first, MAX_FIRST_MESSAGES)
    return tuple(first)


def _check_config(config: SessionConfig, limits: PublishedLimits) -> None:
    checks.characters("config.agent", "name", config.agent, MAX_NAME)
    checks.characters("config.title", "title", config.title, MAX_TITLE)
    checks.size("config.interaction_link", "link", config.interaction_link, MAX_LINK)
    checks.count("config.labels", "labels", config.labels, MAX_LABELS)
    for key, value in config.labels.items():
        checks.required("config.labels", key)
        checks.characters(f"config.labels[{key}]", "name", key, MAX_NAME)
        checks.characters(f"config.labels[{key}]", "name", value, MAX_NAME)
    checks.count("config.client_tools", "client_tools", config.client_tools, MAX_CLIENT_TOOLS)
    names: set[str] = set()
    for index, tool in enumerate(config.client_tools):
        _check_tool(f"config.client_tools[{index}]", tool, names, limits)
    policy = config.approval_policy
    rules = policy.rules if policy else ()
    checks.count("config.approval_policy.rules", "rules", rules, MAX_RULES)
    for index, rule in enumerate(rules):
        place = f"config.approval_policy.rules[{index}].pattern"
        checks.required(place, rule.pattern)
        checks.characters(place, "name", rule.pattern, MAX_NAME)
    for name in ("retention", "interaction_expires_after", "unclaimed_after"):
        duration = getattr(config, name)
        if duration is not None and duration <= 0:
            raise invalid_field(f"config.{name}", "has to be positive")


def _check_tool(place: str, tool: ClientTool, names: set[str], limits: PublishedLimits) -> None:
    checks.required(f"{place}.name", tool.name)
    checks.characters(f"{place}.name", "name", tool.name, MAX_NAME)
    if tool.name in names:
        raise invalid_field(f"{place}.name", "stands twice")
    if tool.name in BUILT_IN_KINDS:
        raise invalid_field(f"{place}.name", "is the name of a built-in client tool")
    names.add(tool.name)
    checks.size(f"{place}.description", "short_text", tool.description, MAX_SHORT_TEXT)
    checks.characters(f"{place}.kind", "name", tool.kind, MAX_NAME)
    checks.json_object(f"{place}.params_json", tool.params_json, limits)
    for name in ("input_schema_json", "output_schema_json"):
        schema: str = getattr(tool, name)
        if schema:
            checks.size(f"{place}.{name}", "schema_bytes", schema, MAX_SCHEMA_BYTES)
            checks.json_object(f"{place}.{name}", schema, limits)
            try:
                Schema(schema)
            except SchemaError as error:
                raise invalid_field(f"{place}.{name}", f"is no JSON Schema: {error}") from error
    if tool.expires_after is not None and tool.expires_after <= 0:
        raise invalid_field(f"{place}.expires_after", "has to be positive")


def settle_tool_call(
    request: broker_pb2.SettleToolCallRequest, limits: PublishedLimits
) -> SettleToolCall:
    output: str | None = None
    error_text: str | None = None
    match request.WhichOneof("answer"):
        case "output_json":
            output = checks.json_text("output_json", request.output_json, limits)
        case "output":
            output = checks.json_of_value("output", request.output, limits)
        case "error_text":
            checks.required("error_text", request.error_text)
            error_text = checks.size(
                "error_text", "json_bytes", request.error_text, limits.json_bytes
            )
        case _:
            raise invalid_field(
                "answer", "one of output_json, output and error_text has to be given"
            )
    return SettleToolCall(
        ref=interaction_ref(request.interaction),
        output_json=output,
        error_text=error_text,
        tool_name=request.tool_name,
        client_ref=checks.characters("client_ref", "name", request.client_ref, MAX_NAME),
    )


def decide_approval(request: broker_pb2.DecideApprovalRequest) -> DecideApproval:
    if request.decision not in (broker_pb2.DECISION_APPROVE, broker_pb2.DECISION_DENY):
        raise invalid_field("decision", "has to be DECISION_APPROVE or DECISION_DENY")
    return DecideApproval(
        ref=interaction_ref(request.interaction),
        approve=request.decision == broker_pb2.DECISION_APPROVE,
        reason=checks.size("reason", "short_text", request.reason, MAX_SHORT_TEXT),
        grant_scope=checks.enum_value("grant_scope", GrantScope, request.grant_scope),
        client_ref=checks.characters("client_ref", "name", request.client_ref, MAX_NAME),
    )


def cancel_run(request: broker_pb2.CancelRunRequest) -> CancelRun:
    if request.held not in broker_pb2.HeldMessages.values():
        raise invalid_field("held", f"has no value {request.held}")
    return CancelRun(request.run_id, keep_held=request.held == broker_pb2.HELD_MESSAGES_KEEP)


def interaction_ref(ref: broker_pb2.InteractionRef) -> InteractionRef:
    if not ref.interaction_id and not (ref.run_id and ref.call_id):
        raise invalid_field("interaction", "name interaction_id, or run_id and call_id")
    return InteractionRef(ref.interaction_id, ref.run_id, ref.call_id)


def trace_context(caller: Caller) -> TraceContext | None:
    if not caller.trace.traceparent:
        return None
    return TraceContext(caller.trace.traceparent, caller.trace.tracestate)


def not_implemented(feature: str) -> Refusal:
    """What this build cannot do yet, by name."""
    return Refusal(Reason.NOT_IMPLEMENTED, f"{feature} is not built yet", {"feature": feature})
