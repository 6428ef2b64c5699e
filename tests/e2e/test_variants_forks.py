"""Variants of scenarios 1, 5, 8, 16 and 18: forks of forks, stale names, answers that come late."""

from __future__ import annotations

import asyncio

from tests.e2e.conftest import StartPair
from tests.e2e.pair import Pair
from tests.e2e.talk import of_kind, refusal, state_of, talk
from tests.e2e.variants import answer_twice, call_in, check, city, frozen, run_of
from turngate.v1 import run_pb2, session_pb2
from turngate_client import TurngateClient


async def test_F5_fifty_answers_to_one_form_then_one_to_the_other(client: TurngateClient) -> None:
    """Fifty siblings wait for the second form; one answer to it closes it for all (F4)."""
    async with talk(client, "two_forms") as trip:
        parked, (where, when) = await trip.start_parked()
        answers = [trip.session.settle(where, city(f"c{n}")) for n in range(50)]
        forks = [settled.run_id for settled in await asyncio.gather(*answers)]
        assert len(set(forks)) == 50
        first = trip.view.selected_node_id
        late = await trip.session.settle(call_in(forks[7], when), city("d"))
        assert (late.run_id, late.fork_opened) == (forks[7], False)
        for number, fork in enumerate(forks):
            assert await trip.completed(fork) == f"c{number} d"
        again = await trip.session.settle(where, city("c9"))
        assert again.run_id == forks[9], "the same answer of the same person is no new one"

        by_fork = await trip.session.settle(call_in(forks[9], when), city("e"))
        assert await trip.completed(by_fork.run_id) == "c9 e"
        by_origin = await trip.session.settle(call_in(parked, when), city("f"))
        expected = trip.view.text(first).replace(" d", " f")
        assert await trip.completed(by_origin.run_id) == expected, "R means its first fork (F8)"
        assert trip.view.selected_node_id == first
        await check(trip)


async def test_F5_no_more_forks_of_a_call_than_the_limit(start_pair: StartPair) -> None:
    pair = start_pair(broker_flags=("--max-forks-per-call=3",))
    async with pair.client() as client, talk(client, "two_forms") as trip:
        _, (where, _) = await trip.start_parked()
        forks = [(await trip.session.settle(where, city(f"c{n}"))).run_id for n in range(3)]
        await refusal(trip.session.settle(where, city("c3")), "ALREADY_SETTLED")
        assert (await trip.session.settle(where, city("c1"))).run_id == forks[1]
        await check(trip)


async def test_E4_broker_killed_while_fifty_answer(killable: Pair) -> None:
    """Each answer is there once, whether it was acknowledged before or is repeated (E1)."""
    async with killable.client() as client, talk(client, "two_forms") as trip:
        _, (where, when) = await trip.start_parked()
        answers = [
            asyncio.create_task(trip.session.settle(where, city(f"c{n}"))) for n in range(50)
        ]
        await trip.until(lambda view: len(view.runs) > 4, "some forks")
        killable.broker.kill()
        await killable.broker.restart()
        forks = [settled.run_id for settled in await asyncio.gather(*answers)]
        await trip.session.settle(when, city("d"))
        for number, fork in enumerate(forks):
            assert await trip.completed(fork) == f"c{number} d"
        assert len(of_kind(await check(trip), "run_created")) == 51


async def test_F5_second_answers_along_a_chain(client: TurngateClient) -> None:
    """R ← F ← F2: each call gets its second answer where it was asked, by whatever name."""
    async with talk(client, "chain") as trip:
        parked, (one,) = await trip.start_parked()
        fork = (await trip.session.settle(one, city("a"))).run_id
        (two,) = await trip.parked(fork)
        await refusal(trip.session.settle(call_in(parked, two), city("x")), "TOOL_CALL_NOT_IN_RUN")
        last = (await trip.session.settle(two, city("b"))).run_id
        await trip.completed(last)

        other = await trip.session.settle(call_in(last, one), city("c"))
        assert other.superseded_run_id == parked
        (asked_again,) = await trip.parked(other.run_id)
        assert asked_again.id != two.id, "nothing that F produced later comes along"
        beside = await trip.session.settle(call_in(fork, two), city("d"))
        assert beside.superseded_run_id == fork
        assert await trip.completed(beside.run_id) == "One. Two. a to d."
        assert trip.view.selected_node_id == last

        await trip.session.cancel_run(other.run_id)
        late = trip.session.settle(asked_again, city("x"))
        await refusal(late, "INTERACTION_CANCELLED")
        await refusal(trip.session.settle(call_in(other.run_id, one), city("x")), "RUN_CANCELLED")
        await trip.completed(await trip.start("plain"))
        for question in (one, two):
            await refusal(trip.session.settle(question, city("x")), "ALREADY_SETTLED")
        await check(trip)


async def test_F8_a_stale_name_means_the_branch_that_is_selected(client: TurngateClient) -> None:
    """Below R's successor a newer branch was left again: R still means the selected one (G1)."""
    async with talk(client, "chain") as trip:
        parked, (one,) = await trip.start_parked()
        fork = (await trip.session.settle(one, city("a"))).run_id
        (two,) = await trip.parked(fork)
        await trip.completed((await trip.session.settle(two, city("b"))).run_id)
        second = await trip.session.send("plain two")
        await trip.completed(second.run_id)
        edited = await trip.session.send("plain edited", edits_message_id=second.message_id)
        await trip.completed(edited.run_id)
        await trip.session.select_branch(second.run_id)

        assert await trip.session.select_branch(parked) == second.run_id
        third = await trip.session.send("plain three", branch_node_id=parked)
        assert trip.view.parent_of(third.message_id) == second.run_id
        await trip.completed(third.run_id)
        await check(trip)


