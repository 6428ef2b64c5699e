"""Nothing hangs silently: calls that nobody can show, and too many questions (D1 to D3)."""

from __future__ import annotations

import pytest

from broker_service.domain.events import NoticeAdded
from broker_service.domain.limits import Limits
from broker_service.domain.model import (
    ClientTool,
    InteractionNotice,
    InteractionState,
    Permission,
    ProposedTool,
    RenderHint,
    ResultKind,
    RunFailureReason,
    RunState,
    SessionConfig,
    TextPart,
    ToolCall,
)
from broker_service.domain.reports import Began, Finished, Hinted, Parked
from broker_service.domain.starts import Verdict
from tests.unit.broker.conversation import (
    BEN,
    NESTED_FORM,
    VISBY,
    Conversation,
    client_call,
    form,
    said,
    server_call,
)
from turngate_core.errors import Reason

UNCLAIMED = 600_000


def asked(*calls: ToolCall, config: SessionConfig | None = None) -> tuple[Conversation, str]:
    chat = Conversation(config)
    run_id = chat.start()
    chat.ask(run_id, *calls)
    return chat, run_id


def test_a_call_that_no_client_can_show_is_settled_by_the_broker() -> None:
    """D1: with a non-error output, in place; the run goes on and opens no fork."""
    chat, run_id = asked(client_call("c-1", "map"))
    reported = chat.report_unhandled(chat.interaction("c-1").id, by=BEN)
    assert reported.acted_on_run_id == run_id
    assert chat.state_of("c-1") is InteractionState.NOT_HANDLED
    assert list(chat.state.runs) == [run_id]
    assert chat.run(run_id).state is RunState.PENDING
    result = chat.results()["c-1"]
    assert result.kind is ResultKind.NOT_HANDLED
    assert result.error_text is None
    assert '"status":"not_handled"' in (result.output_json or "").replace(" ", "")
    with chat.refused(Reason.INTERACTION_NOT_HANDLED):
        chat.settle(chat.interaction("c-1").id, '"late"')


def test_a_report_about_a_closed_question_changes_nothing() -> None:
    """C5: it is settled already; the answer names the run that has gone on."""
    chat, run_id = asked(client_call("c-1", "map"))
    chat.report_unhandled(chat.interaction("c-1").id)
    length = len(chat.log)
    assert chat.report_unhandled(run=run_id, call="c-1").acted_on_run_id == run_id
    assert len(chat.log) == length


def test_the_second_time_in_a_turn_it_stays_open_with_a_notice() -> None:
    """D1, scenario 10: once per tool and turn; another tool is settled, and so the next turn."""
    chat, run_id = asked(client_call("c-1", "map"))
    chat.report_unhandled(chat.interaction("c-1").id)
    chat.ask(run_id, client_call("c-2", "map"), client_call("c-3", "globe"))
    chat.report_unhandled(chat.interaction("c-2").id)
    assert chat.state_of("c-2") is InteractionState.OPEN
    assert chat.interaction("c-2").notice is InteractionNotice.UNHANDLED
    chat.report_unhandled(chat.interaction("c-2").id)
    assert len(chat.events_of(NoticeAdded)) == 1
    chat.report_unhandled(chat.interaction("c-3").id)
    assert chat.state_of("c-3") is InteractionState.NOT_HANDLED
    fork = chat.settle(chat.interaction("c-2").id, '"it is shown after all"').run_id
    chat.complete(fork)
    other = chat.start("and now?")
    chat.ask(other, client_call("c-4", "map"))
    chat.report_unhandled(chat.interaction("c-4").id)
    assert chat.state_of("c-4") is InteractionState.NOT_HANDLED


def test_of_two_calls_of_a_tool_in_one_step_one_is_settled() -> None:
    """D1: once per tool and turn, in one step too."""
    chat, _ = asked(client_call("c-1", "map"), client_call("c-2", "map"))
    chat.report_unhandled(chat.interaction("c-2").id)
    chat.report_unhandled(chat.interaction("c-1").id)
    assert chat.state_of("c-2") is InteractionState.NOT_HANDLED
    assert chat.interaction("c-1").notice is InteractionNotice.UNHANDLED


def test_a_declared_tool_stays_open_whatever_a_client_cannot_do() -> None:
    """D1, scenario 10: the laptop cannot show it, the phone can; built-in ones alike."""
    config = SessionConfig(agent="travel", client_tools=(ClientTool("scan"),))
    chat, _ = asked(client_call("c-1", "scan"), form("c-2"), config=config)
    length = len(chat.log)
    for call in ("c-1", "c-2"):
        chat.report_unhandled(chat.interaction(call).id)
        chat.report_unhandled(chat.interaction(call).id, by=BEN)
    assert len(chat.log) == length
    chat.wait(30 * 24 * 3_600_000)
    assert chat.open_calls() == ["c-1", "c-2"]
    assert chat.settle(chat.interaction("c-1").id, '"scanned"', by=BEN).fork_opened


