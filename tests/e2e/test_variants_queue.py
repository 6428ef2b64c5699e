"""Variants of scenarios 3, 8, 10, 11 and 18: held messages, deadlines, branches that are left."""

from __future__ import annotations

import asyncio

import pytest
from google.protobuf.duration_pb2 import Duration

from tests.e2e.conftest import StartPair
from tests.e2e.pair import Pair
from tests.e2e.talk import of_kind, refusal, state_of, talk
from tests.e2e.variants import (
    all_over,
    answer_twice,
    check,
    city,
    entered,
    frozen,
    result_kinds,
    run_of,
)
from turngate.v1 import broker_pb2, interaction_pb2, run_pb2, session_pb2
from turngate.v1.session_pb2 import SessionConfig
from turngate_client import TurngateClient

INTERRUPT = session_pb2.ON_BUSY_INTERRUPT
SOON = Duration(seconds=1)


async def test_scenario_3_one_form_is_cancelled_and_a_third_message_interrupts(
    client: TurngateClient,
) -> None:
    async with talk(client, "two_forms") as trip:
        run_id, (where, when) = await trip.start_parked()
        one = await trip.session.send("one")
        two = await trip.session.send("two")
        await trip.session.cancel_interaction(where)
        held, _ = (await trip.session.held_messages()).messages
        assert list(held.waits_for_interaction_ids) == [when.id]
        await refusal(trip.session.settle(where, city("x")), "INTERACTION_CANCELLED")
        third = await trip.session.send("three", on_busy=INTERRUPT)
        assert third.run_id, "what only waits is cancelled at once"
        assert (await trip.ended(run_id)).run.state == run_pb2.RUN_STATE_CANCELLED
        await refusal(trip.session.settle(when, city("x")), "INTERACTION_CANCELLED")
        for message_id in (third.message_id, one.message_id, two.message_id):
            entered_run = await run_of(trip, message_id)
            await trip.parked(entered_run)
            await trip.session.cancel_run(entered_run)
        assert entered(await check(trip)) == ["Go", "three", "one", "two"]


async def test_scenario_3_the_form_expires(client: TurngateClient) -> None:
    config = SessionConfig(agent="chat", interaction_expires_after=SOON)
    async with talk(client, "chat", config=config) as trip:
        _, (form,) = await trip.start_parked("trip")
        for text in ("one", "two", "three"):
            await trip.session.send(text)
        await all_over(trip)
        await refusal(trip.session.settle(form, city("x")), "INTERACTION_EXPIRED")
        log = await check(trip)
        assert entered(log) == ["trip", "one", "two", "three"]
        assert len(of_kind(log, "run_created")) == 4, "expiry resumes in place (R5)"


@pytest.mark.parametrize(
    ("policy", "text", "kind"),
    [
        (interaction_pb2.EXPIRY_POLICY_FAIL_CALL, "Visby: expired -", "EXPIRED"),
        (interaction_pb2.EXPIRY_POLICY_DENY, "Visby: denied -", "DENIED"),
        (interaction_pb2.EXPIRY_POLICY_CANCEL_RUN, "", "EXPIRED"),
    ],
)
async def test_I4_expiry_of_what_two_forks_wait_for(
    client: TurngateClient,
    pair: Pair,
    policy: interaction_pb2.ExpiryPolicy.ValueType,
    text: str,
    kind: str,
) -> None:
    config = SessionConfig(
        agent="form_and_payment",
        interaction_expires_after=Duration(seconds=2),
        on_expiry=policy,
    )
    async with talk(client, "form_and_payment", config=config) as trip:
        pair.open_gate(f"pay-gate-{trip.id}")
        _, (form, payment) = await trip.start_parked()
        held = await trip.session.send("next")
        fork, other = await answer_twice(trip, pair, form)
        await trip.ended(other.run_id)
        await trip.ended(fork.run_id)
        assert trip.view.text(fork.run_id) == text
        shown = await trip.session.transcript(fork.run_id)
        assert result_kinds(shown) == ["CLIENT", kind]
        await refusal(trip.session.approve(payment), "INTERACTION_EXPIRED")
        if policy == interaction_pb2.EXPIRY_POLICY_CANCEL_RUN:
            await refusal(trip.session.settle(form, city("late")), "RUN_CANCELLED")
        await run_of(trip, held.message_id)
        assert pair.count(f"paid-{trip.id}") == 0
        await check(trip)


