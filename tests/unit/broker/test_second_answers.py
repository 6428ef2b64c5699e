"""Second answers to the same call, and answers that come too late (F5, F6, F8)."""

from __future__ import annotations

import pytest

from broker_service.domain.events import AnswerAdded, RunCreated
from broker_service.domain.limits import Limits
from broker_service.domain.model import (
    ApprovalPolicy,
    ClientTool,
    ConflictPolicy,
    InteractionState,
    Permission,
    PolicyRule,
    ProposedTool,
    ResultKind,
    RunCause,
    RunState,
    SessionConfig,
    ToolCall,
)
from broker_service.domain.starts import Verdict
from tests.unit.broker.conversation import (
    ANN,
    BEN,
    CONNECTED,
    LUND,
    VISBY,
    Conversation,
    client_call,
    connection,
    fold_log,
    form,
    server_call,
    tool_result,
)
from turngate_core.errors import Reason

ASK = ProposedTool("c-pay", tool_permission=Permission.ASK)
ROME = VISBY.replace("Visby", "Rome")


def parked(
    *calls: ToolCall, config: SessionConfig | None = None, limits: Limits | None = None
) -> tuple[Conversation, str]:
    chat = Conversation(config, limits=limits)
    run_id = chat.start()
    calls = calls or (form("c-1"),)
    chat.step(run_id, *calls)
    if any(call.call_id == "c-pay" for call in calls):
        chat.propose(run_id, ASK)
        chat.park(run_id, ASK)
    else:
        chat.park(run_id)
    return chat, run_id


def answer(chat: Conversation, output: str = VISBY, *, by: str = ANN, call: str = "c-1") -> str:
    return chat.settle(chat.interaction(call).id, output, by=by).run_id


def kinds(chat: Conversation, run_id: str) -> dict[str, ResultKind | None]:
    return {call: result.kind for call, result in chat.results(run_id).items()}


# --- F5: a sibling branch ---


def test_scenario_1_two_answers_to_one_form() -> None:
    """F5: two forks, siblings under R's prompt, each with its own answer; the first is selected."""
    chat, run_id = parked()
    first = chat.settle(chat.interaction("c-1").id, VISBY, by=ANN)
    second = chat.settle(chat.interaction("c-1").id, LUND, by=BEN)
    assert second.fork_opened
    assert second.run_id != first.run_id
    assert second.superseded_run_id == run_id
    assert second.acted_on_run_id == first.run_id
    assert second.message_id.endswith(f"@{second.run_id}")
    fork, other = chat.run(first.run_id), chat.run(second.run_id)
    assert (other.cause, other.prompt_id, other.state) == (
        RunCause.SECOND_ANSWER,
        fork.prompt_id,
        RunState.PENDING,
    )
    assert chat.state.siblings(fork) == (other.id,)
    assert chat.state.siblings(other) == (fork.id,)
    assert chat.run(run_id).superseded_by == fork.id
    assert chat.state.selected == fork.id
    assert chat.results(fork.id)["c-1"].output_json == VISBY
    assert chat.results(other.id)["c-1"].output_json == LUND
    chat.complete(other.id)
    chat.complete(fork.id)
    assert chat.state.selected == fork.id


def test_fifty_clients_each_get_their_own_run() -> None:
    """F5, scenario 1: all siblings, one selected, one log that folds to the same."""
    chat, run_id = parked(client_call("c-1"))
    runs = [answer(chat, f'"{number}"', by=f"person-{number}") for number in range(50)]
    assert len(set(runs)) == 50
    assert chat.state.selected == runs[0]
    assert set(chat.state.siblings(chat.run(runs[7]))) == set(runs) - {runs[7]}
    interaction = chat.interaction("c-1")
    assert [given.run_id for given in interaction.answers] == runs
    assert all(chat.run(fork).supersedes == run_id for fork in runs)
    assert fold_log(chat.log) == chat.state


