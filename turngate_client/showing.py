"""What to show for the calls of a run: the rules of turngate_core, fed from a view (H1-H4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from turngate.v1.interaction_pb2 import INTERACTION_KIND_APPROVAL
from turngate.v1.message_pb2 import TOOL_EXECUTOR_PROVIDER, Message
from turngate.v1.run_pb2 import RUN_STATE_PENDING, RUN_STATE_RUNNING
from turngate_client.session_view import CallView, SessionView
from turngate_core.display import (
    ApprovalData,
    DisplayMessage,
    DisplayPart,
    DisplayTextPart,
    OtherPart,
    RenderHintPart,
    StepStartPart,
    ToolPart,
)
from turngate_core.json_text import JsonTextError, JsonValue, parse
from turngate_core.registry import Registration, widget_for
from turngate_core.render import build_render_map


def tool_part(call: CallView) -> ToolPart:
    """The display part of a call."""
    result, interaction = call.result, call.interaction
    approval = None
    if interaction is not None and interaction.kind == INTERACTION_KIND_APPROVAL:
        decision = interaction.answers[-1].approved if interaction.answers else None
        approval = ApprovalData(interaction.id, decision)
    return ToolPart(
        tool=call.call.name,
        call_id=call.call.call_id,
        state=call.state,
        arguments=call.call.arguments_json,
        output=result.output_json if result and result.HasField("output_json") else None,
        error_text=result.error_text if result and result.HasField("error_text") else None,
        approval=approval,
        provider_executed=call.call.executor == TOOL_EXECUTOR_PROVIDER,
    )


def display_message(view: SessionView, run_id: str) -> DisplayMessage:
    """The reply of a run as one message: its steps, texts, calls and their hints.

    A fork shows the calls of its origin; their hints come along, wherever they stand in the log.
    """
    calls = {call.call.call_id: call for call in view.calls(run_id)}
    parts: list[DisplayPart] = []
    for message in view.run_messages(run_id):
        if not any(part.HasField("render_hint") for part in message.parts):
            parts.append(StepStartPart())
        parts.extend(_content(message, calls))
    parts.extend(_hint(call) for call in calls.values() if call.hint is not None)
    return DisplayMessage("assistant", tuple(parts))


def _content(message: Message, calls: dict[str, CallView]) -> Iterator[DisplayPart]:
    for part in message.parts:
        match part.WhichOneof("content"):
            case "text":
                yield DisplayTextPart(part.text.text)
            case "tool_call":
                yield tool_part(calls[part.tool_call.call_id])
            case "render_hint" | "tool_result":
                pass  # hints follow after all calls; results stand in the parts of their calls
            case _:
                yield OtherPart()


def _hint(call: CallView) -> RenderHintPart:
    if call.hint is None:
        return RenderHintPart(call.call.call_id, None)
    render: dict[str, JsonValue] = {}
    try:
        params = parse(call.hint.params_json or "{}")
    except JsonTextError:
        params = None
    if isinstance(params, dict):
        render.update(params)
    if call.hint.kind:
        render["kind"] = call.hint.kind
    return RenderHintPart(call.call.call_id, render)


def widget_of(
    view: SessionView, call: CallView, registered: Sequence[Registration] = ()
) -> str | None:
    """The widget for a call (H3): `form`, `connect`, a registered name, `fallback`, or None."""
    branch = view.branch()
    states = (RUN_STATE_PENDING, RUN_STATE_RUNNING)
    return widget_for(
        tool_part(call),
        build_render_map(display_message(view, call.run_id).parts),
        streaming=view.runs[call.run_id].run.state in states,
        last_message=bool(branch) and branch[-1] == call.run_id,
        registered=registered,
    )
