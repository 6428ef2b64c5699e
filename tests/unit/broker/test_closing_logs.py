"""I4, C1, C4, D1, R3, P3: the whole events with which questions, attempts and imports end."""

from __future__ import annotations

from dataclasses import replace

import pytest

from broker_service.domain.decision import principal
from broker_service.domain.events import (
    Event,
    InteractionClosed,
    MessageWithdrawn,
    NoticeAdded,
    PromptAdded,
    QueuePaused,
    RunCreated,
    RunStateChanged,
    SessionEvent,
    SessionImported,
    ToolResultAdded,
)
from broker_service.domain.importing import ImportSession, import_session
from broker_service.domain.limits import Limits
from broker_service.domain.model import (
    ActorKind,
    ApprovalPolicy,
    ExpiryPolicy,
    Grant,
    InteractionNotice,
    InteractionState,
    Permission,
    ProposedTool,
    QueuePause,
    QueuePauseReason,
    ResultKind,
    RunChangeCause,
    RunFailure,
    RunFailureReason,
    RunState,
    SessionConfig,
    ToolCall,
    ToolExecutor,
    ToolResult,
)
from broker_service.domain.reports import Began
from broker_service.domain.starts import Verdict
from tests.unit.broker.conversation import (
    ANN,
    VISBY,
    Conversation,
    client_call,
    form,
    server_call,
    tool_result,
    user,
)
from turngate_core.errors import Reason, Refusal

MINUTE = 60_000
ASKS = ApprovalPolicy(Permission.ASK)


def by_the_broker(chat: Conversation, since: int) -> list[Event]:
    """What happened since; all of it by the broker itself."""
    assert {entry.actor_kind for entry in chat.log[since:]} == {ActorKind.BROKER}
    return [entry.event for entry in chat.log[since:]]


def waiting(policy: ExpiryPolicy | None = None) -> Conversation:
    """`run_1` waits for `int_4`, call `c-1`, for a minute from now."""
    config = SessionConfig(
        agent="travel", interaction_expires_after=MINUTE, on_expiry=policy, approval_policy=ASKS
    )
    chat = Conversation(config)
    chat.send("hi", "m-1")
    chat.ask("run_1", form("c-1"))
    return chat


def expired(chat: Conversation) -> list[Event]:
    since = len(chat.log)
    chat.wait(MINUTE)
    return by_the_broker(chat, since)


def closed(reason: ResultKind) -> InteractionClosed:
    return InteractionClosed("int_4", "c-1", InteractionState.EXPIRED, reason)


def test_a_question_that_nobody_answers_fails_its_call() -> None:
    """I4: FAIL_CALL, the default."""
    chat = waiting()
    result = ToolResult(
        "c-1",
        error_text="Nobody answered this call in time.",
        kind=ResultKind.EXPIRED,
        interaction_id="int_4",
        create_time=chat.now + MINUTE,
    )
    assert expired(chat) == [
        closed(ResultKind.EXPIRED),
        ToolResultAdded("run_1", result),
        RunStateChanged("run_1", RunState.PENDING, 1),
    ]


def test_a_question_that_is_denied_when_it_expires_says_that_nobody_decided() -> None:
    """I4: DENY is never recorded as a person's."""
    chat = waiting(ExpiryPolicy.DENY)
    told = "This call was not allowed. It was not executed. Reason: nobody decided in time"
    result = ToolResult(
        "c-1",
        error_text=told,
        kind=ResultKind.DENIED,
        interaction_id="int_4",
        create_time=chat.now + MINUTE,
    )
    assert expired(chat) == [
        closed(ResultKind.DENIED),
        ToolResultAdded("run_1", result),
        RunStateChanged("run_1", RunState.PENDING, 1),
    ]


def test_a_question_that_cancels_its_run_when_it_expires() -> None:
    """I4: CANCEL_RUN."""
    assert expired(waiting(ExpiryPolicy.CANCEL_RUN)) == [
        closed(ResultKind.EXPIRED),
        RunStateChanged("run_1", RunState.CANCELLED, 1, cause=RunChangeCause.EXPIRED),
    ]


