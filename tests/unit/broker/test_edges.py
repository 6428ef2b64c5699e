"""F1, F5, R4, A1, A3, S1, T1, P3: the edges of rules, where one step further is another answer."""

from __future__ import annotations

from dataclasses import replace

import pytest

from broker_service.domain.branches import regenerate_run, select_branch
from broker_service.domain.decision import principal
from broker_service.domain.events import QueuePaused, RenderHintAdded, ToolResultAdded
from broker_service.domain.importing import ImportSession, import_session
from broker_service.domain.limits import Limits
from broker_service.domain.model import (
    ActorKind,
    ApprovalDecision,
    ApprovalPolicy,
    ApprovalRequest,
    GrantScope,
    Message,
    OnBusy,
    Part,
    Permission,
    PolicyRule,
    ProposedTool,
    RenderHint,
    ResultKind,
    Role,
    RunChangeCause,
    RunState,
    Session,
    SessionConfig,
    ToolCall,
    ToolExecutor,
    ToolResult,
    TraceContext,
)
from broker_service.domain.policies import policy_of_start
from broker_service.domain.reports import Hinted, Resulted
from broker_service.domain.sessions import CreateSession, create_session
from broker_service.domain.starts import Verdict
from broker_service.domain.transcript import nodes_needed
from tests.unit.broker.conversation import (
    ANN,
    BEN,
    DECLINED,
    VISBY,
    Conversation,
    client_call,
    form,
    said,
    server_call,
    tool_result,
    transcript_of,
    user,
)

ASKS = SessionConfig(agent="travel", approval_policy=ApprovalPolicy(Permission.ASK))


# --- settling ---


def test_an_error_text_is_an_answer_of_its_own() -> None:
    """F5: the same principal repeating the same one gets the first outcome; another is a second
    answer.
    """
    chat = Conversation()
    (question,) = chat.ask(chat.start(), form("c-1"))
    first = chat.settle(question, error="no")
    assert chat.settle(question, error="no").answer_id == first.answer_id
    other = chat.settle(question, error="never")
    assert (other.fork_opened, other.run_id != first.run_id) == (True, True)


def test_leaving_a_branch_that_has_come_to_rest_stops_nothing() -> None:
    """C2: what is over stays as it is, and so does what was superseded."""
    chat = Conversation()
    sent = chat.send("hi", "m-1")
    chat.complete(sent.run_id)
    chat.edit("m-1")
    assert chat.run(sent.run_id).state is RunState.COMPLETED
    chat.cancel(chat.state.selected)
    left = chat.state.selected
    chat.edit("m-1")
    assert chat.run(left).cancel_cause is RunChangeCause.CANCELLED_BY_USER


# --- what runs after the answers ---

BOOK = ProposedTool("c-9", destructive=True)


def after_answers(*calls: ToolCall) -> Conversation:
    """A step with these client calls, and a destructive call that waits for their answers."""
    chat = Conversation()
    run_id = chat.start()
    chat.step(run_id, *calls, server_call("c-9", "book"))
    assert chat.propose(run_id, BOOK) == [Verdict.DEFERRED]
    chat.park(run_id, BOOK)
    return chat


def test_an_error_text_of_a_client_declines_nothing() -> None:
    """R4: it is no decline, and the call after it may start."""
    chat = after_answers(form("c-1"))
    fork = chat.settle(chat.interaction("c-1").id, error="the window was closed").run_id
    assert chat.propose(fork, BOOK) == [Verdict.GRANTED]


@pytest.mark.parametrize("output", ['"decline"', "[]", '{"action":"decline"}'])
def test_only_a_form_is_declined_by_its_action(output: str) -> None:
    """R4, B1: the output of another tool that merely looks like it declines nothing."""
    chat = after_answers(client_call("c-1"))
    fork = chat.settle(chat.interaction("c-1").id, output).run_id
    assert chat.propose(fork, BOOK) == [Verdict.GRANTED]


def test_a_declined_form_is_seen_behind_other_calls() -> None:
    """R4: by its kind, whatever its tool is called; and the model reads why."""
    chat = Conversation()
    run_id = chat.start()
    shown = ToolCall("c-2", "ask_for_it", form("").arguments_json, executor=ToolExecutor.CLIENT)
    chat.step(run_id, client_call("c-1"), shown, server_call("c-9", "book"))
    chat.report(run_id, Hinted("h-1", RenderHint("c-2", "elicitation")))
    chat.propose(run_id, BOOK)
    chat.park(run_id, BOOK)
    fork = chat.settle(chat.interaction("c-1").id, '"red"').run_id
    chat.settle(chat.interaction("c-2").id, DECLINED)
    (verdict,) = chat.verdicts(fork, BOOK)
    assert verdict.verdict is Verdict.DENIED
    assert verdict.result == ToolResult(
        "c-9",
        error_text="This call was not allowed. It was not executed. "
        "Reason: another question of this step was not accepted",
        kind=ResultKind.DENIED,
        create_time=chat.now,
    )


