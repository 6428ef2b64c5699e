"""Scenarios 3 and 18 in more ways: who waits behind what, and what lets the queue go on."""

from __future__ import annotations

import asyncio

from tests.e2e.pair import Pair
from tests.e2e.talk import VISBY, Talk, of_kind, refusal, state_of, talk
from tests.e2e.variants import all_over, answer_twice, call_in, check, city, entered, run_of
from turngate.v1 import run_pb2, session_pb2
from turngate.v1.session_pb2 import HeldMessage
from turngate_client import TurngateClient

FAILED = run_pb2.RUN_STATE_FAILED
NOT_SELECTED = session_pb2.HOLD_REASON_BRANCH_NOT_SELECTED


async def held_of(trip: Talk) -> list[HeldMessage]:
    """The held messages, in the order in which they will enter."""
    return list((await trip.session.held_messages()).messages)


# --- scenario 3 ---


async def test_scenario_3_three_clients_and_a_kill_between(killable: Pair) -> None:
    """Scenario 3, G2, G3, E4: one of the held messages is edited, one removed; the broker is killed
    before the form is answered by the names of R."""
    async with (
        killable.client() as client,
        killable.client("bob", "phone") as bob,
        killable.client("eve", "tab") as eve,
        talk(client, "chat", participants=("bob", "eve")) as trip,
    ):
        run_id, (form,) = await trip.start_parked("A trip")
        sessions = [trip.session, bob.session(trip.id), eve.session(trip.id)]
        await asyncio.gather(*(one.send(f"m{n}") for n, one in enumerate(sessions)))
        order = [one.message for one in await held_of(trip)]
        authors = {"ann": 0, "bob": 1, "eve": 2}
        edited, removed, kept = order
        await sessions[authors[edited.author]].update_held(edited.id, "edited")
        await trip.session.remove_held(removed.id)
        killable.broker.kill()
        await killable.broker.restart()
        held = await held_of(trip)
        assert [one.message.id for one in held] == [edited.id, kept.id]
        assert all(list(one.waits_for_interaction_ids) == [form.id] for one in held)
        assert state_of(trip.view, run_id) == run_pb2.RUN_STATE_PARKED
        await bob.session(trip.id).settle(call_in(run_id, form), VISBY)
        await all_over(trip)
        assert entered(await check(trip)) == ["A trip", "edited", kept.parts[0].text.text]


async def test_scenario_3_the_form_gets_two_answers(client: TurngateClient, pair: Pair) -> None:
    """Scenario 3, F5, G1: what was held goes on after the first answer's run, once; a message that
    is sent to the other one goes there."""
    async with talk(client, "chain") as trip:
        _, (form,) = await trip.start_parked("form")
        held = await trip.session.send("plain held")
        fork, other = await answer_twice(trip, pair, form)
        there = await trip.session.send("plain there", branch_node_id=other.run_id)
        by_id = {one.message.id: one for one in await held_of(trip)}
        assert by_id[held.message_id].waits_for_run_id == fork.run_id
        assert by_id[there.message_id].waits_for_run_id == other.run_id
        for run in (other, fork):
            (second,) = await trip.parked(run.run_id)
            last = await trip.session.settle(second, {"action": "decline"})
            message = there if run is other else held
            following = await run_of(trip, message.message_id)
            assert trip.view.parent_of(message.message_id) == last.run_id
            await trip.completed(following)
        assert sorted(entered(await check(trip))) == ["form", "plain held", "plain there"]


# --- scenario 18 ---


async def paused(trip: Talk, pair: Pair, *texts: str) -> list[str]:
    """Messages to an agent whose provider is down; their ids, once the queue is paused."""
    sent = [await trip.session.send(text) for text in texts]
    pair.open_gate(f"go-{trip.id}")
    await trip.until(lambda view: view.queue_pause, "the queue to pause")
    return [one.message_id for one in sent]


async def test_scenario_18_a_retry_puts_things_right(client: TurngateClient, pair: Pair) -> None:
    """Scenario 18, G2, R6: the first held message fails as well, the queue pauses with its reason,
    `RetryRun` takes the failed run's place, and the queue goes on in order."""
    async with talk(client, "failing") as trip:
        ids = await paused(trip, pair, "one", "two", "three", "four")
        pause = (await trip.session.held_messages()).queue_pause
        assert pause.reason == session_pb2.QUEUE_PAUSE_REASON_FAILURES
        assert [one.message.id for one in await held_of(trip)] == ids[2:]
        failed = await run_of(trip, ids[1])
        assert [state_of(trip.view, await run_of(trip, one)) for one in ids[:2]] == [FAILED, FAILED]
        pair.open_gate(f"up-{trip.id}")
        retried = await trip.session.retry(failed)
        assert retried.run.supersedes_run_id == failed
        assert await trip.completed(retried.run.id) == "You said: two"
        await all_over(trip)
        for message_id, text in zip(ids[2:], ("three", "four"), strict=True):
            run_id = await run_of(trip, message_id)
            assert await trip.completed(run_id) == f"You said: {text}"
        assert trip.view.parent_of(ids[2]) == retried.run.id, "they follow the retry"
        assert trip.view.queue_pause is None
        assert entered(await check(trip)) == ["one", "two", "three", "four"]


