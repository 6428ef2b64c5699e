"""Attempts of a run (R1 to R3) and what happens to a runner that breaks the protocol."""

from __future__ import annotations

import pytest

from broker_service.domain import runs
from broker_service.domain.events import MessageStarted, MessageWithdrawn, RunStateChanged
from broker_service.domain.limits import Limits
from broker_service.domain.model import (
    Message,
    Part,
    ProposedTool,
    RenderHint,
    ResultKind,
    Role,
    RunChangeCause,
    RunFailure,
    RunFailureReason,
    RunState,
    TextPart,
    ToolCall,
    ToolExecutor,
    ToolResult,
    Usage,
)
from broker_service.domain.reports import (
    Began,
    Cancelled,
    Completed,
    Finished,
    Hinted,
    Parked,
    Proposed,
    Resulted,
    RunnerEvent,
    Withdrew,
)
from broker_service.domain.starts import Verdict
from tests.unit.broker.conversation import (
    FAILED,
    VISBY,
    Conversation,
    form,
    said,
    server_call,
    tool_result,
)
from turngate_core.errors import Reason


def test_the_first_report_of_an_attempt_takes_the_run() -> None:
    """R3: PENDING to RUNNING with the attempt's number."""
    chat = Conversation()
    run_id = chat.start()
    chat.report(run_id)
    assert chat.last(1) == [RunStateChanged(run_id, RunState.RUNNING, attempt=1)]


def test_a_run_completes_and_stays_so() -> None:
    """R1, R3: the end ends the attempt; what it sends later is refused and changes nothing."""
    chat = Conversation()
    run_id = chat.start()
    chat.complete(run_id)
    assert chat.run(run_id).state is RunState.COMPLETED
    for late in (Began("msg_late"), Completed(), FAILED, Parked()):
        with chat.refused(Reason.STALE_ATTEMPT):
            chat.report(run_id, late, attempt=1)
    with chat.refused(Reason.STALE_ATTEMPT):
        chat.report(run_id, attempt=2)


@pytest.mark.parametrize("end", ["park", "fail", "complete"])
def test_every_end_ends_the_attempt(end: str) -> None:
    """R3: parking too; the parked run takes no events until it is resumed."""
    chat = Conversation()
    run_id = chat.start()
    if end == "park":
        chat.ask(run_id, form("c-1"))
    elif end == "fail":
        chat.report(run_id, FAILED)
    else:
        chat.complete(run_id)
    with chat.refused(Reason.STALE_ATTEMPT):
        chat.report(run_id, Began("msg_late"), attempt=1)


def test_events_of_an_older_attempt_are_refused() -> None:
    """R3: attempts have growing numbers."""
    chat = Conversation()
    run_id = chat.start()
    chat.report(run_id)
    chat.lose(run_id)
    with chat.refused(Reason.STALE_ATTEMPT):
        chat.report(run_id, Began("msg_late"), attempt=1)
    chat.report(run_id, attempt=2)
    for attempt in (1, 3):
        with chat.refused(Reason.STALE_ATTEMPT):
            chat.report(run_id, Began("msg_late"), attempt=attempt)
    chat.report(run_id, Began("msg_new"), attempt=2)
    with chat.refused(Reason.STALE_ATTEMPT):
        chat.lose(run_id, attempt=1)


def test_a_superseded_run_never_goes_to_a_runner_again() -> None:
    """R1, F2."""
    chat = Conversation()
    run_id = chat.start()
    (question,) = chat.ask(run_id, form("c-1"))
    chat.settle(question, VISBY)
    for attempt in (1, 2):
        with chat.refused(Reason.STALE_ATTEMPT):
            chat.report(run_id, attempt=attempt)
    with chat.refused(Reason.STALE_ATTEMPT):
        chat.lose(run_id)
    with chat.refused(Reason.RUN_NOT_FOUND):
        chat.act(lambda d: runs.begin_attempt(d, "run_none", 1))


def test_a_lost_attempt_withdraws_what_was_being_written() -> None:
    """R3, W3: watchers are told; the run is pending again."""
    chat = Conversation()
    run_id = chat.start()
    chat.report(run_id, Began("msg_a"))
    chat.lose(run_id)
    withdrawn, lost = chat.last(2)
    assert withdrawn == MessageWithdrawn("msg_a", run_id)
    assert isinstance(lost, RunStateChanged)
    assert (lost.state, lost.cause) == (RunState.PENDING, RunChangeCause.ATTEMPT_LOST)
    # A new attempt never reuses the id of withdrawn text.
    with chat.refused(Reason.PROTOCOL_VIOLATION):
        chat.report(run_id, Began("msg_a"))
    chat.report(run_id, Began("msg_b"))


