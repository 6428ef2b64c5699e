"""Scenarios 1, 2, 4 and 5 in more ways: many clients, lost responses, odd orders, old answers."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack
from itertools import permutations

import pytest
from google.protobuf.duration_pb2 import Duration

from tests.e2e.pair import Pair
from tests.e2e.talk import VISBY, Talk, attempts, log_of, of_kind, refusal, state_of, talk, the
from tests.e2e.variants import call_in, check, city
from turngate.v1 import interaction_pb2, run_pb2
from turngate.v1.interaction_pb2 import Interaction
from turngate.v1.session_pb2 import SessionConfig
from turngate_client import SessionClient, TurngateClient, TurngateError
from turngate_client.interactions import PlainJson

FIRST_WINS = SessionConfig(conflict_policy=interaction_pb2.CONFLICT_POLICY_FIRST_WINS)
CLIENTS = 50
CONNECTED: PlainJson = {"connected": True, "integration": "calendar"}


async def session_of_each(
    stack: AsyncExitStack, pair: Pair, session_id: str, count: int
) -> list[SessionClient]:
    """A client for each of so many people, all at the same session."""
    clients = [await stack.enter_async_context(pair.client(f"u{n}")) for n in range(count)]
    return [client.session(session_id) for client in clients]


# --- scenario 1 ---


async def test_scenario_1_fifty_clients_answer_at_once(client: TurngateClient, pair: Pair) -> None:
    """Scenario 1, F2, F5, F8: fifty people, by the id of the question or the run."""
    async with AsyncExitStack() as stack, talk(client, "form") as trip:
        parked, (form,) = await trip.start_parked()
        people = await session_of_each(stack, pair, trip.id, CLIENTS)
        settled = await asyncio.gather(
            *(
                one.settle(form if n % 2 else call_in(parked, form), answer(f"c{n}"))
                for n, one in enumerate(people)
            )
        )
        forks = [one.run_id for one in settled]
        assert len(set(forks)) == CLIENTS, "each gets a run of its own"
        assert all(one.superseded_run_id == parked for one in settled)
        for n, fork in enumerate(forks):
            assert await trip.completed(fork) == f"Where to? Off to c{n}."
        answers = (await trip.session.interaction(form.id)).answers
        assert {one.author for one in answers} == {f"u{n}" for n in range(CLIENTS)}
        assert trip.view.selected_node_id == answers[0].run_id, "the first answer's, for good"
        siblings = set((await trip.session.run(forks[0])).run.sibling_run_ids)
        assert siblings | {forks[0]} == set(forks), "R is in no list of siblings"
        late = await people[0].settle(call_in(parked, form), answer("late"))
        assert await trip.completed(late.run_id) == "Where to? Off to late."
        assert trip.view.selected_node_id == answers[0].run_id
        await check(trip)


async def test_scenario_1_first_wins_among_fifty_clients(
    client: TurngateClient, pair: Pair
) -> None:
    """Scenario 1, F5: one success; every refusal names the winner; by whatever name."""
    async with AsyncExitStack() as stack, talk(client, "form", config=FIRST_WINS) as trip:
        parked, (form,) = await trip.start_parked()
        people = await session_of_each(stack, pair, trip.id, CLIENTS)
        outcomes = await asyncio.gather(
            *(
                one.settle(form if n % 2 else call_in(parked, form), answer(f"c{n}"))
                for n, one in enumerate(people)
            ),
            return_exceptions=True,
        )
        (won,) = [one for one in outcomes if not isinstance(one, BaseException)]
        lost = [one for one in outcomes if isinstance(one, TurngateError)]
        assert len(lost) == CLIENTS - 1
        assert {(one.reason, one.metadata["run_id"]) for one in lost} == {
            ("ALREADY_SETTLED", won.run_id)
        }
        error = await refusal(
            people[0].settle(call_in(won.run_id, form), answer("by the fork")), "ALREADY_SETTLED"
        )
        assert error.metadata["answer_id"] == won.answer_id
        await trip.completed(won.run_id)
        log = await check(trip)
        assert len(of_kind(log, "run_created")) == 2
        assert len(of_kind(log, "answer_added")) == 1


async def test_scenario_1_first_wins_with_the_broker_killed_between(killable: Pair) -> None:
    """Scenario 1, E4: whoever was told that he won has won, and the others lose to him."""
    async with (
        AsyncExitStack() as stack,
        killable.client() as client,
        talk(client, "form", config=FIRST_WINS) as trip,
    ):
        _, (form,) = await trip.start_parked()
        people = await session_of_each(stack, killable, trip.id, 8)
        settling = [
            asyncio.create_task(attempted(one, form, f"c{n}")) for n, one in enumerate(people)
        ]
        await asyncio.wait(settling, return_when=asyncio.FIRST_COMPLETED)
        killable.broker.kill()
        await killable.broker.restart()
        told = await asyncio.gather(*settling)
        assert len(set(told)) == 1, "all were told of the same winner"
        await trip.completed(told[0])
        assert len(of_kind(await check(trip), "answer_added")) == 1


async def attempted(session: SessionClient, form: Interaction, where: str) -> str:
    """The run of the answer that won: this one's, or the one that the refusal names."""
    try:
        return (await session.settle(form, answer(where))).run_id
    except TurngateError as error:
        if error.reason != "ALREADY_SETTLED":
            raise
        return error.metadata["run_id"]


