"""From a snapshot to what a client shows; events fold on from there (W1, W2)."""

from __future__ import annotations

from turngate.v1.broker_pb2 import SessionSnapshot, TreeNode
from turngate.v1.interaction_pb2 import (
    INTERACTION_KIND_APPROVAL,
    INTERACTION_STATE_APPROVED,
    INTERACTION_STATE_DENIED,
    Answer,
    Interaction,
)
from turngate.v1.message_pb2 import (
    RESULT_KIND_CLIENT,
    TOOL_EXECUTOR_PROVIDER,
    ApprovalDecision,
    ApprovalRequest,
    Message,
)
from turngate_client.drafts import Draft
from turngate_client.session_view import PromptView, RunView, SessionView
from turngate_core.ids import split_message_id


class SnapshotPieces:
    """Joins the pieces of a snapshot. One that broke off is forgotten when another begins."""

    def __init__(self) -> None:
        self._so_far = SessionSnapshot()

    def add(self, piece: SessionSnapshot) -> SessionSnapshot | None:
        """The whole snapshot, with its last piece; else None."""
        if piece.HasField("session"):
            self._so_far = SessionSnapshot()
        self._so_far.MergeFrom(piece)
        if not piece.complete:
            return None
        whole, self._so_far = self._so_far, SessionSnapshot()
        return whole


def apply_snapshot(view: SessionView, snapshot: SessionSnapshot) -> None:
    """Let the view be what the snapshot says, and nothing of what it was before.

    It then lacks older nodes and messages (see its page tokens), the messages of branches that are
    not selected, and the closed questions of client tools, whose results stand beside their calls.
    """
    view.start_over(snapshot.session, position=0)
    view.selected_node_id = snapshot.session.selected_node_id
    if snapshot.session.HasField("queue_pause"):
        view.queue_pause = snapshot.session.queue_pause
    view.older_nodes_page_token = snapshot.older_nodes_page_token
    view.older_messages_page_token = snapshot.older_messages_page_token
    for node in snapshot.nodes:
        _take_node(view, node)
    for held in snapshot.held_messages:
        view.held_by_id[held.message.id] = held
    for message in _joined(snapshot):
        if message.run_id in view.runs:
            _take_message(view, view.runs[message.run_id], message)
    for interaction in snapshot.interactions:
        view.interactions.pop(interaction.id, None)  # what the messages say of it is less
        view.interactions[interaction.id] = interaction
        if interaction.HasField("render_hint"):
            view.hints[interaction.call_id] = interaction.render_hint
    for message in snapshot.open_messages:
        parts = {
            index: part for index, part in enumerate(message.parts) if part.WhichOneof("content")
        }
        view.drafts[message.id] = Draft(message.id, message.run_id, message.step, parts)
        if message.run_id in view.runs:
            view.runs[message.run_id].own_ids.append(message.id)
    for run_id in list(view.runs):
        _lend_results(view, run_id)


def _take_node(view: SessionView, node: TreeNode) -> None:
    if node.HasField("run"):
        view.runs[node.id] = RunView(node.run)
    else:
        view.prompts[node.id] = PromptView(node.prompt, node.parent_id, node.edits_prompt_id)
    view.node_ids.append(node.id)


def _joined(snapshot: SessionSnapshot) -> list[Message]:
    """The messages; one that came in pieces is whole again."""
    messages: list[Message] = []
    for message in snapshot.messages:
        if messages and messages[-1].id == message.id:
            messages[-1].parts.extend(message.parts)
        else:
            messages.append(message)
    return messages


def _take_message(view: SessionView, run_view: RunView, shown: Message) -> None:
    """A transcript has results and decisions beside calls; the view keeps them by call."""
    base, copy_of = split_message_id(shown.id)
    message = Message()
    message.CopyFrom(shown)
    message.id = base
    del message.parts[:]
    executed: set[str] = set()  # by the provider: such a result is part of its message
    for part in shown.parts:
        match part.WhichOneof("content"):
            case "tool_result" if part.tool_result.call_id not in executed:
                run_view.results[part.tool_result.call_id] = part.tool_result
            case "approval_request":
                _take_approval(view, shown, part.approval_request)
            case "approval_decision":
                _take_decision(view, part.approval_decision)
            case _:
                if part.tool_call.executor == TOOL_EXECUTOR_PROVIDER:
                    executed.add(part.tool_call.call_id)
                if part.HasField("render_hint"):
                    view.hints[part.render_hint.tool_call_id] = part.render_hint
                if part.HasField("tool_call") and copy_of:
                    # All results that the run has of it are here: none is looked for elsewhere.
                    run_view.answered_step |= {part.tool_call.call_id}
                message.parts.append(part)
    view.messages[base] = message
    if copy_of:
        run_view.copied_ids = (*run_view.copied_ids, base)
    else:
        run_view.own_ids.append(base)


def _take_approval(view: SessionView, message: Message, asked: ApprovalRequest) -> None:
    interaction = Interaction(
        id=asked.interaction_id,
        session_id=view.session.id,
        run_id=message.run_id,
        message_id=message.id,
        call_id=asked.call_id,
        kind=INTERACTION_KIND_APPROVAL,
        grant_scope=asked.grant_scope,
    )
    for part in message.parts:
        if part.tool_call.call_id == asked.call_id:
            interaction.tool_name = part.tool_call.name
            interaction.arguments_json = part.tool_call.arguments_json
    view.interactions[interaction.id] = interaction


def _take_decision(view: SessionView, decision: ApprovalDecision) -> None:
    if (interaction := view.interactions.get(decision.interaction_id)) is None:
        return
    approved = decision.approved
    interaction.state = INTERACTION_STATE_APPROVED if approved else INTERACTION_STATE_DENIED
    interaction.close_time.CopyFrom(decision.create_time)
    interaction.answers.append(
        Answer(
            author=decision.decided_by,
            create_time=decision.create_time,
            approved=approved,
            reason=decision.reason,
            grant_scope=decision.grant_scope,
        )
    )


def _lend_results(view: SessionView, run_id: str) -> None:
    """A later fork may inherit a result from an origin that the snapshot shows by its copies only.

    What no client answered, an origin has as well as its fork.
    """
    run_view = view.runs[run_id]
    origin = view.runs.get(run_view.run.origin_run_id)
    while origin is not None:
        for call_id in run_view.answered_step:
            result = run_view.results.get(call_id)
            if result is not None and result.kind != RESULT_KIND_CLIENT:
                origin.results.setdefault(call_id, result)
        origin = view.runs.get(origin.run.origin_run_id)