def test_a_complete_message_stays_with_its_calls() -> None:
    """R3: the next attempt goes on from there: recorded results are reused, the others run."""
    chat = Conversation()
    run_id = chat.start()
    message_id = chat.step(run_id, server_call("c-1"), server_call("c-2"))
    chat.lose(run_id)
    run = chat.run(run_id)
    assert (run.step, run.step_message_id, run.step_calls) == (1, message_id, ("c-1", "c-2"))
    assert chat.propose(run_id, ProposedTool("c-1"), ProposedTool("c-2")) == [Verdict.GRANTED] * 2
    chat.report(run_id, tool_result("c-1"), tool_result("c-2"))
    chat.complete(run_id)
    assert [m.id for m in chat.transcript()][1] == message_id


def test_steps_are_counted_over_the_run_and_its_origin() -> None:
    """F3: a withdrawn message is no step."""
    chat = Conversation()
    run_id = chat.start()
    chat.report(run_id, Began("msg_a"), Withdrew("msg_a"))
    (question,) = chat.ask(run_id, form("c-1"))
    fork = chat.settle(question, VISBY).run_id
    chat.step(fork)
    assert [started.step for started in chat.events_of(MessageStarted)] == [1, 1, 2]


def test_a_run_that_is_lost_too_often_fails_by_name() -> None:
    """R6: nothing retries by itself without a cap; one below it goes on."""
    chat = Conversation(limits=Limits(attempts=3))
    run_id = chat.start()
    for _ in range(2):
        chat.report(run_id)
        chat.lose(run_id)
        assert chat.run(run_id).state is RunState.PENDING
    chat.step(run_id)  # progress starts the count again
    for _ in range(3):
        assert chat.run(run_id).state is not RunState.FAILED
        chat.report(run_id)
        chat.lose(run_id)
    failure = chat.run(run_id).failure
    assert chat.run(run_id).state is RunState.FAILED
    assert failure is not None
    assert failure.reason is RunFailureReason.ATTEMPTS_EXHAUSTED


def test_handing_over_on_purpose_counts_towards_no_cap() -> None:
    """R6: a clean stop of a broker, however often."""
    chat = Conversation(limits=Limits(attempts=2))
    run_id = chat.start()
    for _ in range(5):
        chat.report(run_id)
        chat.hand_over(run_id)
    assert chat.run(run_id).state is RunState.PENDING
    last = chat.events_of(RunStateChanged)[-1]
    assert last.cause is RunChangeCause.HANDED_OVER


def test_a_failed_run_keeps_its_failure_and_its_answers() -> None:
    """R6, R1."""
    chat = Conversation()
    run_id = chat.start()
    (question,) = chat.ask(run_id, form("c-1"))
    fork = chat.settle(question, VISBY).run_id
    chat.fail(fork)
    failure = chat.run(fork).failure
    assert failure is not None
    assert failure.reason is RunFailureReason.MODEL_UNAVAILABLE
    assert chat.results(fork)["c-1"].output_json == VISBY


def test_what_a_failing_attempt_was_writing_is_withdrawn_first() -> None:
    """W5: the end of a message's content comes before the end of its run."""
    chat = Conversation()
    run_id = chat.start()
    chat.report(run_id, Began("msg_a"), FAILED)
    withdrawn, failed = chat.last(2)
    assert withdrawn == MessageWithdrawn("msg_a", run_id)
    assert isinstance(failed, RunStateChanged)


def test_a_run_that_nobody_takes_fails_by_name() -> None:
    """S2, R1: PENDING to FAILED; only while it is pending."""
    chat = Conversation()
    run_id = chat.start()
    failure = RunFailure(RunFailureReason.UNPLACED, "no runner took it")
    chat.act(lambda d: runs.mark_unplaced(d, run_id))
    assert chat.run(run_id).unplaced
    length = len(chat.log)
    chat.act(lambda d: runs.mark_unplaced(d, run_id))
    assert len(chat.log) == length
    chat.report(run_id)
    assert not chat.run(run_id).unplaced
    chat.act(lambda d: runs.fail_unplaced(d, run_id, failure))
    assert chat.run(run_id).state is RunState.RUNNING
    chat.lose(run_id)
    chat.act(lambda d: runs.fail_unplaced(d, run_id, failure))
    assert chat.run(run_id).failure == failure