def answer(where: str) -> PlainJson:
    """An answer to the form of the agent `form`."""
    return {"action": "accept", "content": {"city": where, "nights": 1}}


# --- scenario 2 ---


async def test_scenario_2_the_answer_is_repeated_after_everything_went_on(
    client: TurngateClient, pair: Pair
) -> None:
    """Scenario 2, E1, F5, S1: after the run has ended, and after the next turn; no call is started
    twice. Request ids are each person's own."""
    async with pair.client("bob") as bob, talk(client, "ask_and_charge") as trip:
        parked, (form,) = await trip.start_parked()
        first = await trip.session.settle(form, city("Visby"), request_id="a1")
        assert await trip.completed(first.run_id) == "Visby: done"
        for _ in range(3):
            again = await trip.session.settle(form, city("Visby"), request_id="a1")
            assert again == first
        other_id = await trip.session.settle(call_in(parked, form), city("Visby"), request_id="a2")
        assert (other_id.run_id, other_id.answer_id) == (first.run_id, first.answer_id)
        assert not other_id.fork_opened
        await refusal(
            trip.session.settle(form, city("Ystad"), request_id="a1"), "REQUEST_ID_REUSED"
        )
        fork = await trip.session.settle(form, city("Ystad"), request_id="a3")
        assert await trip.completed(fork.run_id) == "Ystad: done"
        bobs = await bob.session(trip.id).settle(form, city("Visby"), request_id="a1")
        assert bobs.run_id not in (first.run_id, fork.run_id), "somebody else's is another answer"
        await trip.completed(bobs.run_id)
        assert pair.count(f"charged-{trip.id}") == 3, "one call of each branch, each once"

        await trip.start_parked("next turn")
        assert await trip.session.settle(form, city("Visby"), request_id="a1") == first
        once_more = await trip.session.settle(form, city("Visby"), request_id="a4")
        assert once_more.run_id == first.run_id
        await refusal(trip.session.settle(form, city("Kiruna")), "ALREADY_SETTLED")
        assert pair.count(f"charged-{trip.id}") == 3
        await check(trip)


@pytest.mark.parametrize("killed", ["broker", "runner"])
async def test_scenario_2_the_response_gets_lost_with_a_process(
    killable: Pair, killed: str
) -> None:
    """Scenario 2, E4, S1: the answer of the commit and the effect are the same after a kill -9."""
    async with killable.client() as client, talk(client, "ask_and_charge") as trip:
        parked, (form,) = await trip.start_parked()
        first = await trip.session.settle(form, city("Visby"), request_id="a1")
        service = killable.broker if killed == "broker" else killable.runner
        service.kill()
        await service.restart()
        for ref in (form, form):
            assert await trip.session.settle(ref, city("Visby"), request_id="a1") == first
        await refusal(trip.session.settle_error(form, "no", request_id="a1"), "REQUEST_ID_REUSED")
        assert (await trip.session.settle(form, city("Visby"))).run_id == first.run_id
        text = await trip.completed(first.run_id)
        assert text in ("Visby: done", "Visby: outcome_unknown")
        assert killable.count(f"charged-{trip.id}") <= 1
        log = await check(trip)
        assert len(of_kind(log, "answer_added")) == 1
        assert len(of_kind(log, "tool_started")) == 1
        assert state_of(trip.view, parked) == run_pb2.RUN_STATE_PARKED


