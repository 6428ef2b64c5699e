"""Whole logs of short conversations: each event with all that watchers and exports get of it.

The other tests look at what a rule is about. Here nothing may be missing beside it.
"""

from __future__ import annotations

from broker_service.domain.approvals import Decided
from broker_service.domain.branches import regenerate_run
from broker_service.domain.decision import principal
from broker_service.domain.events import (
    AnswerAdded,
    Event,
    HoldChanged,
    InheritedResult,
    InteractionClosed,
    InteractionOpened,
    MessageCompleted,
    MessageHeld,
    MessageStarted,
    PromptAdded,
    QueuePaused,
    QueueResumed,
    RenderHintAdded,
    RunCreated,
    RunStateChanged,
    SessionCreated,
    SessionEvent,
    ToolResultAdded,
    ToolStarted,
)
from broker_service.domain.gate import SendMessage, send_message
from broker_service.domain.model import (
    ActorKind,
    Answer,
    ApprovalPolicy,
    ConflictPolicy,
    GrantScope,
    HeldMessage,
    HoldReason,
    Interaction,
    InteractionKind,
    InteractionState,
    Message,
    Part,
    Permission,
    ProposedTool,
    QueuePause,
    QueuePauseReason,
    RenderHint,
    ResultKind,
    Role,
    Run,
    RunCause,
    RunChangeCause,
    RunFailure,
    RunFailureReason,
    RunState,
    Session,
    SessionConfig,
    TextPart,
    ToolResult,
    TraceContext,
)
from broker_service.domain.settlement import Settled
from tests.unit.broker.conversation import (
    ANN,
    BEN,
    LUND,
    VISBY,
    Conversation,
    connection,
    form,
    server_call,
    user,
)

BEGINNING = 1_800_000_000_000
"""The clock of a conversation; it goes on by a second a command."""

RUNNER, BROKER = "a runner", "the broker"


def told(chat: Conversation, since: int = 0) -> list[tuple[str, Event]]:
    """By whom, and what."""
    return [(_by(entry), entry.event) for entry in chat.log[since:]]


def _by(entry: SessionEvent) -> str:
    if entry.actor_kind is ActorKind.PRINCIPAL:
        return entry.actor
    return RUNNER if entry.actor_kind is ActorKind.RUNNER else BROKER


def after(seconds: int) -> int:
    return BEGINNING + 1_000 * seconds


def started(run_id: str, prompt_id: str, seconds: int, agent: str = "travel") -> Run:
    """A run that replies to a prompt, as it begins."""
    return Run(
        id=run_id,
        session_id="s-1",
        prompt_id=prompt_id,
        state=RunState.PENDING,
        cause=RunCause.PROMPT,
        agent=agent,
        create_time=after(seconds),
        update_time=after(seconds),
    )


def prompt(message_id: str, text: str, seconds: int, author: str = ANN) -> Message:
    return Message(message_id, Role.USER, (Part(TextPart(text)),), "", 0, author, after(seconds))


def question(interaction_id: str, call_id: str, tool: str, *closers: str) -> Interaction:
    return Interaction(
        id=interaction_id,
        run_id="run_1",
        message_id="msg_2",
        call_id=call_id,
        kind=InteractionKind.CLIENT_TOOL,
        state=InteractionState.OPEN,
        tool_name=tool,
        create_time=after(4),
        expire_time=after(64),
        conflict_policy=ConflictPolicy.FORK,
        declared=True,
        opened_for=ANN,
        closers=closers,
        link=f"https://x.example/s-1/{interaction_id}",
    )


def fork(fork_id: str, cause: RunCause, seconds: int) -> Run:
    """Of `run_1`, which waits for the second question still."""
    return Run(
        id=fork_id,
        session_id="s-1",
        prompt_id="m-1",
        state=RunState.PARKED,
        cause=cause,
        origin_run_id="run_1",
        supersedes_run_id="run_1",
        waits_for_interaction_ids=("int_6",),
        agent="travel",
        create_time=after(seconds),
        update_time=after(seconds),
    )


def answered(call_id: str, interaction_id: str, answer_id: str, seconds: int) -> ToolResult:
    return ToolResult(
        call_id=call_id,
        kind=ResultKind.CLIENT,
        interaction_id=interaction_id,
        answer_id=answer_id,
        create_time=after(seconds),
    )


