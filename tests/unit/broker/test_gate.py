"""The queue gate (G1 to G3): what enters, what waits, and what it waits for."""

from __future__ import annotations

import pytest

from broker_service.domain.events import (
    BranchSelected,
    HeldMessageRemoved,
    HoldChanged,
    PromptAdded,
    QueuePaused,
    QueueResumed,
)
from broker_service.domain.limits import Limits
from broker_service.domain.model import (
    HoldReason,
    OnBusy,
    QueuePauseReason,
    Role,
    RunState,
    SessionConfig,
)
from tests.unit.broker.conversation import (
    BEN,
    DECLINED,
    FAILED,
    LUND,
    VISBY,
    Conversation,
    form,
    said,
    text_of,
    user,
)
from turngate_core.errors import Code, Reason


def prompts(chat: Conversation) -> list[str]:
    return [text_of(added.message) for added in chat.events_of(PromptAdded)]


def test_a_message_enters_an_idle_branch_at_once_and_starts_its_run() -> None:
    """G1, R1."""
    chat = Conversation()
    sent = chat.send("hello", "m-1")
    assert sent.held is None
    run = chat.run(sent.run_id)
    assert (run.prompt_id, run.state, run.agent) == ("m-1", RunState.PENDING, "travel")
    assert chat.state.selected == run.id


@pytest.mark.parametrize("running", [False, True])
def test_a_message_is_held_while_a_run_is_pending_or_running(running: bool) -> None:
    """G1: HELD, with the reason and the run that it waits for."""
    chat = Conversation()
    run_id = chat.start()
    if running:
        chat.report(run_id)
    sent = chat.send("second")
    assert sent.run_id == ""
    assert sent.held is not None
    assert (sent.held.reason, sent.held.waits_for_run_id) == (HoldReason.RUN_ACTIVE, run_id)
    assert sent.held.waits_for_interaction_ids == ()


def test_a_message_is_held_while_a_form_is_open_and_names_it() -> None:
    """G1: naming what blocks it; the form stays open."""
    chat = Conversation()
    run_id = chat.start()
    (question,) = chat.ask(run_id, form("c-1"))
    held = chat.send("actually in euro").held
    assert held is not None
    assert held.reason is HoldReason.INTERACTION_OPEN
    assert (held.waits_for_run_id, held.waits_for_interaction_ids) == (run_id, (question,))
    assert chat.open_calls() == ["c-1"]


def test_scenario_3_text_while_a_form_is_open() -> None:
    """Scenario 3: both held in order; after the answer the resumed run ends first, then the two
    enter one after the other, each with its own run."""
    chat = Conversation()
    run_id = chat.start("to Sweden")
    (question,) = chat.ask(run_id, form("c-1"))
    chat.send("actually in euro", by=BEN)
    second = chat.send("hello?").held
    assert second is not None
    assert second.reason is HoldReason.INTERACTION_OPEN
    assert chat.held_texts() == ["actually in euro", "hello?"]
    fork = chat.settle(question, VISBY).run_id
    # At a settlement the hold by the interaction becomes a hold by the resumed run, visibly (G2).
    assert [held.reason for held in chat.state.held] == [HoldReason.RUN_ACTIVE] * 2
    assert {held.waits_for_run_id for held in chat.state.held} == {fork}
    assert len(chat.events_of(HoldChanged)) == 2
    assert prompts(chat) == ["to Sweden"]
    chat.complete(fork)
    assert prompts(chat) == ["to Sweden", "actually in euro"]
    first_run = chat.state.selected
    assert first_run != fork
    assert chat.state.held[0].waits_for_run_id == first_run
    chat.complete(first_run)
    assert prompts(chat) == ["to Sweden", "actually in euro", "hello?"]
    chat.complete(chat.state.selected)
    assert chat.state.held == []
    assert [m.role for m in chat.transcript()] == [
        Role.USER,
        Role.ASSISTANT,
        Role.ASSISTANT,
        Role.USER,
        Role.ASSISTANT,
        Role.USER,
        Role.ASSISTANT,
    ]


def test_a_partial_answer_leaves_the_hold_by_what_is_still_open() -> None:
    """G1, F4: the hold follows the fork and names what the fork still waits for."""
    chat = Conversation()
    run_id = chat.start()
    first, second = chat.ask(run_id, form("c-1"), form("c-2"))
    chat.send("more")
    fork = chat.settle(first, VISBY).run_id
    (held,) = chat.state.held
    assert held.reason is HoldReason.INTERACTION_OPEN
    assert (held.waits_for_run_id, held.waits_for_interaction_ids) == (fork, (second,))
    chat.settle(second, DECLINED)
    assert chat.state.held[0].reason is HoldReason.RUN_ACTIVE