# --- scenario 4 ---


async def close(session: SessionClient, question: Interaction, run_id: str = "") -> str:
    """Answer or approve a question of the agent `four`, by the run if one is given; its run."""
    ref = call_in(run_id, question) if run_id else question
    match question.tool_name:
        case "pay":
            return (await session.approve(ref)).acted_on_run_id
        case "request_input":
            return (await session.settle(ref, VISBY)).run_id
        case _:
            return (await session.settle(ref, CONNECTED)).run_id


async def results_shown(trip: Talk, run_id: str) -> list[tuple[str, str]]:
    """What the model was shown of the four calls, and that it was in call order (T4)."""
    model_input = json.loads(await trip.completed(run_id))
    results = model_input[1]["results"]
    calls = [call["call_id"] for call in model_input[1]["calls"]]
    assert [result["call_id"] for result in results] == calls
    return [(result["kind"], result.get("output") or result.get("error")) for result in results]


@pytest.mark.parametrize("order", list(permutations(range(3)))[1:])
async def test_scenario_4_in_every_other_order(
    client: TurngateClient, pair: Pair, order: tuple[int, ...]
) -> None:
    """Scenario 4, F4, A2: whatever comes first; all of it is addressed to R, which is superseded
    from the first answer on."""
    async with pair.client("bob", "phone") as phone, talk(client, "four") as trip:
        parked, waiting = await trip.start_parked()
        # A connection is finished by the person that it was opened for (B2).
        people = [phone.session(trip.id), trip.session, phone.session(trip.id)]
        runs = [await close(people[n], waiting[n], parked) for n in order]
        (fork,) = [run_id for run_id in trip.view.runs if run_id != parked]
        assert runs[-1] == fork, "the fork collects what is addressed to R (F4, F8)"
        shown = await results_shown(trip, fork)
        assert [kind for kind, _ in shown] == ["tool", "client", "client", "tool"]
        assert json.loads(shown[3][1]) == {"paid": 1}
        log = await check(trip)
        assert len(of_kind(log, "run_created")) == 2, "one fork"
        assert attempts(log, fork) == [1], "one resume"
        assert pair.count(f"pay-{trip.id}") == pair.count(f"look_up-{trip.id}") == 1


async def test_scenario_4_three_people_at_the_same_instant(
    client: TurngateClient, pair: Pair
) -> None:
    """Scenario 4, F4: whichever is first opens the fork, and it goes to a runner once."""
    async with AsyncExitStack() as stack, talk(client, "four") as trip:
        parked, waiting = await trip.start_parked()
        people = await session_of_each(stack, pair, trip.id, 3)
        people[1] = trip.session  # the person that the connection was opened for (B2)
        await asyncio.gather(
            *(close(one, question) for one, question in zip(people, waiting, strict=True))
        )
        (fork,) = [run_id for run_id in trip.view.runs if run_id != parked]
        shown = await results_shown(trip, fork)
        assert [kind for kind, _ in shown] == ["tool", "client", "client", "tool"]
        log = await check(trip)
        assert len(of_kind(log, "run_created")) == 2
        assert attempts(log, fork) == [1]


async def test_scenario_4_nothing_but_refusals_with_a_kill_after_each(killable: Pair) -> None:
    """Scenario 4, T4, X4: declined, an error text, denied; the broker is killed after each."""
    async with killable.client() as client, talk(client, "four") as trip:
        parked, waiting = await trip.start_parked()
        await trip.session.deny(the(waiting, "pay"), reason="too dear")
        await killed_and_back(killable)
        first = await trip.session.settle_error(the(waiting, "request_connection"), "no network")
        await killed_and_back(killable)
        last = await trip.session.settle(
            call_in(parked, the(waiting, "request_input")), {"action": "decline"}
        )
        await killed_and_back(killable)
        assert first.run_id == last.run_id
        shown = await results_shown(trip, last.run_id)
        assert [kind for kind, _ in shown] == ["tool", "client", "client", "denied"]
        assert shown[2][1] == "no network"
        assert "too dear" in shown[3][1]
        assert killable.count(f"pay-{trip.id}") == 0
        assert killable.count(f"look_up-{trip.id}") == 1, "not run again for the fork"
        await check(trip)


