"""Scenarios 11 and 16 in more ways: edits, regenerations, stale names; who is beside whom."""

from __future__ import annotations

import pytest

from tests.e2e.pair import Pair
from tests.e2e.talk import Talk, of_kind, refusal, state_of, talk
from tests.e2e.variants import answer_twice, call_in, check, city, run_of
from turngate.v1 import run_pb2
from turngate_client import SessionView, TurngateClient

CANCELLED = run_pb2.RUN_STATE_CANCELLED
PARKED = run_pb2.RUN_STATE_PARKED


async def siblings_are(trip: Talk, *runs: str) -> None:
    """These runs, and no other, are shown beside each other, by whichever of them one asks."""
    for run_id in runs:
        run = (await trip.session.run(run_id)).run
        assert {*run.sibling_run_ids, run_id} == set(runs), run_id
    tree = {node.id: node.parent_id for node in await trip.session.tree()}
    parent = tree[runs[0]]
    assert [one for one, above in tree.items() if above == parent] == list(runs)


# --- scenario 11 ---


@pytest.mark.parametrize("keep_running", [False, True])
async def test_scenario_11_what_is_left_while_it_runs(
    client: TurngateClient, pair: Pair, keep_running: bool
) -> None:
    """Scenario 11, C2: a running run of the branch that is left is cancelled, or kept if one says
    so; then it ends there, unselected. The same by an edit and by regenerating an earlier turn."""
    async with talk(client, "asks_then_streams") as trip:
        one = await trip.session.send("plain one")
        await trip.completed(one.run_id)
        two = await trip.session.send("two")
        (form,) = await trip.parked(two.run_id)
        running = (await trip.session.settle(form, city("Visby"))).run_id
        await trip.text_came(running, "Off to ")
        if keep_running:
            edit = await trip.session.send(
                "plain two", edits_message_id=two.message_id, keep_running=True
            )
            await trip.completed(edit.run_id)
            await siblings_are(trip, running)
            again = (await trip.session.regenerate(one.run_id, keep_running=True)).run.id
            await trip.completed(again)
            pair.open_gate(f"go-{trip.id}")
            assert await trip.completed(running) == "Where? Off to Visby."
            await siblings_are(trip, one.run_id, again)
            assert trip.view.selected_node_id == again
        else:
            again = (await trip.session.regenerate(one.run_id)).run.id
            assert (await trip.ended(running)).run.state == CANCELLED
            await trip.completed(again)
            await refusal(trip.session.settle(form, city("x")), "RUN_CANCELLED")
            await siblings_are(trip, one.run_id, again)
        assert await trip.session.select_branch(two.message_id) == running
        await check(trip)


async def test_scenario_11_two_branches_are_answered_over_a_kill(killable: Pair) -> None:
    """Scenario 11, F6, F9, C2: an edit of the edit, a regenerated parked run; the broker is killed
    in between; each old form is answered on the branch that is not selected, one of them twice."""
    async with killable.client() as client, talk(client, "chain") as trip:
        one = await trip.session.send("form")
        (old,) = await trip.parked(one.run_id)
        edit = await trip.session.send("plain edit", edits_message_id=one.message_id)
        await trip.completed(edit.run_id)
        second = await trip.session.send("form again", edits_message_id=edit.message_id)
        (new,) = await trip.parked(second.run_id)
        third = (await trip.session.regenerate(second.run_id)).run.id
        (newest,) = await trip.parked(third)
        await siblings_are(trip, second.run_id, third)
        assert state_of(trip.view, one.run_id) == PARKED, "a parked one is kept"
        killable.broker.kill()
        await killable.broker.restart()

        fork, beside = await answer_twice(trip, killable, old)
        await siblings_are(trip, fork.run_id, beside.run_id)
        newer = (await trip.session.settle(call_in(second.run_id, new), city("c"))).run_id
        await trip.parked(newer)
        await siblings_are(trip, third, newer)
        assert trip.view.selected_node_id == third, "answers elsewhere select nothing (F2)"
        await trip.session.cancel_interaction(newest)
        await trip.parked(third)
        assert await trip.session.select_branch(one.message_id) in (fork.run_id, beside.run_id)
        prompts = [trip.view.parent_of(run) for run in (fork.run_id, edit.run_id, third)]
        assert prompts == [one.message_id, edit.message_id, second.message_id]
        assert len({trip.view.parent_of(prompt) for prompt in prompts}) == 1, "siblings, all three"
        await check(trip)


