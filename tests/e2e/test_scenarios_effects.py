"""Scenarios 15 and 17: one approval is one effect, and what an approval reaches."""

from __future__ import annotations

import asyncio

import pytest

from tests.e2e.pair import Pair
from tests.e2e.talk import Talk, file_came, of_kind, refusal, state_of, talk
from tests.e2e.variants import answer_twice, call_in, check, city, run_of
from turngate.v1 import message_pb2, run_pb2
from turngate_client import SessionView, TurngateClient

PARKED = run_pb2.RUN_STATE_PARKED
COMPLETED = run_pb2.RUN_STATE_COMPLETED


# --- scenario 15 ---


@pytest.mark.parametrize("first", ["approval", "answers"])
async def test_scenario_15_one_approval_one_effect(
    client: TurngateClient, pair: Pair, first: str
) -> None:
    """Scenario 15, S1, F5, A2: two clients answer the form; one run pays, the other takes the
    recorded result. Whether the approval comes before the answers or after them."""
    async with talk(client, "form_and_payment") as trip:
        pair.open_gate(f"pay-gate-{trip.id}")
        _, (form, payment) = await trip.start_parked()
        if first == "approval":
            await trip.session.approve(payment)
        forks = await answer_twice(trip, pair, form)
        if first == "answers":
            await trip.session.approve(payment)
        for run, where in zip(forks, ("Visby", "Klinte"), strict=True):
            assert await trip.completed(run.run_id) == f"{where}: done 1"
        assert pair.count(f"paid-{trip.id}") == 1
        log = await check(trip)
        (started,) = of_kind(log, "tool_started")
        assert started.tool_started.run_id in {run.run_id for run in forks}
        assert len(of_kind(log, "answer_added")) == 3, "two answers and one decision"
        assert len(of_kind(log, "run_created")) == 3, "decisions never fork (A2)"


async def test_scenario_15_everything_is_repeated_while_the_broker_is_killed(
    killable: Pair,
) -> None:
    """Scenario 15, E1, S1: two answers and the approval, each sent three times, over a kill -9 in
    the middle of them: two runs, one effect."""
    async with (
        killable.client() as client,
        killable.client("bob", "phone") as phone,
        talk(client, "form_and_payment") as trip,
    ):
        killable.open_gate(f"pay-gate-{trip.id}")
        _, (form, payment) = await trip.start_parked()
        bob = phone.session(trip.id)
        calls = [
            call
            for _ in range(3)
            for call in (
                asyncio.create_task(trip.session.settle(form, city("Visby"), request_id="a")),
                asyncio.create_task(bob.settle(form, city("Klinte"), request_id="b")),
                asyncio.create_task(trip.session.approve(payment, request_id="c")),
            )
        ]
        await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
        killable.broker.kill()
        await killable.broker.restart()
        await asyncio.gather(*calls)

        def over(view: SessionView) -> bool:
            forks = [run_id for run_id in view.runs if not view.is_superseded(run_id)]
            return len(forks) == 2 and all(state_of(view, one) == COMPLETED for one in forks)

        await trip.until(over, "both forks to end")
        assert killable.count(f"paid-{trip.id}") <= 1
        log = await check(trip)
        assert len(of_kind(log, "tool_started")) == 1
        assert len(of_kind(log, "answer_added")) == 3
        assert len(of_kind(log, "run_created")) == 3


async def test_scenario_15_a_third_answer_comes_while_the_payment_runs(
    client: TurngateClient, pair: Pair
) -> None:
    """Scenario 15, S1, F5: it waits for the payment that another run has started, and has its
    result; an answer that comes when all is over has it, too."""
    async with talk(client, "form_and_payment") as trip:
        parked, (form, payment) = await trip.start_parked()
        await trip.session.approve(payment)
        first = await trip.session.settle(form, city("Visby"))
        await file_came(pair.file(f"paying-{trip.id}"))
        second = await trip.session.settle(call_in(parked, form), city("Klinte"))
        await trip.until(
            lambda view: state_of(view, second.run_id) == run_pb2.RUN_STATE_RUNNING, "F' to run"
        )
        pair.open_gate(f"pay-gate-{trip.id}")
        assert await trip.completed(first.run_id) == "Visby: done 1"
        assert await trip.completed(second.run_id) == "Klinte: done 1"
        third = await trip.session.settle(call_in(second.run_id, form), city("Hoburg"))
        assert await trip.completed(third.run_id) == "Hoburg: done 1"
        assert pair.count(f"paid-{trip.id}") == 1
        assert len(of_kind(await check(trip), "tool_started")) == 1