def test_the_same_answer_of_another_person_forks_too() -> None:
    """F5: only the same principal's repetition is one."""
    chat, _ = parked()
    first = answer(chat, VISBY, by=ANN)
    assert answer(chat, VISBY, by=BEN) != first


def test_each_repetition_gets_the_outcome_of_its_own_first_time() -> None:
    """F5: the same principal repeating the same answer, of several; also as R or a fork."""
    chat, run_id = parked()
    first = answer(chat, VISBY)
    second = answer(chat, LUND)
    length = len(chat.log)
    assert answer(chat, VISBY) == first
    assert answer(chat, LUND) == second
    for run in (run_id, first, second):
        again = chat.settle(run=run, call="c-1", output=LUND)
        assert (again.run_id, again.fork_opened) == (second, False)
    chat.complete(first)
    chat.start("next")
    length = len(chat.log)
    assert answer(chat, LUND) == second
    assert len(chat.log) == length


def test_an_output_and_an_error_with_the_same_text_are_two_answers() -> None:
    """F5: what kind of answer it is belongs to the answer."""
    chat, _ = parked(client_call("c-1"))
    first = answer(chat, '"x"')
    assert chat.settle(chat.interaction("c-1").id, error='"x"').run_id != first


def test_a_second_answer_is_checked_like_the_first() -> None:
    """F1: what does not fit the form opens nothing."""
    chat, _ = parked()
    answer(chat)
    with chat.refused(Reason.INVALID_ANSWER):
        chat.settle(chat.interaction("c-1").id, '{"action":"accept","content":{}}', by=BEN)


def test_a_sibling_is_another_ones_first_and_not_the_reverse() -> None:
    """F8: chains show one reply; the sibling of F is listed once F was answered further."""
    chat, run_id = parked()
    first = answer(chat)
    second = answer(chat, LUND)
    chat.ask(first, form("c-2"))
    further = answer(chat, ROME, call="c-2")
    assert chat.state.successor(run_id) == further
    assert chat.state.siblings(chat.run(further)) == (second,)
    assert chat.state.selected == further


# --- F5: when it is accepted ---


@pytest.mark.parametrize("where", ["session", "tool", "both"])
def test_where_the_first_answer_wins_every_second_one_is_refused(where: str) -> None:
    """F5, E3: the stricter of session and tool wins."""
    first_wins, fork = ConflictPolicy.FIRST_WINS, ConflictPolicy.FORK
    of_session = fork if where == "tool" else first_wins
    of_tool = fork if where == "session" else first_wins
    tools = (ClientTool("pick_colour", conflict_policy=of_tool),)
    config = SessionConfig(agent="travel", client_tools=tools, conflict_policy=of_session)
    chat, _ = parked(client_call("c-1"), config=config)
    first = chat.settle(chat.interaction("c-1").id, "1")
    with chat.refused(Reason.ALREADY_SETTLED) as caught:
        chat.settle(chat.interaction("c-1").id, "2", by=BEN)
    metadata = caught.value.metadata
    assert (metadata["answer_id"], metadata["run_id"]) == (first.answer_id, first.run_id)
    assert metadata["answered_at"].endswith("Z")
    assert answer(chat, "1") == first.run_id


def test_once_the_conversation_went_on_a_second_answer_is_refused() -> None:
    """F5: only while R's turn is the last one on F's branch."""
    chat, run_id = parked()
    first = answer(chat)
    chat.complete(first)
    second = answer(chat, LUND, by=BEN)  # F has ended, but nothing follows
    chat.start("next")
    for by in (ANN, BEN):
        for run in (run_id, first, second):
            with chat.refused(Reason.ALREADY_SETTLED):
                chat.settle(run=run, call="c-1", output=ROME, by=by)


def test_a_message_that_is_only_held_is_no_next_turn() -> None:
    """F5, G2: it has not entered; the first one's branch gets it when that run ends."""
    chat, _ = parked()
    chat.send("and then?")
    first = answer(chat)
    second = answer(chat, LUND, by=BEN)
    assert chat.state.held[0].waits_for_run_id == first
    chat.complete(second)
    assert chat.held_texts() == ["and then?"]
    chat.complete(first)
    assert not chat.held_texts()
    with chat.refused(Reason.ALREADY_SETTLED):
        answer(chat, ROME)