def test_calls_without_a_result_hide_no_bad_answer() -> None:
    """R4: the first call of the step has not run yet."""
    chat = Conversation()
    run_id = chat.start()
    other = ProposedTool("c-0", destructive=True)
    chat.step(run_id, server_call("c-0", "pay"), form("c-1"), server_call("c-9", "book"))
    chat.propose(run_id, other, BOOK)
    chat.park(run_id, other, BOOK)
    fork = chat.settle(chat.interaction("c-1").id, DECLINED).run_id
    assert chat.propose(fork, BOOK) == [Verdict.DENIED]


# --- starts ---


def test_a_call_that_cannot_be_canonical_is_covered_by_no_grant() -> None:
    """A3: its number is out of any range."""
    huge = f'{{"n":1e{"9" * 1_001}}}'
    chat = Conversation(ASKS)
    run_id = chat.start()
    chat.step(run_id, server_call("c-1", "pay", huge))
    tool = ProposedTool("c-1")
    chat.propose(run_id, tool)
    chat.park(run_id, tool)
    chat.decide(chat.interaction("c-1").id)
    assert chat.propose(run_id, tool) == [Verdict.GRANTED]
    chat.report(run_id, tool_result("c-1"))
    chat.complete(run_id)
    again = chat.start()
    chat.step(again, server_call("c-2", "pay", huge))
    assert chat.propose(again, ProposedTool("c-2")) == [Verdict.ASK]


def test_a_denied_start_is_told_whole() -> None:
    """A1."""
    denies = ApprovalPolicy(rules=(PolicyRule("pay", Permission.DENY),))
    chat = Conversation(SessionConfig(agent="travel", approval_policy=denies))
    run_id = chat.start()
    chat.step(run_id, server_call("c-1", "pay"))
    (verdict,) = chat.verdicts(run_id, ProposedTool("c-1"))
    assert verdict.result is not None
    assert (verdict.result.kind, verdict.result.create_time) == (ResultKind.DENIED, chat.now)
    (event,) = chat.events_of(ToolResultAdded)
    assert (event.run_id, event.result) == (run_id, verdict.result)


def test_the_time_of_a_result_is_the_broker_s() -> None:
    """Whatever a runner says, and no runner gives a client's answer."""
    chat = Conversation()
    run_id = chat.start()
    chat.step(run_id, server_call("c-1"))
    chat.propose(run_id, ProposedTool("c-1"))
    claimed = ToolResult("c-1", "1", None, ResultKind.TOOL, "int_9", "ans_9", 7)
    chat.report(run_id, Resulted(claimed))
    (event,) = chat.events_of(ToolResultAdded)
    assert event.result == ToolResult("c-1", "1", kind=ResultKind.TOOL, create_time=chat.now)


def test_a_hint_without_an_id_gets_one() -> None:
    """T3, H1."""
    chat = Conversation()
    run_id = chat.start()
    chat.step(run_id, client_call("c-1"))
    chat.report(run_id, Hinted("", RenderHint("c-1", "colour")))
    (event,) = chat.events_of(RenderHintAdded)
    assert event.message_id.startswith("msg_")


def test_the_policy_of_a_start_is_what_anybody_has_set() -> None:
    """R7: the session's alone; a rule that is not understood asks (A1); none at all is none."""
    chat = Conversation()
    assert policy_of_start(chat.state, chat.run(chat.start())) is None
    odd = ApprovalPolicy(Permission.ALLOW, (PolicyRule("pay*"),))
    with_rules = Conversation(SessionConfig(agent="travel", approval_policy=odd))
    told = policy_of_start(with_rules.state, with_rules.run(with_rules.start()))
    assert told is not None
    assert told.default_permission is Permission.ALLOW
    assert told.rules == (PolicyRule("pay*", Permission.ASK),)


# --- branches and transcripts ---


def test_the_messages_of_a_branch_are_counted() -> None:
    """T1: up to a prompt and up to a run; a fork counts those that it copies."""
    chat = Conversation()
    sent = chat.send("hi", "m-1")
    assert chat.state.messages_through("m-1") == 1
    assert chat.state.messages_through(sent.run_id) == 1
    (question,) = chat.ask(sent.run_id, form("c-1"))
    assert chat.state.messages_through(sent.run_id) == 2
    fork = chat.settle(question, VISBY).run_id
    assert chat.state.messages_through(fork) == 2
    chat.complete(fork)
    assert chat.state.messages_through(fork) == 3 == len(chat.transcript())
    chat.send("and?", "m-2")
    assert chat.state.messages_through("m-2") == 4


