"""E1, E2: what a caller reads of a refusal: the words, and the metadata that the contract names.

Which commands are refused, and that nothing changes, is in the tests of the rules.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from broker_service.domain.interactions import InteractionRef, find_interaction
from broker_service.domain.limits import Limits
from broker_service.domain.model import (
    ApprovalPolicy,
    ConflictPolicy,
    OnBusy,
    Permission,
    ProposedTool,
    SessionConfig,
)
from tests.unit.broker.conversation import (
    ANN,
    BEN,
    LUND,
    VISBY,
    Conversation,
    client_call,
    connection,
    form,
    server_call,
)
from turngate_core.errors import Reason

MINUTE = 60_000


def refusal(
    chat: Conversation, reason: Reason, act: Callable[[], object]
) -> tuple[str, dict[str, str]]:
    with chat.refused(reason) as caught:
        act()
    return caught.value.message, caught.value.metadata


@pytest.fixture
def parked() -> Conversation:
    """Run `run_1` of prompt `m-1` waits for `int_4`, call `c-1` of message `msg_2`."""
    chat = Conversation()
    chat.send("hi", "m-1")
    chat.ask("run_1", form("c-1"))
    return chat


@pytest.fixture
def asking() -> Conversation:
    """Run `run_1` waits for `int_3`, whether `pay` may start."""
    policy = ApprovalPolicy(Permission.ASK)
    chat = Conversation(SessionConfig(agent="travel", approval_policy=policy))
    chat.send("hi", "m-1")
    chat.step("run_1", server_call("c-1", "pay"))
    chat.propose("run_1", ProposedTool("c-1"))
    chat.park("run_1", ProposedTool("c-1"))
    return chat


def test_what_is_not_there_is_named(parked: Conversation) -> None:
    def told(reason: Reason, act: Callable[[], object]) -> tuple[str, dict[str, str]]:
        return refusal(parked, reason, act)

    assert told(Reason.RUN_NOT_FOUND, lambda: parked.cancel("run_9")) == (
        "no run run_9 in this session",
        {"run_id": "run_9"},
    )
    assert told(Reason.NODE_NOT_FOUND, lambda: parked.select("m-9@run_8")) == (
        "no prompt or run m-9@run_8 in this session",
        {"node_id": "m-9@run_8"},
    )
    assert told(Reason.INTERACTION_NOT_FOUND, lambda: parked.settle("int_9", VISBY)) == (
        "no interaction int_9 in this session",
        {"interaction_id": "int_9"},
    )
    assert told(Reason.MESSAGE_NOT_FOUND, lambda: parked.edit("m-9")) == (
        "message m-9 is no user message of this session",
        {"message_id": "m-9"},
    )
    assert told(Reason.NOT_A_PROMPT, lambda: parked.edit("msg_2")) == (
        "message msg_2 is no user message of this session",
        {"message_id": "msg_2"},
    )
    assert told(Reason.HELD_MESSAGE_NOT_FOUND, lambda: parked.remove_held("m-1")) == (
        "no message m-1 is held; it may have entered already",
        {"message_id": "m-1"},
    )
    assert told(Reason.GRANT_NOT_FOUND, lambda: parked.revoke("int_9")) == (
        "no grant int_9 in this session",
        {"grant_id": "int_9"},
    )
    assert told(
        Reason.TOOL_CALL_NOT_IN_RUN, lambda: parked.settle(output=VISBY, run="run_1", call="c-9")
    ) == (
        "call c-9 is not one of run run_1",
        {"run_id": "run_1", "call_id": "c-9", "legacy_code": "40003"},
    )


def test_a_call_that_waits_for_nobody() -> None:
    """F7: it is the run's, but nobody was asked."""
    chat = Conversation()
    run_id = chat.start()
    chat.step(run_id, server_call("c-1"))
    told = refusal(
        chat, Reason.CALL_NOT_OPEN, lambda: chat.settle(output="1", run=run_id, call="c-1")
    )
    assert told == ("call c-1 waits for nobody", {"run_id": run_id, "call_id": "c-1"})


def test_an_interaction_that_is_named_twice_is_named_the_same(parked: Conversation) -> None:
    """F1: by its id, and by run and call; both have to fit."""
    both = InteractionRef("int_4", "run_1", "c-1")
    assert find_interaction(parked.state, both).id == "int_4"
    with parked.refused(Reason.INVALID_FIELD) as caught:
        parked.settle("int_4", VISBY, call="c-2")
    assert caught.value.message == "interaction.call_id: is not the call of that interaction"
    told = refusal(parked, Reason.RUN_NOT_FOUND, lambda: parked.settle("int_4", VISBY, run="run_9"))
    assert told[1] == {"run_id": "run_9"}


