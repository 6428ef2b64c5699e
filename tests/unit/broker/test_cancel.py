"""Stop means stop: cancelled runs, their questions, starts and held messages (C1, C5, F6)."""

from __future__ import annotations

import pytest

from broker_service.domain.events import InteractionClosed, MessageWithdrawn, RunStateChanged
from broker_service.domain.model import (
    HoldReason,
    InteractionState,
    Permission,
    ProposedTool,
    QueuePauseReason,
    ResultKind,
    RunChangeCause,
    RunState,
    TextPart,
)
from broker_service.domain.reports import Began, Cancelled, Completed, Finished, Parked, RunnerEvent
from broker_service.domain.starts import Verdict
from tests.unit.broker.conversation import (
    ANN,
    BEN,
    FAILED,
    LUND,
    VISBY,
    Conversation,
    form,
    said,
    server_call,
    tool_result,
)
from turngate_core.errors import Reason

TOOL = ProposedTool("c-1")
ASK = ProposedTool("c-pay", tool_permission=Permission.ASK)


def started() -> tuple[Conversation, str]:
    """A run whose tool is under way."""
    chat = Conversation()
    run_id = chat.start()
    chat.step(run_id, server_call("c-1"), server_call("c-2"))
    chat.propose(run_id, TOOL)
    return chat, run_id


def test_stopping_a_parked_run_closes_it_and_its_questions_in_one_write() -> None:
    """C1: cancelled, not denied; the inbox is empty and no answer was given."""
    chat = Conversation()
    run_id = chat.start()
    chat.step(run_id, form("c-1"), server_call("c-pay"))
    chat.propose(run_id, ASK)
    chat.park(run_id, ASK)
    length = len(chat.log)
    assert chat.cancel(run_id, by=BEN) == run_id
    assert chat.run(run_id).state is RunState.CANCELLED
    assert not chat.open_calls()
    for call in ("c-1", "c-pay"):
        assert chat.state_of(call) is InteractionState.CANCELLED
        assert not chat.interaction(call).answers
        assert chat.results()[call].kind is ResultKind.CANCELLED_BY_USER
    written = [entry.event for entry in chat.log[length:]]
    [changed] = [event for event in written if isinstance(event, RunStateChanged)]
    assert changed.cause is RunChangeCause.CANCELLED_BY_USER
    closed = [event for event in written if isinstance(event, InteractionClosed)]
    assert [event.reason for event in closed] == [ResultKind.CANCELLED_BY_USER] * 2
    assert {entry.actor for entry in chat.log[length:]} == {BEN}


def test_stopping_a_pending_run_ends_it_at_once() -> None:
    """C1: no runner has it; none gets it."""
    chat = Conversation()
    run_id = chat.start()
    chat.cancel(run_id)
    assert chat.run(run_id).state is RunState.CANCELLED
    with chat.refused(Reason.STALE_ATTEMPT):
        chat.report(run_id, Began("msg-1"))


def test_a_running_run_is_cancelling_until_its_attempt_ends() -> None:
    """C1: nothing is granted, arriving results are recorded; then it is CANCELLED."""
    chat, run_id = started()
    chat.cancel(run_id)
    assert chat.run(run_id).state is RunState.CANCELLING
    assert chat.propose(run_id, ProposedTool("c-2")) == [Verdict.CANCELLED]
    chat.report(run_id, tool_result("c-1", '"late but real"'))
    assert chat.run(run_id).state is RunState.CANCELLING
    chat.stopped(run_id)
    assert chat.run(run_id).state is RunState.CANCELLED
    results = chat.results()
    assert results["c-1"].output_json == '"late but real"'
    assert results["c-2"].kind is ResultKind.CANCELLED_BY_USER


