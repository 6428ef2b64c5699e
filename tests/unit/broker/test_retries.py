"""Trying a failed run again (R6), and what that does to the queue (G2)."""

from __future__ import annotations

import pytest

from broker_service.domain.events import QueueResumed, RunCreated
from broker_service.domain.model import (
    HoldReason,
    Permission,
    ProposedTool,
    ResultKind,
    RunCause,
    RunState,
)
from broker_service.domain.starts import Verdict
from tests.unit.broker.conversation import (
    BEN,
    LUND,
    VISBY,
    Conversation,
    form,
    server_call,
    tool_result,
)
from turngate_core.errors import Reason


def failed() -> tuple[Conversation, str]:
    chat = Conversation()
    run_id = chat.start()
    chat.step(run_id)
    chat.fail(run_id)
    return chat, run_id


def test_a_retry_is_a_run_beside_the_failed_one_and_takes_its_place() -> None:
    """R6: by reference, superseding, selected where that was."""
    chat, run_id = failed()
    retried, acted_on = chat.retry(run_id, by=BEN)
    assert acted_on == run_id
    run = chat.run(retried)
    assert (run.cause, run.state, run.origin_id) == (RunCause.RETRY, RunState.PENDING, run_id)
    assert chat.run(run_id).state is RunState.FAILED
    assert chat.run(run_id).superseded_by == retried
    assert chat.state.siblings(run) == ()
    assert chat.state.selected == retried
    assert [message.id.partition("@")[2] for message in chat.transcript()][1:] == [retried]
    chat.complete(retried)
    assert chat.run(run_id).state is RunState.FAILED


def test_it_keeps_messages_results_and_answers_and_asks_nothing_again() -> None:
    """R6, R3: every complete message, its calls, results and answers."""
    chat = Conversation()
    run_id = chat.start()
    chat.ask(run_id, form("c-1"))
    fork = chat.settle(chat.interaction("c-1").id, VISBY).run_id
    chat.step(fork, server_call("c-2"), server_call("c-3"))
    chat.propose(fork, ProposedTool("c-2"))
    chat.report(fork, tool_result("c-2", '"two"'))
    chat.fail(fork)
    retried, _ = chat.retry(fork)
    run = chat.run(retried)
    assert run.step_calls == ("c-2", "c-3")
    assert chat.results(retried)["c-1"].output_json == VISBY
    assert chat.results(retried)["c-2"].output_json == '"two"'
    reused, granted = chat.propose(retried, ProposedTool("c-2"), ProposedTool("c-3"))
    assert (reused, granted) == (Verdict.REUSE, Verdict.GRANTED)
    chat.report(retried, tool_result("c-3"))
    chat.complete(retried)


@pytest.mark.parametrize("idempotent", [False, True])
def test_a_start_without_a_result_is_not_repeated(idempotent: bool) -> None:
    """R6, S1: it is `outcome_unknown` for the retry."""
    tool = ProposedTool("c-1", idempotent=idempotent)
    chat = Conversation()
    run_id = chat.start()
    chat.step(run_id, server_call("c-1"))
    chat.propose(run_id, tool)
    chat.fail(run_id)
    retried, _ = chat.retry(run_id)
    assert chat.results(retried)["c-1"].kind is ResultKind.OUTCOME_UNKNOWN
    assert chat.propose(retried, tool) == [Verdict.REUSE]
    chat.complete(retried)


def test_an_idempotent_start_of_a_run_that_nobody_took_again_is_not_repeated_either() -> None:
    """R6, S2: the run failed while it waited for a runner; its retry does not wait for ever."""
    tool = ProposedTool("c-1", idempotent=True)
    chat = Conversation()
    run_id = chat.start()
    chat.step(run_id, server_call("c-1"))
    chat.propose(run_id, tool)
    chat.lose(run_id)
    chat.unplaced(run_id)
    retried, _ = chat.retry(run_id)
    assert chat.propose(retried, tool) == [Verdict.REUSE]


def test_an_approval_that_was_given_counts_for_the_retry() -> None:
    """R6, A3: the call is the same call."""
    ask = ProposedTool("c-1", tool_permission=Permission.ASK)
    chat = Conversation()
    run_id = chat.start()
    chat.step(run_id, server_call("c-1"))
    chat.propose(run_id, ask)
    chat.park(run_id, ask)
    chat.decide(chat.interaction("c-1").id)
    chat.report(run_id)
    chat.fail(run_id)
    retried, _ = chat.retry(run_id)
    assert chat.propose(retried, ask) == [Verdict.GRANTED]