def test_two_questions_three_answers_and_a_message_that_waits() -> None:
    """F2, F4, F5, G1, G2, I1, B2, H1."""
    chat = Conversation(
        SessionConfig(
            agent="travel",
            interaction_link="https://x.example/{session_id}/{interaction_id}",
            interaction_expires_after=60_000,
        )
    )
    chat.send("hi", "m-1")
    chat.send("then", "m-2", by=BEN)
    chat.ask("run_1", form("c-1"), connection("c-2"))
    assert told(chat) == [
        (
            ANN,
            SessionCreated(
                Session(
                    id="s-1",
                    tenant_id="t-1",
                    owner=ANN,
                    config=chat.state.config,
                    create_time=after(0),
                    update_time=after(0),
                )
            ),
        ),
        (ANN, PromptAdded(prompt("m-1", "hi", 1), selected=True)),
        (ANN, RunCreated(started("run_1", "m-1", 1), selected=True)),
        (
            BEN,
            MessageHeld(
                HeldMessage(
                    user("m-2", "then", BEN),
                    HoldReason.RUN_ACTIVE,
                    waits_for_run_id="run_1",
                    branch_node_id="run_1",
                    create_time=after(2),
                )
            ),
        ),
        (RUNNER, RunStateChanged("run_1", RunState.RUNNING, attempt=1)),
        (RUNNER, MessageStarted("msg_2", "run_1", step=1, attempt=1)),
        (
            RUNNER,
            MessageCompleted(
                Message(
                    "msg_2",
                    Role.ASSISTANT,
                    (Part(TextPart("Hm.")), Part(form("c-1")), Part(connection("c-2"))),
                    run_id="run_1",
                    step=1,
                    create_time=after(3),
                )
            ),
        ),
        (RUNNER, RenderHintAdded("msg_3", "run_1", RenderHint("c-1", "elicitation"))),
        (RUNNER, RenderHintAdded("msg_4", "run_1", RenderHint("c-2", "connect"))),
        (RUNNER, InteractionOpened(question("int_5", "c-1", "request_input"))),
        (RUNNER, InteractionOpened(question("int_6", "c-2", "request_connection", ANN))),
        (
            RUNNER,
            RunStateChanged(
                "run_1", RunState.PARKED, 1, waits_for_interaction_ids=("int_5", "int_6")
            ),
        ),
        (
            BROKER,
            HoldChanged("m-2", HoldReason.INTERACTION_OPEN, "run_1", ("int_5", "int_6"), "run_1"),
        ),
    ]

    since = len(chat.log)
    first = chat.settle("int_5", VISBY, client="web", client_ref="ref-1")
    assert first == Settled(
        "int_5", "ans_7", "run_8", True, "run_1", "run_1", "msg_2@run_8", "ref-1"
    )
    first_answer = Answer("ans_7", ANN, "web", after(5), run_id="run_8", client_ref="ref-1")
    assert told(chat, since) == [
        (ANN, AnswerAdded("int_5", "c-1", first_answer, InteractionState.ANSWERED, "run_1")),
        (
            ANN,
            RunCreated(
                fork("run_8", RunCause.ANSWER, 5),
                selected=True,
                origin_through_message_id="msg_2",
                answered_message_id="msg_2@run_8",
            ),
        ),
        (
            ANN,
            ToolResultAdded(
                "run_8",
                ToolResult(
                    "c-1", VISBY, None, ResultKind.CLIENT, "int_5", "ans_7", after(5), False
                ),
            ),
        ),
        (BROKER, HoldChanged("m-2", HoldReason.INTERACTION_OPEN, "run_8", ("int_6",), "run_8")),
    ]

    since = len(chat.log)
    second = chat.settle("int_5", LUND, by=BEN)
    assert second == Settled("int_5", "ans_9", "run_10", True, "run_1", "run_8", "msg_2@run_10", "")
    second_answer = Answer("ans_9", BEN, "", after(6), run_id="run_10")
    assert told(chat, since) == [
        (BEN, AnswerAdded("int_5", "c-1", second_answer, InteractionState.ANSWERED, "run_8")),
        (
            BEN,
            RunCreated(
                fork("run_10", RunCause.SECOND_ANSWER, 6),
                origin_through_message_id="msg_2",
                answered_message_id="msg_2@run_10",
            ),
        ),
        (
            BEN,
            ToolResultAdded(
                "run_10",
                ToolResult("c-1", LUND, None, ResultKind.CLIENT, "int_5", "ans_9", after(6), False),
            ),
        ),
    ]

    since = len(chat.log)
    third = chat.settle("int_6", error="no")
    assert third == Settled("int_6", "ans_11", "run_8", False, "run_1", "run_8", "msg_2@run_8", "")
    third_answer = Answer("ans_11", ANN, "", after(7), run_id="run_8")
    result = answered("c-2", "int_6", "ans_11", 7)
    told_to_the_model = ToolResult(
        "c-2", None, "no", ResultKind.CLIENT, "int_6", "ans_11", after(7), False
    )
    assert told(chat, since) == [
        (ANN, AnswerAdded("int_6", "c-2", third_answer, InteractionState.ANSWERED, "run_8")),
        (ANN, ToolResultAdded("run_8", told_to_the_model)),
        (BROKER, RunStateChanged("run_8", RunState.PENDING)),
        (ANN, ToolResultAdded("run_10", result, same_as_run_id="run_8")),
        (BROKER, RunStateChanged("run_10", RunState.PENDING)),
        (BROKER, HoldChanged("m-2", HoldReason.RUN_ACTIVE, "run_8", (), "run_8")),
    ]

    since = len(chat.log)
    chat.complete("run_8")
    entered = [entry for entry in told(chat, since) if entry[0] == BROKER]
    assert entered == [
        (
            BROKER,
            PromptAdded(
                prompt("m-2", "then", 9, BEN), parent_node_id="run_8", selected=True, was_held=True
            ),
        ),
        (BROKER, RunCreated(started("run_13", "m-2", 9), selected=True)),
    ]


