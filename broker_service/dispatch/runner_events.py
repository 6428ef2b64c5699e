"""Runner events of the contract as the core knows them, and deltas as log entries."""

from __future__ import annotations

from collections.abc import Iterable

from broker_service.domain import reports
from broker_service.domain.model import (
    ClientTool,
    Message,
    ProposedTool,
    RenderHint,
    RunFailure,
    ToolResult,
)
from broker_service.encoding import from_proto
from broker_service.storage.port import Entry, EntryKind
from turngate.v1 import event_pb2, runner_pb2
from turngate_core.errors import Reason, Refusal


def is_delta(event: runner_pb2.RunnerEvent) -> bool:
    return event.WhichOneof("event") in ("text_delta", "tool_call_delta")


def domain_event(event: runner_pb2.RunnerEvent) -> reports.RunnerEvent | None:
    """None for a heartbeat, and for events of a later revision, which may be skipped."""
    match event.WhichOneof("event"):
        case "message_started":
            return reports.Began(event.message_started.message_id)
        case "message_completed":
            return reports.Finished(from_proto(Message, event.message_completed.message))
        case "message_withdrawn":
            return reports.Withdrew(event.message_withdrawn.message_id)
        case "render_hint":
            said = event.render_hint
            hint = from_proto(RenderHint, said.hint)
            declares = said.HasField("declaration")
            declaration = from_proto(ClientTool, said.declaration) if declares else None
            return reports.Hinted(said.message_id, hint, declaration)
        case "tools_proposed":
            return reports.Proposed(_tools(event.tools_proposed.tools))
        case "tool_result":
            return reports.Resulted(from_proto(ToolResult, event.tool_result.result))
        case "parked":
            return reports.Parked(_tools(event.parked.waiting_tools))
        case "completed":
            return reports.Completed()
        case "failed":
            return reports.Failed(from_proto(RunFailure, event.failed.failure))
        case "cancelled":
            return reports.Cancelled()
        case _:
            return None


def _tools(tools: Iterable[runner_pb2.ProposedTool]) -> tuple[ProposedTool, ...]:
    return tuple(from_proto(ProposedTool, tool) for tool in tools)


def delta_entry(
    event: runner_pb2.RunnerEvent, run_id: str, open_message_id: str, now: int, tenant_id: str
) -> Entry:
    """A delta as it is stored. Refuses one of a message that is not being written."""
    stored = event_pb2.SessionEvent(
        actor_kind=event_pb2.ACTOR_KIND_RUNNER,
        tenant_id=tenant_id,
    )
    stored.create_time.FromMilliseconds(now)
    if event.HasField("text_delta"):
        stored.text_delta.CopyFrom(event.text_delta)
        stored.text_delta.run_id = run_id
        message_id = event.text_delta.message_id
    else:
        stored.tool_call_delta.CopyFrom(event.tool_call_delta)
        stored.tool_call_delta.run_id = run_id
        message_id = event.tool_call_delta.message_id
    if message_id != open_message_id:
        problem = f"a delta of message {message_id}, which is not being written"
        raise Refusal(Reason.PROTOCOL_VIOLATION, problem, {"problem": problem})
    return Entry(EntryKind.DELTA, stored.SerializeToString(), run_id, message_id)