def test_a_second_retry_gets_the_first_ones_run() -> None:
    """R6, C5: pending, running, parked or complete; whatever name the client knows it by."""
    chat, run_id = failed()
    retried, _ = chat.retry(run_id)
    length = len(chat.log)
    assert chat.retry(run_id, by=BEN) == (retried, run_id)
    chat.report(retried)
    assert chat.retry(run_id)[0] == retried
    assert len(chat.events_of(RunCreated)) == 2
    chat.complete(retried)
    assert chat.retry(run_id)[0] == retried
    assert len(chat.log) > length


def test_a_retry_of_a_run_that_a_failed_fork_superseded_is_one_of_that_fork() -> None:
    """F8, R6, scenario 16: the stale tab presses twice."""
    chat = Conversation()
    run_id = chat.start()
    chat.ask(run_id, form("c-1"))
    fork = chat.settle(chat.interaction("c-1").id, VISBY).run_id
    chat.fail(fork)
    retried, acted_on = chat.retry(run_id)
    assert acted_on == fork
    assert chat.retry(run_id) == (retried, fork)
    chat.cancel(retried)
    afresh, acted_on = chat.retry(run_id)
    assert (acted_on, chat.run(afresh).origin_id) == (fork, fork)


def test_a_retry_that_failed_is_retried() -> None:
    """R6, F8: naming the first one, or the retry."""
    chat, run_id = failed()
    first, _ = chat.retry(run_id)
    chat.fail(first)
    second, acted_on = chat.retry(run_id)
    assert acted_on == first
    assert chat.run(second).origin_id == first
    assert chat.state.successor(run_id) == second
    chat.fail(second)
    third, acted_on = chat.retry(first)
    assert acted_on == second
    assert chat.run(third).supersedes == second


def test_after_a_cancelled_retry_the_failed_run_is_retried_afresh() -> None:
    """R6: it takes the place of the cancelled one, too."""
    chat, run_id = failed()
    first, _ = chat.retry(run_id)
    chat.cancel(first)
    second, acted_on = chat.retry(run_id)
    assert acted_on == run_id
    assert chat.run(second).origin_id == run_id
    assert chat.state.successor(run_id) == second
    assert chat.state.selected == second
    chat.complete(second)


def test_a_retry_that_is_being_stopped_is_none_to_wait_for() -> None:
    """R6, C1: stop and retry within the grace."""
    chat, run_id = failed()
    first, _ = chat.retry(run_id)
    chat.report(first)
    chat.cancel(first)
    second, _ = chat.retry(run_id)
    assert second != first
    chat.stopped(first)
    chat.complete(second)


def test_a_retry_that_parked_and_was_answered_is_followed_to_its_fork() -> None:
    """R6, F8: what a second RetryRun answers, retries and replaces is the end of the chain."""
    chat, run_id = failed()
    first, _ = chat.retry(run_id)
    chat.ask(first, form("c-1"))
    fork = chat.settle(chat.interaction("c-1").id, VISBY).run_id
    assert chat.retry(run_id)[0] == fork
    chat.fail(fork)
    second, acted_on = chat.retry(run_id)
    assert acted_on == fork
    chat.cancel(second)
    third, acted_on = chat.retry(run_id)
    assert acted_on == fork
    assert chat.state.selected == third


def test_a_cancelled_fork_of_a_retry_is_replaced_afresh() -> None:
    """R6: the retry was stopped in its fork; the failed run is tried again."""
    chat, run_id = failed()
    first, _ = chat.retry(run_id)
    chat.ask(first, form("c-1"))
    fork = chat.settle(chat.interaction("c-1").id, VISBY).run_id
    chat.cancel(fork)
    second, acted_on = chat.retry(run_id)
    assert acted_on == run_id
    assert chat.state.selected == second


def test_where_something_follows_the_retry_is_an_unselected_sibling() -> None:
    """R6: it supersedes nothing."""
    chat, run_id = failed()
    following = chat.start("so what?")
    retried, _ = chat.retry(run_id)
    run = chat.run(retried)
    assert not run.supersedes
    assert not chat.run(run_id).superseded_by
    assert chat.state.siblings(run) == (run_id,)
    assert chat.state.selected == following
    assert chat.retry(run_id)[0] == retried
    chat.cancel(retried)
    assert chat.retry(run_id)[0] != retried
    assert chat.state.selected == following