@pytest.mark.parametrize("end", ["cancelled", "completed", "failed", "parked", "lost", "grace"])
def test_however_a_cancelling_attempt_ends_the_run_is_cancelled(end: str) -> None:
    """C1, R1: also if it says otherwise, or nothing at all; the start's outcome is unknown."""
    chat, run_id = started()
    chat.cancel(run_id)
    if end == "completed":
        chat.report(run_id, tool_result("c-1"))
        with chat.refused(Reason.PROTOCOL_VIOLATION):
            chat.report(run_id, Completed())
        chat.stopped(run_id)
        assert chat.results()["c-1"].kind is ResultKind.TOOL
    elif end == "lost":
        chat.lose(run_id)
    elif end == "grace":
        chat.end_of_grace(run_id)
    else:
        events: dict[str, RunnerEvent] = {
            "cancelled": Cancelled(),
            "failed": FAILED,
            "parked": Parked(),
        }
        chat.report(run_id, events[end])
    assert chat.run(run_id).state is RunState.CANCELLED
    assert chat.run(run_id).failure is None
    if end != "completed":
        assert chat.results()["c-1"].kind is ResultKind.OUTCOME_UNKNOWN
        assert chat.results()["c-2"].kind is ResultKind.CANCELLED_BY_USER
    assert not chat.open_calls()
    assert chat.state.failures_in_row == 0


def test_what_comes_after_the_end_is_refused() -> None:
    """R3, C1: the grace is over; the result of the tool changes nothing any more."""
    chat, run_id = started()
    chat.cancel(run_id)
    chat.end_of_grace(run_id)
    with chat.refused(Reason.STALE_ATTEMPT):
        chat.report(run_id, tool_result("c-1"), attempt=1)
    length = len(chat.log)
    chat.end_of_grace(run_id)
    assert len(chat.log) == length


def test_text_that_was_being_written_is_withdrawn() -> None:
    """C1, W5: the end of the content comes before the end of the run."""
    chat = Conversation()
    run_id = chat.start()
    chat.report(run_id, Began("msg-a"))
    chat.cancel(run_id)
    chat.end_of_grace(run_id)
    kinds = [type(entry.event) for entry in chat.log[-2:]]
    assert kinds == [MessageWithdrawn, RunStateChanged]


def test_a_message_that_ends_while_the_run_is_stopped_is_kept_and_its_calls_closed() -> None:
    """C1, T4: what was written is shown, and well paired."""
    chat = Conversation()
    run_id = chat.start()
    chat.report(run_id, Began("msg-a"))
    chat.cancel(run_id)
    message = said("msg-a", TextPart("Well."), form("c-1"))
    chat.report(run_id, Finished(message), Parked())
    assert chat.run(run_id).state is RunState.CANCELLED
    assert chat.results()["c-1"].kind is ResultKind.CANCELLED_BY_USER
    assert not chat.state.interactions


def test_scenario_8_late_answers_are_refused_and_start_nothing() -> None:
    """F6: after the stop the phone answers; then a new message comes, and all is well paired."""
    chat = Conversation()
    run_id = chat.start()
    chat.ask(run_id, form("c-1"))
    chat.send("are you there?")
    chat.cancel(run_id)
    entered = chat.state.selected
    for by in (ANN, BEN):
        with chat.refused(Reason.INTERACTION_CANCELLED):
            chat.settle(chat.interaction("c-1").id, VISBY, by=by)
    assert chat.run(entered).state is RunState.PENDING
    assert chat.results()["c-1"].kind is ResultKind.CANCELLED_BY_USER
    chat.complete(entered)
    chat.start("more")


def test_no_held_message_enters_before_the_run_is_really_over() -> None:
    """C1, G2: cancelling holds; then exactly one enters."""
    chat, run_id = started()
    chat.send("one")
    chat.send("two")
    chat.cancel(run_id)
    assert chat.held_texts() == ["one", "two"]
    assert chat.state.held[0].reason is HoldReason.RUN_ACTIVE
    assert chat.send("three").held
    chat.end_of_grace(run_id)
    assert chat.held_texts() == ["two", "three"]


def test_keep_pauses_the_queue_with_that_reason() -> None:
    """C1: nothing enters until a new send or ResumeQueue."""
    chat = Conversation()
    run_id = chat.start()
    chat.send("one")
    chat.cancel(run_id, keep_held=True)
    pause = chat.state.queue_pause
    assert pause is not None
    assert (pause.reason, pause.run_id) == (QueuePauseReason.CANCELLED, run_id)
    assert chat.state.held[0].reason is HoldReason.QUEUE_PAUSED
    entered = chat.resume_queue()
    assert chat.state.selected == entered
    assert not chat.held_texts()


