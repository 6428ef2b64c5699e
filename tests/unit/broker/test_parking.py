"""How a run parks (R4, I1, I2, H1, D2): which questions it opens, and how clients show them."""

from __future__ import annotations

from broker_service.domain.events import (
    GrantRevoked,
    InteractionOpened,
    RenderHintAdded,
    RunStateChanged,
    ToolResultAdded,
)
from broker_service.domain.model import (
    ClientTool,
    ConflictPolicy,
    ExpiryPolicy,
    GrantScope,
    InteractionKind,
    InteractionNotice,
    InteractionState,
    Permission,
    ProposedTool,
    RenderHint,
    ResultKind,
    RunState,
    SessionConfig,
)
from broker_service.domain.reports import Hinted, Parked
from broker_service.domain.starts import Verdict
from tests.unit.broker.conversation import (
    BEN,
    DECLINED,
    FORM,
    LUND,
    NESTED_FORM,
    VISBY,
    Conversation,
    client_call,
    connection,
    form,
    server_call,
    tool_result,
)
from turngate_core.errors import Reason

ASK = ProposedTool("c-pay", tool_permission=Permission.ASK)


def test_every_open_call_of_the_step_becomes_a_question_in_call_order() -> None:
    """R4, I1: in the write that parks; calls with a result do not."""
    chat = Conversation()
    run_id = chat.start()
    chat.step(
        run_id, connection("c-1"), server_call("c-2"), server_call("c-pay"), client_call("c-3")
    )
    chat.propose(run_id, ProposedTool("c-2"), ASK)
    chat.report(run_id, tool_result("c-2"))
    assert chat.open_calls() == []
    chat.park(run_id, ASK)
    assert chat.open_calls() == ["c-1", "c-pay", "c-3"]
    run = chat.run(run_id)
    assert (run.state, run.waits) == (RunState.PARKED, list(chat.state.open_interactions))
    assert chat.events_of(RunStateChanged)[-1].waits_for_interaction_ids == tuple(run.waits)
    opened = [event.interaction for event in chat.events_of(InteractionOpened)]
    assert [i.kind for i in opened] == [
        InteractionKind.CLIENT_TOOL,
        InteractionKind.APPROVAL,
        InteractionKind.CLIENT_TOOL,
    ]
    # What the log has already stands in no event again.
    assert {(i.session_id, i.arguments_json, i.render_hint) for i in opened} == {("", "", None)}


def test_a_question_says_what_is_asked_and_of_whom() -> None:
    """I1, F1: tool, arguments, message, run, settings, and the person of the turn (B2)."""
    tool = ClientTool(
        "pick_colour",
        kind="colour",
        params_json='{"wheel":true}',
        expires_after=60_000,
        on_expiry=ExpiryPolicy.CANCEL_RUN,
        conflict_policy=ConflictPolicy.FIRST_WINS,
    )
    config = SessionConfig(
        agent="travel",
        client_tools=(tool,),
        interaction_expires_after=1_000,
        interaction_link="https://example.org/{session_id}/{interaction_id}",
    )
    chat = Conversation(config)
    sent = chat.send(by=BEN)
    message_id = chat.step(sent.run_id, client_call("c-1", arguments='{"n":1.0}'), form("c-2"))
    chat.park(sent.run_id)
    question = chat.interaction("c-1")
    assert (question.tool_name, question.arguments_json) == ("pick_colour", '{"n":1.0}')
    assert (question.run_id, question.message_id) == (sent.run_id, message_id)
    assert question.render_hint == RenderHint("c-1", "colour", '{"wheel":true}')
    assert (question.opened_for, question.declared) == (BEN, True)
    assert question.expire_time == chat.now + 60_000
    assert (question.on_expiry, question.conflict_policy) == (
        ExpiryPolicy.CANCEL_RUN,
        ConflictPolicy.FIRST_WINS,
    )
    assert question.link == f"https://example.org/s-1/{question.id}"
    # The nearest setting wins: the form has none of its own (I4).
    assert chat.interaction("c-2").expire_time == chat.now + 1_000


def test_by_default_a_question_stays_open_for_ever() -> None:
    """I4."""
    chat = Conversation()
    run_id = chat.start()
    chat.ask(run_id, client_call("c-1"))
    question = chat.interaction("c-1")
    assert (question.expire_time, question.on_expiry) == (None, None)
    assert question.declared is False
    assert question.conflict_policy is ConflictPolicy.FORK


