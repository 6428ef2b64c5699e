"""Messages that interrupt (G4)."""

from __future__ import annotations

import pytest

from broker_service.domain.limits import Limits
from broker_service.domain.model import (
    InteractionState,
    OnBusy,
    RunChangeCause,
    RunState,
    SessionConfig,
)
from tests.unit.broker.conversation import BEN, VISBY, Conversation, form, text_of
from turngate_core.errors import Reason

INTERRUPT = OnBusy.INTERRUPT


def order(chat: Conversation) -> list[str]:
    """What the users said, in the order in which it entered."""
    return [text_of(message) for message in chat.transcript() if not message.run_id]


def finish(chat: Conversation) -> list[str]:
    """Let all held messages enter; answers the whole order."""
    while chat.run(chat.state.selected).live:
        run = chat.run(chat.state.selected)
        if run.state is RunState.CANCELLING:
            chat.stopped(run.id)
        else:
            chat.complete(run.id)
    return order(chat)


@pytest.mark.parametrize("state", ["pending", "parked"])
def test_what_is_not_running_is_cancelled_and_the_message_enters_in_one_write(state: str) -> None:
    """G4: as soon as the run is CANCELLED, which is at once."""
    chat = Conversation()
    run_id = chat.start("first")
    if state == "parked":
        chat.ask(run_id, form("c-1"))
    sent = chat.send("stop, this", on_busy=INTERRUPT, by=BEN)
    assert sent.run_id
    assert chat.state.selected == sent.run_id
    assert chat.run(run_id).state is RunState.CANCELLED
    assert chat.run(run_id).cancel_cause is RunChangeCause.INTERRUPTED
    assert not chat.open_calls()
    if state == "parked":
        assert chat.state_of("c-1") is InteractionState.CANCELLED


def test_a_running_run_is_stopped_first() -> None:
    """G4: the message waits in front until the run is over."""
    chat = Conversation()
    run_id = chat.start("first")
    chat.report(run_id)
    sent = chat.send("stop, this", on_busy=INTERRUPT)
    assert sent.held is not None
    assert sent.held.interrupting
    assert sent.held.waits_for_run_id == run_id
    assert chat.run(run_id).state is RunState.CANCELLING
    chat.end_of_grace(run_id)
    assert order(chat) == ["first", "stop, this"]


def test_it_enters_in_front_of_the_queue_behind_earlier_interrupting_ones() -> None:
    """G4: older held messages follow in their order."""
    chat = Conversation()
    run_id = chat.start("first")
    chat.report(run_id)
    chat.send("held 1")
    chat.send("held 2")
    chat.send("now 1", on_busy=INTERRUPT)
    chat.send("now 2", on_busy=INTERRUPT)
    chat.send("held 3")
    assert chat.held_texts() == ["now 1", "now 2", "held 1", "held 2", "held 3"]
    assert finish(chat) == ["first", "now 1", "now 2", "held 1", "held 2", "held 3"]


def test_scenario_3_the_third_message_goes_first() -> None:
    """G4: two are held by a form; the third interrupts, and the two follow."""
    chat = Conversation()
    run_id = chat.start("first")
    chat.ask(run_id, form("c-1"))
    chat.send("actually in euro")
    chat.send("hello?", by=BEN)
    chat.send("forget it", on_busy=INTERRUPT)
    assert order(chat) == ["first", "forget it"]
    assert chat.held_texts() == ["actually in euro", "hello?"]
    with chat.refused(Reason.INTERACTION_CANCELLED):
        chat.settle(chat.interaction("c-1").id, VISBY)
    assert finish(chat) == ["first", "forget it", "actually in euro", "hello?"]


def test_it_overtakes_a_paused_queue_and_ends_the_pause() -> None:
    """G2, G4: a new send."""
    chat = Conversation()
    run_id = chat.start("first")
    chat.send("held 1")
    chat.send("held 2")
    chat.cancel(run_id, keep_held=True)
    sent = chat.send("now", on_busy=INTERRUPT)
    assert sent.run_id
    assert chat.state.queue_pause is None
    assert finish(chat) == ["first", "now", "held 1", "held 2"]


def test_on_an_idle_branch_it_is_a_message_like_any_other() -> None:
    """G4: nothing is cancelled."""
    chat = Conversation()
    run_id = chat.start("first")
    chat.complete(run_id)
    assert chat.send("second", on_busy=INTERRUPT).run_id
    assert chat.run(run_id).state is RunState.COMPLETED


def test_the_sessions_setting_counts_where_the_message_says_nothing() -> None:
    """G4, E3: the request before the session."""
    chat = Conversation(SessionConfig(agent="travel", on_busy=INTERRUPT))
    run_id = chat.start("first")
    assert chat.send("waits", on_busy=OnBusy.HOLD).held
    assert chat.run(run_id).state is RunState.PENDING
    assert chat.send("now").run_id
    assert chat.run(run_id).state is RunState.CANCELLED


def test_another_branch_goes_on() -> None:
    """G4: the run that blocks the branch, and no other."""
    chat = Conversation()
    first = chat.start("first")
    chat.report(first)
    edited = chat.edit(next(iter(chat.state.prompts)), keep_running=True).run_id
    chat.send("now", on_busy=INTERRUPT)
    assert chat.run(edited).state is RunState.CANCELLED
    assert chat.run(first).state is RunState.RUNNING


def test_a_full_queue_refuses_an_interrupting_message_and_stops_nothing() -> None:
    """E3: checked before anything is stored."""
    chat = Conversation(limits=Limits(held_messages=1))
    run_id = chat.start()
    chat.report(run_id)
    chat.send("held")
    with chat.refused(Reason.LIMIT_EXCEEDED):
        chat.send("now", on_busy=INTERRUPT)
    assert chat.run(run_id).state is RunState.RUNNING


def test_the_same_message_again_interrupts_nothing_more() -> None:
    """C5: under its own id it gets the present state."""
    chat = Conversation()
    chat.start("first")
    run_id = chat.send("now", "m-now", on_busy=INTERRUPT).run_id
    length = len(chat.log)
    assert chat.send("now", "m-now", on_busy=INTERRUPT).run_id == run_id
    assert len(chat.log) == length
    assert chat.run(run_id).state is RunState.PENDING