def test_a_turn_after_a_successor_of_the_first_fork_counts_too() -> None:
    """F5: F's branch is that of F's successors (F8)."""
    chat, _ = parked()
    first = answer(chat)
    chat.ask(first, form("c-2"))
    further = answer(chat, call="c-2")
    assert answer(chat, LUND) != first
    chat.complete(further)
    assert answer(chat, ROME) != first
    chat.start("next")
    with chat.refused(Reason.ALREADY_SETTLED):
        answer(chat, ROME, by=BEN)


@pytest.mark.parametrize("maximum", [1, 2, 3])
def test_a_call_has_so_many_forks_and_no_more(maximum: int) -> None:
    """F5, E3: `max_forks_per_call`, the first one counted."""
    chat, _ = parked(client_call("c-1"), limits=Limits(max_forks_per_call=maximum))
    for number in range(maximum):
        answer(chat, str(number))
    with chat.refused(Reason.ALREADY_SETTLED):
        answer(chat, "100")
    assert answer(chat, "0")
    assert len(chat.events_of(RunCreated)) == maximum + 1


@pytest.mark.parametrize("stopped", [False, True])
def test_after_a_stop_of_the_fork_a_second_answer_comes_too_late(stopped: bool) -> None:
    """F6, scenario 8: the run that took the first answer is cancelling or cancelled."""
    chat, run_id = parked()
    first = answer(chat)
    chat.report(first)
    chat.cancel(first)
    if stopped:
        chat.stopped(first)
    assert chat.run(first).state is (RunState.CANCELLED if stopped else RunState.CANCELLING)
    for run in ("", run_id, first):
        with chat.refused(Reason.RUN_CANCELLED):
            if run:
                chat.settle(run=run, call="c-1", output=LUND)
            else:
                answer(chat, LUND)
    assert answer(chat, VISBY) == first


def test_after_a_stop_of_a_successor_too() -> None:
    """F6: F was answered further, and its fork was stopped."""
    chat, _ = parked()
    first = answer(chat)
    chat.ask(first, form("c-2"))
    further = answer(chat, call="c-2")
    chat.cancel(further)
    for call in ("c-1", "c-2"):
        with chat.refused(Reason.RUN_CANCELLED):
            answer(chat, ROME, call=call)


def test_an_answer_that_names_a_stopped_sibling_is_refused() -> None:
    """F6: whoever else waits for the call; it never lands on another branch."""
    chat, _ = parked(form("c-1"), form("c-2"))
    first = answer(chat)
    second = answer(chat, LUND, by=BEN)
    chat.cancel(second)
    assert chat.open_calls() == ["c-2"]
    for call in ("c-1", "c-2"):
        with chat.refused(Reason.RUN_CANCELLED):
            chat.settle(run=second, call=call, output=ROME, by=BEN)
    assert chat.settle(chat.interaction("c-2").id, VISBY).run_id == first
    assert chat.run(first).state is RunState.PENDING


def test_a_stopped_first_fork_leaves_its_sibling_waiting() -> None:
    """F4, F6, C1: its question stays open for F'; R, which means F, is refused."""
    chat, run_id = parked(form("c-1"), form("c-2"))
    first = answer(chat)
    second = answer(chat, LUND, by=BEN)
    chat.cancel(first)
    assert chat.open_calls() == ["c-2"]
    for run in (run_id, first):
        with chat.refused(Reason.RUN_CANCELLED):
            chat.settle(run=run, call="c-2", output=ROME)
    assert chat.settle(run=second, call="c-2", output=ROME).run_id == second
    assert chat.run(second).state is RunState.PENDING