def test_nothing_expires_a_moment_too_early() -> None:
    """I4: the deadline is an instant."""
    chat = waiting()
    chat.wait(MINUTE - 1)
    assert chat.open_calls() == ["c-1"]
    chat.wait(1)
    assert chat.open_calls() == []


def test_a_question_that_a_person_closes() -> None:
    """C4: the model is told so, and the run goes on in place."""
    chat = waiting()
    since = len(chat.log)
    chat.cancel_interaction("int_4")
    cancelled = ResultKind.CANCELLED_BY_USER
    assert [entry.event for entry in chat.log[since:]] == [
        InteractionClosed("int_4", "c-1", InteractionState.CANCELLED, cancelled),
        ToolResultAdded(
            "run_1",
            ToolResult(
                "c-1",
                error_text="The user cancelled this call before it was done.",
                kind=cancelled,
                interaction_id="int_4",
                create_time=chat.now,
            ),
        ),
        RunStateChanged("run_1", RunState.PENDING, 1),
    ]


def test_what_nobody_can_show_is_settled_by_the_broker_in_time() -> None:
    """D1: once a tool and turn, then it gets a notice."""
    chat = Conversation(SessionConfig(agent="travel", unclaimed_after=MINUTE))
    chat.send("hi", "m-1")
    first = client_call("c-1", "box"), client_call("c-2", "box")
    one, two = chat.ask("run_1", *first)
    told = "No connected client can handle the tool box."
    since = len(chat.log)
    chat.wait(MINUTE)
    result = ToolResult(
        "c-1",
        output_json=f'{{"status":"not_handled","message":"{told}"}}',
        kind=ResultKind.NOT_HANDLED,
        interaction_id=one,
        create_time=chat.now,
    )
    assert by_the_broker(chat, since) == [
        InteractionClosed(one, "c-1", InteractionState.NOT_HANDLED, ResultKind.NOT_HANDLED),
        ToolResultAdded("run_1", result),
        NoticeAdded(two, InteractionNotice.UNHANDLED),
    ]


# --- attempts ---


def test_an_attempt_that_does_not_stop_within_its_grace() -> None:
    """C1, W5: what it wrote is withdrawn before its end."""
    chat = Conversation()
    chat.send("hi", "m-1")
    chat.report("run_1", Began("w-1"))
    chat.cancel("run_1")
    since = len(chat.log)
    chat.end_of_grace("run_1")
    assert by_the_broker(chat, since) == [
        MessageWithdrawn("w-1", "run_1"),
        RunStateChanged("run_1", RunState.CANCELLED, 1),
    ]


@pytest.mark.parametrize("handed_over", [True, False])
def test_an_attempt_that_is_lost_or_handed_over(handed_over: bool) -> None:
    """R3: which of them, and what the dispatcher knows of it."""
    chat = Conversation()
    chat.send("hi", "m-1")
    chat.report("run_1")
    since = len(chat.log)
    if handed_over:
        chat.hand_over("run_1")
        detail, cause = "handed over", RunChangeCause.HANDED_OVER
    else:
        chat.lose("run_1")
        detail, cause = "the runner is gone", RunChangeCause.ATTEMPT_LOST
    assert by_the_broker(chat, since) == [
        RunStateChanged("run_1", RunState.PENDING, 1, detail=detail, cause=cause)
    ]


def test_an_attempt_that_is_lost_while_it_is_cancelled() -> None:
    """C1, S1: it is over, and an idempotent tool's call is not repeated either."""
    chat = Conversation()
    chat.send("hi", "m-1")
    chat.step("run_1", server_call("c-1"))
    chat.propose("run_1", ProposedTool("c-1", idempotent=True))
    chat.cancel("run_1")
    since = len(chat.log)
    chat.lose("run_1")
    unknown, ended = by_the_broker(chat, since)
    assert isinstance(unknown, ToolResultAdded)
    assert unknown.result.kind is ResultKind.OUTCOME_UNKNOWN
    assert ended == RunStateChanged("run_1", RunState.CANCELLED, 1, detail="the runner is gone")