def test_the_wrong_kind(parked: Conversation, asking: Conversation) -> None:
    """F1."""
    assert refusal(parked, Reason.WRONG_INTERACTION_KIND, lambda: parked.decide("int_4")) == (
        "interaction int_4 is to be settled: it is of kind CLIENT_TOOL",
        {"interaction_id": "int_4", "kind": "CLIENT_TOOL"},
    )
    assert refusal(asking, Reason.WRONG_INTERACTION_KIND, lambda: asking.settle("int_3", "1")) == (
        "interaction int_3 is to be decided: it is of kind APPROVAL",
        {"interaction_id": "int_3", "kind": "APPROVAL"},
    )


def test_another_tool_s_name(parked: Conversation) -> None:
    """F1."""
    told = refusal(
        parked, Reason.TOOL_NAME_MISMATCH, lambda: parked.settle("int_4", VISBY, tool="sign")
    )
    assert told == (
        "the call is one of request_input",
        {"tool_name": "sign", "expected": "request_input"},
    )
    assert parked.settle("int_4", VISBY, tool="request_input").fork_opened


def test_an_answer_that_does_not_fit(parked: Conversation) -> None:
    """F1: one violation a field, with the path in the request."""
    with parked.refused(Reason.INVALID_ANSWER) as caught:
        parked.settle("int_4", '{"action":"accept","content":{"city":1}}')
    assert caught.value.message == "the answer does not fit; the question stays open"
    assert caught.value.metadata == {"interaction_id": "int_4"}
    assert caught.value.violations == (("output.content.city", "must be a text"),)


def test_somebody_else_s_connection() -> None:
    """B2: who finishes it is whom it was opened for."""
    chat = Conversation()
    run_id = chat.start()
    (question,) = chat.ask(run_id, connection("c-1"))
    told = refusal(chat, Reason.NOT_THE_CLOSER, lambda: chat.settle(question, error="no", by=BEN))
    assert told == ("somebody else has to close this question", {"interaction_id": question})


def test_another_answer_came_first() -> None:
    """F5: with the first answer, its run and time."""
    chat = Conversation(SessionConfig(agent="travel", conflict_policy=ConflictPolicy.FIRST_WINS))
    chat.send("hi", "m-1")
    chat.ask("run_1", form("c-1"))
    chat.settle("int_4", VISBY)
    first = {
        "interaction_id": "int_4",
        "answer_id": "ans_5",
        "run_id": "run_6",
        "answered_at": "2027-01-15T08:00:04.000Z",
    }
    assert refusal(chat, Reason.ALREADY_SETTLED, lambda: chat.settle("int_4", LUND)) == (
        "another answer came first",
        first,
    )
    assert refusal(chat, Reason.ALREADY_SETTLED, lambda: chat.cancel_interaction("int_4")) == (
        "the question was answered",
        first,
    )


def test_another_decision_came_first(asking: Conversation) -> None:
    """A2: with who decided, how and when."""
    asking.decide("int_3", False, by=BEN)
    decided = {"interaction_id": "int_3", "state": "DENIED", "decided_by": BEN}
    at = {"decided_at": "2027-01-15T08:00:05.000Z"}
    assert refusal(asking, Reason.ALREADY_DECIDED, lambda: asking.decide("int_3")) == (
        "another decision came first",
        decided | at,
    )
    told = refusal(asking, Reason.ALREADY_DECIDED, lambda: asking.cancel_interaction("int_3"))
    assert told == ("the approval was decided", decided)


def test_what_comes_too_late(parked: Conversation) -> None:
    """F6: by name, with the instant of an expiry."""
    parked.cancel_interaction("int_4")
    told = refusal(parked, Reason.INTERACTION_CANCELLED, lambda: parked.settle("int_4", VISBY))
    assert told == ("the question was cancelled", {"interaction_id": "int_4"})
    chat = Conversation(SessionConfig(agent="travel", interaction_expires_after=MINUTE))
    run_id = chat.start()
    (question,) = chat.ask(run_id, form("c-1"))
    chat.wait(MINUTE)
    told = refusal(chat, Reason.INTERACTION_EXPIRED, lambda: chat.settle(question, VISBY))
    assert told == (
        "the question has expired",
        {"interaction_id": question, "expired_at": "2027-01-15T08:01:03.000Z"},
    )


def test_a_question_that_the_broker_settled() -> None:
    """D1."""
    chat = Conversation()
    run_id = chat.start()
    (question,) = chat.ask(run_id, client_call("c-1", "box"))
    chat.report_unhandled(question)
    told = refusal(chat, Reason.INTERACTION_NOT_HANDLED, lambda: chat.settle(question, "1"))
    assert told == ("the broker settled the question itself", {"interaction_id": question})


