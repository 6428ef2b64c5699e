"""How events, questions, held messages and trees look in a terminal."""

from __future__ import annotations

from collections.abc import Iterable

from rich.text import Text
from rich.tree import Tree

from turngate.v1.interaction_pb2 import INTERACTION_KIND_APPROVAL, Interaction, InteractionState
from turngate.v1.message_pb2 import Message, Part, ToolResult
from turngate.v1.run_pb2 import RunCause, RunState
from turngate.v1.session_pb2 import HeldMessage, HoldReason, NodeKind
from turngate_client.cli.output import plain
from turngate_client.session_view import SessionView

# Of what a tree shows of a message: enough to know it again.
_WIDTH = 100


def short(enum_name: str, prefix: str) -> str:
    """An enum value without its prefix: `RUN_STATE_PARKED` → `PARKED`."""
    return enum_name.removeprefix(prefix)


def state_of(state: RunState.ValueType) -> str:
    """The state of a run, `PARKED` and so on."""
    return short(RunState.Name(state), "RUN_STATE_")


def text_of(message: Message) -> str:
    """The plain text of a message."""
    return "".join(part.text.text for part in message.parts)


def held_line(held: HeldMessage) -> str:
    """Why a message is held, and what it waits for (G1)."""
    reason = short(HoldReason.Name(held.reason), "HOLD_REASON_")
    waits = [held.waits_for_run_id, *held.waits_for_interaction_ids]
    return f"HELD {reason}, waits for {', '.join(one for one in waits if one) or 'nothing'}"


def question_line(interaction: Interaction) -> str:
    """A question in one line."""
    approval = interaction.kind == INTERACTION_KIND_APPROVAL
    kind = "approval of" if approval else "call of"
    state = short(InteractionState.Name(interaction.state), "INTERACTION_STATE_")
    return f"{interaction.id}  {state}  {kind} {interaction.tool_name}"


def result_line(result: ToolResult) -> str:
    """A result in one line."""
    match result.WhichOneof("outcome"):
        case "output_json":
            return result.output_json
        case "error_text":
            return f"error: {result.error_text}"
        case _:
            return "nothing"


def part_line(part: Part) -> str | None:
    """A part of a transcript in one line; None for what is not shown."""
    match part.WhichOneof("content"):
        case "text":
            return part.text.text
        case "reasoning":
            return f"({part.reasoning.text})"
        case "tool_call":
            return f"→ {part.tool_call.name} {part.tool_call.arguments_json}"
        case "tool_result":
            return f"← {result_line(part.tool_result)}"
        case "approval_request":
            return "? asks for approval"
        case "approval_decision":
            decision = part.approval_decision
            verdict = "approved" if decision.approved else "denied"
            reason = f": {decision.reason}" if decision.reason else ""
            return f"! {verdict} by {decision.decided_by or 'somebody'}{reason}"
        case "render_hint":
            return f"⌗ render hint {part.render_hint.kind} for {part.render_hint.tool_call_id}"
        case "file":
            return f"[file] {part.file.name or part.file.uri}"
        case "data":
            return f"[data] {part.data.kind}"
        case _:
            return None


def tree_of(view: SessionView) -> Tree:
    """The conversation tree with superseded runs; what is on the selected branch is marked."""
    root = Tree(plain(f"session {view.session.id}", "bold"))
    trees = {"": root}
    nodes = view.nodes(include_superseded=True)
    for node in nodes:
        label = _label(view, node.id, node.kind)
        if node.selected:
            label.append("  ●", "green")
        under = trees.get(node.parent_id, root)
        trees[node.id] = under.add(label, style="dim" if node.superseded else "")
        if node.kind == NodeKind.NODE_KIND_RUN:
            _add_lines(trees[node.id], view, node.id)
    for held in view.held_messages:
        root.add(plain(f"{text_of(held.message)}  {held_line(held)}", "yellow"))
    return root


def _label(view: SessionView, node_id: str, kind: NodeKind.ValueType) -> Text:
    if kind != NodeKind.NODE_KIND_RUN:
        prompt = view.prompts[node_id]
        speaker = "user" if kind == NodeKind.NODE_KIND_PROMPT else "first message"
        edited = f" (edits {prompt.edits_prompt_id})" if prompt.edits_prompt_id else ""
        held = " (was held)" if prompt.was_held else ""
        return plain(f"{speaker}: {text_of(prompt.message)}{edited}{held}", "bold")
    run = view.runs[node_id].run
    cause = short(RunCause.Name(run.cause), "RUN_CAUSE_").lower().replace("_", " ")
    superseded = f", superseded by {run.superseded_by_run_id}" if run.superseded_by_run_id else ""
    return plain(f"{node_id} {state_of(run.state)} ({cause}{superseded})")


def _add_lines(tree: Tree, view: SessionView, run_id: str) -> None:
    """The reply of a run under its node; of a superseded one only that it went on elsewhere."""
    if view.is_superseded(run_id):
        return
    for message in view.run_transcript(run_id):
        for line in _lines(message.parts):
            tree.add(plain(line, "default"))


def _lines(parts: Iterable[Part]) -> list[str]:
    lines = [part_line(part) for part in parts]
    return [line if len(line) <= _WIDTH else f"{line[: _WIDTH - 1]}…" for line in lines if line]