def test_what_followed_a_cancelled_retry_keeps_its_place() -> None:
    """R6, F8: a later retry is a sibling; the failed run stands for what took its place."""
    chat, run_id = failed()
    first, _ = chat.retry(run_id)
    chat.cancel(first)
    following = chat.start("never mind")
    for _ in range(2):
        later, _ = chat.retry(run_id)
        assert chat.state.selected == following
        assert chat.state.successor(run_id) == first
        assert not chat.run(later).supersedes
        chat.cancel(later)


def test_a_retry_elsewhere_selects_nothing() -> None:
    """R6: wherever the failed one is selected, and nowhere else."""
    chat, run_id = failed()
    edited = chat.edit(next(iter(chat.state.prompts))).run_id
    retried, _ = chat.retry(run_id)
    assert chat.state.selected == edited
    assert chat.run(run_id).superseded_by == retried


@pytest.mark.parametrize("state", ["pending", "running", "parked", "completed", "cancelled"])
def test_only_a_failed_run_is_retried(state: str) -> None:
    """C5: refused by name, with its state."""
    chat = Conversation()
    run_id = chat.start()
    match state:
        case "running":
            chat.report(run_id)
        case "parked":
            chat.ask(run_id, form("c-1"))
        case "completed":
            chat.complete(run_id)
        case "cancelled":
            chat.cancel(run_id)
        case _:
            pass
    with chat.refused(Reason.RUN_STATE) as caught:
        chat.retry(run_id)
    assert caught.value.metadata == {"run_id": run_id, "state": state.upper()}
    with chat.refused(Reason.RUN_NOT_FOUND):
        chat.retry("run-nowhere")


def test_nothing_is_retried_by_itself() -> None:
    """R6, F10: time, other branches and restarts start nothing."""
    chat, _ = failed()
    length = len(chat.log)
    chat.wait(365 * 24 * 3_600_000)
    assert len(chat.log) == length


def test_scenario_18_the_queue_pauses_and_a_retry_puts_it_right() -> None:
    """G2, R6: the first held message becomes the retry and fails too; then RetryRun goes on."""
    chat = Conversation()
    run_id = chat.start()
    for text in ("one", "two", "three"):
        chat.send(text)
    chat.fail(run_id)
    assert chat.held_texts() == ["two", "three"]
    second = chat.state.selected
    chat.fail(second)
    pause = chat.state.queue_pause
    assert pause is not None
    assert pause.run_id == second
    assert {held.reason for held in chat.state.held} == {
        HoldReason.QUEUE_PAUSED,
        HoldReason.QUEUED_BEHIND,
    }
    retried, _ = chat.retry(second)
    assert chat.state.queue_pause is None
    assert chat.state.held[0].waits_for_run_id == retried
    chat.fail(retried)  # the count starts again: one more failure lets one enter
    assert chat.held_texts() == ["three"]
    chat.complete(chat.state.selected)
    assert not chat.held_texts()


def test_a_retry_of_another_run_ends_no_pause() -> None:
    """G2: only a retry of the branch's last run."""
    chat = Conversation()
    run_id = chat.start()
    chat.send("one")
    chat.send("two")
    chat.fail(run_id)
    chat.fail(chat.state.selected)
    assert chat.state.queue_pause is not None
    chat.retry(run_id)
    assert chat.state.queue_pause is not None
    assert not chat.events_of(QueueResumed)
    assert chat.held_texts() == ["two"]


def test_held_messages_follow_a_retry_of_a_retry() -> None:
    """G1: bound to the run that they wait for, they follow its retries."""
    chat, run_id = failed()
    first, _ = chat.retry(run_id)
    chat.send("held")
    chat.cancel(first, keep_held=True)
    assert chat.held_texts() == ["held"]
    second, _ = chat.retry(run_id)
    assert chat.state.held[0].waits_for_run_id == second
    chat.complete(second)
    assert not chat.held_texts()


def test_a_second_answer_beside_a_retried_fork() -> None:
    """F5, R6: both go on; the retry keeps the selected branch."""
    chat = Conversation()
    run_id = chat.start()
    chat.ask(run_id, form("c-1"))
    fork = chat.settle(chat.interaction("c-1").id, VISBY).run_id
    chat.fail(fork)
    second = chat.settle(chat.interaction("c-1").id, LUND, by=BEN).run_id
    retried, _ = chat.retry(fork)
    assert chat.state.selected == retried
    assert chat.results(retried)["c-1"].output_json == VISBY
    assert chat.results(second)["c-1"].output_json == LUND