def test_the_wrong_kind_cannot_be_reported() -> None:
    """F1: an approval is no client tool."""
    chat = Conversation()
    run_id = chat.start()
    chat.step(run_id, server_call("c-1", "pay"))
    ask = ProposedTool("c-1", tool_permission=Permission.ASK)
    chat.propose(run_id, ask)
    chat.park(run_id, ask)
    with chat.refused(Reason.WRONG_INTERACTION_KIND):
        chat.report_unhandled(chat.interaction("c-1").id)


def test_what_nobody_claims_is_settled_after_a_while() -> None:
    """D1: `unclaimed_after`, at the instant, judged in each command; a form waits for ever."""
    chat, run_id = asked(client_call("c-1", "map"), form("c-2"))
    opened = chat.interaction("c-1").create_time or 0
    chat.wait(opened + UNCLAIMED - 1 - chat.now)
    assert chat.open_calls() == ["c-1", "c-2"]
    chat.wait(1)
    assert chat.open_calls() == ["c-2"]
    assert chat.state_of("c-1") is InteractionState.NOT_HANDLED
    assert chat.run(run_id).state is RunState.PARKED


def test_the_session_says_how_long_a_call_may_be_unclaimed() -> None:
    """E3: the session's setting is nearer than the service's."""
    config = SessionConfig(agent="travel", unclaimed_after=2_000)
    chat, run_id = asked(client_call("c-1", "map"), config=config)
    chat.wait(2_000)
    assert chat.run(run_id).state is RunState.PENDING


def test_the_second_unclaimed_call_gets_a_notice_and_is_due_no_more() -> None:
    """D1: once per tool and turn, then a notice; nothing stays due for ever."""
    chat, run_id = asked(client_call("c-1", "map"))
    chat.wait(UNCLAIMED)
    chat.ask(run_id, client_call("c-2", "map"))
    chat.wait(UNCLAIMED)
    assert chat.interaction("c-2").notice is InteractionNotice.UNHANDLED
    chat.wait(UNCLAIMED)
    assert chat.settle(chat.interaction("c-2").id, "1").fork_opened


def test_an_unsupported_form_of_an_agents_own_tool_is_never_due_for_ever() -> None:
    """D1, D2: a notice that is there already is no reason to look again and again."""
    chat = Conversation()
    run_id = chat.start()

    def ask(call_id: str) -> None:
        message = chat.mint("msg")
        call = client_call(call_id, "my_form", NESTED_FORM)
        hint = Hinted(chat.mint("msg"), RenderHint(call_id, "elicitation", "{}"))
        events = (Began(message), Finished(said(message, TextPart("Hm."), call)), hint, Parked())
        chat.report(run_id, *events)

    ask("c-1")
    assert chat.results()["c-1"].kind is ResultKind.UNSUPPORTED_PAYLOAD
    ask("c-2")
    assert chat.interaction("c-2").notice is InteractionNotice.UNSUPPORTED_PAYLOAD
    chat.wait(UNCLAIMED)
    chat.wait(UNCLAIMED)
    assert chat.state_of("c-2") is InteractionState.OPEN
    assert chat.settle(chat.interaction("c-2").id, '{"any":"object"}').fork_opened


def test_a_settlement_reaches_both_forks_and_counts_in_both() -> None:
    """D1, F4: what closes a call closes it for every run that waits for it."""
    chat, _ = asked(form("c-1"), client_call("c-2", "map"))
    first = chat.settle(chat.interaction("c-1").id, VISBY).run_id
    second = chat.settle(chat.interaction("c-1").id, error="no", by=BEN).run_id
    chat.report_unhandled(chat.interaction("c-2").id)
    for run_id, call in ((first, "c-3"), (second, "c-4")):
        assert chat.run(run_id).state is RunState.PENDING
        assert chat.results(run_id)["c-2"].kind is ResultKind.NOT_HANDLED
        chat.ask(run_id, client_call(call, "map"))
        chat.report_unhandled(chat.interaction(call).id)
        assert chat.interaction(call).notice is InteractionNotice.UNHANDLED


def test_a_second_answer_knows_what_was_settled_in_its_turn() -> None:
    """D1, F5: the fork that brings a settlement along does not get another one for the tool."""
    chat, _ = asked(form("c-1"), client_call("c-2", "map"))
    chat.settle(chat.interaction("c-1").id, VISBY)
    chat.report_unhandled(chat.interaction("c-2").id)
    second = chat.settle(chat.interaction("c-1").id, error="no", by=BEN).run_id
    assert chat.results(second)["c-2"].kind is ResultKind.NOT_HANDLED
    chat.ask(second, client_call("c-3", "map"))
    chat.report_unhandled(chat.interaction("c-3").id)
    assert chat.interaction("c-3").notice is InteractionNotice.UNHANDLED


