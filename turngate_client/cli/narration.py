"""A session told in a terminal, event by event, text as it streams."""

from __future__ import annotations

from turngate.v1 import event_pb2 as events
from turngate.v1.event_pb2 import SessionEvent
from turngate.v1.interaction_pb2 import InteractionState
from turngate.v1.run_pb2 import RUN_STATE_FAILED, RunFailureReason
from turngate_client.cli.output import out, plain
from turngate_client.cli.text import (
    held_line,
    question_line,
    result_line,
    short,
    state_of,
    text_of,
)
from turngate_client.folding import apply_event
from turngate_client.session_view import SessionView


class Narrator:
    """Folds events into `view` and prints what a person wants to know of each."""

    def __init__(self) -> None:
        self.view = SessionView()
        self._streaming = ""  # the message whose text stands in the open line

    def tell(self, event: SessionEvent) -> None:
        """Fold one event and print it."""
        if event.WhichOneof("event") == "text_delta":
            self._tell_piece(event.text_delta)
            apply_event(self.view, event)
            return
        held_before = event.prompt_added.message.id in self.view.held_by_id
        apply_event(self.view, event)
        self._tell_other(event, held_before)

    def _tell_piece(self, delta: events.TextDelta) -> None:
        draft = self.view.drafts.get(delta.message_id)
        if draft is None or delta.kind != events.TEXT_KIND_TEXT:
            return
        part = draft.parts.get(delta.part_index)
        shown = len(part.text.text) if part else 0
        if self._streaming != delta.message_id:
            self._end_line()
            out.print(plain("agent: ", "bold green"), end="")
            self._streaming = delta.message_id
        out.print(plain(delta.text[shown - delta.offset :]), end="")
        out.file.flush()

    def _end_line(self) -> None:
        if self._streaming:
            out.print()
            self._streaming = ""

    def say(self, line: str, style: str = "dim") -> None:
        """A line of its own, after what was streaming."""
        self._end_line()
        out.print(plain(line, style))

    def _tell_other(self, event: SessionEvent, held_before: bool) -> None:
        match event.WhichOneof("event"):
            case "prompt_added":
                released = "  (was held, enters now)" if held_before else ""
                self.say(f"user: {text_of(event.prompt_added.message)}{released}", "bold")
            case "message_held":
                held = event.message_held.held
                self.say(f"user: {text_of(held.message)}", "bold")
                self.say(f"  {held_line(held)}", "yellow")
            case "hold_changed":
                if changed := self.view.held_by_id.get(event.hold_changed.message_id):
                    self.say(f"  “{text_of(changed.message)}” is {held_line(changed)}", "yellow")
            case "queue_paused":
                self.say("  the queue is paused", "yellow")
            case "run_created":
                self._tell_run(event.run_created)
            case "run_state_changed":
                self._tell_state(event.run_state_changed)
            case "message_completed":
                self._tell_completed(event.message_completed)
            case "message_withdrawn":
                self.say("  (withdrawn: the attempt was lost)", "yellow")
            case _:
                self._tell_call(event)

    def _tell_run(self, created: events.RunCreated) -> None:
        run = created.run
        if run.supersedes_run_id:
            self.say(
                f"  {run.id}, a fork, goes on with the answer; it supersedes {run.origin_run_id}"
            )

    def _tell_state(self, changed: events.RunStateChanged) -> None:
        line = f"  {changed.run_id}: {state_of(changed.state)}"
        if changed.state == RUN_STATE_FAILED:
            reason = RunFailureReason.Name(changed.failure.reason)
            what = short(reason, "RUN_FAILURE_REASON_")
            self.say(f"{line} {what}: {changed.failure.message}", "red")
        else:
            self.say(line)

    def _tell_completed(self, completed: events.MessageCompleted) -> None:
        message = completed.message
        if self._streaming == message.id:
            self._end_line()
        elif text := text_of(message):
            self.say(f"agent: {text}", "")
        for part in message.parts:
            if part.HasField("tool_call"):
                self.say(f"  → {part.tool_call.name} {part.tool_call.arguments_json}", "cyan")

    def _tell_call(self, event: SessionEvent) -> None:
        match event.WhichOneof("event"):
            case "render_hint_added":
                hint = event.render_hint_added.hint
                params = hint.params_json or "{}"
                call = hint.tool_call_id
                self.say(f"  ⌗ render hint for {call}: kind {hint.kind}, params {params}", "cyan")
            case "interaction_opened":
                opened = self.view.interactions[event.interaction_opened.interaction.id]
                self.say(f"  ? {question_line(opened)}", "cyan")
            case "answer_added" | "interaction_closed":
                closed = event.answer_added if event.HasField("answer_added") else None
                state = closed.state if closed else event.interaction_closed.state
                by = f" by {event.actor}" if closed and event.actor else ""
                name = short(InteractionState.Name(state), "INTERACTION_STATE_")
                one = closed.interaction_id if closed else event.interaction_closed.interaction_id
                self.say(f"  ! {one} {name}{by}", "cyan")
            case "tool_started":
                self.say(f"  … {event.tool_started.call_id} starts", "cyan")
            case "tool_result_added":
                added = event.tool_result_added
                result = self.view.result(added.run_id, added.result.call_id) or added.result
                self.say(f"  ← {added.result.call_id}: {result_line(result)}", "cyan")
            case "session_deleted":
                self.say("  the session was deleted", "yellow")
            case _:
                pass
