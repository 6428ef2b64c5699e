"""Deleting a session, and retention, on the core: what is open is cancelled, then nothing comes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from broker_service.domain.decision import Decision, principal
from broker_service.domain.deletion import delete_session, expire_session, expires_at
from broker_service.domain.events import (
    HeldMessageRemoved,
    InteractionClosed,
    MessageWithdrawn,
    PromptAdded,
    RunStateChanged,
    SessionDeleted,
    ToolResultAdded,
)
from broker_service.domain.model import (
    FINAL_STATES,
    InteractionState,
    ProposedTool,
    ResultKind,
    RunChangeCause,
    RunState,
    SessionConfig,
)
from broker_service.domain.reports import Began
from broker_service.effects import effects_of
from broker_service.storage.port import EraseSession, SessionKey
from tests.unit.broker.conversation import ANN, VISBY, Conversation, form, server_call

HOUR = 3_600_000


def delete(chat: Conversation) -> None:
    chat.act(delete_session, principal(ANN))


def test_the_last_event_says_that_the_session_was_deleted_and_by_whom() -> None:
    """W2"""
    chat = Conversation()
    delete(chat)
    assert isinstance(chat.log[-1].event, SessionDeleted)
    assert chat.log[-1].actor == ANN
    assert chat.state.deleted


def test_all_that_is_open_is_cancelled_first() -> None:
    """C1: a parked run with its question, and a running one on another branch."""
    chat = Conversation()
    parked = chat.start("first")
    chat.ask(parked, form("c-1"))
    chat.send("second")  # held
    delete(chat)
    assert chat.run(parked).state is RunState.CANCELLED
    assert chat.state_of("c-1") is InteractionState.CANCELLED
    [cancelled] = [e for e in chat.events_of(RunStateChanged) if e.state is RunState.CANCELLED]
    assert cancelled.cause is RunChangeCause.SESSION_DELETED
    assert not chat.state.live_runs
    assert not chat.state.open_interactions


def test_held_messages_leave_the_queue_and_none_enters() -> None:
    """G2, G3: the end of the run that they wait for releases nothing any more."""
    chat = Conversation()
    chat.start("first")
    held = [chat.send(text).message_id for text in ("second", "third")]
    delete(chat)
    assert [e.message_id for e in chat.events_of(HeldMessageRemoved)] == held
    assert len(chat.events_of(PromptAdded)) == 1
    assert not chat.state.held


def test_a_running_run_is_over_at_once_and_what_it_was_writing_is_withdrawn() -> None:
    """R1, W5: by way of CANCELLING."""
    chat = Conversation()
    chat.report(chat.start(), Began("m-1"))
    delete(chat)
    states = [e.state for e in chat.events_of(RunStateChanged)]
    assert states == [RunState.RUNNING, RunState.CANCELLING, RunState.CANCELLED]
    assert [e.message_id for e in chat.events_of(MessageWithdrawn)] == ["m-1"]
    assert isinstance(chat.log[-1].event, SessionDeleted)


def test_a_tool_that_runs_leaves_an_unknown_outcome() -> None:
    """S1"""
    chat = Conversation()
    run_id = chat.start()
    chat.step(run_id, server_call("c-1"))
    chat.propose(run_id, ProposedTool("c-1"))
    delete(chat)
    [unknown] = chat.events_of(ToolResultAdded)
    assert unknown.result.kind is ResultKind.OUTCOME_UNKNOWN


def test_runs_of_all_branches_end() -> None:
    chat = Conversation()
    run_id = chat.start()
    [question] = chat.ask(run_id, form("c-1"))
    first = chat.settle(question, VISBY).run_id
    second = chat.settle(question, '{"action":"accept","content":{"city":"Lund"}}', by="ben").run_id
    delete(chat)
    assert first != second
    assert all(
        run.state in FINAL_STATES for run in chat.state.runs.values() if not run.superseded_by
    )


def test_a_questions_end_comes_before_the_sessions() -> None:
    chat = Conversation()
    chat.ask(chat.start(), form("c-1"))
    delete(chat)
    kinds = [type(event) for event in chat.last(2)]
    assert kinds == [InteractionClosed, SessionDeleted]


def test_the_store_is_asked_to_erase_and_to_keep_nothing_else() -> None:
    chat = Conversation()
    chat.ask(chat.start(), form("c-1"))
    decision = Decision(chat.state, chat.now, principal(ANN), chat.mint, chat.limits)
    delete_session(decision)
    assert effects_of(decision, "b1", 0, 0) == (EraseSession(SessionKey("t-1", "s-1")),)


# --- retention ---


def kept_for(hours: int, *, while_open: bool = False) -> Conversation:
    config = SessionConfig(agent="travel", retention=hours * HOUR, expire_while_open=while_open)
    return Conversation(config)


def after(chat: Conversation, milliseconds: int) -> bool:
    """Let time pass since the last event, then look; whether the session was removed."""
    chat.now = chat.state.update_time + milliseconds - 1_000  # `act` adds a second
    chat.act(expire_session)
    return chat.state.deleted


def test_a_session_is_removed_when_nothing_has_happened_for_its_retention() -> None:
    chat = kept_for(2)
    chat.complete(chat.start())
    assert not after(chat, 2 * HOUR - 1)
    assert after(chat, 2 * HOUR)


def test_every_event_prolongs_it() -> None:
    chat = kept_for(1)
    run_id = chat.start()
    chat.now += HOUR - 5_000
    chat.complete(run_id)
    assert not after(chat, HOUR - 1)


def test_without_a_retention_a_session_is_kept_for_ever() -> None:
    chat = Conversation()
    assert expires_at(chat.state, chat.now) is None
    assert not after(chat, 10**12)


def parked(chat: Conversation) -> None:
    chat.ask(chat.start(), form("c-1"))


def pending(chat: Conversation) -> None:
    chat.start()


def running(chat: Conversation) -> None:
    chat.report(chat.start())


def held(chat: Conversation) -> None:
    """Two failures pause the queue: a message waits, and nothing else is open."""
    run_id = chat.start()
    chat.send("second")
    chat.send("third")
    for _ in range(2):
        chat.fail(run_id)
        run_id = chat.state.selected
    assert chat.held_texts() == ["third"]
    assert not chat.state.live_runs


@pytest.mark.parametrize("opened", [parked, pending, running, held])
def test_a_session_in_which_something_is_open_is_not_removed(
    opened: Callable[[Conversation], None],
) -> None:
    chat = kept_for(1)
    opened(chat)
    assert not after(chat, 100 * HOUR)
    assert expires_at(chat.state, chat.now) == chat.now + HOUR, "not sooner than its end allows"


@pytest.mark.parametrize("opened", [parked, pending, running, held])
def test_unless_it_is_set_so(opened: Callable[[Conversation], None]) -> None:
    chat = kept_for(1, while_open=True)
    opened(chat)
    assert not after(chat, HOUR - 1)
    assert after(chat, HOUR)
    assert not chat.state.live_runs