async def test_scenario_11_a_failed_and_a_stopped_branch_stay(
    client: TurngateClient, pair: Pair
) -> None:
    """Scenario 11, R6, C3: retried where it is not selected; a stop there does not touch what is
    selected; nothing is lost, and each can be selected again."""
    async with talk(client, "fragile") as trip:
        one = await trip.session.send("Go")
        (form,) = await trip.parked(one.run_id)
        pair.open_gate(f"go-{trip.id}")
        failed = (await trip.session.settle(form, city("Visby"))).run_id
        await trip.ended(failed)
        again = (await trip.session.regenerate(failed)).run.id
        (other,) = await trip.parked(again)
        await siblings_are(trip, failed, again)
        pair.open_gate(f"up-{trip.id}")
        retried = (await trip.session.retry(failed)).run.id
        assert await trip.completed(retried) == "To Visby."
        assert trip.view.selected_node_id == again
        await siblings_are(trip, again, retried)
        await trip.session.cancel_run(again)
        await refusal(trip.session.settle(other, city("late")), "INTERACTION_CANCELLED")
        await siblings_are(trip, again, retried)
        third = await trip.session.settle(form, city("Klinte"))
        assert await trip.completed(third.run_id) == "To Klinte."
        await siblings_are(trip, again, retried, third.run_id)
        for run_id in (again, retried, third.run_id):
            assert await trip.session.select_branch(run_id) == run_id
        assert await trip.session.select_branch(failed) == retried, "F8: by its old name"
        await check(trip)


# --- scenario 16 ---


async def test_scenario_16_stop_is_pressed_in_a_stale_tab(
    client: TurngateClient, pair: Pair
) -> None:
    """Scenario 16, F8, C1: it stops F, which runs, and not R or F'; again and again is the same."""
    async with talk(client, "asks_then_streams") as trip:
        parked, (form,) = await trip.start_parked()
        fork, beside = await answer_twice(trip, pair, form)
        for run in (fork, beside):
            await trip.text_came(run.run_id, "Off to ")
        held = await trip.session.send("plain next", branch_node_id=form.message_id)
        assert held.held.waits_for_run_id == fork.run_id
        for _ in range(2):
            stopped = await trip.session.cancel_run(parked)
            assert stopped.acted_on_run_id == fork.run_id
        assert (await trip.ended(fork.run_id)).run.state == CANCELLED
        await trip.completed(await run_of(trip, held.message_id))
        assert trip.view.parent_of(held.message_id) == fork.run_id
        pair.open_gate(f"go-{trip.id}")
        assert await trip.completed(beside.run_id) == "Where? Off to Klinte."
        assert state_of(trip.view, parked) == PARKED, "R is history, and keeps its state"
        await check(trip)


async def test_scenario_16_along_a_chain_and_over_a_kill(killable: Pair) -> None:
    """Scenario 16, F4, F8: R ← F ← F2; the tab that shows R, and the one that shows F, both act on
    F2 and are told so; a call that only F2 has is not R's."""
    async with killable.client() as client, talk(client, "chain") as trip:
        parked, (one,) = await trip.start_parked()
        fork = await trip.session.settle(one, city("a"))
        (two,) = await trip.parked(fork.run_id)
        await refusal(trip.session.settle(call_in(parked, two), city("x")), "TOOL_CALL_NOT_IN_RUN")
        last = await trip.session.settle(two, city("b"))
        assert await trip.completed(last.run_id) == "One. Two. a to b."
        killable.broker.kill()
        await killable.broker.restart()
        for stale in (parked, fork.run_id):
            shown = await trip.session.run(stale)
            assert shown.run.superseded_by_run_id, "still readable"
            assert stale not in [node.id for node in await trip.session.tree()]
        await siblings_are(trip, last.run_id)
        made = await trip.session.regenerate(parked)
        assert made.acted_on_run_id == last.run_id
        await trip.session.cancel_run(made.run.id)
        sent = await trip.session.send("plain", branch_node_id=fork.run_id)
        await trip.completed(await run_of(trip, sent.message_id))
        assert trip.view.parent_of(sent.message_id) == last.run_id
        assert trip.view.selected_node_id == made.run.id, "the tab's send selects nothing (G1)"
        await check(trip)


async def test_scenario_16_the_stale_tab_answers_another_call(
    client: TurngateClient, pair: Pair
) -> None:
    """Scenario 16, F4, F5, A2: with two answers to the one, the other goes to F by R's name, closes
    for both, and each keeps its own; a decision by R's name is taken by F, too."""
    async with talk(client, "form_and_payment") as trip:
        pair.open_gate(f"pay-gate-{trip.id}")
        parked, (form, payment) = await trip.start_parked()
        fork, beside = await answer_twice(trip, pair, form)
        decided = await trip.session.approve(call_in(parked, payment))
        assert decided.acted_on_run_id == fork.run_id

        def both(view: SessionView) -> bool:
            return all(
                state_of(view, run.run_id) == run_pb2.RUN_STATE_COMPLETED for run in (fork, beside)
            )

        await trip.until(both, "both to end")
        assert trip.view.text(fork.run_id) == "Visby: done 1"
        assert trip.view.text(beside.run_id) == "Klinte: done 1"
        again = await trip.session.approve(call_in(parked, payment))
        assert again.acted_on_run_id == fork.run_id, "C5: it holds already"
        await refusal(trip.session.deny(call_in(parked, payment)), "ALREADY_DECIDED")
        assert pair.count(f"paid-{trip.id}") == 1
        assert len(of_kind(await check(trip), "tool_started")) == 1