# --- D3 ---


def ask_many(chat: Conversation, run_id: str, first: int, count: int) -> list[str]:
    calls = [f"c-{number}" for number in range(first, first + count)]
    chat.ask(run_id, *[client_call(call) for call in calls])
    return calls


def test_questions_over_the_limit_of_a_step_get_an_error_and_the_rest_are_asked() -> None:
    """D3: in call order, in the first step of a run too."""
    chat = Conversation(limits=Limits(questions_a_step=2))
    run_id = chat.start()
    ask_many(chat, run_id, 1, 3)
    assert chat.run(run_id).state is RunState.PARKED
    assert chat.open_calls() == ["c-1", "c-2"]
    assert chat.results()["c-3"].kind is ResultKind.QUESTION_LIMIT
    assert chat.results()["c-3"].error_text


@pytest.mark.parametrize("count", [31, 32, 33])
def test_the_limit_of_a_step_below_at_and_above(count: int) -> None:
    """E3, D3: 32 questions a step by default."""
    chat = Conversation()
    run_id = chat.start()
    ask_many(chat, run_id, 1, count)
    assert len(chat.open_calls()) == min(count, 32)
    assert chat.run(run_id).state is RunState.PARKED


def test_the_limit_of_a_turn_counts_over_its_runs_and_begins_again_with_the_next() -> None:
    """D3: a fork goes on counting; the next turn starts at nothing."""
    chat = Conversation(limits=Limits(questions_a_turn=3))
    run_id = chat.start()
    ask_many(chat, run_id, 1, 2)
    chat.settle(call="c-1", run=run_id, output="1")
    fork = chat.settle(call="c-2", run=run_id, output="1").run_id
    ask_many(chat, fork, 3, 2)
    assert chat.open_calls() == ["c-3"]
    assert chat.results()["c-4"].kind is ResultKind.QUESTION_LIMIT
    last = chat.settle(call="c-3", run=fork, output="1").run_id
    chat.complete(last)
    other = chat.start("next")
    ask_many(chat, other, 5, 3)
    assert len(chat.open_calls()) == 3


def test_with_every_question_over_the_limit_the_model_goes_on_at_once() -> None:
    """D3: the run waits for nothing, so that it resumes."""
    chat = Conversation(limits=Limits(questions_a_turn=0))
    run_id = chat.start()
    ask_many(chat, run_id, 1, 2)
    assert chat.run(run_id).state is RunState.PENDING
    assert not chat.open_calls()


def test_over_the_limit_twice_in_a_row_the_run_fails_by_that_name() -> None:
    """D3: if the next step is over it again."""
    chat = Conversation(limits=Limits(questions_a_turn=1))
    run_id = chat.start()
    ask_many(chat, run_id, 1, 2)
    fork = chat.settle(call="c-1", run=run_id, output="1").run_id
    ask_many(chat, fork, 3, 1)
    assert chat.run(fork).state is RunState.FAILED
    failure = chat.run(fork).failure
    assert failure is not None
    assert failure.reason is RunFailureReason.QUESTION_LIMIT
    assert not chat.open_calls()


def test_a_step_within_the_limit_in_between_forgives() -> None:
    """D3: the next step counts, not some later one."""
    chat = Conversation(limits=Limits(questions_a_turn=0))
    run_id = chat.start()
    ask_many(chat, run_id, 1, 1)
    chat.step(run_id)  # a step that asks nothing
    ask_many(chat, run_id, 2, 1)
    assert chat.run(run_id).state is RunState.PENDING
    ask_many(chat, run_id, 3, 1)
    assert chat.run(run_id).state is RunState.FAILED


def test_approvals_are_questions_too() -> None:
    """D3: a tool that is over the limit is not started."""
    chat = Conversation(limits=Limits(questions_a_turn=1))
    run_id = chat.start()
    chat.step(run_id, form("c-1"), server_call("c-2", "pay"))
    ask = ProposedTool("c-2", tool_permission=Permission.ASK)
    assert chat.propose(run_id, ask) == [Verdict.ASK]
    chat.park(run_id, ask)
    assert chat.open_calls() == ["c-1"]
    assert chat.results()["c-2"].kind is ResultKind.QUESTION_LIMIT
    fork = chat.settle(chat.interaction("c-1").id, VISBY).run_id
    assert chat.propose(fork, ask) == [Verdict.REUSE]