async def test_D1_a_deadline_that_has_nothing_to_settle_stops_nobody(
    client: TurngateClient,
) -> None:
    """An undeclared tool that was given up once in the turn, and has its notice already (D2)."""
    config = SessionConfig(agent="stubborn", unclaimed_after=SOON)
    async with talk(client, "stubborn", config=config) as trip:
        run_id, (first,) = await trip.start_parked()
        await trip.session.report_unhandled(first)
        (question,) = await trip.until(
            lambda view: [i for i in view.open_interactions() if i.id != first.id] or None,
            "the third question",
        )
        # Another session's expiry comes later than that deadline: the sweep goes on, too.
        expiring = SessionConfig(agent="form", interaction_expires_after=Duration(seconds=2))
        async with talk(client, "form", config=expiring) as later:
            late, _ = await later.start_parked()
            assert (await later.completed(late)).endswith("No trip: expired.")
        answered = await trip.session.settle(question, city("x"))
        assert await trip.completed(answered.run_id) == "not_handled unsupported answered"
        assert run_id == answered.superseded_run_id
        await check(trip)


async def test_D2_forms_of_a_wrong_shape_are_settled_once_a_turn(client: TurngateClient) -> None:
    """Scenario 10: the third one stays open with a notice, and takes any object, twice."""
    async with talk(client, "nested_forms") as trip:
        await trip.start()
        (noticed,) = await trip.until(lambda view: view.open_interactions() or None, "a question")
        assert noticed.notice == interaction_pb2.INTERACTION_NOTICE_UNSUPPORTED_PAYLOAD
        await refusal(trip.session.settle(noticed, [1]), "INVALID_ANSWER")
        fork = await trip.session.settle(noticed, {"anything": {"deep": 1}})
        other = await trip.session.settle(noticed, {"action": "decline"})
        for run, outcome in ((fork, "answered"), (other, "declined")):
            (good,) = await trip.parked(run.run_id)
            await refusal(trip.session.settle(good, {"anything": 1}), "INVALID_ANSWER")
            last = await trip.session.settle(good, city("Visby"))
            text = await trip.completed(last.run_id)
            assert text == f"unsupported unsupported {outcome} accepted"
        await check(trip)


@pytest.mark.parametrize(
    ("how", "order"),
    [
        ("resume", ["one", "two", "three", "four"]),
        ("send", ["one", "two", "three", "four", "five"]),
        ("interrupt", ["one", "two", "five", "three", "four"]),
        ("edit", ["one", "two", "five", "three", "four"]),
        ("retry", ["one", "two", "three", "four"]),
    ],
)
async def test_G2_what_ends_a_pause(
    client: TurngateClient, pair: Pair, how: str, order: list[str]
) -> None:
    """An edit leaves the branch: what is held there waits until it is selected again."""
    async with talk(client, "failing") as trip:
        await trip.session.send("one")
        two = await trip.session.send("two")
        for text in ("three", "four"):
            await trip.session.send(text)
        pair.open_gate(f"go-{trip.id}")
        await trip.until(lambda view: view.queue_pause, "the pause")
        pair.open_gate(f"up-{trip.id}")
        failed = await run_of(trip, two.message_id)
        match how:
            case "resume":
                assert await trip.session.resume_queue()
                assert await trip.session.resume_queue() == "", "no pause, nothing changes"
            case "send":
                assert (await trip.session.send("five")).held.message.id
            case "interrupt":
                assert (await trip.session.send("five", on_busy=INTERRUPT)).run_id
            case "edit":
                edit = await trip.session.send("five", edits_message_id=two.message_id)
                await trip.completed(edit.run_id)
                assert len(trip.view.held_messages) == 2
                await trip.session.select_branch(failed)
            case _:
                retry = await trip.session.retry(failed)
                assert (await trip.session.retry(failed)).run.id == retry.run.id
        await all_over(trip)
        assert entered(await check(trip)) == order


async def test_R6_held_messages_follow_a_second_retry(client: TurngateClient, pair: Pair) -> None:
    """The first one was stopped with `KEEP`; the second takes its place and its queue (G1)."""
    async with talk(client, "failing") as trip:
        pair.open_gate(f"go-{trip.id}")
        failed = await trip.start()
        await trip.ended(failed)
        pair.file(f"go-{trip.id}").unlink()
        first = (await trip.session.retry(failed)).run.id
        held = await trip.session.send("next")
        await trip.session.cancel_run(first, held=broker_pb2.HELD_MESSAGES_KEEP)
        await trip.ended(first)
        assert trip.view.held_messages, "kept"
        for gate in ("up", "go"):
            pair.open_gate(f"{gate}-{trip.id}")
        second = (await trip.session.retry(failed)).run.id
        await trip.completed(second)
        await trip.completed(await run_of(trip, held.message_id))
        assert trip.view.parent_of(held.message_id) == second
        await check(trip)