def test_after_a_stop_of_the_run_that_took_the_answer_its_siblings_take_no_other() -> None:
    """F6: F' had collected the answer; F, which is live, gets no second one."""
    chat, _ = parked(form("c-1"), form("c-2"))
    first = answer(chat)
    second = answer(chat, LUND, by=BEN)
    chat.settle(run=second, call="c-2", output=VISBY)
    chat.cancel(second)
    for run in (first, second):
        with chat.refused(Reason.RUN_CANCELLED):
            chat.settle(run=run, call="c-2", output=ROME)


def test_a_decision_that_names_a_stopped_fork_is_refused() -> None:
    """F6: a tab that shows the stopped branch approves nothing on another one."""
    chat, run_id = parked(form("c-1"), server_call("c-pay"))
    first = answer(chat)
    second = answer(chat, LUND, by=BEN)
    chat.cancel(first)
    for run in (run_id, first):
        for approve in (True, False):
            with chat.refused(Reason.RUN_CANCELLED):
                chat.decide(run=run, call="c-pay", approve=approve)
    decided = chat.decide(run=second, call="c-pay")
    assert decided.acted_on_run_id == second


def test_commands_about_a_question_say_which_fork_they_acted_on() -> None:
    """F8: the run that was named, if it waits; a stopped one is refused."""
    chat, _ = parked(form("c-1"), form("c-2"), client_call("c-3"), form("c-4"))
    first = answer(chat)
    second = answer(chat, LUND, by=BEN)
    assert chat.cancel_interaction(run=second, call="c-2").acted_on_run_id == second
    assert chat.report_unhandled(run=second, call="c-3").acted_on_run_id == second
    chat.cancel(second)
    with chat.refused(Reason.RUN_CANCELLED):
        chat.cancel_interaction(run=second, call="c-4")
    with chat.refused(Reason.RUN_CANCELLED):
        chat.report_unhandled(run=second, call="c-4")
    assert chat.cancel_interaction(run=first, call="c-4").acted_on_run_id == first


@pytest.mark.parametrize(
    ("way", "reason"),
    [
        ("cancel", Reason.INTERACTION_CANCELLED),
        ("expire", Reason.INTERACTION_EXPIRED),
        ("unhandled", Reason.INTERACTION_NOT_HANDLED),
        ("stop", Reason.INTERACTION_CANCELLED),
    ],
)
def test_an_answer_after_the_question_was_closed_is_refused_by_name(
    way: str, reason: Reason
) -> None:
    """F6: it changes nothing and starts no run."""
    config = SessionConfig(
        agent="travel", interaction_expires_after=60_000 if way == "expire" else None
    )
    chat, run_id = parked(client_call("c-1"), config=config)
    question = chat.interaction("c-1").id
    match way:
        case "cancel":
            chat.cancel_interaction(question)
        case "expire":
            chat.wait(60_000)
        case "unhandled":
            chat.report_unhandled(question)
        case _:
            chat.cancel(run_id)
    with chat.refused(reason):
        chat.settle(question, '"late"')
    with chat.refused(reason):
        chat.settle(run=run_id, call="c-1", error="late", by=BEN)
    assert len(chat.state.runs) == 1


# --- F5: what it has, and waits for ---


def test_it_has_the_answers_and_decisions_that_the_addressed_run_has() -> None:
    """F5: of that step: collected answers, decisions, results; with this answer instead."""
    chat = Conversation()
    run_id = chat.start()
    calls = (server_call("c-a"), form("c-1"), connection("c-2"), server_call("c-pay"))
    chat.step(run_id, *calls)
    chat.propose(run_id, ProposedTool("c-a"), ASK)
    chat.report(run_id, tool_result("c-a", '"looked up"'))
    chat.park(run_id, ASK)
    first = answer(chat)
    chat.settle(chat.interaction("c-2").id, CONNECTED)
    chat.decide(chat.interaction("c-pay").id, approve=False, reason="too dear")
    second = answer(chat, LUND, by=BEN)
    assert chat.run(second).state is RunState.PENDING
    results = chat.results(second)
    assert results["c-a"].output_json == '"looked up"'
    assert results["c-1"].output_json == LUND
    assert results["c-2"].output_json == CONNECTED
    assert results["c-pay"].kind is ResultKind.DENIED
    assert list(results) == ["c-a", "c-1", "c-2", "c-pay"]
    assert chat.results(first)["c-1"].output_json == VISBY