def test_a_failed_run_lets_exactly_one_message_enter() -> None:
    """G2: ended in whatever way; the next waits for that one's run."""
    chat = Conversation()
    run_id = chat.start("one")
    chat.send("two")
    chat.send("three")
    chat.fail(run_id)
    assert prompts(chat) == ["one", "two"]
    assert chat.held_texts() == ["three"]
    assert chat.state.held[0].waits_for_run_id == chat.state.selected


def test_after_two_failures_in_a_row_the_queue_is_paused() -> None:
    """G2, scenario 18: the first held message becomes the retry and fails too."""
    chat = Conversation()
    run_id = chat.start("one")
    chat.send("two")
    chat.send("three")
    chat.fail(run_id)
    second = chat.state.selected
    chat.fail(second)
    assert chat.held_texts() == ["three"]
    assert chat.state.held[0].reason is HoldReason.QUEUE_PAUSED
    assert chat.state.queue_pause is not None
    assert chat.state.queue_pause.reason is QueuePauseReason.FAILURES
    assert chat.state.queue_pause.run_id == second


def paused(*waiting: str) -> Conversation:
    """Two runs in a row have failed while these were held."""
    chat = Conversation()
    run_id = chat.start("one")
    chat.send("two")
    for text in waiting:
        chat.send(text)
    chat.fail(run_id)
    chat.fail(chat.state.selected)
    return chat


def test_resume_queue_lets_one_enter_and_starts_the_count_again() -> None:
    """G2: ResumeQueue; after it two failures more are needed."""
    chat = paused("three", "four", "five")
    entered = chat.resume_queue()
    assert entered == chat.state.selected
    assert chat.held_texts() == ["four", "five"]
    chat.fail(entered)
    assert chat.held_texts() == ["five"]
    chat.fail(chat.state.selected)
    assert chat.held_texts() == ["five"]
    assert len(chat.events_of(QueuePaused)) == 2


def test_resume_queue_without_a_pause_changes_nothing() -> None:
    """C5: the effect holds already."""
    chat = Conversation()
    run_id = chat.start()
    chat.send("two")
    length = len(chat.log)
    assert chat.resume_queue() == ""
    assert len(chat.log) == length
    assert chat.run(run_id).state is RunState.PENDING


def test_a_new_send_ends_the_pause_and_goes_behind_the_older_ones() -> None:
    """G2: a new send; first in, first out."""
    chat = paused("three")
    held = chat.send("four").held
    assert held is not None
    assert chat.state.queue_pause is None
    assert prompts(chat) == ["one", "two", "three"]
    assert (held.reason, held.waits_for_run_id) == (HoldReason.RUN_ACTIVE, chat.state.selected)


def test_a_new_send_ends_the_pause_although_nothing_is_held_any_more() -> None:
    """G2: until a new send, also one that enters at once: later messages are not paused."""
    chat = paused("three")
    chat.remove_held(chat.state.held[0].message.id)
    run_id = chat.start("four")
    assert chat.state.queue_pause is None
    assert len(chat.events_of(QueueResumed)) == 1
    chat.send("five")
    chat.complete(run_id)
    assert prompts(chat)[-1] == "five"


def test_a_success_between_two_failures_pauses_nothing() -> None:
    """G2: two failures *in a row*."""
    chat = Conversation()
    run_id = chat.start("one")
    for text in ("two", "three", "four"):
        chat.send(text)
    chat.fail(run_id)
    chat.complete(chat.state.selected)
    chat.fail(chat.state.selected)
    assert chat.held_texts() == []
    assert chat.state.queue_pause is None


def test_a_full_queue_refuses_and_says_how_full() -> None:
    """E3: one below, at, and one above the limit."""
    chat = Conversation(limits=Limits(held_messages=2))
    chat.start()
    assert chat.send("1").held
    assert chat.send("2").held
    with chat.refused(Reason.LIMIT_EXCEEDED) as caught:
        chat.send("3")
    assert caught.value.code is Code.RESOURCE_EXHAUSTED
    assert caught.value.metadata == {"limit": "held_messages", "maximum": "2", "actual": "3"}
    chat.remove_held(chat.state.held[0].message.id)
    assert chat.send("3").held