async def test_C1_stop_and_then_keep_what_is_held(client: TurngateClient, pair: Pair) -> None:
    """The second stop comes while the run is still being cancelled; it counts, too."""
    async with talk(client, "gated") as trip:
        run_id = await trip.start()
        await trip.text_came(run_id, "now a wo")
        await trip.session.send("next")
        with frozen(pair.runner):
            await trip.session.cancel_run(run_id)
            await trip.session.cancel_run(run_id, held=broker_pb2.HELD_MESSAGES_KEEP)
        await trip.ended(run_id)
        queue = await trip.session.held_messages()
        assert queue.queue_pause.reason == session_pb2.QUEUE_PAUSE_REASON_CANCELLED
        assert len(queue.messages) == 1
        await check(trip)


async def test_scenario_11_every_result_lands_on_its_own_branch(client: TurngateClient) -> None:
    """Edit, regenerate, answer what is not selected, switch: what is held waits with its branch."""
    async with talk(client, "chain") as trip:
        one = await trip.session.send("plain one")
        await trip.completed(one.run_id)
        two = await trip.session.send("plain two")
        await trip.completed(two.run_id)
        three = await trip.session.send("form")
        (old,) = await trip.parked(three.run_id)
        held = await trip.session.send("plain held")
        edit = await trip.session.send("form, edited", edits_message_id=two.message_id)
        (new,) = await trip.parked(edit.run_id)
        held_there = await trip.session.send("plain held there")
        other = (await trip.session.regenerate(one.run_id)).run.id
        await trip.completed(other)

        fork = (await trip.session.settle(old, city("a"))).run_id
        (next_one,) = await trip.parked(fork)
        last = (await trip.session.settle(next_one, city("b"))).run_id
        assert await trip.completed(last) == "One. Two. a to b."
        assert trip.view.selected_node_id == other, "an answer elsewhere selects nothing (F2)"
        assert len(trip.view.held_messages) == 2, "nothing runs unseen (G2)"

        await trip.session.select_branch(two.message_id)
        await trip.completed(await run_of(trip, held.message_id))
        assert trip.view.parent_of(held.message_id) == last
        await trip.session.select_branch(new.message_id)
        fork = (await trip.session.settle(new, city("c"))).run_id
        (next_one,) = await trip.parked(fork)
        await trip.session.cancel_interaction(next_one)
        assert await trip.completed(fork) == "One. Two. c to ?."
        await trip.completed(await run_of(trip, held_there.message_id))
        assert trip.view.parent_of(held_there.message_id) == fork
        await check(trip)


async def test_G1_messages_to_a_branch_that_is_not_selected(client: TurngateClient) -> None:
    """They run there, the interrupting one first, and nothing is selected by it."""
    async with talk(client, "chain") as trip:
        one = await trip.session.send("form")
        (form,) = await trip.parked(one.run_id)
        edit = await trip.session.send("plain", edits_message_id=one.message_id)
        await trip.completed(edit.run_id)
        held = await trip.session.send("plain two", branch_node_id=one.message_id)
        assert held.held.branch_named
        assert held.held.waits_for_run_id == one.run_id
        first = await trip.session.send(
            "plain one", branch_node_id=form.message_id, on_busy=INTERRUPT
        )
        await trip.completed(first.run_id)
        await trip.completed(await run_of(trip, held.message_id))
        assert trip.view.parent_of(first.message_id) == one.run_id
        assert trip.view.parent_of(held.message_id) == first.run_id
        assert trip.view.selected_node_id == edit.run_id
        await refusal(trip.session.settle(form, city("x")), "INTERACTION_CANCELLED")
        await check(trip)


async def test_E3_a_full_queue_refuses_before_it_stops_anything(start_pair: StartPair) -> None:
    pair = start_pair(broker_flags=("--held-messages=2",))
    async with pair.client() as client, talk(client, "gated") as trip:
        run_id = await trip.start()
        await trip.text_came(run_id, "now a wo")
        await asyncio.gather(trip.session.send("one"), trip.session.send("two"))
        await refusal(trip.session.send("three", on_busy=INTERRUPT), "LIMIT_EXCEEDED")
        assert state_of(trip.view, run_id) == run_pb2.RUN_STATE_RUNNING
        pair.open_gate(f"go-{trip.id}")
        await trip.completed(run_id)
        await all_over(trip)
        await check(trip)


async def test_T3_a_message_takes_no_id_that_is_a_run_s_or_a_message_s(
    client: TurngateClient,
) -> None:
    async with talk(client, "two_forms") as trip:
        run_id, (form, _) = await trip.start_parked()
        prompt_id = trip.view.parent_of(run_id)
        for taken in (run_id, form.message_id, prompt_id):
            await refusal(trip.session.send("two", message_id=taken), "MESSAGE_ID_TAKEN")
        await trip.session.send("two", message_id="mine")
        again = await trip.session.send("two", message_id="mine")
        assert again.held.message.id == "mine", "C5: the same again is no second one"
        await refusal(trip.session.send("other", message_id="mine"), "MESSAGE_ID_TAKEN")
        await check(trip)