def test_it_waits_for_what_the_addressed_run_waits_for() -> None:
    """F5, F4: what closes a question closes it for both; each goes on once."""
    chat, _ = parked(form("c-1"), form("c-2"), server_call("c-pay"))
    first = answer(chat)
    second = answer(chat, LUND, by=BEN)
    assert chat.run(second).state is RunState.PARKED
    assert chat.run(second).waits == chat.run(first).waits
    settled = chat.settle(run=second, call="c-2", output=ROME)
    assert (settled.run_id, settled.fork_opened) == (second, False)
    assert chat.results(first)["c-2"].output_json == ROME
    chat.decide(chat.interaction("c-pay").id)
    assert {chat.run(run).state for run in (first, second)} == {RunState.PENDING}


def test_a_second_answer_to_a_call_that_a_fork_collected() -> None:
    """F5: it opens a sibling of that fork, with what the fork has of the step."""
    chat, run_id = parked(form("c-1"), form("c-2"))
    first = answer(chat)
    answer(chat, LUND, call="c-2")
    other = chat.settle(run=first, call="c-2", output=ROME, by=BEN)
    assert other.fork_opened
    assert other.superseded_run_id == run_id
    assert chat.results(other.run_id)["c-1"].output_json == VISBY
    assert chat.results(other.run_id)["c-2"].output_json == ROME
    assert chat.state.selected == first


def test_of_several_forks_the_one_that_is_addressed_counts() -> None:
    """F5: R means F, its first fork, and each fork means itself."""
    chat, run_id = parked(form("c-1"), form("c-2"))
    first = answer(chat, VISBY)
    second = answer(chat, LUND, by=BEN)
    chat.settle(run=second, call="c-2", output=VISBY)
    for run, expected in ((first, VISBY), (second, LUND), (run_id, VISBY)):
        settled = chat.settle(run=run, call="c-2", output=ROME, by=f"by-{run}")
        assert chat.results(settled.run_id)["c-1"].output_json == expected, run
        assert settled.acted_on_run_id == (second if run == second else first)


def test_it_has_nothing_that_the_fork_produced_later() -> None:
    """F5: no message, no result, no question of F's further work."""
    chat, _ = parked(form("c-1"), form("c-2"))
    first = answer(chat)
    answer(chat, LUND, call="c-2")
    chat.step(first, server_call("c-3"), form("c-4"))
    chat.propose(first, ProposedTool("c-3"))
    chat.report(first, tool_result("c-3"))
    chat.park(first)
    second = answer(chat, ROME, by=BEN)
    assert chat.run(second).state is RunState.PENDING
    assert chat.run(second).step_calls == ("c-1", "c-2")
    assert list(chat.results(second)) == ["c-1", "c-2"]
    assert chat.results(second)["c-2"].output_json == LUND
    with chat.refused(Reason.TOOL_CALL_NOT_IN_RUN):
        chat.settle(run=second, call="c-4", output=VISBY)
    chat.complete(second)
    assert len(chat.transcript(second)) == 3


def test_a_successor_of_the_fork_means_the_fork_as_it_was() -> None:
    """F5, F8: addressed to F2, the answer counts for the step of its call."""
    chat, _ = parked(form("c-1"))
    first = answer(chat)
    chat.ask(first, form("c-2"))
    further = answer(chat, call="c-2")
    second = chat.settle(run=further, call="c-1", output=ROME, by=BEN)
    assert chat.run(second.run_id).origin_id == chat.run(first).origin_id
    assert list(chat.results(second.run_id)) == ["c-1"]


