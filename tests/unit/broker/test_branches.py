"""Edit, regenerate, select (C2, C3), and commands that name what is no longer shown (F8, F9)."""

from __future__ import annotations

import pytest

from broker_service.domain.events import BranchSelected
from broker_service.domain.model import (
    HoldReason,
    OnBusy,
    ResultKind,
    RunCause,
    RunChangeCause,
    RunState,
)
from tests.unit.broker.conversation import (
    BEN,
    LUND,
    VISBY,
    Conversation,
    form,
    server_call,
    text_of,
)
from turngate_core.errors import Reason


def turns(chat: Conversation, count: int) -> list[str]:
    """Complete turns; answers their runs."""
    runs = []
    for number in range(count):
        run_id = chat.start(f"turn {number + 1}")
        chat.complete(run_id, f"reply {number + 1}")
        runs.append(run_id)
    return runs


def texts(chat: Conversation, node_id: str = "") -> list[str]:
    return [text_of(message) for message in chat.transcript(node_id)]


# --- edit ---


def test_an_edit_is_a_new_prompt_beside_the_old_one_and_selected() -> None:
    """C2: it deletes nothing; its run starts at once."""
    chat = Conversation()
    turns(chat, 2)
    old = list(chat.state.prompts)[1]
    sent = chat.edit(old, "turn 2, better")
    prompt = chat.state.prompts[sent.message_id]
    assert prompt.parent_id == chat.state.prompts[old].parent_id
    assert prompt.edits_prompt_id == old
    assert chat.state.selected == sent.run_id
    assert texts(chat) == ["turn 1", "reply 1", "turn 2, better"]
    assert texts(chat, chat.select(old)) == ["turn 1", "reply 1", "turn 2", "reply 2"]


def test_an_edit_of_the_first_message_begins_a_new_conversation() -> None:
    """C2: a root beside the root."""
    chat = Conversation()
    turns(chat, 1)
    sent = chat.edit(next(iter(chat.state.prompts)), "otherwise")
    assert texts(chat) == ["otherwise"]
    assert chat.state.prompts[sent.message_id].parent_id == ""


@pytest.mark.parametrize("running", [False, True])
@pytest.mark.parametrize("keep", [False, True])
def test_the_run_of_the_branch_that_is_left_is_cancelled_unless_it_is_kept(
    running: bool, keep: bool
) -> None:
    """C2: pending or running, by default."""
    chat = Conversation()
    run_id = chat.start()
    if running:
        chat.report(run_id)
    chat.edit(next(iter(chat.state.prompts)), keep_running=keep)
    expected = RunState.RUNNING if running else RunState.PENDING
    if not keep:
        expected = RunState.CANCELLING if running else RunState.CANCELLED
    assert chat.run(run_id).state is expected
    if not keep:
        assert chat.run(run_id).cancel_cause is RunChangeCause.BRANCH_LEFT


@pytest.mark.parametrize("on_busy", [None, OnBusy.HOLD, OnBusy.REJECT, OnBusy.INTERRUPT])
def test_a_parked_run_is_kept_by_an_edit_unless_it_interrupts(on_busy: OnBusy | None) -> None:
    """C2, G4: an edit waits for nothing, and is refused by nothing."""
    chat = Conversation()
    run_id = chat.start()
    chat.ask(run_id, form("c-1"))
    sent = chat.edit(next(iter(chat.state.prompts)), on_busy=on_busy)
    assert sent.run_id
    interrupts = on_busy is OnBusy.INTERRUPT
    assert chat.run(run_id).state is (RunState.CANCELLED if interrupts else RunState.PARKED)
    assert chat.open_calls() == ([] if interrupts else ["c-1"])


def test_held_messages_stay_with_the_branch_that_was_left() -> None:
    """G2: they enter when it is selected again, and never unseen."""
    chat = Conversation()
    run_id = chat.start()
    chat.send("held")
    edited = chat.edit(next(iter(chat.state.prompts))).run_id
    assert chat.run(run_id).state is RunState.CANCELLED
    assert chat.state.held[0].reason is HoldReason.BRANCH_NOT_SELECTED
    chat.complete(edited)
    assert chat.held_texts() == ["held"]
    chat.select(run_id)
    assert not chat.held_texts()
    assert texts(chat)[-1] == "held"


def test_the_same_edit_again_gets_the_first_outcome() -> None:
    """C5: under its own message id."""
    chat = Conversation()
    prompt = chat.state.runs[chat.start()].prompt_id
    first = chat.edit(prompt, "better", "m-edit")
    length = len(chat.log)
    assert chat.edit(prompt, "better", "m-edit").run_id == first.run_id
    assert len(chat.log) == length
    with chat.refused(Reason.MESSAGE_ID_TAKEN):
        chat.edit(prompt, "worse", "m-edit")