def test_each_client_call_has_a_hint_before_the_run_parks() -> None:
    """H1: as an event of its own; the runner's, else the declaration's, else by the tool's name."""
    tool = ClientTool("pick_colour", kind="colour")
    chat = Conversation(SessionConfig(agent="travel", client_tools=(tool,)))
    run_id = chat.start()
    message_id = chat.step(
        run_id, form("c-1"), connection("c-2"), client_call("c-3"), client_call("c-4", "sing")
    )
    own = RenderHint("c-4", "karaoke", '{"key":"c"}')
    chat.report(run_id, Hinted("", own), Parked())
    added = chat.events_of(RenderHintAdded)
    assert [(e.hint.tool_call_id, e.hint.kind) for e in added] == [
        ("c-4", "karaoke"),
        ("c-1", "elicitation"),
        ("c-2", "connect"),
        ("c-3", "colour"),
    ]
    assert len({e.message_id for e in added}) == 4
    parked = chat.log.index(chat.log[-1])
    positions = [n for n, e in enumerate(chat.log) if isinstance(e.event, RenderHintAdded)]
    assert max(positions) < parked
    assert chat.interaction("c-4").render_hint == own
    messages = chat.transcript(with_hints=True)
    assert [m.id for m in messages[1:]] == [message_id, *(e.message_id for e in added)]


def test_the_same_question_asked_again_is_another_question() -> None:
    """I2, scenario 5, X5: it parks afresh; turn 1's question is refused; its answer stays there."""
    chat = Conversation()
    run_id = chat.start("where?")
    (first,) = chat.ask(run_id, form("c-1"))
    fork = chat.settle(first, VISBY).run_id
    chat.complete(fork)
    later = chat.start("and now?")
    # The same call id is no new question: ids are used once in a session (T3).
    (second,) = chat.ask(later, form("c-2", FORM))
    assert second != first
    assert chat.open_calls() == ["c-2"]
    with chat.refused(Reason.ALREADY_SETTLED):
        chat.settle(first, LUND)
    assert chat.settle(first, VISBY).run_id == fork  # the same answer: the first outcome (F5)
    with chat.refused(Reason.TOOL_CALL_NOT_IN_RUN):
        chat.settle(run=later, call="c-1", output=VISBY)
    assert chat.state_of("c-2") is InteractionState.OPEN
    chat.settle(second, LUND)
    assert chat.results()["c-1"].output_json == VISBY
    assert chat.results()["c-2"].output_json == LUND


def test_scenario_5_a_grant_of_turn_1_still_counts_by_its_scope() -> None:
    """Scenario 5, A3: beside a form that parks afresh."""
    chat = Conversation()
    run_id = chat.start()
    chat.step(run_id, server_call("c-pay"))
    chat.propose(run_id, ASK)
    chat.park(run_id, ASK)
    chat.decide(chat.interaction("c-pay").id)
    chat.propose(run_id, ASK)
    chat.report(run_id, tool_result("c-pay"))
    chat.complete(run_id)
    later = chat.start("again")
    chat.step(later, form("c-2"), server_call("c-pay2"))
    tool = ProposedTool("c-pay2", tool_permission=Permission.ASK)
    assert chat.propose(later, tool) == [Verdict.GRANTED]
    chat.report(later, tool_result("c-pay2"))
    chat.park(later)
    assert chat.open_calls() == ["c-2"]


def test_unsupported_forms_are_settled_in_the_write_that_parks() -> None:
    """D2: all of the step, with the reason, so that the model can repair them; no question."""
    chat = Conversation()
    run_id = chat.start()
    chat.step(run_id, form("c-1", NESTED_FORM), form("c-2", NESTED_FORM))
    chat.park(run_id)
    assert chat.open_calls() == []
    assert chat.run(run_id).state is RunState.PENDING
    for result in chat.results().values():
        assert result.kind is ResultKind.UNSUPPORTED_PAYLOAD
        assert result.error_text is not None
        assert result.error_text.startswith("elicitation: unsupported payload — ")
    states = [e.state for e in chat.events_of(RunStateChanged)]
    assert states == [RunState.RUNNING, RunState.PARKED, RunState.PENDING]