def test_a_chain_of_forks_keeps_its_context() -> None:
    """F2, F5: a second answer further down brings the first answers along."""
    chat, _ = parked(form("c-1"))
    first = answer(chat)
    chat.ask(first, form("c-2"))
    answer(chat, LUND, call="c-2")
    second = answer(chat, ROME, call="c-2", by=BEN)
    assert chat.run(second).supersedes == first
    assert {c: r.output_json for c, r in chat.results(second).items()} == {
        "c-1": VISBY,
        "c-2": ROME,
    }


def test_it_is_never_selected_even_if_nothing_is_looked_at() -> None:
    """F5: the first answer keeps the selected branch, wherever that is."""
    chat, _ = parked()
    prompt = next(iter(chat.state.prompts))
    edited = chat.edit(prompt).run_id
    first = answer(chat)
    second = answer(chat, LUND, by=BEN)
    assert chat.state.selected == edited
    chat.complete(first)
    chat.complete(second)
    assert chat.state.selected == edited
    assert chat.select(second) == second


def test_a_failed_first_fork_still_takes_second_answers() -> None:
    """F5, R6: it is neither cancelled nor gone on; F' has what F had of the step."""
    chat, _ = parked(form("c-1"), form("c-2"))
    first = answer(chat)
    answer(chat, LUND, call="c-2")
    chat.fail(first)
    second = answer(chat, ROME, by=BEN)
    assert chat.results(second)["c-2"].output_json == LUND
    retried, acted_on = chat.retry(first)
    assert acted_on == first
    third = chat.settle(run=retried, call="c-1", output=LUND, by="cai")
    assert chat.run(third.run_id).supersedes == chat.run(first).supersedes
    assert chat.results(third.run_id)["c-2"].output_json == LUND


def test_all_answers_are_listed_with_the_run_each_of_them_opened() -> None:
    """I1: the first one closes the question."""
    chat, _ = parked()
    first = answer(chat)
    second = answer(chat, LUND, by=BEN)
    interaction = chat.interaction("c-1")
    assert interaction.state is InteractionState.ANSWERED
    assert [(given.author, given.run_id) for given in interaction.answers] == [
        (ANN, first),
        (BEN, second),
    ]
    assert interaction.close_time == interaction.answers[0].create_time
    added = chat.events_of(AnswerAdded)
    assert [event.addressed_run_id for event in added] == [chat.run(first).origin_id, first]


# --- S1 and A3 over forks ---


def test_the_second_fork_reuses_what_the_first_one_started() -> None:
    """S1, scenario 15: F pays, F' takes the recorded result; never the reverse."""
    chat, _ = parked(form("c-1"), server_call("c-pay"))
    first = answer(chat)
    chat.decide(chat.interaction("c-pay").id)
    second = answer(chat, LUND, by=BEN)
    assert chat.propose(first, ASK) == [Verdict.GRANTED]
    assert chat.propose(second, ASK) == [Verdict.WAIT]
    chat.report(first, tool_result("c-pay", '"paid"'))
    assert chat.propose(second, ASK) == [Verdict.REUSE]
    assert chat.results(second)["c-pay"].output_json == '"paid"'


@pytest.mark.parametrize("started", [False, True])
def test_scenario_15_the_first_fork_is_stopped(started: bool) -> None:
    """S1, C1: stopped before the payment F' pays; stopped in it, F' is told that nobody knows."""
    chat, _ = parked(form("c-1"), server_call("c-pay"))
    first = answer(chat)
    chat.decide(chat.interaction("c-pay").id)
    second = answer(chat, LUND, by=BEN)
    chat.report(first)
    if started:
        assert chat.propose(first, ASK) == [Verdict.GRANTED]
    chat.cancel(first)
    if started:
        assert chat.propose(second, ASK) == [Verdict.WAIT]
    else:
        assert chat.propose(first, ASK) == [Verdict.CANCELLED]
    chat.end_of_grace(first)
    if started:
        assert chat.propose(second, ASK) == [Verdict.REUSE]
        assert kinds(chat, second)["c-pay"] is ResultKind.OUTCOME_UNKNOWN
    else:
        assert chat.propose(second, ASK) == [Verdict.GRANTED]


