"""Variants of scenarios 8, 15 and 17: one approval, one effect, whatever dies or is stopped."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest

from tests.e2e.conftest import StartPair
from tests.e2e.pair import Pair
from tests.e2e.talk import Talk, file_came, log_of, of_kind, refusal, state_of, talk
from tests.e2e.variants import (
    answer_twice,
    call_in,
    check,
    city,
    frozen,
    result_kinds,
    run_of,
)
from turngate.v1 import run_pb2
from turngate_client import TurngateClient
from turngate_client.session_view import SessionView

RUNNING = run_pb2.RUN_STATE_RUNNING
PARKED = run_pb2.RUN_STATE_PARKED
COMPLETED = run_pb2.RUN_STATE_COMPLETED


async def starter(trip: Talk) -> str:
    """The run that started the only tool that was started."""
    (event,) = of_kind(await log_of(trip.session), "tool_started")
    return event.tool_started.run_id


async def test_S1_forks_cancelled_before_the_payment_starts(killable: Pair) -> None:
    """Scenario 15: of three forks two are stopped while no runner is up: the third pays, once."""
    async with killable.client() as client, talk(client, "form_and_payment") as trip:
        killable.open_gate(f"pay-gate-{trip.id}")
        _, (form, payment) = await trip.start_parked()
        await trip.session.approve(payment)
        killable.runner.kill()
        forks = [(await trip.session.settle(form, city(f"c{n}"))).run_id for n in range(3)]
        await trip.session.cancel_run(forks[0])
        await trip.session.cancel_run(forks[2])
        await killable.runner.restart()
        assert await trip.completed(forks[1]) == "c1: done 1"
        assert killable.count(f"paid-{trip.id}") == 1
        await check(trip)


async def test_S1_runner_killed_in_a_payment_that_three_forks_wait_for(killable: Pair) -> None:
    """Scenario 15: all are told that nobody knows, also a fourth one that comes later; nobody pays
    again."""
    async with killable.client() as client, talk(client, "form_and_payment") as trip:
        _, (form, payment) = await trip.start_parked()
        forks = [(await trip.session.settle(form, city(f"c{n}"))).run_id for n in range(3)]
        await trip.session.approve(call_in(forks[2], payment))
        await file_came(killable.file(f"paying-{trip.id}"))
        killable.runner.kill()
        killable.open_gate(f"pay-gate-{trip.id}")
        await killable.runner.restart()
        for number, fork in enumerate(forks):
            assert await trip.completed(fork) == f"c{number}: outcome_unknown -"
        late = await trip.session.settle(form, city("late"))
        assert await trip.completed(late.run_id) == "late: outcome_unknown -"
        assert len(of_kind(await check(trip), "tool_started")) == 1


async def test_S1_the_fork_that_pays_is_cancelled_and_one_that_waits_too(
    client: TurngateClient, pair: Pair
) -> None:
    """The result is recorded when it comes (C1), and the third fork takes it."""
    async with talk(client, "form_and_payment") as trip:
        _, (form, payment) = await trip.start_parked()
        forks = [(await trip.session.settle(form, city(f"c{n}"))).run_id for n in range(3)]
        await trip.session.approve(payment)
        await file_came(pair.file(f"paying-{trip.id}"))
        await trip.until(
            lambda view: all(state_of(view, fork) == RUNNING for fork in forks), "all to run"
        )
        paying = await starter(trip)
        waiting, last = (fork for fork in forks if fork != paying)
        await trip.session.cancel_run(waiting)
        await trip.ended(waiting)
        await trip.session.cancel_run(paying)
        pair.open_gate(f"pay-gate-{trip.id}")
        await trip.ended(paying)
        assert (await trip.completed(last)).endswith(": done 1")
        assert pair.count(f"paid-{trip.id}") == 1
        await check(trip)


async def test_S1_a_run_that_is_cancelled_after_its_attempt_was_lost(killable: Pair) -> None:
    """Its payment may start again, but it is stopped before: who waits for it is told so (S2)."""
    async with killable.client() as client, talk(client, "form_and_idempotent_payment") as trip:
        _, (form, payment) = await trip.start_parked()
        forks = {fork.run_id for fork in await answer_twice(trip, killable, form)}
        await trip.session.approve(payment)
        await file_came(killable.file(f"paying-{trip.id}"))
        paying = await starter(trip)
        killable.runner.kill()
        await trip.until(
            lambda view: state_of(view, paying) == run_pb2.RUN_STATE_PENDING, "the run to be lost"
        )
        await trip.session.cancel_run(paying)
        killable.open_gate(f"pay-gate-{trip.id}")
        await killable.runner.restart()
        (other,) = forks - {paying}
        assert (await trip.completed(other)).endswith(": outcome_unknown -")
        await check(trip)


async def test_S1_runner_killed_after_the_payment_while_a_second_tool_runs(
    killable: Pair,
) -> None:
    """Scenario 15: the payment was made and recorded, and stays so for both forks."""
    async with killable.client() as client, talk(client, "payment_and_slow_tool") as trip:
        _, (form, payment, slow) = await trip.start_parked()
        forks = await answer_twice(trip, killable, form)
        await trip.session.approve(payment)
        await trip.session.approve(slow)
        await file_came(killable.file(f"slow-{trip.id}"))

        def has_paid(view: SessionView) -> bool:
            return any(payment.call_id in run.results for run in view.runs.values())

        await trip.until(has_paid, "the result of the payment")
        killable.runner.kill()
        killable.open_gate(f"slow-gate-{trip.id}")
        await killable.runner.restart()
        for fork in forks:
            assert (await trip.completed(fork.run_id)).endswith(": done outcome_unknown")
        assert killable.count(f"paid-{trip.id}") == 1
        assert len(of_kind(await check(trip), "tool_started")) == 2


async def test_A1_broker_killed_while_many_attempts_begin(killable: Pair) -> None:
    """Nothing starts on nobody's word: each effect has its start in the log, and there is one."""
    async with killable.client() as client, AsyncExitStack() as stack:
        trips = [await stack.enter_async_context(talk(client, "charge_first")) for _ in range(30)]
        sends = [asyncio.create_task(trip.session.send("Go")) for trip in trips]
        await sends[0]
        killable.broker.kill()
        await killable.broker.restart()
        for trip, sent in zip(trips, sends, strict=True):
            await trip.completed((await sent).run_id)
            log = await log_of(trip.session)
            started = [event.tool_started.call_id for event in of_kind(log, "tool_started")]
            file = killable.file(f"charges-{trip.id}")
            charged = file.read_text().split() if file.exists() else []
            assert len(charged) <= 1
            assert set(charged) <= set(started)


