"""From the events of a session to what a client shows. Pure: no I/O, no clock."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from google.protobuf.message import Message as AnyMessage
from google.protobuf.timestamp_pb2 import Timestamp

from turngate.v1 import event_pb2 as events
from turngate.v1.event_pb2 import SessionEvent
from turngate.v1.interaction_pb2 import INTERACTION_KIND_CLIENT_TOOL, INTERACTION_STATE_OPEN
from turngate.v1.message_pb2 import ROLE_ASSISTANT, Message, Part
from turngate.v1.run_pb2 import RUN_CAUSE_RETRY, RUN_CHANGE_CAUSE_EXPIRED
from turngate.v1.session_pb2 import Session
from turngate_client.drafts import begin_draft
from turngate_client.session_view import PromptView, RunView, SessionView
from turngate_core.ids import split_message_id

ProtoMessage = TypeVar("ProtoMessage", bound=AnyMessage)


def fold(log: Iterable[SessionEvent], view: SessionView | None = None) -> SessionView:
    """The view after these events; a given view is changed, and returned."""
    view = SessionView() if view is None else view
    for event in log:
        apply_event(view, event)
    return view


def apply_event(view: SessionView, event: SessionEvent) -> None:
    """Change the view by one event. Events up to its position, and unknown kinds, change nothing.

    Raises FoldError if text is missing in the events that came.
    """
    if event.position <= view.position:
        return
    view.position = event.position
    match event.WhichOneof("event"):
        case "session_created":
            view.session = _copy(event.session_created.session)
        case "prompt_added":
            _prompt_added(view, event.prompt_added)
        case "message_held":
            # The same message again was edited: its place in the dict stays (G3).
            held = _copy(event.message_held.held)
            view.held_by_id[held.message.id] = held
        case "hold_changed":
            _hold_changed(view, event.hold_changed)
        case "held_message_removed":
            view.held_by_id.pop(event.held_message_removed.message_id, None)
        case "queue_paused":
            view.queue_pause = _copy(event.queue_paused.pause)
        case "queue_resumed":
            view.queue_pause = None
        case "branch_selected":
            view.selected_node_id = event.branch_selected.node_id
        case "run_created":
            _run_created(view, event.run_created)
        case "run_state_changed":
            _run_state_changed(view, event.run_state_changed, event.create_time)
        case "tool_result_added":
            _tool_result_added(view, event.tool_result_added)
        case "session_deleted":
            view.start_over(Session(id=view.session.id), position=event.position, deleted=True)
        case _:
            _apply_content(view, event)


def _apply_content(view: SessionView, event: SessionEvent) -> None:
    """What is said and asked within runs."""
    match event.WhichOneof("event"):
        case "message_started":
            started = event.message_started
            view.drafts[started.message_id] = begin_draft(started)
            _place(view, started.run_id, started.message_id)
        case "text_delta":
            # Deltas of a message that is not being written here were withdrawn or cut off by the
            # cursor that the view began with: its completion brings the whole text.
            if draft := view.drafts.get(event.text_delta.message_id):
                draft.put_text(event.text_delta)
        case "tool_call_delta":
            if draft := view.drafts.get(event.tool_call_delta.message_id):
                draft.put_arguments(event.tool_call_delta)
        case "message_completed":
            message = _copy(event.message_completed.message)
            view.drafts.pop(message.id, None)
            view.messages[message.id] = message
            _place(view, message.run_id, message.id)
        case "message_withdrawn":
            _withdraw(view, event.message_withdrawn)
        case "render_hint_added":
            _render_hint_added(view, event.render_hint_added)
        case "tool_started":
            view.started_calls.add(event.tool_started.call_id)
        case "interaction_opened":
            _interaction_opened(view, event.interaction_opened)
        case "answer_added":
            _answer_added(view, event.answer_added, event.create_time)
        case "interaction_closed":
            _interaction_closed(view, event.interaction_closed, event.create_time)
        case "notice_added":
            if interaction := view.interactions.get(event.notice_added.interaction_id):
                interaction.notice = event.notice_added.notice
        case _:
            pass  # grants show nothing here; unknown kinds are to be skipped


def _prompt_added(view: SessionView, added: events.PromptAdded) -> None:
    message = _copy(added.message)
    view.held_by_id.pop(message.id, None)
    view.prompts[message.id] = PromptView(
        message, added.parent_node_id, added.edits_prompt_id, added.was_held
    )
    view.node_ids.append(message.id)
    if added.selected:
        view.selected_node_id = message.id


def _hold_changed(view: SessionView, changed: events.HoldChanged) -> None:
    if (held := view.held_by_id.get(changed.message_id)) is None:
        return
    held.reason = changed.reason
    held.waits_for_run_id = changed.waits_for_run_id
    held.waits_for_interaction_ids[:] = changed.waits_for_interaction_ids
    held.branch_node_id = changed.branch_node_id


def _run_created(view: SessionView, created: events.RunCreated) -> None:
    run = _copy(created.run)
    copied = _copied_ids(view, run.origin_run_id, created.origin_through_message_id)
    view.runs[run.id] = RunView(
        run,
        copied,
        _last_calls(view, copied),
        {inherited.call_id: inherited.run_id for inherited in created.inherited_results},
    )
    view.node_ids.append(run.id)
    if retired := view.runs.get(run.supersedes_run_id):
        # The first successor counts (F8), but a retry takes the place of an earlier one, which was
        # cancelled (R6). A superseded run waits for nothing (R1).
        if not retired.run.superseded_by_run_id or run.cause == RUN_CAUSE_RETRY:
            retired.run.superseded_by_run_id = run.id
        del retired.run.waits_for_interaction_ids[:]
    if created.selected:
        view.selected_node_id = run.id


def _copied_ids(view: SessionView, origin_run_id: str, through: str) -> tuple[str, ...]:
    """The messages of the origin up to that one, by the ids under which the view keeps them.

    The hints of its calls, which stand right after it, come along (F2: the whole message list).
    After a snapshot the origin may be known by its forks only, which have the same list.
    """
    if not through:
        return ()
    last, _ = split_message_id(through)
    origin = [view.runs[origin_run_id]] if origin_run_id in view.runs else []
    for run_view in (*origin, *view.runs.values()):
        if last in run_view.copied_ids or last in run_view.own_ids:
            return _ids_through(view, run_view, last)
    return ()


def _ids_through(view: SessionView, run_view: RunView, last: str) -> tuple[str, ...]:
    copied: list[str] = []
    found = False
    for message_id in (*run_view.copied_ids, *run_view.own_ids):
        message = view.messages.get(message_id)  # none: it was never completed
        if found and (message is None or not _is_hint(message)):
            break
        found = found or message_id == last
        if message is not None:
            copied.append(message_id)
    return tuple(copied)


def _is_hint(message: Message) -> bool:
    return any(part.HasField("render_hint") for part in message.parts)


def _last_calls(view: SessionView, message_ids: tuple[str, ...]) -> frozenset[str]:
    """The calls of the last message that is no render hint: those of the answered step."""
    for message_id in reversed(message_ids):
        message = view.messages[message_id]
        if not _is_hint(message):
            return frozenset(
                part.tool_call.call_id for part in message.parts if part.HasField("tool_call")
            )
    return frozenset()


def _run_state_changed(view: SessionView, changed: events.RunStateChanged, now: Timestamp) -> None:
    if (run_view := view.runs.get(changed.run_id)) is None:
        return
    run = run_view.run
    run.state = changed.state
    run.attempt = changed.attempt
    run.unplaced = changed.unplaced
    run.waits_for_interaction_ids[:] = changed.waits_for_interaction_ids
    run.update_time.CopyFrom(now)
    if changed.cause == RUN_CHANGE_CAUSE_EXPIRED:
        run_view.expired = True
    if changed.HasField("failure"):
        run.failure.CopyFrom(changed.failure)


def _place(view: SessionView, run_id: str, message_id: str) -> None:
    """Put a message at the end of its run, unless it has its place there."""
    run_view = view.runs.get(run_id)
    if run_view is not None and message_id not in run_view.own_ids:
        run_view.own_ids.append(message_id)


def _withdraw(view: SessionView, withdrawn: events.MessageWithdrawn) -> None:
    view.drafts.pop(withdrawn.message_id, None)
    run_view = view.runs.get(withdrawn.run_id)
    if run_view is not None and withdrawn.message_id in run_view.own_ids:
        run_view.own_ids.remove(withdrawn.message_id)


def _render_hint_added(view: SessionView, added: events.RenderHintAdded) -> None:
    if (run_view := view.runs.get(added.run_id)) is None:
        return
    hint = Message(
        id=added.message_id,
        role=ROLE_ASSISTANT,
        run_id=added.run_id,
        parts=[Part(render_hint=added.hint)],
    )
    for message_id in reversed(run_view.own_ids):
        message = view.messages.get(message_id)
        calls = (part.tool_call.call_id for part in message.parts) if message else ()
        if message is not None and added.hint.tool_call_id in calls:
            hint.step = message.step  # it is shown as a part of that step
            hint.create_time.CopyFrom(message.create_time)
            break
    view.messages[hint.id] = hint
    view.hints[added.hint.tool_call_id] = added.hint  # the last one wins (H1)
    _place(view, added.run_id, hint.id)


def _tool_result_added(view: SessionView, added: events.ToolResultAdded) -> None:
    if (run_view := view.runs.get(added.run_id)) is None:
        return
    result = _copy(added.result)
    if added.same_as_run_id:
        shared = view.result(added.same_as_run_id, result.call_id)
        match shared.WhichOneof("outcome") if shared else None:
            case "output_json" if shared:
                result.output_json = shared.output_json
            case "error_text" if shared:
                result.error_text = shared.error_text
    run_view.results[result.call_id] = result


def _interaction_opened(view: SessionView, opened: events.InteractionOpened) -> None:
    """Events leave out what stands elsewhere in the log; reads have it, and so has the view."""
    interaction = _copy(opened.interaction)
    interaction.session_id = view.session.id
    if message := view.messages.get(split_message_id(interaction.message_id)[0]):
        for part in message.parts:
            if part.tool_call.call_id == interaction.call_id:
                interaction.arguments_json = part.tool_call.arguments_json
    hint = view.hints.get(interaction.call_id)
    if hint is not None and interaction.kind == INTERACTION_KIND_CLIENT_TOOL:
        interaction.render_hint.CopyFrom(hint)
    view.interactions[interaction.id] = interaction


def _answer_added(view: SessionView, added: events.AnswerAdded, now: Timestamp) -> None:
    if (interaction := view.interactions.get(added.interaction_id)) is None:
        return
    if interaction.state == INTERACTION_STATE_OPEN:
        interaction.close_time.CopyFrom(now)
    interaction.answers.append(added.answer)
    interaction.state = added.state
    _wait_no_more(view, interaction.id)


def _interaction_closed(
    view: SessionView, closed: events.InteractionClosed, now: Timestamp
) -> None:
    if (interaction := view.interactions.get(closed.interaction_id)) is None:
        return
    interaction.state = closed.state
    interaction.close_time.CopyFrom(now)
    _wait_no_more(view, interaction.id)


def _wait_no_more(view: SessionView, interaction_id: str) -> None:
    """What closes a question closes it for every run that waits for it (F4)."""
    for run_view in view.runs.values():
        if interaction_id in run_view.run.waits_for_interaction_ids:
            run_view.run.waits_for_interaction_ids.remove(interaction_id)


def _copy(message: ProtoMessage) -> ProtoMessage:
    """Of one's own: the view changes what it holds, never the events that it was given."""
    copy = type(message)()
    copy.CopyFrom(message)
    return copy
