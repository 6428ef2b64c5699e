"""Session logs for tests, event by event, as the broker writes them."""

from __future__ import annotations

from collections.abc import Iterable

from google.protobuf.message import Message

from turngate.v1 import event_pb2 as ev
from turngate.v1 import interaction_pb2 as it
from turngate.v1 import message_pb2 as ms
from turngate.v1 import run_pb2 as rn
from turngate.v1 import session_pb2 as ss


class Log:
    """A session's log; each method adds one event. Positions rise from 1."""

    def __init__(self, session_id: str = "s-1") -> None:
        self.events: list[ev.SessionEvent] = []
        self.add(session_created=ev.SessionCreated(session=ss.Session(id=session_id)))

    def add(self, **content: Message) -> None:
        """Any event, by the name of its field; without one, an event of an unknown kind."""
        event = ev.SessionEvent(position=len(self.events) + 1)
        for name, value in content.items():
            getattr(event, name).CopyFrom(value)
        self.events.append(event)

    def prompt(
        self,
        message_id: str,
        text: str,
        parent: str = "",
        *,
        selected: bool = True,
        edits: str = "",
    ) -> None:
        message = ms.Message(id=message_id, role=ms.ROLE_USER, parts=[text_part(text)])
        self.add(
            prompt_added=ev.PromptAdded(
                message=message, parent_node_id=parent, selected=selected, edits_prompt_id=edits
            )
        )

    def run(
        self,
        run_id: str,
        prompt: str,
        *,
        origin: str = "",
        supersedes: str = "",
        through: str = "",
        inherited: Iterable[tuple[str, str]] = (),
        waits: Iterable[str] = (),
        selected: bool = True,
    ) -> None:
        run = rn.Run(
            id=run_id,
            prompt_id=prompt,
            state=rn.RUN_STATE_PARKED if waits else rn.RUN_STATE_PENDING,
            origin_run_id=origin,
            supersedes_run_id=supersedes,
            waits_for_interaction_ids=waits,
        )
        self.add(
            run_created=ev.RunCreated(
                run=run,
                selected=selected,
                origin_through_message_id=through,
                inherited_results=[
                    ev.InheritedResult(call_id=call, run_id=owner) for call, owner in inherited
                ],
            )
        )

    def state(
        self, run_id: str, state: rn.RunState.ValueType, *, waits: Iterable[str] = ()
    ) -> None:
        self.add(
            run_state_changed=ev.RunStateChanged(
                run_id=run_id, state=state, attempt=1, waits_for_interaction_ids=waits
            )
        )

    def started(self, run_id: str, message_id: str, step: int = 1) -> None:
        self.add(message_started=ev.MessageStarted(message_id=message_id, run_id=run_id, step=step))

    def delta(self, run_id: str, message_id: str, offset: int, text: str, part: int = 0) -> None:
        self.add(
            text_delta=ev.TextDelta(
                message_id=message_id,
                run_id=run_id,
                part_index=part,
                kind=ev.TEXT_KIND_TEXT,
                offset=offset,
                text=text,
            )
        )

    def completed(self, run_id: str, message_id: str, *parts: ms.Part, step: int = 1) -> None:
        message = ms.Message(
            id=message_id, role=ms.ROLE_ASSISTANT, run_id=run_id, step=step, parts=parts
        )
        self.add(message_completed=ev.MessageCompleted(message=message))

    def hint(self, run_id: str, message_id: str, call_id: str, kind: str = "elicitation") -> None:
        hint = ms.RenderHint(tool_call_id=call_id, kind=kind)
        self.add(
            render_hint_added=ev.RenderHintAdded(message_id=message_id, run_id=run_id, hint=hint)
        )

    def opened(
        self,
        interaction_id: str,
        run_id: str,
        message_id: str,
        call_id: str,
        kind: it.InteractionKind.ValueType = it.INTERACTION_KIND_CLIENT_TOOL,
        tool: str = "request_input",
    ) -> None:
        interaction = it.Interaction(
            id=interaction_id,
            run_id=run_id,
            message_id=message_id,
            call_id=call_id,
            kind=kind,
            state=it.INTERACTION_STATE_OPEN,
            tool_name=tool,
        )
        self.add(interaction_opened=ev.InteractionOpened(interaction=interaction))

    def answered(self, interaction_id: str, call_id: str, run_id: str) -> None:
        self.add(
            answer_added=ev.AnswerAdded(
                interaction_id=interaction_id,
                call_id=call_id,
                answer=it.Answer(id=f"a-{interaction_id}", author="ann", run_id=run_id),
                state=it.INTERACTION_STATE_ANSWERED,
            )
        )

    def decided(self, interaction_id: str, call_id: str, *, approved: bool) -> None:
        state = it.INTERACTION_STATE_APPROVED if approved else it.INTERACTION_STATE_DENIED
        self.add(
            answer_added=ev.AnswerAdded(
                interaction_id=interaction_id,
                call_id=call_id,
                answer=it.Answer(id=f"a-{interaction_id}", author="ann", approved=approved),
                state=state,
            )
        )

    def result(
        self,
        run_id: str,
        call_id: str,
        output_json: str | None = None,
        kind: ms.ResultKind.ValueType = ms.RESULT_KIND_TOOL,
        *,
        error_text: str | None = None,
        same_as: str = "",
    ) -> None:
        result = ms.ToolResult(call_id=call_id, kind=kind)
        if output_json is not None:
            result.output_json = output_json
        if error_text is not None:
            result.error_text = error_text
        self.add(
            tool_result_added=ev.ToolResultAdded(
                run_id=run_id, result=result, same_as_run_id=same_as
            )
        )

    def held(self, message_id: str, *, interrupting: bool = False, text: str = "hi") -> None:
        message = ms.Message(id=message_id, role=ms.ROLE_USER, parts=[text_part(text)])
        self.add(
            message_held=ev.MessageHeld(
                held=ss.HeldMessage(
                    message=message,
                    reason=ss.HOLD_REASON_INTERACTION_OPEN,
                    interrupting=interrupting,
                )
            )
        )


