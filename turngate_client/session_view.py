"""A session as its events tell it: what a client shows. `folding` keeps it up to date.

Messages, interactions and so on are the contract's own messages, as the broker's reads give them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields

from turngate.v1.interaction_pb2 import (
    INTERACTION_KIND_APPROVAL,
    INTERACTION_STATE_OPEN,
    Interaction,
)
from turngate.v1.message_pb2 import (
    ROLE_USER,
    Message,
    Part,
    RenderHint,
    ToolCall,
    ToolResult,
)
from turngate.v1.run_pb2 import Run, RunState
from turngate.v1.session_pb2 import HeldMessage, NodeKind, QueuePause, Session
from turngate_client.call_states import approval_parts, call_state, synthetic_result
from turngate_client.drafts import Draft
from turngate_core.ids import copy_message_id


@dataclass(frozen=True, slots=True)
class CallView:
    """A call as one run has it: results and questions belong to call and run (F4, F5).

    `state`: a display state, see turngate_core.display.
    """

    call: ToolCall
    run_id: str
    message_id: str
    state: str
    result: ToolResult | None
    interaction: Interaction | None
    hint: RenderHint | None


@dataclass(frozen=True, slots=True)
class NodeView:
    """A node of the tree. `selected`: it is on the selected branch."""

    id: str
    parent_id: str
    kind: NodeKind.ValueType
    selected: bool
    superseded: bool


@dataclass(slots=True)
class PromptView:
    """A prompt or first message; `parent_id` is "" for a root."""

    message: Message
    parent_id: str
    edits_prompt_id: str = ""
    was_held: bool = False


@dataclass(slots=True)
class RunView:
    """A run, its messages and what it has of its calls.

    `copied_ids`: the messages of its origin that it starts with (F3), by the ids under which they
    are kept; its copies of them have ids of their own (T3). `answered_step`: the calls of the last
    copied message; of these it has only results of its own and `inherited` ones, which lie in other
    runs (call id → run id). Results of earlier calls are its origin's.
    """

    run: Run
    copied_ids: tuple[str, ...] = ()
    answered_step: frozenset[str] = frozenset()
    inherited: dict[str, str] = field(default_factory=dict)
    own_ids: list[str] = field(default_factory=list)
    # It was cancelled because a question that it waited for expired (I4).
    expired: bool = False
    results: dict[str, ToolResult] = field(default_factory=dict)


@dataclass(slots=True)
class SessionView:
    """A session so far. Empty until `session_created` (or a snapshot) was folded.

    `position`: of the last event. `messages`: complete messages and hints by id; `drafts`: those
    that are being written; read them through `run_messages` and `transcript`. `hints`: by call id.
    `older_*_page_token`: what a snapshot left out, for `GetTree` and `GetTranscript` with
    `newest_first`; empty if nothing is missing.
    """

    session: Session = field(default_factory=Session)
    deleted: bool = False
    position: int = 0
    selected_node_id: str = ""
    queue_pause: QueuePause | None = None
    prompts: dict[str, PromptView] = field(default_factory=dict)
    runs: dict[str, RunView] = field(default_factory=dict)
    node_ids: list[str] = field(default_factory=list)
    messages: dict[str, Message] = field(default_factory=dict)
    drafts: dict[str, Draft] = field(default_factory=dict)
    hints: dict[str, RenderHint] = field(default_factory=dict)
    started_calls: set[str] = field(default_factory=set)
    interactions: dict[str, Interaction] = field(default_factory=dict)
    held_by_id: dict[str, HeldMessage] = field(default_factory=dict)
    older_nodes_page_token: str = ""
    older_messages_page_token: str = ""

    def start_over(self, session: Session, *, position: int, deleted: bool = False) -> None:
        """Forget everything: the session was deleted, or a snapshot replaces it."""
        fresh = SessionView(session=session, position=position, deleted=deleted)
        for name in (one.name for one in fields(self)):
            setattr(self, name, getattr(fresh, name))

    # --- the tree ---

    def parent_of(self, node_id: str) -> str:
        """The parent of a prompt or run, "" for a root."""
        if node_id in self.runs:
            return self.runs[node_id].run.prompt_id
        return self.prompts[node_id].parent_id if node_id in self.prompts else ""

    def _kind_of(self, node_id: str) -> NodeKind.ValueType:
        if node_id in self.runs:
            return NodeKind.NODE_KIND_RUN
        is_prompt = self.prompts[node_id].message.role == ROLE_USER
        return NodeKind.NODE_KIND_PROMPT if is_prompt else NodeKind.NODE_KIND_FIRST_MESSAGE

    def is_superseded(self, node_id: str) -> bool:
        """Whether the node is a run that a fork or retry has retired (F8)."""
        return node_id in self.runs and bool(self.runs[node_id].run.superseded_by_run_id)

    def branch(self, node_id: str = "") -> list[str]:
        """The nodes from the root down to this one; by default the selected branch.

        It begins later where a snapshot left older nodes out.
        """
        path: list[str] = []
        node_id = node_id or self.selected_node_id
        while node_id in self.runs or node_id in self.prompts:
            path.append(node_id)
            node_id = self.parent_of(node_id)
        return path[::-1]

    def nodes(self, *, include_superseded: bool = False) -> list[NodeView]:
        """The nodes of the tree, oldest first."""
        selected = set(self.branch())
        return [
            NodeView(
                node_id,
                self.parent_of(node_id),
                self._kind_of(node_id),
                node_id in selected,
                self.is_superseded(node_id),
            )
            for node_id in self.node_ids
            if include_superseded or not self.is_superseded(node_id)
        ]

    def children(self, node_id: str) -> list[str]:
        """The nodes under one ("" for the roots), oldest first, without superseded runs (F8)."""
        return [
            other
            for other in self.node_ids
            if self.parent_of(other) == node_id and not self.is_superseded(other)
        ]

    def siblings(self, node_id: str) -> list[str]:
        """The nodes of the same kind and parent, this one included unless it is superseded."""
        kind = self._kind_of(node_id)
        return [
            other
            for other in self.children(self.parent_of(node_id))
            if self._kind_of(other) == kind
        ]

    # --- messages ---

    def run_messages(self, run_id: str) -> list[Message]:
        """The messages of a run in order, its copies of its origin's first, hints among them.

        Results stand beside calls in `calls` and `transcript`, not in here.
        """
        view = self.runs[run_id]
        found = [self._copy(message_id, run_id) for message_id in view.copied_ids]
        for message_id in view.own_ids:
            draft = self.drafts.get(message_id)
            found.append(draft.message() if draft else self.messages[message_id])
        return found

    def _copy(self, message_id: str, run_id: str) -> Message:
        copy = Message()
        copy.CopyFrom(self.messages[message_id])
        copy.id = copy_message_id(message_id, run_id)
        copy.run_id = run_id
        return copy

    def text(self, run_id: str) -> str:
        """The reply of a run as far as it came: its text without reasoning, calls and hints."""
        return "".join(
            part.text.text for message in self.run_messages(run_id) for part in message.parts
        )

    def transcript(self, node_id: str = "") -> list[Message]:
        """The messages of a branch in the order in which a client shows them; default: selected.

        As `GetTranscript` gives them: after each call its approval request, decision and result,
        as far as there are any. Unlike it, messages that are being written stand in it, too.
        """
        shown: list[Message] = []
        for node in self.branch(node_id):
            if node in self.prompts:
                shown.append(self.prompts[node].message)
            elif node in self.runs:
                shown.extend(self.run_transcript(node))
        return shown

    def run_transcript(self, run_id: str) -> list[Message]:
        """The messages of a run as a transcript has them, results beside their calls."""
        return [self._with_results(message, run_id) for message in self.run_messages(run_id)]

    def _with_results(self, message: Message, run_id: str) -> Message:
        """The message with what belongs to its calls right after each of them."""
        if not any(part.HasField("tool_call") for part in message.parts):
            return message
        executed = {part.tool_result.call_id for part in message.parts}  # by the provider
        shown = Message()
        shown.CopyFrom(message)
        del shown.parts[:]
        for part in message.parts:
            shown.parts.append(part)
            call_id = part.tool_call.call_id
            if not part.HasField("tool_call") or call_id in executed:
                continue
            interaction = self.interaction_of(run_id, call_id)
            if interaction is not None and interaction.kind == INTERACTION_KIND_APPROVAL:
                shown.parts.extend(approval_parts(interaction))
            if (result := self._shown_result(run_id, call_id)) is not None:
                shown.parts.append(Part(tool_result=result))
        return shown

    # --- calls ---

    def calls(self, run_id: str) -> list[CallView]:
        """The calls of a run, in order."""
        return [
            self._call(part.tool_call, run_id, message)
            for message in self.run_messages(run_id)
            for part in message.parts
            if part.HasField("tool_call")
        ]

    def _call(self, call: ToolCall, run_id: str, message: Message) -> CallView:
        result = self._shown_result(run_id, call.call_id)
        for part in message.parts:  # what the provider executed came with its result
            if part.tool_result.call_id == call.call_id:
                result = part.tool_result
        interaction = self.interaction_of(run_id, call.call_id)
        state = call_state(message.id in self.drafts, result, interaction)
        hint = self.hints.get(call.call_id)
        return CallView(call, run_id, message.id, state, result, interaction, hint)

    def result(self, run_id: str, call_id: str) -> ToolResult | None:
        """The result that a call has in a run: its own, an inherited one, or its origin's (F2)."""
        while run_id in self.runs:
            view = self.runs[run_id]
            if call_id in view.results:
                return view.results[call_id]
            if call_id in view.inherited:
                run_id = view.inherited[call_id]
            elif call_id in view.answered_step:
                return None
            else:
                run_id = view.run.origin_run_id
        return None

    def _shown_result(self, run_id: str, call_id: str) -> ToolResult | None:
        if (result := self.result(run_id, call_id)) is not None:
            return result
        started = call_id in self.started_calls
        run_view = self.runs[run_id]
        return synthetic_result(run_view.run, call_id, started=started, expired=run_view.expired)

    def interaction_of(self, run_id: str, call_id: str) -> Interaction | None:
        """The newest question about a call in a run: runs share those of their origins (F4)."""
        lineage = set(self._lineage(run_id))
        for interaction in reversed(self.interactions.values()):
            if interaction.call_id == call_id and interaction.run_id in lineage:
                return interaction
        return None

    def _lineage(self, run_id: str) -> Iterator[str]:
        while run_id in self.runs:
            yield run_id
            run_id = self.runs[run_id].run.origin_run_id

    def open_interactions(self, run_id: str = "") -> list[Interaction]:
        """The open questions, oldest first: all, or those that a run waits for."""
        return [
            interaction
            for interaction in self.interactions.values()
            if interaction.state == INTERACTION_STATE_OPEN
            and (not run_id or interaction.id in self.runs[run_id].run.waits_for_interaction_ids)
        ]

    # --- the queue ---

    @property
    def held_messages(self) -> list[HeldMessage]:
        """The held messages in the order in which they will enter (G2, G4)."""
        return sorted(self.held_by_id.values(), key=lambda held: not held.interrupting)

    # --- for people ---

    def describe(self) -> str:
        """The state in one line, for errors and logs."""
        runs = ", ".join(
            f"{run_id} {RunState.Name(view.run.state).removeprefix('RUN_STATE_')}"
            + (" superseded" if self.is_superseded(run_id) else "")
            for run_id, view in self.runs.items()
        )
        questions = ", ".join(f"{one.id} {one.tool_name}" for one in self.open_interactions())
        held = ", ".join(one.message.id for one in self.held_messages)
        return (
            f"position {self.position}; selected {self.selected_node_id or 'nothing'}; "
            f"runs: {runs or 'none'}; open: {questions or 'nothing'}; held: {held or 'nothing'}"
            + ("; queue paused" if self.queue_pause else "")
            + ("; deleted" if self.deleted else "")
        )