def test_an_approval_that_is_denied() -> None:
    """A2: the run goes on, and the model is told why."""
    asks = ApprovalPolicy(Permission.ASK)
    chat = Conversation(SessionConfig(agent="travel", approval_policy=asks))
    chat.send("hi", "m-1")
    chat.step("run_1", server_call("c-1", "pay"))
    tool = ProposedTool("c-1")
    chat.propose("run_1", tool)
    since = len(chat.log)
    chat.park("run_1", tool)
    assert told(chat, since) == [
        (
            RUNNER,
            InteractionOpened(
                Interaction(
                    id="int_3",
                    run_id="run_1",
                    message_id="msg_2",
                    call_id="c-1",
                    kind=InteractionKind.APPROVAL,
                    state=InteractionState.OPEN,
                    tool_name="pay",
                    create_time=after(4),
                    grant_scope=GrantScope.SESSION,
                    declared=True,
                    opened_for=ANN,
                )
            ),
        ),
        (
            RUNNER,
            RunStateChanged("run_1", RunState.PARKED, 1, waits_for_interaction_ids=("int_3",)),
        ),
    ]
    since = len(chat.log)
    assert chat.decide("int_3", False, by=BEN, reason="dear") == Decided(
        "int_3", "ans_4", "run_1", ""
    )
    answer = Answer(
        "ans_4", BEN, create_time=after(5), approved=False, reason="dear", run_id="run_1"
    )
    denied = ToolResult(
        "c-1",
        error_text="This call was not allowed. It was not executed. Reason: dear",
        kind=ResultKind.DENIED,
        interaction_id="int_3",
        create_time=after(5),
    )
    assert told(chat, since) == [
        (BEN, AnswerAdded("int_3", "c-1", answer, InteractionState.DENIED, "run_1")),
        (BEN, ToolResultAdded("run_1", denied)),
        (BROKER, RunStateChanged("run_1", RunState.PENDING, attempt=1)),
    ]


def test_an_approval_that_is_given_once() -> None:
    """A3: the stricter scope, and the effect holds already for one who approves again (C5)."""
    asks = ApprovalPolicy(Permission.ASK)
    chat = Conversation(SessionConfig(agent="travel", approval_policy=asks))
    run_id = chat.start()
    chat.step(run_id, server_call("c-1", "pay"))
    tool = ProposedTool("c-1")
    chat.propose(run_id, tool)
    chat.park(run_id, tool)
    decided = chat.decide(run=run_id, call="c-1", scope=GrantScope.ONCE, reason="fine")
    (event,) = chat.events_of(AnswerAdded)
    assert event.answer == Answer(
        decided.answer_id,
        ANN,
        create_time=after(5),
        approved=True,
        reason="fine",
        grant_scope=GrantScope.ONCE,
        run_id=run_id,
    )
    assert chat.decide(decided.interaction_id, by=BEN) == decided