def test_only_a_users_message_can_be_edited() -> None:
    """C2: the assistant's is regenerated, an unknown one is none, a held one is updated."""
    chat = Conversation()
    run_id = chat.start()
    reply = chat.step(run_id)
    with chat.refused(Reason.NOT_A_PROMPT):
        chat.edit(reply)
    with chat.refused(Reason.MESSAGE_NOT_FOUND):
        chat.edit("m-nowhere")
    chat.send("held", "m-held")
    with chat.refused(Reason.MESSAGE_NOT_FOUND):
        chat.edit("m-held")


def test_an_edit_ends_a_pause_of_the_queue() -> None:
    """G2: it is a new send."""
    chat = Conversation()
    run_id = chat.start()
    chat.send("one")
    chat.send("two")
    chat.fail(run_id)
    chat.fail(chat.state.selected)
    assert chat.state.queue_pause
    chat.edit(next(iter(chat.state.prompts)))
    assert chat.state.queue_pause is None
    assert chat.held_texts() == ["two"]


# --- regenerate ---


@pytest.mark.parametrize("keep", [False, True])
def test_a_regenerated_run_stands_beside_the_old_one_and_is_selected(keep: bool) -> None:
    """C2, F9: the running one that is left is cancelled by default."""
    chat = Conversation()
    run_id = chat.start()
    chat.report(run_id)
    created, acted_on = chat.regenerate(run_id, keep_running=keep)
    assert acted_on == run_id
    run = chat.run(created)
    assert (run.cause, run.prompt_id) == (RunCause.REGENERATE, chat.run(run_id).prompt_id)
    assert not run.origin_id
    assert not chat.run(run_id).superseded_by
    assert chat.state.siblings(run) == (run_id,)
    assert chat.state.selected == created
    assert chat.run(run_id).state is (RunState.RUNNING if keep else RunState.CANCELLING)


def test_the_message_of_a_fork_is_regenerated_by_the_id_of_its_copy() -> None:
    """F9: the copy is a message like any other; so is the original's id, by way of R."""
    chat = Conversation()
    run_id = chat.start()
    message = chat.step(run_id, form("c-1"))
    chat.park(run_id)
    settled = chat.settle(chat.interaction("c-1").id, VISBY)
    chat.complete(settled.run_id)
    for name in (settled.message_id, message, run_id, settled.run_id):
        created, acted_on = chat.regenerate(name)
        assert acted_on == settled.run_id
        assert chat.run(created).prompt_id == chat.run(run_id).prompt_id
        chat.complete(created)
    with chat.refused(Reason.RUN_NOT_FOUND):
        chat.regenerate("msg-nowhere")
    with chat.refused(Reason.RUN_NOT_FOUND):
        chat.regenerate(f"{message}@run-nowhere")


def test_an_older_answer_is_regenerated_while_a_later_turn_runs() -> None:
    """C2: the branch that is left is the selected one; what it has stays."""
    chat = Conversation()
    first, _ = turns(chat, 2)
    third = chat.start("turn 3")
    created, _ = chat.regenerate(first)
    assert chat.run(third).state is RunState.CANCELLED
    assert texts(chat) == ["turn 1"]
    assert len(texts(chat, chat.select(third))) == 5
    assert chat.state.siblings(chat.run(created)) == (first,)


def test_regenerating_a_parked_run_keeps_its_question() -> None:
    """C2: both can be gone on with."""
    chat = Conversation()
    run_id = chat.start()
    chat.ask(run_id, form("c-1"))
    created, _ = chat.regenerate(run_id)
    fork = chat.settle(chat.interaction("c-1").id, VISBY).run_id
    assert chat.state.selected == created
    chat.complete(fork)
    chat.complete(created)


# --- select ---


def test_select_goes_down_to_the_newest_leaf() -> None:
    """C3, G1: the newest message below, not the newest child at each parting."""
    chat = Conversation()
    first, second = turns(chat, 2)
    prompt = chat.run(first).prompt_id
    regenerated, _ = chat.regenerate(first)
    chat.complete(regenerated)
    chat.select(first)
    third = chat.start("turn 3")
    chat.complete(third)
    root = chat.edit(prompt).run_id
    assert chat.state.selected == root
    assert chat.select(prompt) == third
    chat.select(root)
    chat.send("on the side", branch=prompt)
    assert chat.run(third).id in chat.state.path_to(list(chat.state.runs)[-1])
    assert second in chat.state.path_to(third)


def test_selecting_what_is_selected_changes_nothing() -> None:
    """C5: by any node of the branch, or a message of it."""
    chat = Conversation()
    runs = turns(chat, 3)
    length = len(chat.log)
    names = [*runs, *chat.state.prompts, *chat.state.message_nodes]
    assert {chat.select(name) for name in names} == {runs[-1]}
    assert len(chat.log) == length
    with chat.refused(Reason.NODE_NOT_FOUND):
        chat.select("nowhere")