def test_reject_refuses_instead_of_holding() -> None:
    """G4: REJECT of the message, or of the session; an idle branch takes it."""
    chat = Conversation()
    assert chat.send("one", on_busy=OnBusy.REJECT).run_id
    with chat.refused(Reason.SESSION_BUSY) as caught:
        chat.send("two", on_busy=OnBusy.REJECT)
    assert caught.value.metadata == {"reason": "RUN_ACTIVE", "run_id": chat.state.selected}
    strict = Conversation(SessionConfig(agent="travel", on_busy=OnBusy.REJECT))
    run_id = strict.start()
    strict.ask(run_id, form("c-1"))
    with strict.refused(Reason.SESSION_BUSY) as caught:
        strict.send("two")
    assert caught.value.metadata["reason"] == "INTERACTION_OPEN"
    # The message's own setting stands before the session's (E3).
    assert strict.send("two", on_busy=OnBusy.HOLD).held


def test_reject_does_not_jump_a_paused_queue() -> None:
    """G1, G4: older messages are held, so the branch is busy."""
    chat = paused("three")
    with chat.refused(Reason.SESSION_BUSY) as caught:
        chat.send("four", on_busy=OnBusy.REJECT)
    assert caught.value.metadata["reason"] == "QUEUED_BEHIND"
    assert chat.state.queue_pause is not None


def test_a_held_message_is_edited_by_its_author_in_its_place() -> None:
    """G3."""
    chat = Conversation()
    run_id = chat.start("one")
    chat.send("two", "m-2", by=BEN)
    chat.send("three", "m-3")
    changed = chat.edit_held("m-2", "two and a half", by=BEN)
    assert text_of(changed.message) == "two and a half"
    assert chat.held_texts() == ["two and a half", "three"]
    with chat.refused(Reason.NOT_THE_AUTHOR):
        chat.edit_held("m-2", "mine now")
    chat.complete(run_id)
    assert prompts(chat)[-1] == "two and a half"
    with chat.refused(Reason.HELD_MESSAGE_NOT_FOUND):
        chat.edit_held("m-2", "too late", by=BEN)


def test_an_edit_starts_no_new_count_of_failures() -> None:
    """G2, G3: an edit is no new send."""
    chat = Conversation()
    run_id = chat.start("one")
    chat.send("two", "m-2")
    chat.send("three", "m-3")
    chat.fail(run_id)
    chat.edit_held("m-3", "3")
    chat.fail(chat.state.selected)
    assert chat.state.queue_pause is not None


def test_removing_a_held_message_never_sends_it() -> None:
    """G3."""
    chat = Conversation()
    run_id = chat.start("one")
    chat.send("two", "m-2")
    chat.send("three", "m-3")
    chat.remove_held("m-2")
    assert chat.events_of(HeldMessageRemoved) == [HeldMessageRemoved("m-2")]
    assert chat.held_texts() == ["three"]
    with chat.refused(Reason.HELD_MESSAGE_NOT_FOUND):
        chat.remove_held("m-2")
    chat.complete(run_id)
    assert prompts(chat) == ["one", "three"]


def test_the_same_message_sent_again_gets_the_present_state() -> None:
    """C5, E1: neither held twice nor entered twice."""
    chat = Conversation()
    first = chat.send("one", "m-1")
    assert chat.send("one", "m-1") == first
    chat.send("two", "m-2")
    again = chat.send("two", "m-2")
    assert again.held == chat.state.held[0]
    assert len(chat.state.held) == 1
    chat.complete(first.run_id)
    assert chat.send("two", "m-2").run_id == chat.state.selected
    assert prompts(chat) == ["one", "two"]


@pytest.mark.parametrize(("text", "by"), [("other", "ann"), ("one", BEN)])
def test_a_taken_message_id_is_refused(text: str, by: str) -> None:
    """T3: another content, or another author, under an id that is taken."""
    chat = Conversation()
    chat.send("one", "m-1")
    with chat.refused(Reason.MESSAGE_ID_TAKEN):
        chat.send(text, "m-1", by=by)
    chat.send("one", "m-2")
    with chat.refused(Reason.MESSAGE_ID_TAKEN):
        chat.send("two", "m-2")


def test_an_id_of_the_assistants_message_is_taken_too() -> None:
    """T3: also while that message is being written."""
    chat = Conversation()
    run_id = chat.start()
    message_id = chat.step(run_id)
    with chat.refused(Reason.MESSAGE_ID_TAKEN):
        chat.send("hello", message_id)