async def test_scenario_18_the_provider_stays_down_and_the_broker_is_killed(
    killable: Pair,
) -> None:
    """Scenario 18, G2: a retry starts the count again: it fails, the next message fails, and the
    queue is paused anew; so it is after a kill -9."""
    async with killable.client() as client, talk(client, "failing") as trip:
        ids = await paused(trip, killable, "one", "two", "three", "four")
        first = await run_of(trip, ids[1])
        retry = (await trip.session.retry(first)).run.id
        await trip.until(
            lambda view: view.queue_pause if ids[2] in view.prompts else None, "the second pause"
        )
        assert state_of(trip.view, retry) == FAILED
        assert state_of(trip.view, await run_of(trip, ids[2])) == FAILED
        killable.broker.kill()
        await killable.broker.restart()
        queue = await trip.session.held_messages()
        assert [one.message.id for one in queue.messages] == ids[3:]
        assert queue.queue_pause.reason == session_pb2.QUEUE_PAUSE_REASON_FAILURES
        killable.open_gate(f"up-{trip.id}")
        # By the name of the run that the first retry superseded: it means that one (F8).
        beside = await trip.session.retry(first)
        assert beside.acted_on_run_id == retry
        assert await trip.completed(beside.run.id) == "You said: two"
        assert trip.view.queue_pause is not None, "it is not the last run of the branch"
        last = (await trip.session.retry(await run_of(trip, ids[2]))).run.id
        assert await trip.completed(last) == "You said: three"
        await all_over(trip)
        assert trip.view.parent_of(ids[3]) == last
        assert entered(await check(trip)) == ["one", "two", "three", "four"]


async def test_scenario_18_nothing_runs_unseen_on_a_branch_that_was_left(
    client: TurngateClient, pair: Pair
) -> None:
    """Scenario 18, G2: with a retry there, and a branch that is selected again in the end."""
    async with talk(client, "failing") as trip:
        ids = await paused(trip, pair, "one", "two", "three")
        failed = await run_of(trip, ids[1])
        edit = await trip.session.send("elsewhere", edits_message_id=ids[0])
        pair.open_gate(f"up-{trip.id}")
        await trip.ended(edit.run_id)
        retried = (await trip.session.retry(failed)).run.id
        assert await trip.completed(retried) == "You said: two"
        (held,) = await held_of(trip)
        assert (held.message.id, held.reason) == (ids[2], NOT_SELECTED)
        assert trip.view.selected_node_id == edit.run_id
        await trip.session.resume_queue()
        assert ids[2] not in trip.view.prompts, "nothing lets it run unseen"
        await trip.session.select_branch(ids[0])
        assert await trip.completed(await run_of(trip, ids[2])) == "You said: three"
        assert trip.view.parent_of(ids[2]) == retried
        await check(trip)


async def test_scenario_18_the_failed_run_had_an_answer(client: TurngateClient, pair: Pair) -> None:
    """Scenario 18, R6, F9: the retry keeps the answer and asks nobody; what is held follows the
    retry of the fork, whichever name it is given."""
    async with talk(client, "fragile") as trip:
        parked, (form,) = await trip.start_parked()
        first = await trip.session.send("plain first")
        pair.open_gate(f"go-{trip.id}")
        fork = (await trip.session.settle(form, city("Visby"))).run_id
        assert (await trip.ended(fork)).run.state == FAILED
        await trip.completed(await run_of(trip, first.message_id))
        pair.open_gate(f"up-{trip.id}")
        beside = await trip.session.retry(parked)
        assert beside.acted_on_run_id == fork
        assert await trip.completed(beside.run.id) == "To Visby."
        assert trip.view.parent_of(first.message_id) == fork, "what followed stays where it is"
        assert not trip.view.is_superseded(fork), "it has followers: the retry stands beside it"
        await refusal(trip.session.settle(form, city("Visby 2")), "ALREADY_SETTLED")
        assert len(of_kind(await check(trip), "answer_added")) == 1
