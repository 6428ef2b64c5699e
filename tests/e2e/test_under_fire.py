"""Many clients at work while the broker is killed: each answer and message counts once (E1, E4)."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest

from tests.e2e.pair import Pair
from tests.e2e.talk import DEADLINE_SECONDS, VISBY, log_of, of_kind, talk

SESSIONS = 12


@pytest.mark.parametrize("answered_first", [1, SESSIONS // 2])
async def test_answers_that_are_on_their_way_while_the_broker_is_killed(
    killable: Pair, answered_first: int
) -> None:
    """Scenario 6: each is repeated by its request id until it is acknowledged; one fork each."""
    async with killable.client() as client, AsyncExitStack() as stack:
        trips = [await stack.enter_async_context(talk(client, "form")) for _ in range(SESSIONS)]
        forms = [(await trip.start_parked())[1][0] for trip in trips]
        settling = [
            asyncio.create_task(trip.session.settle(form, VISBY))
            for trip, form in zip(trips, forms, strict=True)
        ]
        for done in asyncio.as_completed(settling[:answered_first]):
            await done
        killable.broker.kill()
        await killable.broker.restart()
        async with asyncio.timeout(2 * DEADLINE_SECONDS):
            answers = await asyncio.gather(*settling)
        for trip, answered in zip(trips, answers, strict=True):
            assert await trip.completed(answered.run_id) == "Where to? Off to Visby."
            log = await log_of(trip.session)
            assert len(of_kind(log, "run_created")) == 2
            assert len(of_kind(log, "answer_added")) == 1


async def test_messages_that_are_on_their_way_while_the_broker_is_killed(killable: Pair) -> None:
    """G2: whatever was acknowledged enters, once, in the order of the queue."""
    async with killable.client() as client, talk(client, "echo") as trip:
        sending = [
            asyncio.create_task(trip.session.send(f"n{n}", message_id=f"m{n}")) for n in range(20)
        ]
        await asyncio.wait(sending, return_when=asyncio.FIRST_COMPLETED)
        killable.broker.kill()
        await killable.broker.restart()
        async with asyncio.timeout(2 * DEADLINE_SECONDS):
            await asyncio.gather(*sending)
        await trip.until(
            lambda view: len(view.prompts) == 20 and not view.held_by_id, "all to enter"
        )
        for prompt_id in list(trip.view.prompts):
            (run_id,) = trip.view.children(prompt_id)
            assert await trip.completed(run_id) == f"You said: n{prompt_id[1:]}"
        log = await log_of(trip.session)
        entered = [e.prompt_added.message.id for e in of_kind(log, "prompt_added")]
        held = [e.message_held.held.message.id for e in of_kind(log, "message_held")]
        assert sorted(entered) == sorted(f"m{n}" for n in range(20))
        assert [m for m in entered if m in held] == held


async def test_many_sessions_that_stream_while_the_broker_is_killed(killable: Pair) -> None:
    """S2: each run goes on within a bounded time, with its text whole."""
    async with killable.client() as client, AsyncExitStack() as stack:
        trips = [await stack.enter_async_context(talk(client, "streamer")) for _ in range(SESSIONS)]
        runs = [await trip.start() for trip in trips]
        await trips[0].text_came(runs[0], "so many words so many words")
        killable.broker.kill()
        await killable.broker.restart()
        for trip, run_id in zip(trips, runs, strict=True):
            assert await trip.completed(run_id) == "so many words " * 100
            log = await log_of(trip.session)
            whole = of_kind(log, "message_completed")
            assert len(whole) == 1
            begun = of_kind(log, "message_started")
            assert len(begun) == len(of_kind(log, "message_withdrawn")) + 1
