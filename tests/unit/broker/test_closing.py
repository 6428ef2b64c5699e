"""Questions that close without an answer: cancelled, expired (C4, I4)."""

from __future__ import annotations

import pytest

from broker_service.domain.events import InteractionClosed, RunStateChanged
from broker_service.domain.model import (
    ActorKind,
    ClientTool,
    ExpiryPolicy,
    InteractionState,
    Permission,
    ProposedTool,
    ResultKind,
    RunChangeCause,
    RunState,
    SessionConfig,
    ToolCall,
)
from broker_service.domain.starts import Verdict
from tests.unit.broker.conversation import (
    BEN,
    LUND,
    VISBY,
    Conversation,
    client_call,
    form,
    server_call,
)
from turngate_core.errors import Reason

MINUTE = 60_000
ASK = ProposedTool("c-pay", tool_permission=Permission.ASK)


def expiring(
    *calls: ToolCall, policy: ExpiryPolicy | None = None, after: int = MINUTE
) -> tuple[Conversation, str]:
    config = SessionConfig(agent="travel", interaction_expires_after=after, on_expiry=policy)
    chat = Conversation(config)
    run_id = chat.start()
    chat.step(run_id, *calls)
    if any(call.call_id == "c-pay" for call in calls):
        chat.propose(run_id, ASK)
        chat.park(run_id, ASK)
    else:
        chat.park(run_id)
    return chat, run_id


def until(chat: Conversation, call: str) -> int:
    """Milliseconds until the question about that call expires."""
    return (chat.interaction(call).expire_time or 0) - chat.now


# --- C4 ---


def test_one_question_is_cancelled_in_place_and_the_run_goes_on_when_all_are_closed() -> None:
    """C4, R5: with the result `cancelled_by_user`; no fork, no answer."""
    chat = Conversation()
    run_id = chat.start()
    chat.ask(run_id, form("c-1"), form("c-2"))
    assert chat.cancel_interaction(chat.interaction("c-1").id).acted_on_run_id == run_id
    assert chat.run(run_id).state is RunState.PARKED
    assert chat.results()["c-1"].kind is ResultKind.CANCELLED_BY_USER
    chat.cancel_interaction(run=run_id, call="c-2")
    assert chat.run(run_id).state is RunState.PENDING
    assert list(chat.state.runs) == [run_id]
    chat.complete(run_id)


def test_an_approval_that_is_cancelled_starts_nothing() -> None:
    """C4: its tool gets the result; it is neither approved nor denied."""
    chat, run_id = expiring(server_call("c-pay"))
    chat.cancel_interaction(chat.interaction("c-pay").id)
    assert chat.state_of("c-pay") is InteractionState.CANCELLED
    assert chat.propose(run_id, ASK) == [Verdict.REUSE]
    with chat.refused(Reason.INTERACTION_CANCELLED):
        chat.decide(chat.interaction("c-pay").id)


def test_after_the_other_was_answered_the_fork_goes_on_in_place() -> None:
    """C4, F4: cancelling the last open question of F."""
    chat = Conversation()
    run_id = chat.start()
    chat.ask(run_id, form("c-1"), form("c-2"))
    fork = chat.settle(chat.interaction("c-1").id, VISBY).run_id
    chat.cancel_interaction(chat.interaction("c-2").id)
    assert chat.run(fork).state is RunState.PENDING
    assert chat.results(fork)["c-2"].kind is ResultKind.CANCELLED_BY_USER
    assert chat.results(fork)["c-1"].output_json == VISBY


def test_both_forks_go_on_when_their_question_is_cancelled() -> None:
    """F4, C4: for every run that waits for it."""
    chat = Conversation()
    run_id = chat.start()
    chat.ask(run_id, form("c-1"), form("c-2"))
    forks = [
        chat.settle(chat.interaction("c-1").id, output, by=BEN).run_id for output in (VISBY, LUND)
    ]
    chat.cancel_interaction(chat.interaction("c-2").id)
    for fork in forks:
        assert chat.run(fork).state is RunState.PENDING
        assert chat.results(fork)["c-2"].kind is ResultKind.CANCELLED_BY_USER