def test_usage_adds_up_over_the_steps() -> None:
    """R1: what the model calls of a run used so far."""
    chat = Conversation()
    run_id = chat.start()
    for number in range(2):
        message = Message(f"msg_{number}x", Role.ASSISTANT, usage=Usage(10, 5, number))
        chat.report(run_id, Began(message.id), Finished(message))
    assert chat.run(run_id).usage == Usage(20, 10, 1)


def test_what_only_the_broker_knows_is_filled_in_by_the_broker() -> None:
    """T1, T3: run, step, time; a runner's message has no author."""
    chat = Conversation()
    run_id = chat.start()
    forged = Message("msg_a", Role.ASSISTANT, run_id="run_9", step=7, author="ann", create_time=1)
    chat.report(run_id, Began("msg_a"), Finished(forged))
    stored = chat.transcript()[1]
    assert (stored.run_id, stored.step, stored.author) == (run_id, 1, "")
    assert stored.create_time == chat.now


PROVIDER_CALL = ToolCall("c-p", "web_search", "{}", executor=ToolExecutor.PROVIDER)
FOUND = ToolResult("c-p", output_json='"found"', kind=ResultKind.TOOL)


def test_a_call_of_the_provider_brings_its_result() -> None:
    """A1, T4: nothing waits for it, nothing is started."""
    chat = Conversation()
    run_id = chat.start()
    chat.report(run_id, Began("msg_a"), Finished(said("msg_a", PROVIDER_CALL, FOUND)))
    assert chat.results()["c-p"].output_json == '"found"'
    chat.complete(run_id)
    assert list(chat.results()) == ["c-p"]


def finished(*contents: TextPart | ToolCall | ToolResult) -> tuple[RunnerEvent, ...]:
    return (Began("msg_a"), Finished(said("msg_a", *contents)))


HINT = RenderHint("c-1", "elicitation")
OF_USER = Message("msg_a", Role.USER)
WITH_HINT = Message("msg_a", Role.ASSISTANT, (Part(HINT),))


@pytest.mark.parametrize(
    "events",
    [
        # Messages.
        (Began(""),),
        (Began("msg@a"),),
        (Began("m-1"),),
        (Began("msg_a"), Began("msg_b")),
        (Finished(said("msg_a")),),
        (Began("msg_a"), Finished(said("msg_b"))),
        (Began("msg_a"), Finished(OF_USER)),
        (Began("msg_a"), Finished(WITH_HINT)),
        (Withdrew("msg_a"),),
        (Began("msg_a"), Withdrew("msg_b")),
        # Calls.
        finished(server_call("c-1"), server_call("c-1")),
        finished(server_call("c@1")),
        finished(server_call("c-1", name="")),
        finished(ToolCall("c-1", "look_up")),
        finished(server_call("c-1", arguments="{no json")),
        finished(server_call("c-1", arguments='{"a":1,"a":2}')),
        # Results of the provider.
        finished(PROVIDER_CALL),
        finished(FOUND),
        finished(FOUND, PROVIDER_CALL),
        finished(PROVIDER_CALL, FOUND, FOUND),
        finished(server_call("c-p"), FOUND),
        finished(form("c-p"), FOUND),
        finished(PROVIDER_CALL, ToolResult("c-p", output_json="1", kind=ResultKind.CLIENT)),
        finished(PROVIDER_CALL, ToolResult("c-p", output_json="NaN", kind=ResultKind.TOOL)),
        # Hints and results of calls that there are not.
        (Hinted("msg_h", HINT),),
        (tool_result("c-1"),),
        (Proposed((ProposedTool("c-1"),)),),
        # Ends.
        (Completed(), Began("msg_a")),
        (Began("msg_a"), Completed()),
        (Cancelled(),),
        (Parked(),),
        (*finished(), Parked()),
        (Began("msg_a"), Parked()),
    ],
    ids=lambda events: "+".join(type(event).__name__ for event in events),
)
def test_a_runner_that_breaks_the_protocol_is_refused_by_name(
    events: tuple[RunnerEvent, ...],
) -> None:
    """R3, T1 to T4: PROTOCOL_VIOLATION names the problem, and the state is unharmed."""
    chat = Conversation()
    chat.send("hello", "m-1")
    run_id = chat.state.selected
    chat.report(run_id)
    with chat.refused(Reason.PROTOCOL_VIOLATION) as caught:
        chat.report(run_id, *events)
    assert caught.value.metadata["problem"]
    chat.complete(run_id)