@pytest.mark.parametrize("end", ["cancelled", "unplaced"])
def test_nobody_waits_for_a_start_of_a_run_that_has_ended_while_pending(end: str) -> None:
    """S1, S2: an idempotent start stays open over a lost attempt, not over the end of its run."""
    idempotent = ProposedTool("c-pay", tool_permission=Permission.ASK, idempotent=True)
    chat, _ = parked(form("c-1"), server_call("c-pay"))
    first = answer(chat)
    chat.decide(chat.interaction("c-pay").id)
    second = answer(chat, LUND, by=BEN)
    assert chat.propose(first, idempotent) == [Verdict.GRANTED]
    assert chat.propose(second, idempotent) == [Verdict.WAIT]
    chat.lose(first)
    if end == "cancelled":
        chat.cancel(first)
    else:
        chat.unplaced(first)
    assert chat.propose(second, idempotent) == [Verdict.REUSE]
    assert kinds(chat, second)["c-pay"] is ResultKind.OUTCOME_UNKNOWN


def test_a_grant_counts_on_both_branches_of_its_call() -> None:
    """A3: the call is one call on both; it was approved and started."""
    chat, _ = parked(form("c-1"), server_call("c-pay"))
    first = answer(chat)
    chat.decide(chat.interaction("c-pay").id)
    second = answer(chat, LUND, by=BEN)
    chat.propose(first, ASK)
    chat.report(first, tool_result("c-pay"))
    chat.propose(second, ASK)
    for run, call in ((first, "c-8"), (second, "c-9")):
        chat.step(run, server_call(call))
        again = ProposedTool(call, tool_permission=Permission.ASK)
        assert chat.propose(run, again) == [Verdict.GRANTED]
        assert [grant.effective for grant in chat.grants(run)] == [True]


def test_a_question_that_one_fork_asked_again_is_shared_by_the_other() -> None:
    """F4: a call is one question at a time, whichever fork asks it (a grant was revoked)."""
    once = ProposedTool("c-0", tool_permission=Permission.ASK)
    later = ProposedTool("c-pay", tool_permission=Permission.ASK, after_answers=True)
    chat = Conversation()
    run_id = chat.start()
    chat.step(run_id, server_call("c-0"))
    chat.propose(run_id, once)
    chat.park(run_id, once)
    chat.decide(chat.interaction("c-0").id)
    chat.propose(run_id, once)
    chat.report(run_id, tool_result("c-0"))
    chat.step(run_id, form("c-1"), server_call("c-pay"))
    assert chat.propose(run_id, later) == [Verdict.DEFERRED]
    chat.park(run_id, later)
    first = answer(chat)
    second = answer(chat, LUND, by=BEN)
    chat.revoke(chat.interaction("c-0").id)
    for run in (first, second):
        assert chat.propose(run, later) == [Verdict.ASK]
        chat.park(run, later)
    assert chat.open_calls() == ["c-pay"]
    assert chat.run(first).waits == chat.run(second).waits
    chat.decide(chat.interaction("c-pay").id)
    assert {chat.run(run).state for run in (first, second)} == {RunState.PENDING}
    assert chat.propose(first, later) == [Verdict.GRANTED]


def test_policy_of_the_session_holds_for_second_forks_too() -> None:
    """A1, R7: a DENY applies to every start."""
    denied = ApprovalPolicy(rules=(PolicyRule("look_up", Permission.DENY),))
    chat = Conversation(SessionConfig(agent="travel", approval_policy=denied))
    run_id = chat.start()
    chat.step(run_id, form("c-1"), server_call("c-2"))
    deferred = ProposedTool("c-2", after_answers=True)
    chat.propose(run_id, deferred)
    chat.park(run_id, deferred)
    answer(chat)
    second = answer(chat, LUND, by=BEN)
    assert chat.propose(second, deferred) == [Verdict.REUSE]
    assert kinds(chat, second)["c-2"] is ResultKind.DENIED