def text_part(text: str) -> ms.Part:
    """A part of plain text."""
    return ms.Part(text=ms.TextPart(text=text))


def call_part(
    call_id: str, name: str = "request_input", arguments_json: str = '{"message":"Where?"}'
) -> ms.Part:
    """A part that calls a tool."""
    return ms.Part(
        tool_call=ms.ToolCall(
            call_id=call_id,
            name=name,
            arguments_json=arguments_json,
            executor=ms.TOOL_EXECUTOR_CLIENT,
        )
    )


def parked_session() -> Log:
    """Prompt p-1, run r-1: text m-1, then m-2 with a finished server call and an open form."""
    log = Log()
    log.prompt("p-1", "a trip, please")
    log.run("r-1", "p-1")
    log.state("r-1", rn.RUN_STATE_RUNNING)
    log.started("r-1", "m-1")
    log.completed("r-1", "m-1", text_part("Let me see. "), call_part("c-0", "look_up"))
    log.result("r-1", "c-0", '"sunny"')
    log.started("r-1", "m-2", step=2)
    log.completed(
        "r-1", "m-2", text_part("Where to?"), call_part("c-1"), call_part("c-2", "look_up"), step=2
    )
    log.hint("r-1", "h-1", "c-1")
    log.result("r-1", "c-2", "17")
    log.opened("i-1", "r-1", "m-2", "c-1")
    log.state("r-1", rn.RUN_STATE_PARKED, waits=["i-1"])
    return log


def answered_session() -> Log:
    """The parked session, answered: fork r-2 goes on, writes m-3 and is completed."""
    log = parked_session()
    log.answered("i-1", "c-1", "r-2")
    log.run(
        "r-2",
        "p-1",
        origin="r-1",
        supersedes="r-1",
        through="m-2",
        inherited=[("c-2", "r-1")],
    )
    log.result("r-2", "c-1", '{"action":"accept"}', ms.RESULT_KIND_CLIENT)
    log.state("r-2", rn.RUN_STATE_RUNNING)
    log.started("r-2", "m-3", step=3)
    log.delta("r-2", "m-3", 0, "Vis")
    log.delta("r-2", "m-3", 3, "by it is.")
    log.completed("r-2", "m-3", text_part("Visby it is."), step=3)
    log.state("r-2", rn.RUN_STATE_COMPLETED)
    return log