def test_selecting_a_superseded_run_selects_its_successor() -> None:
    """F8: superseded runs are never selected."""
    chat = Conversation()
    run_id = chat.start()
    chat.ask(run_id, form("c-1"))
    chat.edit(next(iter(chat.state.prompts)))
    fork = chat.settle(chat.interaction("c-1").id, VISBY).run_id
    chat.settle(chat.interaction("c-1").id, LUND, by=BEN)
    assert chat.select(run_id, by=BEN) == fork
    assert chat.events_of(BranchSelected)[-1].node_id == fork


def test_a_stale_name_on_the_selected_branch_stays_on_it() -> None:
    """F8, G1: naming R, whose fork has two turns below it, goes to the selected end."""
    chat = Conversation()
    run_id = chat.start()
    chat.ask(run_id, form("c-1"))
    chat.complete(chat.settle(chat.interaction("c-1").id, VISBY).run_id)
    older = chat.start("older")
    chat.complete(older)
    chat.complete(chat.edit(chat.run(older).prompt_id).run_id)
    chat.select(older)
    assert chat.select(run_id) == older
    sent = chat.send("below", branch=run_id)
    assert chat.state.parent_of(sent.message_id) == older


# --- scenarios ---


def test_scenario_11_edit_regenerate_switch() -> None:
    """C2, C3, F6, F9: each result lands on its own branch; lists of siblings are right."""
    chat = Conversation()
    first, second = turns(chat, 2)
    third = chat.start("turn 3")
    chat.ask(third, form("c-1"))
    edited = chat.edit(chat.run(second).prompt_id, "turn 2, better").run_id
    chat.complete(edited)
    regenerated, _ = chat.regenerate(first)
    chat.complete(regenerated)
    assert chat.state.siblings(chat.run(first)) == (regenerated,)
    assert chat.state.selected == regenerated
    fork = chat.settle(chat.interaction("c-1").id, VISBY).run_id
    assert chat.state.selected == regenerated
    chat.complete(fork, "it is Visby")
    assert texts(chat, fork)[-1] == "it is Visby"
    assert chat.results(fork)["c-1"].output_json == VISBY
    assert not chat.results(regenerated)
    assert chat.select(third) == fork
    assert texts(chat)[:4] == ["turn 1", "reply 1", "turn 2", "reply 2"]
    assert chat.state.children[first] == [chat.run(second).prompt_id, chat.run(edited).prompt_id]


def test_scenario_11_the_old_form_is_cancelled_on_the_branch_that_is_not_selected() -> None:
    """C4, F6: a variant: it goes on in place there, and nothing moves here."""
    chat = Conversation()
    run_id = chat.start()
    chat.ask(run_id, form("c-1"))
    edited = chat.edit(next(iter(chat.state.prompts))).run_id
    chat.cancel_interaction(chat.interaction("c-1").id)
    assert chat.run(run_id).state is RunState.PENDING
    chat.complete(run_id)
    assert chat.state.selected == edited
    assert chat.results(run_id)["c-1"].kind is ResultKind.CANCELLED_BY_USER


def test_scenario_16_the_stale_tab() -> None:
    """F8, F4: a tab that still shows R sends, answers, regenerates and stops: all on F."""
    chat = Conversation()
    run_id = chat.start()
    message = chat.step(run_id, form("c-1"), form("c-2"), form("c-3"))
    chat.park(run_id)
    fork = chat.settle(chat.interaction("c-1").id, VISBY).run_id
    settled = chat.settle(run=run_id, call="c-2", output=LUND)
    assert (settled.run_id, settled.acted_on_run_id) == (fork, fork)
    sent = chat.send("after R", branch=message)
    assert sent.held is not None
    assert sent.held.waits_for_run_id == fork
    closed = chat.cancel_interaction(run=run_id, call="c-3")
    assert closed.acted_on_run_id == fork
    chat.complete(fork)
    assert chat.state.parent_of(sent.message_id) == fork
    assert chat.regenerate(message)[1] == fork
    assert chat.state.on_selected_branch(chat.run(fork).prompt_id)


def test_scenario_16_a_stop_and_a_message_at_the_same_moment() -> None:
    """F8: a variant with the fork running; the message enters once, after the end."""
    chat = Conversation()
    run_id = chat.start()
    chat.ask(run_id, form("c-1"))
    fork = chat.settle(chat.interaction("c-1").id, VISBY).run_id
    chat.step(fork, server_call("c-2"))
    assert chat.cancel(run_id) == fork
    sent = chat.send("and now?", branch=run_id)
    assert sent.held is not None
    chat.stopped(fork)
    assert chat.state.parent_of(sent.message_id) == fork