def test_an_attempt_that_is_lost_keeps_the_starts_of_idempotent_tools() -> None:
    """S1: the next attempt repeats them."""
    chat = Conversation()
    chat.send("hi", "m-1")
    chat.step("run_1", server_call("c-1"))
    chat.propose("run_1", ProposedTool("c-1", idempotent=True))
    chat.lose("run_1")
    assert chat.run("run_1").results == {}


def test_a_run_that_is_lost_too_often() -> None:
    """R6: one below the cap, and at it."""
    chat = Conversation(limits=Limits(attempts=2))
    chat.send("hi", "m-1")
    for _ in range(2):
        chat.report("run_1")
        chat.lose("run_1")
    failure = RunFailure(RunFailureReason.ATTEMPTS_EXHAUSTED, "the run was lost 2 times in a row")
    assert chat.events_of(RunStateChanged)[-1] == RunStateChanged(
        "run_1", RunState.FAILED, 2, failure=failure
    )
    assert chat.events_of(RunStateChanged)[-3].state is RunState.PENDING


# --- grants ---


def test_a_grant_says_what_it_covers() -> None:
    """A3."""
    pay = ToolCall("c-1", "pay", '{"n":1}', executor=ToolExecutor.SERVER, tool_origin="mcp://bank")
    chat = Conversation(SessionConfig(agent="travel", approval_policy=ASKS))
    chat.send("hi", "m-1")
    chat.step("run_1", pay)
    chat.propose("run_1", ProposedTool("c-1"))
    chat.park("run_1", ProposedTool("c-1"))
    chat.decide("int_3")
    grant = Grant(
        id="int_3",
        tool_name="pay",
        tool_origin="mcp://bank",
        agent="travel",
        arguments_json='{"n":1}',
        granted_by=ANN,
        create_time=chat.now,
        effective=False,
    )
    assert chat.grants() == [grant]
    chat.propose("run_1", ProposedTool("c-1"))
    chat.report("run_1", tool_result("c-1"))
    assert chat.grants() == [replace(grant, effective=True)]
    chat.complete("run_1")
    # The same call of another origin is another one (A3).
    again = chat.start("again")
    chat.step(again, server_call("c-2", "pay", '{"n":1}'))
    assert chat.propose(again, ProposedTool("c-2")) == [Verdict.ASK]


# --- imports ---


def imported(chat: Conversation, *log: SessionEvent) -> list[Event]:
    """What the import adds to the history."""
    command = ImportSession(log or tuple(chat.log), "t-2", "s-2")
    decision = import_session(command, chat.now + 5, principal("root"), chat.mint, chat.limits)
    history = len(log or chat.log)
    for entry in decision.events:
        assert entry.tenant_id == "t-2"
    return [entry.event for entry in decision.events[history:]]


def test_p3_what_was_under_way_is_over_and_the_queue_is_paused() -> None:
    chat = Conversation()
    chat.send("hi", "m-1")
    chat.report("run_1", Began("w-1"))
    chat.send("then", "m-2")
    failure = RunFailure(
        RunFailureReason.IMPORTED, "the run was under way when its session was exported"
    )
    begun = imported(chat)
    assert begun[:3] == [
        MessageWithdrawn("w-1", "run_1"),
        RunStateChanged("run_1", RunState.FAILED, 1, failure=failure),
        QueuePaused(QueuePause(QueuePauseReason.IMPORTED, "run_1", chat.now + 5)),
    ]
    assert begun[-1] == SessionImported("s-1", "t-1")


def test_p3_a_session_at_rest_gets_no_pause() -> None:
    chat = Conversation()
    chat.complete(chat.start())
    assert imported(chat) == [SessionImported("s-1", "t-1")]


def told_about(chat: Conversation, *log: SessionEvent) -> str:
    with pytest.raises(Refusal) as caught:
        imported(chat, *log)
    assert caught.value.reason is Reason.INVALID_FIELD
    return caught.value.message