def test_keep_pauses_a_queue_that_is_empty_until_a_new_send() -> None:
    """C1, G2: a new send ends the pause, whichever it was."""
    chat = Conversation()
    run_id = chat.start()
    chat.cancel(run_id, keep_held=True)
    assert chat.state.queue_pause
    assert chat.send("new").run_id
    assert chat.state.queue_pause is None


def test_keep_leaves_a_pause_as_it_is() -> None:
    """C1: paused is paused, with the reason that it has."""
    chat = Conversation()
    run_id = chat.start()
    chat.send("one")
    chat.send("two")
    chat.fail(run_id)
    chat.fail(chat.state.selected)
    created, _ = chat.regenerate(run_id)
    chat.cancel(created, keep_held=True)
    pause = chat.state.queue_pause
    assert pause is not None
    assert pause.reason is QueuePauseReason.FAILURES


def test_keep_on_a_run_that_is_being_stopped_already() -> None:
    """C1, C5: its effect does not hold yet, so that it is brought about."""
    chat, run_id = started()
    chat.send("one")
    chat.cancel(run_id)
    chat.cancel(run_id, keep_held=True)
    chat.end_of_grace(run_id)
    assert chat.held_texts() == ["one"]


def test_a_stop_again_is_ok_and_of_an_ended_run_refused() -> None:
    """C5: the effect holds; or another final state would be needed."""
    chat, run_id = started()
    chat.cancel(run_id)
    length = len(chat.log)
    assert chat.cancel(run_id, by=BEN) == run_id
    assert len(chat.log) == length
    chat.end_of_grace(run_id)
    length = len(chat.log)
    assert chat.cancel(run_id) == run_id
    assert len(chat.log) == length
    for end in ("complete", "fail"):
        other = chat.start("next")
        if end == "complete":
            chat.complete(other)
        else:
            chat.report(other)
            chat.fail(other)
        with chat.refused(Reason.RUN_STATE):
            chat.cancel(other)
    with chat.refused(Reason.RUN_NOT_FOUND):
        chat.cancel("run-nowhere")


def test_questions_that_another_live_run_waits_for_stay_open() -> None:
    """C1, F4: stopping F leaves those of F'; stopping both closes them."""
    chat = Conversation()
    run_id = chat.start()
    chat.ask(run_id, form("c-1"), form("c-2"))
    first = chat.settle(chat.interaction("c-1").id, VISBY).run_id
    second = chat.settle(chat.interaction("c-1").id, LUND, by=BEN).run_id
    chat.cancel(first)
    assert chat.open_calls() == ["c-2"]
    assert chat.run(second).state is RunState.PARKED
    chat.cancel(second)
    assert not chat.open_calls()
    assert chat.state_of("c-2") is InteractionState.CANCELLED


def test_scenario_16_the_stale_tab_presses_stop() -> None:
    """F8: naming R, it stops F; the answer says so."""
    chat = Conversation()
    run_id = chat.start()
    chat.ask(run_id, form("c-1"))
    fork = chat.settle(chat.interaction("c-1").id, VISBY).run_id
    chat.report(fork)
    assert chat.cancel(run_id) == fork
    assert chat.run(fork).state is RunState.CANCELLING
    assert chat.run(run_id).state is RunState.PARKED


def test_scenario_17_approved_then_stopped_before_it_ran() -> None:
    """A3: the decision dies with its call; the next turn asks again."""
    chat = Conversation()
    run_id = chat.start()
    chat.step(run_id, server_call("c-pay"))
    chat.propose(run_id, ASK)
    chat.park(run_id, ASK)
    chat.decide(chat.interaction("c-pay").id)
    chat.cancel(run_id)
    other = chat.start("again")
    chat.step(other, server_call("c-2"))
    again = ProposedTool("c-2", tool_permission=Permission.ASK)
    assert chat.propose(other, again) == [Verdict.ASK]


def test_a_stopped_run_counts_as_no_failure() -> None:
    """G2: two failures pause the queue; a stop in between is none."""
    chat = Conversation()
    first = chat.start()
    for text in ("one", "two", "three"):
        chat.send(text)
    chat.fail(first)
    chat.cancel(chat.state.selected)
    assert not chat.state.queue_pause
    assert chat.held_texts() == ["three"]