MALFORMED = ToolCall("c-1", "look_up", malformed_arguments="{no", executor=ToolExecutor.SERVER)
MALFORMED_FORM = ToolCall(
    "c-1", "request_input", malformed_arguments="{no", executor=ToolExecutor.CLIENT
)
TAKEN = said("msg_b", server_call("c-1"))


@pytest.mark.parametrize(
    ("call", "events"),
    [
        (server_call("c-1"), (Completed(),)),
        (server_call("c-1"), (Began("msg_b"),)),
        (server_call("c-1"), (Parked(),)),
        (server_call("c-1"), (Parked((ProposedTool("c-1"),)),)),
        (server_call("c-1"), (tool_result("c-1"),)),
        (form("c-1"), (Completed(),)),
        (form("c-1"), (Proposed((ProposedTool("c-1"),)),)),
        (form("c-1"), (Parked((ProposedTool("c-1"),)),)),
        (form("c-1"), (Resulted(ToolResult("c-1", output_json="1", kind=ResultKind.CLIENT)),)),
        (form("c-1"), (Resulted(ToolResult("c-1", output_json="1")),)),
        (form("c-1"), (Hinted("msg_a", HINT),)),
        (form("c-1"), (Hinted("h@1", HINT),)),
        (form("c-1"), (Hinted("msg_h", RenderHint("c-2", "x")),)),
        (MALFORMED, (Proposed((ProposedTool("c-1"),)),)),
        (MALFORMED, (Parked((ProposedTool("c-1"),)),)),
        (MALFORMED_FORM, (Parked(),)),
    ],
)
def test_a_step_that_is_not_over_is_not_left(
    call: ToolCall, events: tuple[RunnerEvent, ...]
) -> None:
    """R4, T2, T4, A1: by name, and the state is unharmed."""
    chat = Conversation()
    run_id = chat.start()
    chat.report(run_id, *finished(call))
    with chat.refused(Reason.PROTOCOL_VIOLATION):
        chat.report(run_id, *events)
    refused = ToolResult("c-1", error_text="no", kind=ResultKind.CALL_REFUSED)
    chat.report(run_id, Resulted(refused))
    chat.complete(run_id)


def test_ids_of_calls_are_used_once_in_a_session() -> None:
    """T3: in a later turn and beside a fork's copies too."""
    chat = Conversation()
    run_id = chat.start()
    (question,) = chat.ask(run_id, form("c-1"))
    fork = chat.settle(question, VISBY).run_id
    with chat.refused(Reason.PROTOCOL_VIOLATION):
        chat.report(fork, Began("msg_b"), Finished(TAKEN))
    chat.complete(fork)
    later = chat.start("again")
    with chat.refused(Reason.PROTOCOL_VIOLATION):
        chat.report(later, Began("msg_b"), Finished(TAKEN))


def test_results_of_earlier_steps_are_refused() -> None:
    """R3: a step that is over stays as it is."""
    chat = Conversation()
    run_id = chat.start()
    chat.step(run_id, server_call("c-1"))
    chat.propose(run_id, ProposedTool("c-1"))
    chat.report(run_id, tool_result("c-1"))
    chat.step(run_id)
    with chat.refused(Reason.PROTOCOL_VIOLATION):
        chat.report(run_id, tool_result("c-1", "2"))


def test_an_attempt_that_is_not_due_takes_nothing() -> None:
    """R3: a claim of an old attempt that comes late."""
    chat = Conversation()
    run_id = chat.start()
    chat.report(run_id)
    chat.lose(run_id)
    with chat.refused(Reason.STALE_ATTEMPT):
        chat.act(lambda d: runs.begin_attempt(d, run_id, 1))
    chat.act(lambda d: runs.begin_attempt(d, run_id, 2))
    assert chat.run(run_id).attempt == 2