def test_p3_a_log_that_is_none_is_refused_with_its_line() -> None:
    """The first line of a file is its head, so that the first event stands in line 2."""
    chat = Conversation()
    chat.send("hi", "m-1")
    first, *rest = chat.log
    fits = "does not fit what comes before it"
    assert told_about(chat, *rest) == "data: line 2: is not the event session_created"
    timeless = replace(first, create_time=0)
    assert told_about(chat, timeless, *rest) == "data: line 2: has no time"
    assert told_about(chat, first, first) == f"data: line 3: {fits}"
    assert told_about(chat, first, replace(rest[0], create_time=0)) == f"data: line 3: {fits}"
    assert told_about(chat, first, rest[0], rest[0]) == f"data: line 4: {fits}"
    assert told_about(chat, first, rest[1]) == f"data: line 3: {fits}"
    nameless = replace(rest[0], event=PromptAdded(user("m 1", "hi"), selected=True))
    assert told_about(chat, first, nameless) == f"data: line 3: {fits}"
    orphan = replace(rest[0], event=PromptAdded(user("m-9", "hi"), parent_node_id="m-8"))
    assert told_about(chat, first, rest[0], orphan) == f"data: line 4: {fits}"
    created = rest[1].event
    assert isinstance(created, RunCreated)
    taken = replace(rest[1], event=replace(created, run=replace(created.run, id="m-1")))
    assert told_about(chat, first, rest[0], taken) == f"data: line 4: {fits}"


def test_p3_a_session_has_an_id() -> None:
    chat = Conversation()
    command = ImportSession(tuple(chat.log), "t-2", "s 2")
    with pytest.raises(Refusal, match="data: line 2: has no session id"):
        import_session(command, chat.now, principal("root"), chat.mint, chat.limits)
    kept = import_session(
        replace(command, session_id=""), chat.now, principal("root"), chat.mint, chat.limits
    )
    assert kept.state.session.id == "s-1"


def test_what_closes_with_another_question_keeps_no_third_one_open() -> None:
    """I4: the run of the first two is cancelled; the one of another branch expires all the same."""
    chat = waiting(ExpiryPolicy.CANCEL_RUN)
    chat.edit("m-1", message_id="m-2")
    other = chat.state.selected
    chat.ask(other, form("c-2"), form("c-3"))
    chat.edit("m-2", message_id="m-3")
    last = chat.state.selected
    chat.ask(last, form("c-4"))
    chat.wait(MINUTE)
    assert chat.open_calls() == []
    assert {chat.run(run).state for run in ("run_1", other, last)} == {RunState.CANCELLED}


def test_a_shared_result_is_stored_once() -> None:
    """F3, F4: the run that shares it names the one whose event holds it."""
    chat = Conversation()
    first, second = chat.ask(chat.start(), form("c-1"), form("c-2"))
    one = chat.settle(first, VISBY).run_id
    two = chat.settle(first, VISBY, by="ben").run_id
    chat.settle(second, VISBY)
    shared = chat.events_of(ToolResultAdded)[-1]
    assert (shared.run_id, shared.same_as_run_id) == (two, one)
    assert (shared.result.output_json, shared.result.error_text) == (None, None)


def test_a_call_that_another_fork_has_run_is_reused_whole() -> None:
    """S1: its verdict names the call, and brings the result."""
    chat = Conversation()
    run_id = chat.start()
    later = ProposedTool("c-9", after_answers=True)
    chat.step(run_id, form("c-1"), server_call("c-9"))
    chat.propose(run_id, later)
    chat.park(run_id, later)
    question = chat.interaction("c-1").id
    one = chat.settle(question, VISBY).run_id
    two = chat.settle(question, VISBY, by="ben").run_id
    chat.propose(one, later)
    chat.report(one, tool_result("c-9", "42"))
    (verdict,) = chat.verdicts(two, later)
    assert (verdict.call_id, verdict.verdict) == ("c-9", Verdict.REUSE)
    assert verdict.result is not None
    assert verdict.result.output_json == "42"