def test_the_run_that_took_the_first_answer_was_cancelled(parked: Conversation) -> None:
    """F6."""
    fork = parked.settle("int_4", VISBY).run_id
    parked.cancel(fork)
    told = refusal(parked, Reason.RUN_CANCELLED, lambda: parked.settle("int_4", LUND))
    assert told == (
        f"run {fork}, which goes on with the first answer, was cancelled",
        {"run_id": fork},
    )


def test_a_run_that_waits_for_nothing_any_more() -> None:
    """F6: the other fork waits for the second question still."""
    chat = Conversation()
    run_id = chat.start()
    first, second = chat.ask(run_id, form("c-1"), form("c-2"))
    chat.settle(first, VISBY)
    other = chat.settle(first, LUND, by=BEN).run_id
    chat.cancel(other)
    told = refusal(chat, Reason.RUN_CANCELLED, lambda: chat.settle(second, VISBY, run=other))
    assert told == (f"run {other} waits for nothing any more", {"run_id": other})


def test_a_run_in_another_state(parked: Conversation) -> None:
    """C5: which state it is in."""
    assert refusal(parked, Reason.RUN_STATE, lambda: parked.retry("run_1")) == (
        "run run_1 has not failed: it is PARKED",
        {"run_id": "run_1", "state": "PARKED"},
    )
    chat = Conversation()
    run_id = chat.start()
    chat.complete(run_id)
    assert refusal(chat, Reason.RUN_STATE, lambda: chat.cancel(run_id)) == (
        f"run {run_id} is over: it is COMPLETED",
        {"run_id": run_id, "state": "COMPLETED"},
    )


def test_an_attempt_that_is_over() -> None:
    """R3."""
    chat = Conversation()
    run_id = chat.start()
    chat.report(run_id, attempt=3)
    told = refusal(chat, Reason.STALE_ATTEMPT, lambda: chat.report(run_id, attempt=2))
    assert told == (f"attempt 2 of run {run_id} is over", {"run_id": run_id, "attempt": "2"})


def test_a_busy_branch_and_a_full_queue(parked: Conversation) -> None:
    """G4, E3."""
    told = refusal(parked, Reason.SESSION_BUSY, lambda: parked.send("more", on_busy=OnBusy.REJECT))
    assert told == ("the branch is busy", {"reason": "INTERACTION_OPEN", "run_id": "run_1"})
    chat = Conversation(limits=Limits(held_messages=1))
    chat.start()
    chat.send("1")
    assert refusal(chat, Reason.LIMIT_EXCEEDED, lambda: chat.send("2")) == (
        "too many messages are held in this session",
        {"limit": "held_messages", "maximum": "1", "actual": "2"},
    )


def test_ids_and_authors_of_messages(parked: Conversation) -> None:
    """T3, G3."""
    taken = ("message id m-1 is taken in this session", {"message_id": "m-1"})
    assert refusal(parked, Reason.MESSAGE_ID_TAKEN, lambda: parked.send("x", "m-1")) == taken
    parked.send("held", "m-2", by=BEN)
    told = refusal(parked, Reason.NOT_THE_AUTHOR, lambda: parked.edit_held("m-2", "mine", by=ANN))
    assert told == ("only its author may edit a held message", {"message_id": "m-2"})


def test_a_run_s_id_is_no_message_s(parked: Conversation) -> None:
    """T3: prompts and runs share one space of ids."""
    told = refusal(parked, Reason.MESSAGE_ID_TAKEN, lambda: parked.send("x", "run_1"))
    assert told == ("message id run_1 is taken in this session", {"message_id": "run_1"})


def test_what_breaks_the_protocol_of_a_step() -> None:
    """R3, R4, A1: a runner reads what it did wrong."""
    chat = Conversation()
    run_id = chat.start()
    chat.step(run_id, server_call("c-1"), form("c-2"))

    def told(act: Callable[[], object]) -> str:
        message, metadata = refusal(chat, Reason.PROTOCOL_VIOLATION, act)
        assert metadata == {"problem": message}
        return message

    assert told(lambda: chat.propose(run_id, ProposedTool("c-9"))) == (
        "call c-9 is not one of the run's current step"
    )
    assert told(lambda: chat.propose(run_id, ProposedTool("c-2"))) == "call c-2 is no server call"
    assert told(lambda: chat.park(run_id)) == "parked without a word about the server call c-1"
    assert told(lambda: chat.park(run_id, ProposedTool("c-1"))) == (
        "parked though the server call c-1 could run"
    )


def test_a_step_without_anything_open_does_not_park() -> None:
    """R4."""
    chat = Conversation()
    run_id = chat.start()
    chat.step(run_id)
    told = refusal(chat, Reason.PROTOCOL_VIOLATION, lambda: chat.park(run_id))
    assert told[0] == "parked, but every call of the step has its result"