def test_a_node_that_is_needed_twice_hides_no_other() -> None:
    """F3: two forks of one run, and what stands before them."""
    chat = Conversation()
    chat.send("hi", "m-1")
    run_id = chat.state.selected
    (question,) = chat.ask(run_id, form("c-1"))
    fork = chat.settle(question, VISBY).run_id
    other = chat.settle(question, DECLINED, by=BEN).run_id
    path = [fork, run_id, other, "m-1"]
    assert set(nodes_needed(chat.state, path)) == {"m-1", run_id, fork, other}


def test_p3_a_branch_that_was_selected_stays_so() -> None:
    """C3: also elsewhere."""
    chat = Conversation()
    chat.send("hi", "m-1")
    first = chat.state.selected
    chat.edit("m-1", message_id="m-2")
    chat.act(lambda d: select_branch(d, first), principal(BEN))
    command = ImportSession(tuple(chat.log), "t-2", "s-2")
    decision = import_session(command, chat.now, principal("root"), chat.mint, chat.limits)
    assert decision.state.selected == first


def test_p3_the_end_of_a_log_says_where_it_came_from() -> None:
    """The first messages of a session are history, too."""
    chat = Conversation(messages=(user("m-1", "hi"),))
    chat.complete(chat.first_run)
    command = ImportSession(tuple(chat.log), "t-2")
    decision = import_session(command, chat.now, principal("root"), chat.mint, chat.limits)
    assert (decision.state.session.id, decision.state.session.tenant_id) == ("s-1", "t-2")


def test_a_run_may_share_results_of_several_others() -> None:
    """F4, F5: three forks, and the two other questions are answered to two of them."""
    chat = Conversation()
    run_id = chat.start()
    first, second, third = chat.ask(run_id, form("c-1"), form("c-2"), form("c-3"))
    one, two, three = (
        chat.settle(first, answer, by=by).run_id
        for answer, by in ((VISBY, ANN), (DECLINED, BEN), (VISBY, "cleo"))
    )
    chat.settle(second, VISBY, run=one)
    chat.settle(third, DECLINED, run=two)
    assert set(nodes_needed(chat.state, [three])) == {run_id, one, two, three}
    chat.complete(three)
    outputs = {call: result.output_json for call, result in chat.results(three).items()}
    assert outputs == {"c-1": VISBY, "c-2": VISBY, "c-3": DECLINED}


def test_a_hint_stands_as_a_message_of_the_run_that_gave_it() -> None:
    """H1: in the step of its call; the copy of a fork is the fork's."""
    chat = Conversation()
    run_id = chat.start()
    chat.step(run_id, client_call("c-1"))
    chat.report(run_id, Hinted("h-1", RenderHint("c-1", "colour", '{"n":1}')))
    chat.park(run_id)
    shown = chat.transcript(with_hints=True)
    assert shown[2] == Message(
        "h-1",
        Role.ASSISTANT,
        (Part(RenderHint("c-1", "colour", '{"n":1}')),),
        run_id=run_id,
        step=1,
        create_time=shown[1].create_time,
    )
    fork = chat.settle(chat.interaction("c-1").id, '"red"').run_id
    copy = chat.transcript(with_hints=True)[2]
    assert copy == replace(shown[2], id=f"h-1@{fork}", run_id=fork)


def test_a_connection_that_asks_for_nothing_takes_any_answer() -> None:
    """B2: there is nothing to hold the answer against."""
    chat = Conversation()
    run_id = chat.start()
    (question,) = chat.ask(run_id, client_call("c-1", "request_connection", "{}"))
    assert chat.settle(question, '{"x":1}').fork_opened


def test_an_answer_names_the_run_that_takes_it_when_it_is_given_again() -> None:
    """F5, C5: the first outcome, whole but for that no fork was opened again."""
    chat = Conversation()
    (question,) = chat.ask(chat.start(), form("c-1"))
    first = chat.settle(question, VISBY, client_ref="ref-1")
    again = chat.settle(question, VISBY, client_ref="ref-2")
    assert again == replace(first, fork_opened=False, acted_on_run_id=first.run_id)


def test_an_approval_stands_whole_beside_its_call() -> None:
    """T1: what was asked, and what was decided, by whom and when."""
    chat = Conversation(ASKS)
    run_id = chat.start()
    chat.step(run_id, server_call("c-1", "pay"))
    tool = ProposedTool("c-1")
    chat.propose(run_id, tool)
    chat.park(run_id, tool)
    question = chat.interaction("c-1")
    assert question.session_id == "s-1"
    request = ApprovalRequest(question.id, "c-1", GrantScope.SESSION)
    assert chat.transcript()[1].parts[-1] == Part(request)
    chat.decide(question.id, by=BEN, reason="fine", scope=GrantScope.ONCE)
    decided = ApprovalDecision(
        interaction_id=question.id,
        call_id="c-1",
        approved=True,
        reason="fine",
        grant_scope=GrantScope.ONCE,
        decided_by=BEN,
        create_time=chat.now,
    )
    assert chat.transcript()[1].parts[-2:] == (Part(request), Part(decided))