async def test_scenario_16_the_stale_tab_acts_on_the_fork(client: TurngateClient) -> None:
    async with talk(client, "two_forms") as trip:
        parked, (where, when) = await trip.start_parked()
        fork = await trip.session.settle(where, city("a"))
        held = await trip.session.send("next", branch_node_id=parked)
        assert held.held.waits_for_run_id == fork.run_id
        collected = await trip.session.settle(call_in(parked, when), city("b"))
        assert (collected.run_id, collected.acted_on_run_id) == (fork.run_id, fork.run_id)
        assert collected.message_id == fork.message_id
        following = await run_of(trip, held.message_id)
        await trip.parked(following)

        for name in (parked, where.message_id, fork.message_id):
            made = await trip.session.regenerate(name)
            assert made.acted_on_run_id == fork.run_id
            await trip.parked(made.run.id)
        siblings = (await trip.session.run(fork.run_id)).run.sibling_run_ids
        assert len(siblings) == 3
        assert parked not in siblings
        assert await trip.session.select_branch(where.message_id) == following
        refused = await refusal(trip.session.cancel_run(parked), "RUN_STATE")
        assert refused.metadata["run_id"] == fork.run_id
        await check(trip)


async def test_F6_what_names_a_stopped_fork_reaches_no_other_branch(
    client: TurngateClient, pair: Pair
) -> None:
    async with talk(client, "form_and_payment") as trip:
        parked, (form, payment) = await trip.start_parked()
        fork, other = await answer_twice(trip, pair, form)
        stopped = await trip.session.cancel_run(parked)
        assert stopped.acted_on_run_id == fork.run_id
        (still_open,) = await trip.session.open_interactions()
        assert list(still_open.waiting_run_ids) == [other.run_id]
        for name in (parked, fork.run_id):
            ref = call_in(name, payment)
            await refusal(trip.session.approve(ref), "RUN_CANCELLED")
            await refusal(trip.session.deny(ref), "RUN_CANCELLED")
            await refusal(trip.session.cancel_interaction(ref), "RUN_CANCELLED")
        await refusal(trip.session.settle(form, city("x")), "RUN_CANCELLED")
        assert state_of(trip.view, other.run_id) == run_pb2.RUN_STATE_PARKED
        await trip.session.deny(call_in(other.run_id, payment))
        assert await trip.completed(other.run_id) == "Klinte: denied -"
        await check(trip)


async def test_F6_a_second_answer_while_the_first_fork_is_being_stopped(
    client: TurngateClient, pair: Pair
) -> None:
    async with talk(client, "fragile") as trip:
        _, (form,) = await trip.start_parked()
        fork = (await trip.session.settle(form, city("a"))).run_id
        await trip.until(
            lambda view: state_of(view, fork) == run_pb2.RUN_STATE_RUNNING, "the fork to run"
        )
        with frozen(pair.runner):
            await trip.session.cancel_run(fork)
            held = await trip.session.send("plain")
            urgent = await trip.session.send("plain!", on_busy=session_pb2.ON_BUSY_INTERRUPT)
            assert state_of(trip.view, fork) == run_pb2.RUN_STATE_CANCELLING
            await refusal(trip.session.settle(form, city("b")), "RUN_CANCELLED")
        await trip.completed(await run_of(trip, urgent.message_id))
        await trip.completed(await run_of(trip, held.message_id))
        await check(trip)


async def test_R6_retries_of_retries_and_of_second_answers(
    client: TurngateClient, pair: Pair
) -> None:
    """By the names of R, F and F's own retry; the retry of F' never takes the selected branch."""
    async with talk(client, "fragile") as trip:
        parked, (form,) = await trip.start_parked()
        pair.open_gate(f"go-{trip.id}")
        fork, other = await answer_twice(trip, pair, form)
        await trip.ended(fork.run_id)
        await trip.ended(other.run_id)
        one = (await trip.session.retry(parked)).run
        await trip.ended(one.id)
        two = (await trip.session.retry(fork.run_id)).run
        assert two.supersedes_run_id == one.id
        await trip.ended(two.id)
        pair.open_gate(f"up-{trip.id}")
        three = await trip.session.retry(parked)
        assert three.acted_on_run_id == two.id
        assert await trip.completed(three.run.id) == "To Visby."
        beside = (await trip.session.retry(other.run_id)).run
        assert await trip.completed(beside.id) == "To Klinte."
        assert trip.view.selected_node_id == three.run.id
        third = await trip.session.settle(call_in(two.id, form), city("Hoburg"))
        assert await trip.completed(third.run_id) == "To Hoburg."
        assert await trip.session.select_branch(other.run_id) == beside.id
        await check(trip)


async def test_A3_a_grant_reaches_every_branch_that_has_its_call(
    client: TurngateClient, pair: Pair
) -> None:
    """F pays, F' takes the result: the identical call of a later turn passes on both."""
    async with talk(client, "pays_in_every_turn") as trip:
        _, (form, payment) = await trip.start_parked("form")
        forks = await answer_twice(trip, pair, form)
        await trip.session.approve(payment)
        for fork in forks:
            await trip.completed(fork.run_id)
            (grant,) = await trip.session.grants(fork.run_id)
            assert grant.effective
            sent = await trip.session.send("again", branch_node_id=fork.run_id)
            assert await trip.completed(sent.run_id) == "done"
        await check(trip)