def test_a_run_that_is_lost_fails_and_is_tried_again() -> None:
    """R3, R6, S1, G2."""
    chat = Conversation()
    chat.send("hi", "m-1")
    chat.step("run_1", server_call("c-1"))
    chat.propose("run_1", ProposedTool("c-1", idempotent=False))
    since = len(chat.log)
    chat.lose("run_1")
    unknown = ToolResult(
        "c-1",
        error_text="This call was started, and then the connection to it was lost. "
        "It may or may not have had its effect. It was not repeated.",
        kind=ResultKind.OUTCOME_UNKNOWN,
        create_time=after(4),
    )
    assert told(chat, since) == [
        (BROKER, ToolResultAdded("run_1", unknown)),
        (
            BROKER,
            RunStateChanged(
                "run_1",
                RunState.PENDING,
                1,
                detail="the runner is gone",
                cause=RunChangeCause.ATTEMPT_LOST,
            ),
        ),
    ]
    assert chat.events_of(ToolStarted) == [ToolStarted("c-1", "run_1", attempt=1)]
    chat.fail("run_1")
    assert told(chat)[-1] == (
        RUNNER,
        RunStateChanged(
            "run_1",
            RunState.FAILED,
            2,
            failure=RunFailure(RunFailureReason.MODEL_UNAVAILABLE, "the provider is down"),
        ),
    )
    since = len(chat.log)
    assert chat.retry("run_1", by=BEN) == ("run_3", "run_1")
    again = Run(
        id="run_3",
        session_id="s-1",
        prompt_id="m-1",
        state=RunState.PENDING,
        cause=RunCause.RETRY,
        origin_run_id="run_1",
        supersedes_run_id="run_1",
        agent="travel",
        create_time=after(6),
        update_time=after(6),
    )
    assert told(chat, since) == [
        (
            BEN,
            RunCreated(
                again,
                selected=True,
                origin_through_message_id="msg_2",
                inherited_results=(InheritedResult("c-1", "run_1"),),
            ),
        )
    ]


def test_a_run_that_is_cancelled_while_it_waits() -> None:
    """C1, G3: what waits ends at once; the held message stays with the queue paused."""
    chat = Conversation()
    chat.send("hi", "m-1")
    chat.ask("run_1", form("c-1"))
    chat.send("then", "m-2")
    since = len(chat.log)
    assert chat.cancel("run_1", keep_held=True, by=BEN) == "run_1"
    pause = QueuePause(QueuePauseReason.CANCELLED, "run_1", after(5))
    cancelled = RunChangeCause.CANCELLED_BY_USER
    assert told(chat, since) == [
        (BEN, QueuePaused(pause)),
        (BEN, RunStateChanged("run_1", RunState.CANCELLED, 1, cause=cancelled)),
        (
            BEN,
            InteractionClosed(
                "int_4", "c-1", InteractionState.CANCELLED, ResultKind.CANCELLED_BY_USER
            ),
        ),
        (BROKER, HoldChanged("m-2", HoldReason.QUEUE_PAUSED, branch_node_id="run_1")),
    ]
    since = len(chat.log)
    chat.resume_queue(by=BEN)
    assert told(chat, since)[0] == (BEN, QueueResumed())


def send(chat: Conversation, message_id: str, trace: TraceContext) -> None:
    command = SendMessage(user(message_id, "hi"), trace_context=trace)
    chat.act(lambda d: send_message(d, command), principal(ANN))


def test_traces_of_a_message_are_those_of_its_runs() -> None:
    """W3C trace contexts: of the prompt's run, of its forks and retries, and of a held message."""
    chat = Conversation()
    trace = TraceContext("00-1-2-01", "a=b")
    send(chat, "m-1", trace)
    run_id = chat.state.selected
    assert chat.events_of(RunCreated)[-1].run.trace_context == trace
    later = TraceContext("00-3-4-01")
    send(chat, "m-2", later)
    (question_id,) = chat.ask(run_id, form("c-1"))
    fork_id = chat.settle(question_id, VISBY).run_id
    assert chat.events_of(RunCreated)[-1].run.trace_context == trace
    chat.fail(fork_id)
    assert chat.events_of(RunCreated)[-1].run.trace_context == later
    chat.retry(fork_id)
    assert chat.events_of(RunCreated)[-1].run.trace_context == trace
    latest = TraceContext("00-5-6-01")
    chat.act(
        lambda d: regenerate_run(d, chat.state.selected, keep_running=False, trace_context=latest),
        principal(ANN),
    )
    assert chat.events_of(RunCreated)[-1].run.trace_context == latest