def test_cancelled_again_is_ok_and_closed_otherwise_is_refused() -> None:
    """C5: by the name of what happened first."""
    chat = Conversation()
    run_id = chat.start()
    calls = (form("c-1"), form("c-2"), client_call("c-3"), server_call("c-pay"))
    chat.step(run_id, *calls)
    chat.propose(run_id, ASK)
    chat.park(run_id, ASK)
    chat.cancel_interaction(chat.interaction("c-1").id)
    length = len(chat.log)
    chat.cancel_interaction(chat.interaction("c-1").id, by=BEN)
    assert len(chat.log) == length
    chat.settle(chat.interaction("c-2").id, VISBY)
    chat.report_unhandled(chat.interaction("c-3").id)
    chat.decide(chat.interaction("c-pay").id)
    for call, reason in (
        ("c-2", Reason.ALREADY_SETTLED),
        ("c-3", Reason.INTERACTION_NOT_HANDLED),
        ("c-pay", Reason.ALREADY_DECIDED),
    ):
        with chat.refused(reason):
            chat.cancel_interaction(chat.interaction(call).id)


def test_held_messages_enter_after_the_run_that_goes_on_without_an_answer() -> None:
    """C4, G2, scenario 3: the form is cancelled; the resumed run ends first."""
    chat = Conversation()
    run_id = chat.start()
    chat.ask(run_id, form("c-1"))
    chat.send("one")
    chat.send("two")
    chat.cancel_interaction(chat.interaction("c-1").id)
    assert chat.state.held[0].waits_for_run_id == run_id
    assert chat.state.held[0].waits_for_interaction_ids == ()
    chat.complete(run_id)
    assert chat.held_texts() == ["two"]


# --- I4: policies ---


def test_by_default_a_client_call_fails_as_expired_and_an_approval_is_denied() -> None:
    """I4: in place; never recorded as a person's denial."""
    chat, run_id = expiring(form("c-1"), server_call("c-pay"))
    chat.wait(MINUTE)
    assert chat.run(run_id).state is RunState.PENDING
    results = chat.results()
    assert results["c-1"].kind is ResultKind.EXPIRED
    assert results["c-pay"].kind is ResultKind.DENIED
    for call in ("c-1", "c-pay"):
        assert chat.state_of(call) is InteractionState.EXPIRED
        assert not chat.interaction(call).answers
    closed = [e for e in chat.log if isinstance(e.event, InteractionClosed)]
    assert {entry.actor_kind for entry in closed} == {ActorKind.BROKER}
    assert chat.propose(run_id, ASK) == [Verdict.REUSE]
    chat.complete(run_id)


@pytest.mark.parametrize(
    ("policy", "kind"),
    [(ExpiryPolicy.FAIL_CALL, ResultKind.EXPIRED), (ExpiryPolicy.DENY, ResultKind.DENIED)],
)
def test_the_policy_that_is_set_holds_for_both_kinds(
    policy: ExpiryPolicy, kind: ResultKind
) -> None:
    """I4: FAIL_CALL and DENY resume in place."""
    chat, run_id = expiring(form("c-1"), server_call("c-pay"), policy=policy)
    chat.wait(MINUTE)
    assert [result.kind for result in chat.results().values()] == [kind, kind]
    assert list(chat.state.runs) == [run_id]


def test_cancel_run_cancels_every_run_that_waits_and_says_expired() -> None:
    """I4: F and F'; what closes with them has the reason `expired`, so has the transcript."""
    config = SessionConfig(
        agent="travel",
        client_tools=(ClientTool("scan", expires_after=MINUTE, on_expiry=ExpiryPolicy.CANCEL_RUN),),
    )
    chat = Conversation(config)
    run_id = chat.start()
    chat.ask(run_id, form("c-1"), client_call("c-2", "scan"), form("c-3"))
    forks = [
        chat.settle(chat.interaction("c-1").id, output, by=BEN).run_id for output in (VISBY, LUND)
    ]
    chat.send("held")
    chat.wait(MINUTE)
    for fork in forks:
        assert chat.run(fork).state is RunState.CANCELLED
        for call in ("c-2", "c-3"):
            assert chat.results(fork)[call].kind is ResultKind.EXPIRED
    assert chat.state_of("c-2") is InteractionState.EXPIRED
    assert chat.state_of("c-3") is InteractionState.CANCELLED
    assert {event.reason for event in chat.events_of(InteractionClosed)} == {ResultKind.EXPIRED}
    cancelled = [e for e in chat.events_of(RunStateChanged) if e.state is RunState.CANCELLED]
    assert {event.cause for event in cancelled} == {RunChangeCause.EXPIRED}
    assert not chat.held_texts()
    with chat.refused(Reason.INTERACTION_CANCELLED):
        chat.settle(chat.interaction("c-3").id, VISBY)