def test_a_good_form_beside_an_unsupported_one_is_asked() -> None:
    """D2, R4."""
    chat = Conversation()
    run_id = chat.start()
    chat.step(run_id, form("c-1", NESTED_FORM), form("c-2"))
    chat.park(run_id)
    assert chat.open_calls() == ["c-2"]
    fork = chat.settle(chat.interaction("c-2").id, VISBY).run_id
    assert [r.kind for r in chat.results(fork).values()] == [
        ResultKind.UNSUPPORTED_PAYLOAD,
        ResultKind.CLIENT,
    ]


def test_an_unsupported_form_later_in_the_turn_stays_open_with_a_notice() -> None:
    """D2, scenario 10: also after a fork; it takes decline, an error text, or any object."""
    chat = Conversation()
    run_id = chat.start()
    chat.ask(run_id, form("c-1", NESTED_FORM))
    (question,) = chat.ask(run_id, form("c-2"))
    fork = chat.settle(question, VISBY).run_id
    chat.ask(fork, form("c-3", NESTED_FORM), form("c-4", NESTED_FORM))
    assert chat.open_calls() == ["c-3", "c-4"]
    third = chat.interaction("c-3")
    assert third.notice is InteractionNotice.UNSUPPORTED_PAYLOAD
    with chat.refused(Reason.INVALID_ANSWER):
        chat.settle(third.id, "7")
    goes_on = chat.settle(third.id, '{"city":{"deep":true}}').run_id
    chat.settle(chat.interaction("c-4").id, DECLINED)
    chat.complete(goes_on)
    # The next turn begins anew.
    later = chat.start("again")
    chat.ask(later, form("c-5", NESTED_FORM))
    assert chat.results(later)["c-5"].kind is ResultKind.UNSUPPORTED_PAYLOAD


def test_a_hint_of_another_kind_makes_it_no_form() -> None:
    """H3, D2: kind before tool name."""
    chat = Conversation()
    run_id = chat.start()
    chat.step(run_id, client_call("c-1", "my_form", NESTED_FORM))
    chat.report(run_id, Hinted("", RenderHint("c-1", "elicitation")), Parked())
    assert chat.results()["c-1"].kind is ResultKind.UNSUPPORTED_PAYLOAD


def test_an_approval_shows_no_hint_and_says_what_it_covers() -> None:
    """A3, T1: request and decision stand beside their call."""
    chat = Conversation()
    run_id = chat.start()
    chat.step(run_id, server_call("c-pay"))
    chat.propose(run_id, ASK)
    chat.park(run_id, ASK)
    question = chat.interaction("c-pay")
    assert (question.render_hint, question.grant_scope) == (None, GrantScope.SESSION)
    assert chat.events_of(RenderHintAdded) == []
    parts = [type(p.content).__name__ for p in chat.transcript()[1].parts]
    assert parts == ["TextPart", "ToolCall", "ApprovalRequest"]
    chat.decide(question.id, approve=False)
    parts = [type(p.content).__name__ for p in chat.transcript()[1].parts]
    assert parts[2:] == ["ApprovalRequest", "ApprovalDecision", "ToolResult"]


def test_a_step_that_parks_again_asks_only_what_is_new() -> None:
    """R4, A3: a deferred call whose grant was revoked meanwhile is asked about then."""
    chat = Conversation()
    run_id = chat.start()
    chat.step(run_id, server_call("c-pay"))
    chat.propose(run_id, ASK)
    chat.park(run_id, ASK)
    chat.decide(chat.interaction("c-pay").id)
    chat.propose(run_id, ASK)
    chat.report(run_id, tool_result("c-pay"))
    later = ProposedTool("c-2", tool_permission=Permission.ASK, after_answers=True)
    chat.step(run_id, form("c-1"), server_call("c-2"))
    assert chat.propose(run_id, later) == [Verdict.DEFERRED]
    chat.park(run_id, later)
    fork = chat.settle(chat.interaction("c-1").id, VISBY).run_id
    grant = chat.interaction("c-pay").id
    chat.act(lambda d: d.emit(GrantRevoked(grant)))
    assert chat.propose(fork, later) == [Verdict.ASK]
    chat.park(fork, later)
    assert chat.open_calls() == ["c-2"]
    chat.decide(chat.interaction("c-2").id)
    assert chat.propose(fork, later) == [Verdict.GRANTED]
    assert [e.result.call_id for e in chat.events_of(ToolResultAdded)] == ["c-pay", "c-1"]
