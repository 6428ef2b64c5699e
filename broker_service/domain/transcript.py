"""Transcripts: the messages of a branch, put together from its nodes' events.

Pure, over the state and the events of the nodes that `nodes_needed` names. Forks are copies by
reference (F3): their messages come from their origin under derived ids (T3).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from broker_service.domain.events import (
    AnswerAdded,
    Event,
    InteractionOpened,
    MessageCompleted,
    PromptAdded,
    RenderHintAdded,
    ToolResultAdded,
)
from broker_service.domain.model import (
    FINAL_STATES,
    Answer,
    ApprovalDecision,
    ApprovalRequest,
    Interaction,
    InteractionKind,
    Message,
    Part,
    RenderHint,
    ResultKind,
    Role,
    RunChangeCause,
    RunState,
    ToolCall,
    ToolResult,
)
from broker_service.domain.results import synthetic_result
from broker_service.domain.state import RunNode, SessionState
from turngate_core.ids import copy_message_id


@dataclass(slots=True)
class Step:
    """A message of a run with what belongs beside it in that run."""

    message: Message
    results: dict[str, ToolResult] = field(default_factory=dict)
    hints: list[tuple[str, RenderHint]] = field(default_factory=list)


@dataclass(slots=True)
class _NodeEvents:
    """What the events of one node say."""

    prompt: Message | None = None
    steps: list[Step] = field(default_factory=list)
    hints: list[tuple[str, RenderHint]] = field(default_factory=list)
    results: dict[str, ToolResultAdded] = field(default_factory=dict)


class Transcript:
    """The branches of a session, as far as the events that it was given reach."""

    def __init__(self, state: SessionState, events: Iterable[tuple[str, Event]]) -> None:
        """`events`: node ids with their events, in order of position."""
        self._state = state
        self._nodes: dict[str, _NodeEvents] = {}
        self._interactions: dict[str, Interaction] = {}
        self._decisions: dict[str, list[Answer]] = {}
        for node_id, event in events:
            self._take_in(self._nodes.setdefault(node_id, _NodeEvents()), event)

    def _take_in(self, node: _NodeEvents, event: Event) -> None:
        match event:
            case PromptAdded():
                node.prompt = event.message
            case MessageCompleted():
                node.steps.append(Step(event.message))
            case RenderHintAdded():
                node.hints.append((event.message_id, event.hint))
            case ToolResultAdded():
                node.results[event.result.call_id] = event
            case InteractionOpened():
                if event.interaction.kind is InteractionKind.APPROVAL:
                    self._interactions[event.interaction.call_id] = event.interaction
            case AnswerAdded():
                self._decisions.setdefault(event.call_id, []).append(event.answer)
            case _:
                pass

    def steps(self, run_id: str) -> list[Step]:
        """The messages of a run, copied ones first, each with the results it has in this run."""
        run = self._state.runs[run_id]
        steps: list[Step] = []
        if run.origin_id and run.origin_through:
            steps = self._copied(run)
        node = self._node(run_id)
        steps += [Step(step.message) for step in node.steps]
        owner = {call.call_id: step for step in steps for call in step.message.calls()}
        for call_id in node.results:
            if call_id in owner:
                owner[call_id].results[call_id] = self.result(run_id, call_id)
        for message_id, hint in node.hints:
            if hint.tool_call_id in owner:
                owner[hint.tool_call_id].hints.append((message_id, hint))
        return steps

    def _copied(self, run: RunNode) -> list[Step]:
        copies: list[Step] = []
        for step in self.steps(run.origin_id):
            message_id = copy_message_id(step.message.id, run.id)
            last = step.message.id == _id_in(run.origin_through, step.message.id)
            copies.append(
                Step(
                    message=replace(step.message, id=message_id, run_id=run.id),
                    results={} if last else dict(step.results),
                    hints=[(copy_message_id(i, run.id), hint) for i, hint in step.hints],
                )
            )
            if last:
                provided = _provided(step.message)
                for call_id, holder in run.inherited:
                    if call_id not in provided:
                        copies[-1].results[call_id] = self.result(holder, call_id)
                break
        return copies

    def result(self, run_id: str, call_id: str) -> ToolResult:
        """The result that an event of this run holds, or the one that it says is the same."""
        added = self._node(run_id).results[call_id]
        if not added.same_as_run_id:
            return added.result
        same = self.result(added.same_as_run_id, call_id)
        return replace(added.result, output_json=same.output_json, error_text=same.error_text)

    def messages(self, path: Sequence[str], *, with_hints: bool) -> list[Message]:
        """The messages of these nodes, results beside their calls (T1).

        Calls of a run that is final get a typed synthetic result where they have none (T4); those
        of a live run stay open.
        """
        messages: list[Message] = []
        for node_id in path:
            if node_id not in self._state.runs:
                prompt = self._node(node_id).prompt
                assert prompt is not None
                messages.append(prompt)
                continue
            run = self._state.runs[node_id]
            for step in self.steps(node_id):
                messages.append(self._with_results(run, step))
                if with_hints:
                    messages += [_hint_message(run, step, i, hint) for i, hint in step.hints]
        return messages

    def _with_results(self, run: RunNode, step: Step) -> Message:
        parts: list[Part] = []
        provided = _provided(step.message)
        for part in step.message.parts:
            parts.append(part)
            call = part.content
            if not isinstance(call, ToolCall) or call.call_id in provided:
                continue
            parts += [Part(content) for content in self._approval(call.call_id)]
            result = step.results.get(call.call_id) or self._synthetic(run, call.call_id)
            if result is not None:
                parts.append(Part(result))
        return replace(step.message, parts=tuple(parts))

    def _approval(self, call_id: str) -> list[ApprovalRequest | ApprovalDecision]:
        interaction = self._interactions.get(call_id)
        if interaction is None:
            return []
        request = ApprovalRequest(interaction.id, call_id, interaction.grant_scope)
        decisions = self._decisions.get(call_id, [])
        if not decisions:
            return [request]
        last = decisions[-1]
        return [
            request,
            ApprovalDecision(
                interaction_id=interaction.id,
                call_id=call_id,
                approved=bool(last.approved),
                reason=last.reason,
                grant_scope=last.grant_scope,
                decided_by=last.author,
                create_time=last.create_time,
                imported=last.imported,
            ),
        ]

    def _synthetic(self, run: RunNode, call_id: str) -> ToolResult | None:
        if run.state not in FINAL_STATES:
            return None
        if self._state.calls[call_id].started:
            kind = ResultKind.OUTCOME_UNKNOWN
        elif run.cancel_cause is RunChangeCause.EXPIRED:
            kind = ResultKind.EXPIRED
        elif run.state is RunState.CANCELLED:
            kind = ResultKind.CANCELLED_BY_USER
        else:
            kind = ResultKind.RUN_FAILED
        return synthetic_result(call_id, kind, run.update_time)

    def _node(self, node_id: str) -> _NodeEvents:
        return self._nodes.get(node_id) or _NodeEvents()


def _provided(message: Message) -> set[str]:
    """The calls whose results stand in the message itself: the provider executed them."""
    return {part.content.call_id for part in message.parts if isinstance(part.content, ToolResult)}


def nodes_needed(state: SessionState, path: Sequence[str]) -> list[str]:
    """The nodes whose events a transcript of this path is made of: origins and sources too."""
    needed: dict[str, None] = {}
    todo = list(reversed(path))
    while todo:
        node_id = todo.pop()
        if node_id in needed:
            continue
        needed[node_id] = None
        run = state.runs.get(node_id)
        if run is None:
            continue
        if run.origin_id:
            todo.append(run.origin_id)
        todo += [holder for _, holder in run.inherited]
        todo += sorted(run.lenders)
    return list(needed)


def _id_in(through: str, message_id: str) -> str:
    """`through` as the origin knows that message: under its own id, or a copy's."""
    _, at, run_id = message_id.partition("@")
    return f"{through}@{run_id}" if at else through


def _hint_message(run: RunNode, step: Step, message_id: str, hint: RenderHint) -> Message:
    return Message(
        id=message_id,
        role=Role.ASSISTANT,
        parts=(Part(hint),),
        run_id=run.id,
        step=step.message.step,
        create_time=step.message.create_time,
    )