def test_a_named_node_means_the_end_of_its_branch() -> None:
    """G1: after whatever node or message of the branch was named, a superseded run included."""
    chat = Conversation()
    run_id = chat.start()
    message_id = chat.step(run_id, form("c-1"))
    chat.park(run_id)
    (question,) = chat.run(run_id).waits
    fork = chat.settle(question, LUND).run_id
    for name in (run_id, message_id, chat.run(run_id).prompt_id, fork):
        held = chat.send(branch=name).held
        assert held is not None
        assert held.branch_node_id == fork
    chat.complete(fork)
    assert chat.events_of(PromptAdded)[-1].parent_node_id == fork
    with chat.refused(Reason.NODE_NOT_FOUND):
        chat.send(branch="nowhere")


def test_a_message_enters_only_while_its_branch_is_selected() -> None:
    """G2: else it stays held with that reason until the branch is selected again."""
    chat = Conversation(messages=(user("m-1", "one"),))
    run_id = chat.first_run
    chat.send("two", "m-2")
    # Another branch is selected: a prompt beside the first one, as an edit will make it.
    other = user("m-9", "instead")
    chat.act(lambda d: d.emit(PromptAdded(other, parent_node_id="", selected=True)))
    chat.complete(run_id)
    assert chat.state.held[0].reason is HoldReason.BRANCH_NOT_SELECTED
    assert chat.state.selected == "m-9"
    chat.act(lambda d: d.emit(BranchSelected(run_id)))
    assert chat.state.held == []
    assert prompts(chat)[-1] == "two"


def test_a_message_sent_to_another_branch_on_purpose_enters_unseen() -> None:
    """G2: and selects nothing (G1)."""
    chat = Conversation(messages=(user("m-1", "one"),))
    run_id = chat.first_run
    other = user("m-9", "instead")
    chat.act(lambda d: d.emit(PromptAdded(other, parent_node_id="", selected=True)))
    assert chat.send("two", "m-2", branch=run_id).held
    chat.complete(run_id)
    assert chat.state.held == []
    assert chat.state.selected == "m-9"
    assert chat.state.children[run_id] == ["m-2"]


def test_a_branch_named_while_it_was_selected_does_not_run_unseen() -> None:
    """G2, scenario 18: what enters a branch unseen was sent to *another* branch."""
    chat = Conversation(messages=(user("m-1", "one"),))
    run_id = chat.first_run
    chat.send("two", "m-2", branch=run_id)
    other = user("m-9", "instead")
    chat.act(lambda d: d.emit(PromptAdded(other, parent_node_id="", selected=True)))
    chat.complete(run_id)
    assert chat.state.held[0].reason is HoldReason.BRANCH_NOT_SELECTED


def test_first_messages_form_a_chain_and_the_last_user_message_starts_a_run() -> None:
    """T1, G1: a session that begins with messages."""
    chat = Conversation(messages=(user("m-1", "hi"), said("m-2"), user("m-3", "go on")))
    assert chat.state.path_to(chat.state.selected) == ["m-1", "m-2", "m-3", chat.first_run]
    assert chat.run(chat.first_run).state is RunState.PENDING
    silent = Conversation(messages=(user("m-1", "hi"), said("m-2")))
    assert silent.first_run == ""
    assert silent.state.selected == "m-2"
    assert silent.send("go on").run_id


def test_the_end_of_an_attempt_that_was_cancelled_by_nobody_holds() -> None:
    """G1, R3: a run whose attempt is lost is pending again, and still holds messages."""
    chat = Conversation()
    run_id = chat.start("one")
    chat.send("two")
    chat.report(run_id)
    chat.lose(run_id)
    assert chat.held_texts() == ["two"]
    chat.report(run_id, FAILED)
    assert chat.held_texts() == []


def test_who_stands_behind_a_paused_message_says_so() -> None:
    """G1: older messages are held; only the first one waits for the pause itself."""
    chat = paused("three", "four")
    reasons = [held.reason for held in chat.state.held]
    assert reasons == [HoldReason.QUEUE_PAUSED, HoldReason.QUEUED_BEHIND]


def test_a_new_send_that_enters_starts_the_count_again() -> None:
    """G2: one failure, a new send, one failure: that is not two in a row."""
    chat = Conversation()
    chat.fail(chat.start("one"))
    run_id = chat.start("two")
    chat.report(run_id)
    assert chat.state.failures_in_row == 0
    chat.fail(run_id)
    assert chat.state.failures_in_row == 1
    assert chat.state.queue_pause is None