@pytest.mark.parametrize(
    ("answer", "outcomes", "times"),
    [
        ("accept", "accepted done", 1),
        ("decline", "declined denied", 0),
        ("cancel the form", "cancelled_by_user denied", 0),
        ("deny after all", "accepted denied", 0),
    ],
)
async def test_R4_what_destroys_waits_for_the_answers_of_its_step(
    client: TurngateClient, pair: Pair, answer: str, outcomes: str, times: int
) -> None:
    """It is approved first; a denial may still replace that, and not the reverse (A2)."""
    async with talk(client, "wiper") as trip:
        run_id, (form, wiping) = await trip.start_parked()
        await trip.session.approve(wiping)
        match answer:
            case "decline":
                run_id = (await trip.session.settle(form, {"action": "decline"})).run_id
            case "cancel the form":
                await trip.session.cancel_interaction(form)
            case _:
                if answer == "deny after all":
                    await trip.session.deny(wiping)
                    await refusal(trip.session.approve(wiping), "ALREADY_DECIDED")
                run_id = (await trip.session.settle(form, city("Visby"))).run_id
        assert await trip.completed(run_id) == outcomes
        assert pair.count(f"wiped-{trip.id}") == times
        await check(trip)


async def test_A3_which_later_calls_a_grant_lets_pass(client: TurngateClient, pair: Pair) -> None:
    """Scenario 17: identical means equal by canonical arguments, without unwrapping of strings."""
    async with talk(client, "pays_in_every_turn") as trip:

        async def asks(text: str, *, approve: bool = False) -> bool:
            run_id = await trip.start(text)

            def found(view: SessionView) -> bool:
                return state_of(view, run_id) in (PARKED, COMPLETED)

            await trip.until(found, f"the turn {text!r} to park or end")
            if state_of(trip.view, run_id) == COMPLETED:
                return False
            (payment,) = await trip.parked(run_id)
            await (trip.session.approve if approve else trip.session.deny)(payment)
            await trip.completed(run_id)
            return True

        assert await asks("pay", approve=True)
        for same in ("pay", "exponent", "fraction"):
            assert not await asks(same), same
        for other in ("text", "null"):
            assert await asks(other), other
        assert await asks("huge", approve=True)
        assert not await asks("huge")
        assert await asks("rounded")
        assert await asks("list", approve=True)
        for other in ("other order", "spelled"):
            assert await asks(other), other
        paid = pair.count(f"paid-{trip.id}")
        grants = await trip.session.grants()
        assert len(grants) == 3
        await trip.session.revoke_grant(grants[0].id)
        assert await asks("pay")
        assert pair.count(f"paid-{trip.id}") == paid
        await check(trip)


async def test_A3_approved_and_stopped_before_it_ran_is_asked_again(
    client: TurngateClient, pair: Pair
) -> None:
    """Scenario 17: an approval dies with its call."""
    async with talk(client, "pays_in_every_turn") as trip:
        run_id, (payment,) = await trip.start_parked()
        with frozen(pair.runner):
            await trip.session.approve(payment)
            await trip.session.cancel_run(run_id)
        await trip.ended(run_id)
        run_id, (again,) = await trip.start_parked()
        assert again.id != payment.id
        await trip.session.deny(again)
        await trip.completed(run_id)
        assert pair.count(f"paid-{trip.id}") == 0
        await check(trip)


async def test_C1_a_frozen_runner_does_not_hold_up_a_stop(start_pair: StartPair) -> None:
    """The grace ends the run; what the runner says when it thaws changes nothing (R3)."""
    pair = start_pair(broker_flags=("--cancel-grace=1", "--silent-runner=30"))
    async with pair.client() as client, talk(client, "charge_and_form") as trip:
        run_id = await trip.start()
        await file_came(pair.file(f"started-{trip.id}"))
        held = await trip.session.send("plain")
        with frozen(pair.runner):
            await trip.session.cancel_run(run_id)
            await trip.ended(run_id)
            pair.open_gate(f"gate-{trip.id}")
        await trip.completed(await run_of(trip, held.message_id))
        kinds = result_kinds(await trip.session.transcript(run_id))
        assert kinds == ["OUTCOME_UNKNOWN", "CANCELLED_BY_USER"]
        await check(trip)


async def test_C1_broker_killed_while_a_run_is_being_stopped(killable: Pair) -> None:
    async with killable.client() as client, talk(client, "charge_and_form") as trip:
        run_id = await trip.start()
        await file_came(killable.file(f"started-{trip.id}"))
        held = await trip.session.send("plain")
        with frozen(killable.runner):
            await trip.session.cancel_run(run_id)
            killable.broker.kill()
        await killable.broker.restart()
        assert (await trip.ended(run_id)).run.state == run_pb2.RUN_STATE_CANCELLED
        await trip.completed(await run_of(trip, held.message_id))
        await check(trip)