def test_a_result_that_is_there_is_reused_under_its_call() -> None:
    """R3, S1."""
    chat = Conversation()
    run_id = chat.start()
    chat.step(run_id, server_call("c-1"))
    chat.propose(run_id, ProposedTool("c-1"))
    chat.report(run_id, tool_result("c-1"))
    (verdict,) = chat.verdicts(run_id, ProposedTool("c-1"))
    assert (verdict.call_id, verdict.verdict) == ("c-1", Verdict.REUSE)


def test_a_pause_after_failures_is_the_broker_s() -> None:
    """G2: the runner that failed did not ask for it."""
    chat = Conversation()
    run_id = chat.start("one")
    chat.send("two")
    chat.send("three")
    chat.fail(run_id)
    chat.fail(chat.state.selected)
    (paused,) = [entry for entry in chat.log if isinstance(entry.event, QueuePaused)]
    assert paused.actor_kind is ActorKind.BROKER


def test_the_end_of_a_branch_is_read_alone() -> None:
    """At most so many nodes of it, the last ones."""
    chat = Conversation()
    chat.send("hi", "m-1")
    run_id = chat.state.selected
    assert chat.state.path_to(run_id, limit=1) == [run_id]
    assert chat.state.path_to(run_id, limit=2) == chat.state.path_to(run_id) == ["m-1", run_id]


def test_questions_over_the_limit_twice_in_a_row_fail_the_run_by_name() -> None:
    """D3; the calls over the limit are told so at the time."""
    chat = Conversation(limits=Limits(questions_a_step=1))
    run_id = chat.start()
    first, *_ = chat.ask(run_id, form("c-1"), form("c-2"))
    over = chat.run(run_id).results["c-2"]
    assert (over.kind, over.create_time) == (ResultKind.QUESTION_LIMIT, chat.now)
    fork = chat.settle(first, VISBY).run_id
    chat.ask(fork, form("c-3"), form("c-4"))
    failure = chat.run(fork).failure
    assert failure is not None
    assert failure.message == "too many questions, twice in a row"


def test_the_trace_of_a_new_session_is_that_of_its_first_run() -> None:
    """A session that begins with a message starts a run at once."""
    trace = TraceContext("00-1-2-01")
    session = Session(id="s-9", tenant_id="t-1", owner=ANN, config=ASKS)
    names = iter(["run_1"])
    decision, run_id = create_session(
        CreateSession(session, (user("m-1", "hi"),), trace),
        1,
        principal(ANN),
        lambda prefix: next(names),
        Limits(held_messages=3),
    )
    assert decision.state.runs[run_id].trace_context == trace
    assert decision.limits == Limits(held_messages=3)


def test_a_new_run_beside_one_has_the_trace_of_who_asked() -> None:
    """C2."""
    chat = Conversation()
    run_id = chat.start()
    trace = TraceContext("00-5-6-01")
    chat.act(
        lambda d: regenerate_run(d, run_id, keep_running=False, trace_context=trace),
        principal(ANN),
    )
    assert chat.run(chat.state.selected).trace_context == trace


def test_leaving_a_branch_that_ends_with_a_message_or_a_finished_run_stops_nothing() -> None:
    """C2, G4: nothing is there to be interrupted."""
    silent = Conversation(messages=(user("m-1", "hi"), said("m-2")))
    assert silent.edit("m-1").run_id
    chat = Conversation()
    run_id = chat.start()
    chat.complete(run_id)
    chat.edit(chat.run(run_id).prompt_id, on_busy=OnBusy.INTERRUPT)
    assert chat.run(run_id).state is RunState.COMPLETED


def test_p3_an_imported_decision_is_shown_as_one() -> None:
    """It is history, and grants nothing."""
    chat = Conversation(ASKS)
    run_id = chat.start()
    chat.step(run_id, server_call("c-1", "pay"))
    tool = ProposedTool("c-1")
    chat.propose(run_id, tool)
    chat.park(run_id, tool)
    chat.decide(chat.interaction("c-1").id)
    command = ImportSession(tuple(chat.log), "t-2")
    decision = import_session(command, chat.now, principal("root"), chat.mint, chat.limits)
    path = decision.state.path_to(decision.state.selected)
    message = transcript_of(decision.state, decision.events, path)[1]
    decided = message.parts[-2].content  # its result says that the run is over
    assert isinstance(decided, ApprovalDecision)
    assert (decided.approved, decided.imported) == (True, True)