async def killed_and_back(pair: Pair) -> None:
    pair.broker.kill()
    await pair.broker.restart()


# --- scenario 5 ---


async def test_scenario_5_with_the_same_id_of_the_provider(client: TurngateClient) -> None:
    """Scenario 5, X5, T3: the call gets an id of its own, and asks afresh in every turn, also in
    one that is a copy: regenerated, or edited to the same text."""
    async with talk(client, "same_call") as trip:
        sent = await trip.session.send("Go")
        (one,) = await trip.parked(sent.run_id)
        first = await trip.session.settle(one, city("Visby"))
        assert await trip.completed(first.run_id) == "Visby (accepted)"
        second_run, (two,) = await trip.start_parked("Go")
        seen = {one.id, two.id}
        calls = {one.call_id, two.call_id}
        again = (await trip.session.regenerate(first.run_id)).run.id
        (three,) = await trip.parked(again)
        edit = await trip.session.send("Go", edits_message_id=sent.message_id)
        (four,) = await trip.parked(edit.run_id)
        seen |= {three.id, four.id}
        calls |= {three.call_id, four.call_id}
        assert len(seen) == len(calls) == 4, "four questions"

        for run_id, foreign in ((second_run, one), (again, two), (edit.run_id, three)):
            await refusal(
                trip.session.settle(call_in(run_id, foreign), city("x")), "TOOL_CALL_NOT_IN_RUN"
            )
        error = await refusal(trip.session.settle(one, city("Ystad")), "ALREADY_SETTLED")
        assert error.metadata["run_id"] == first.run_id
        for question, where in ((four, "d"), (three, "c"), (two, "b")):
            settled = await trip.session.settle(question, city(where))
            assert await trip.completed(settled.run_id) == f"{where} (accepted)"
        await check(trip)


async def test_scenario_5_a_grant_of_turn_1_counts_and_its_answer_does_not(
    client: TurngateClient, pair: Pair
) -> None:
    """Scenario 5, A3, X1: the form asks again; the payment that was approved passes."""
    async with talk(client, "pays_in_every_turn") as trip:
        _, (form, payment) = await trip.start_parked("form")
        await trip.session.approve(payment)
        first = await trip.session.settle(form, city("Visby"))
        assert await trip.completed(first.run_id) == "done"
        run_id, (again,) = await trip.start_parked("form")
        assert again.tool_name == "request_input", "only the form is asked"
        assert again.id != form.id
        await trip.until(
            lambda view: pair.count(f"paid-{trip.id}") == 2 or None, "the second payment"
        )
        second = await trip.session.settle(again, {"action": "decline"})
        assert second.superseded_run_id == run_id
        assert await trip.completed(second.run_id) == "done"
        assert pair.count(f"paid-{trip.id}") == 2
        await check(trip)


async def test_scenario_5_the_first_question_expired(client: TurngateClient) -> None:
    """Scenario 5, I4, F6: its late answer is not that of the identical question that is open."""
    config = SessionConfig(agent="form", interaction_expires_after=Duration(seconds=2))
    async with talk(client, "form", config=config) as trip:
        run_id, (old,) = await trip.start_parked()
        assert (await trip.completed(run_id)).endswith("No trip: expired.")
        _, (new,) = await trip.start_parked()
        assert new.arguments_json == old.arguments_json
        for ref in (old, call_in(run_id, old)):
            await refusal(trip.session.settle(ref, VISBY), "INTERACTION_EXPIRED")
        settled = await trip.session.settle(new, VISBY)
        assert (await trip.completed(settled.run_id)).endswith("Off to Visby.")
        log = await log_of(trip.session)
        assert len(of_kind(log, "answer_added")) == 1
        await check(trip)