def test_a_run_that_does_not_wait_for_it_is_not_cancelled() -> None:
    """I4: only live runs that wait; one that was answered elsewhere goes on."""
    chat, run_id = expiring(form("c-1"), policy=ExpiryPolicy.CANCEL_RUN)
    edited = chat.edit(next(iter(chat.state.prompts))).run_id
    chat.wait(MINUTE)
    assert chat.run(run_id).state is RunState.CANCELLED
    assert chat.run(edited).state is RunState.PENDING


def test_the_nearest_setting_wins() -> None:
    """I4, E3: tool before session."""
    tool = ClientTool("scan", expires_after=2 * MINUTE, on_expiry=ExpiryPolicy.DENY)
    config = SessionConfig(agent="travel", client_tools=(tool,), interaction_expires_after=MINUTE)
    chat = Conversation(config)
    run_id = chat.start()
    chat.ask(run_id, client_call("c-1", "scan"), form("c-2"))
    chat.wait(MINUTE)
    assert chat.open_calls() == ["c-1"]
    chat.wait(MINUTE)
    assert chat.results()["c-1"].kind is ResultKind.DENIED


# --- I4: the instant ---


@pytest.mark.parametrize(("early", "accepted"), [(1, True), (0, False), (-1, False)])
def test_an_answer_is_judged_by_the_clock_of_its_command(early: int, accepted: bool) -> None:
    """I4: though no sweep came by; at the instant itself it is too late."""
    chat, run_id = expiring(form("c-1"))
    question = chat.interaction("c-1").id
    chat.now += until(chat, "c-1") - early - 1_000  # the command takes a second
    if accepted:
        assert chat.settle(question, VISBY).fork_opened
        chat.wait(MINUTE)
        assert chat.state_of("c-1") is InteractionState.ANSWERED
        return
    with pytest.raises(Exception, match="INTERACTION_EXPIRED"):
        chat.settle(question, VISBY)
    assert chat.run(run_id).state is RunState.PENDING
    assert chat.results()["c-1"].kind is ResultKind.EXPIRED
    assert len(chat.state.runs) == 1


@pytest.mark.parametrize("early", [1, 0])
def test_a_decision_is_judged_likewise(early: int) -> None:
    """I4: an approval that comes at the instant starts nothing."""
    chat, run_id = expiring(server_call("c-pay"))
    question = chat.interaction("c-pay").id
    chat.now += until(chat, "c-pay") - early - 1_000
    if early:
        chat.decide(question)
        assert chat.propose(run_id, ASK) == [Verdict.GRANTED]
        return
    with pytest.raises(Exception, match="INTERACTION_EXPIRED"):
        chat.decide(question)
    assert chat.propose(run_id, ASK) == [Verdict.REUSE]


def test_any_command_sees_what_has_expired() -> None:
    """I4: a message that is sent after the instant is not held by the question."""
    chat, run_id = expiring(form("c-1"))
    chat.now += MINUTE
    sent = chat.send("hello?")
    assert sent.held is not None
    assert sent.held.waits_for_run_id == run_id
    assert not sent.held.waits_for_interaction_ids


def test_a_second_answer_is_not_subject_to_the_expiry() -> None:
    """F5, I4: the first answer closed the question in time."""
    chat, _ = expiring(form("c-1"))
    chat.settle(chat.interaction("c-1").id, VISBY)
    chat.wait(MINUTE)
    assert chat.settle(chat.interaction("c-1").id, LUND, by=BEN).fork_opened


def test_what_expires_together_is_settled_together() -> None:
    """I4, R1: one resume."""
    chat, run_id = expiring(*[form(f"c-{n}") for n in range(5)])
    chat.wait(MINUTE)
    resumed = [e for e in chat.events_of(RunStateChanged) if e.state is RunState.PENDING]
    assert [event.run_id for event in resumed] == [run_id]
    assert len(chat.results()) == 5


def test_a_denied_or_expired_question_denies_what_was_to_run_after_it() -> None:
    """R4: tools that run after the answers."""
    later = ProposedTool("c-2", after_answers=True)
    for close in ("cancel", "expire"):
        config = SessionConfig(agent="travel", interaction_expires_after=MINUTE)
        chat = Conversation(config)
        run_id = chat.start()
        chat.step(run_id, form("c-1"), server_call("c-2"))
        assert chat.propose(run_id, later) == [Verdict.DEFERRED]
        chat.park(run_id, later)
        if close == "cancel":
            chat.cancel_interaction(chat.interaction("c-1").id)
        else:
            chat.wait(MINUTE)
        assert chat.propose(run_id, later) == [Verdict.DENIED]