# --- scenario 17 ---


async def asked(trip: Talk, run_id: str) -> bool:
    """Whether a run of the agent `pays_in_every_turn` asks, or has paid."""

    def found(view: SessionView) -> bool:
        return state_of(view, run_id) in (PARKED, COMPLETED)

    await trip.until(found, f"run {run_id} to park or end")
    return state_of(trip.view, run_id) == PARKED


async def test_scenario_17_a_grant_does_not_reach_a_branch_without_its_call(
    client: TurngateClient, pair: Pair
) -> None:
    """Scenario 17, A3: an edit of the turn leaves the approved call behind, and asks; an edit after
    it has it above itself, and passes. So does the first branch when it is selected again."""
    async with talk(client, "pays_in_every_turn") as trip:
        one = await trip.session.send("pay")
        (payment,) = await trip.parked(one.run_id)
        await trip.session.approve(payment)
        await trip.completed(one.run_id)
        two = await trip.session.send("pay again")
        assert not await asked(trip, two.run_id)
        after = await trip.session.send("pay, edited", edits_message_id=two.message_id)
        assert not await asked(trip, after.run_id)
        before = await trip.session.send("pay", edits_message_id=one.message_id)
        assert await asked(trip, before.run_id)
        again = (await trip.session.regenerate(one.run_id)).run.id
        assert await asked(trip, again), "a run beside it has not made that call"
        await trip.session.select_branch(after.run_id)
        assert not await asked(trip, await trip.start("pay"))
        assert pair.count(f"paid-{trip.id}") == 4
        await check(trip)


async def test_scenario_17_a_grant_is_revoked_while_the_next_turn_waits(killable: Pair) -> None:
    """Scenario 17, A3: of two grants one is revoked, with a kill -9 after it: the identical call
    asks, the other one passes; a revocation of what is revoked holds already (C5)."""
    async with killable.client() as client, talk(client, "pays_in_every_turn") as trip:
        for text in ("pay", "huge"):
            run_id, (payment,) = await trip.start_parked(text)
            await trip.session.approve(payment)
            await trip.completed(run_id)
        first, second = await trip.session.grants()
        _, (form,) = await trip.start_parked("form")
        assert form.tool_name == "request_input", "the payment beside it passed"
        waiting = await trip.session.send("pay")
        await trip.session.revoke_grant(first.id)
        killable.broker.kill()
        await killable.broker.restart()
        await trip.session.revoke_grant(first.id)
        await trip.session.cancel_interaction(form)
        assert await asked(trip, await run_of(trip, waiting.message_id))
        (payment,) = trip.view.open_interactions()
        await trip.session.approve(payment)
        await trip.completed(await run_of(trip, waiting.message_id))
        assert not await asked(trip, await trip.start("huge"))
        assert not await asked(trip, await trip.start("pay")), "it was approved anew"
        effective = {one.id for one in await trip.session.grants() if one.effective}
        assert second.id in effective
        assert first.id not in effective
        await check(trip)


async def test_scenario_17_stopped_in_whatever_way_before_it_ran(killable: Pair) -> None:
    """Scenario 17, A3: an approval dies with its call: the run is stopped while no runner is up,
    over a kill -9, or it is denied after all while a form is open. The next turn asks each time."""
    async with killable.client() as client, talk(client, "pays_in_every_turn") as trip:
        run_id, (payment,) = await trip.start_parked()
        killable.runner.kill()
        await trip.session.approve(payment)
        killable.broker.kill()
        await killable.broker.restart()
        await trip.session.cancel_run(run_id)
        await killable.runner.restart()
        await trip.ended(run_id)
        await refusal(trip.session.deny(payment), "ALREADY_DECIDED")
        run_id, (form, second) = await trip.start_parked("form")
        await trip.session.approve(second)
        await trip.session.deny(second, reason="on second thoughts")
        await trip.session.settle(form, city("Visby"))
        await trip.until(lambda view: len(view.runs) == 3, "the fork")
        await trip.completed(trip.view.selected_node_id)
        run_id, (third,) = await trip.start_parked()
        await trip.session.approve(
            third, grant_scope=message_pb2.GRANT_SCOPE_ONCE, request_id="once"
        )
        await trip.completed(run_id)
        assert await asked(trip, await trip.start()), "once was once"
        assert killable.count(f"paid-{trip.id}") == 1
        assert not [one for one in await trip.session.grants() if one.effective]
        await check(trip)
