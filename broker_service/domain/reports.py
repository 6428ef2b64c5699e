"""What a runner reports of an attempt, and what the broker makes of it (R3, R4, A1).

One report holds the events that came together; they are decided, and stored, in one write.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TypeAlias, assert_never

from broker_service.domain import runs
from broker_service.domain.decision import Decision
from broker_service.domain.events import (
    MessageCompleted,
    MessageStarted,
    MessageWithdrawn,
    RenderHintAdded,
    RunStateChanged,
    ToolResultAdded,
)
from broker_service.domain.interactions import declared_by_agent
from broker_service.domain.model import (
    ClientTool,
    DataPart,
    Message,
    Part,
    ProposedTool,
    ReasoningPart,
    RenderHint,
    ResultKind,
    Role,
    RunFailure,
    RunState,
    TextPart,
    ToolCall,
    ToolExecutor,
    ToolResult,
)
from broker_service.domain.parking import park
from broker_service.domain.starts import ToolVerdict, propose_tools
from broker_service.domain.state import RunNode
from broker_service.domain.step_checks import (
    check_server_call,
    check_sound,
    step_call,
    violation,
)
from turngate_core.ids import is_message_id
from turngate_core.json_text import JsonTextError, check


@dataclass(frozen=True, slots=True)
class Began:
    message_id: str


@dataclass(frozen=True, slots=True)
class Finished:
    """A message is complete, with all its calls."""

    message: Message


@dataclass(frozen=True, slots=True)
class Withdrew:
    message_id: str


@dataclass(frozen=True, slots=True)
class Hinted:
    message_id: str
    hint: RenderHint
    declaration: ClientTool | None = None


@dataclass(frozen=True, slots=True)
class Proposed:
    tools: tuple[ProposedTool, ...]


@dataclass(frozen=True, slots=True)
class Resulted:
    result: ToolResult


@dataclass(frozen=True, slots=True)
class Parked:
    waiting_tools: tuple[ProposedTool, ...] = ()


@dataclass(frozen=True, slots=True)
class Completed:
    pass


@dataclass(frozen=True, slots=True)
class Failed:
    failure: RunFailure


@dataclass(frozen=True, slots=True)
class Cancelled:
    pass


RunnerEvent: TypeAlias = (
    Began
    | Finished
    | Withdrew
    | Hinted
    | Proposed
    | Resulted
    | Parked
    | Completed
    | Failed
    | Cancelled
)


@dataclass(slots=True)
class Reported:
    """`verdicts`: for proposed calls. `ended`: the attempt is over."""

    verdicts: list[ToolVerdict] = field(default_factory=list)
    ended: bool = False


def report(
    decision: Decision, run_id: str, attempt: int, events: tuple[RunnerEvent, ...]
) -> Reported:
    """Take in what a runner reports. Refuses with STALE_ATTEMPT (R3) or PROTOCOL_VIOLATION."""
    run = decision.state.runs.get(run_id)
    if run and run.state is RunState.PENDING and attempt > run.attempt:
        runs.begin_attempt(decision, run_id, attempt)
    run = runs.check_attempt(decision.state, run_id, attempt)
    reported = Reported()
    for event in events:
        if reported.ended:
            raise violation("an event after the end of the attempt")
        _take_in(decision, run, event, reported)
    return reported


def _take_in(decision: Decision, run: RunNode, event: RunnerEvent, reported: Reported) -> None:
    match event:
        case Began():
            _began(decision, run, event.message_id)
        case Finished():
            _finished(decision, run, event.message)
        case Withdrew():
            if event.message_id != run.open_message_id:
                raise violation(f"message {event.message_id} is not being written")
            decision.emit(MessageWithdrawn(event.message_id, run.id))
        case Hinted():
            _hinted(decision, run, event)
        case Proposed():
            _check_proposals(decision, run, event.tools)
            reported.verdicts.extend(propose_tools(decision, run, event.tools))
        case Resulted():
            _resulted(decision, run, event.result)
        case Parked():
            if run.open_message_id:
                raise violation("parked while a message is being written")
            if run.state is RunState.CANCELLING:
                _end(decision, run, RunState.CANCELLED, None)
            else:
                park(decision, run, event.waiting_tools)
            reported.ended = True
        case Completed():
            if any(call_id not in run.results for call_id in run.step_calls):
                raise violation("completed while a call of the step has no result")
            if run.open_message_id:
                raise violation("completed while a message is being written")
            _end(decision, run, RunState.COMPLETED, None)
            reported.ended = True
        case Failed():
            _end(decision, run, RunState.FAILED, event.failure)
            reported.ended = True
        case Cancelled():
            if run.state is not RunState.CANCELLING:
                raise violation("cancelled, but nobody asked for it")
            _end(decision, run, RunState.CANCELLED, None)
            reported.ended = True
        case _:
            assert_never(event)


def _began(decision: Decision, run: RunNode, message_id: str) -> None:
    if run.open_message_id:
        raise violation(f"message {run.open_message_id} is still being written")
    if any(call_id not in run.results for call_id in run.step_calls):
        raise violation("a message began while a call of the step before has no result")
    _check_fresh(decision, message_id)
    decision.emit(MessageStarted(message_id, run.id, run.step + 1, run.attempt))


def _check_fresh(decision: Decision, message_id: str) -> None:
    state = decision.state
    is_taken = message_id in state.message_nodes or state.has_node(message_id)
    if is_taken or not is_message_id(message_id):
        raise violation(f"message id {message_id!r} is taken or malformed")


def _hinted(decision: Decision, run: RunNode, event: Hinted) -> None:
    call = step_call(decision, run, event.hint.tool_call_id)
    message_id = event.message_id or decision.mint("msg")
    _check_fresh(decision, message_id)
    declaration = event.declaration
    if declaration is not None:
        if call.executor is not ToolExecutor.CLIENT:
            raise violation(f"call {call.call_id} is declared, but is no client call")
        declaration = declared_by_agent(call, declaration)
    decision.emit(RenderHintAdded(message_id, run.id, event.hint, declaration))


def _finished(decision: Decision, run: RunNode, message: Message) -> None:
    if message.id != run.open_message_id:
        raise violation(f"message {message.id} is not being written")
    if message.role is not Role.ASSISTANT:
        raise violation("a runner's message has the role ASSISTANT")
    seen: set[str] = set()
    unpaired: set[str] = set()
    parts: list[Part] = []
    for part in message.parts:
        content = part.content
        if isinstance(content, ToolCall):
            _check_call(decision, content, seen)
            if content.executor is ToolExecutor.PROVIDER:
                unpaired.add(content.call_id)
        elif isinstance(content, ToolResult):
            if content.call_id not in unpaired or content.kind is not ResultKind.TOOL:
                raise violation(
                    f"result of {content.call_id}: a message holds results of the calls before "
                    "it that the provider executed, of kind TOOL, and no others"
                )
            unpaired.remove(content.call_id)
            part = Part(_own_result(decision, content))
        elif not isinstance(content, TextPart | ReasoningPart | DataPart):
            raise violation(
                "a runner's message holds text, reasoning, calls, results and data only"
            )
        parts.append(part)
    if unpaired:
        raise violation(f"calls {sorted(unpaired)} of the provider came without a result")
    stored = replace(
        message,
        parts=tuple(parts),
        run_id=run.id,
        step=run.step + 1,
        create_time=decision.now,
        author="",
    )
    decision.emit(MessageCompleted(stored))


def _check_call(decision: Decision, call: ToolCall, seen: set[str]) -> None:
    if not is_message_id(call.call_id) or call.call_id in decision.state.calls:
        raise violation(f"call id {call.call_id!r} is taken or malformed")
    if call.call_id in seen:
        raise violation(f"call id {call.call_id!r} stands twice in one message")
    seen.add(call.call_id)
    if call.executor is None or not call.name:
        raise violation(f"call {call.call_id} lacks its tool's name or its executor")
    if call.malformed_arguments or not call.arguments_json:
        return
    try:
        check(call.arguments_json)
    except JsonTextError as error:
        raise violation(
            f"arguments of call {call.call_id} are no JSON ({error}); "
            "text that is no JSON belongs into malformed_arguments"
        ) from error


def _check_proposals(decision: Decision, run: RunNode, tools: tuple[ProposedTool, ...]) -> None:
    """Each call once, and never again in the attempt that was granted its start (S1)."""
    seen: set[str] = set()
    for tool in tools:
        check_server_call(decision, run, tool.call_id)
        check_sound(decision.state.calls[tool.call_id].call)
        record = decision.state.calls[tool.call_id]
        granted = record.started_by == run.id and record.started_in == run.attempt
        if tool.call_id in seen or (granted and tool.call_id not in run.results):
            raise violation(f"call {tool.call_id} was proposed twice")
        seen.add(tool.call_id)


def _resulted(decision: Decision, run: RunNode, result: ToolResult) -> None:
    step_call(decision, run, result.call_id)
    if result.kind is ResultKind.TOOL:
        if decision.state.calls[result.call_id].started_by != run.id:
            raise violation(f"call {result.call_id} was not granted to this run")
    elif result.kind is not ResultKind.CALL_REFUSED:
        raise violation("a runner's results are of kind TOOL or CALL_REFUSED")
    if result.call_id in run.results:
        return
    decision.emit(ToolResultAdded(run.id, _own_result(decision, result)))


def _own_result(decision: Decision, result: ToolResult) -> ToolResult:
    """The result with what only the broker says about it: no runner gives a client's answer."""
    if result.output_json is not None:
        try:
            check(result.output_json)
        except JsonTextError as error:
            raise violation(f"output of call {result.call_id} is no JSON: {error}") from error
    return replace(result, interaction_id="", answer_id="", create_time=decision.now)


def _end(decision: Decision, run: RunNode, to: RunState, failure: RunFailure | None) -> None:
    """The attempt's end; a run that is being cancelled ends as cancelled, whatever it says (C1)."""
    if run.state is RunState.CANCELLING:
        to, failure = RunState.CANCELLED, None
    runs.close_attempt(decision, run)
    runs.close_starts(decision, run)
    decision.emit(RunStateChanged(run.id, to, run.attempt, failure=failure))
