"""The queue gate over the wire: what is sent meanwhile waits, in order, and is never lost."""

from __future__ import annotations

import asyncio

from tests.e2e.pair import Pair
from tests.e2e.talk import (
    DEADLINE_SECONDS,
    VISBY,
    Talk,
    log_of,
    of_kind,
    refusal,
    state_of,
    states,
    talk,
)
from turngate.v1 import broker_pb2, run_pb2, session_pb2
from turngate.v1.event_pb2 import SessionEvent
from turngate_client import TurngateClient

STARTED = broker_pb2.SEND_OUTCOME_STARTED
HELD = broker_pb2.SEND_OUTCOME_HELD


async def entered_run(trip: Talk, message_id: str) -> str:
    """The run of a message, once it has entered."""

    def found(view: object) -> str | None:
        runs = trip.view.children(message_id) if message_id in trip.view.prompts else []
        return runs[0] if runs else None

    return await trip.until(found, f"message {message_id} to enter")


async def test_scenario_3_text_while_a_form_is_open(client: TurngateClient, pair: Pair) -> None:
    """G1, G2, G5: two clients send while parked; both are held, and enter one after the other."""
    async with (
        pair.client("bob", "phone") as phone,
        talk(client, "chat") as trip,
        talk(client, "gated") as other,
    ):
        streaming = await other.start()
        await other.text_came(streaming, "now a wo")
        run_id, (form,) = await trip.start_parked("A trip")

        one, two = await asyncio.gather(
            trip.session.send("actually in euro"), phone.session(trip.id).send("hello?")
        )
        assert (one.outcome, two.outcome) == (HELD, HELD)
        held = (await trip.session.held_messages()).messages
        assert {m.message.id for m in held} == {one.message_id, two.message_id}
        assert {m.message.author for m in held} == {"ann", "bob"}
        for message in held:
            assert message.reason == session_pb2.HOLD_REASON_INTERACTION_OPEN
            assert list(message.waits_for_interaction_ids) == [form.id]
            assert message.waits_for_run_id == run_id
        first, second = held
        assert trip.view.open_interactions() == [form], "the form stays open"
        assert state_of(trip.view, run_id) == run_pb2.RUN_STATE_PARKED
        assert list(trip.view.runs) == [run_id], "nothing runs"

        answered = await trip.session.settle(form, VISBY)
        first_run = await entered_run(trip, first.message.id)
        second_run = await entered_run(trip, second.message.id)
        said = {one.message_id: "actually in euro", two.message_id: "hello?"}
        assert await trip.completed(first_run) == f"You said: {said[first.message.id]}"
        assert await trip.completed(second_run) == f"You said: {said[second.message.id]}"

        log = await log_of(trip.session)
        ends = [
            event.run_state_changed.run_id
            for event in of_kind(log, "run_state_changed")
            if event.run_state_changed.state == run_pb2.RUN_STATE_COMPLETED
        ]
        assert ends == [answered.run_id, first_run, second_run]
        assert place(log, ends[0]) < entry(log, first.message.id), "the resumed run ends first"
        assert place(log, first_run) < entry(log, second.message.id), "then one after the other"
        hold = [e.hold_changed for e in of_kind(log, "hold_changed")]
        assert (first.message.id, session_pb2.HOLD_REASON_RUN_ACTIVE) in [
            (change.message_id, change.reason) for change in hold
        ], "the hold by the form becomes one by the resumed run (G2)"

        pair.open_gate(f"go-{other.id}")
        assert (await other.completed(streaming)).endswith("a word ends. Attempt 1.")


def place(log: list[SessionEvent], run_id: str) -> int:
    """The position at which a run was completed."""
    (found,) = [
        event.position
        for event in of_kind(log, "run_state_changed")
        if event.run_state_changed.run_id == run_id
        and event.run_state_changed.state == run_pb2.RUN_STATE_COMPLETED
    ]
    return found


def entry(log: list[SessionEvent], message_id: str) -> int:
    """The position at which a message entered."""
    (found,) = [
        event.position
        for event in of_kind(log, "prompt_added")
        if event.prompt_added.message.id == message_id
    ]
    return found


async def test_G1_what_is_sent_while_a_run_streams_is_held_by_that_run(
    client: TurngateClient, pair: Pair
) -> None:
    async with talk(client, "gated") as trip:
        run_id = await trip.start()
        await trip.text_came(run_id, "now a wo")
        held = await trip.session.send("me too")
        assert held.outcome == HELD
        assert held.held.reason == session_pb2.HOLD_REASON_RUN_ACTIVE
        assert held.held.waits_for_run_id == run_id
        pair.open_gate(f"go-{trip.id}")
        await trip.completed(await entered_run(trip, held.message_id))


async def test_G3_held_messages_are_edited_by_their_author_and_removed_without_being_sent(
    client: TurngateClient, pair: Pair
) -> None:
    async with pair.client("bob") as phone, talk(client, "chat") as trip:
        _, (form,) = await trip.start_parked("A trip")
        kept = await trip.session.send("first version")
        gone = await trip.session.send("never mind")
        await refusal(
            phone.session(trip.id).update_held(kept.message_id, "not mine"), "NOT_THE_AUTHOR"
        )
        await trip.session.update_held(kept.message_id, "second version")
        await trip.session.remove_held(gone.message_id)
        await refusal(trip.session.remove_held("msg_unknown"), "HELD_MESSAGE_NOT_FOUND")
        await trip.session.settle(form, VISBY)
        run_id = await entered_run(trip, kept.message_id)
        assert await trip.completed(run_id) == "You said: second version"
        log = await log_of(trip.session)
        texts = [e.prompt_added.message.parts[0].text.text for e in of_kind(log, "prompt_added")]
        assert texts == ["A trip", "second version"]


async def test_G4_a_sender_that_will_not_wait_is_refused_by_name(client: TurngateClient) -> None:
    async with talk(client, "form") as trip:
        run_id, _ = await trip.start_parked()
        error = await refusal(
            trip.session.send("now or never", on_busy=session_pb2.ON_BUSY_REJECT), "SESSION_BUSY"
        )
        assert error.metadata["run_id"] == run_id
        assert not (await trip.session.held_messages()).messages


async def test_G2_after_two_failures_in_a_row_the_queue_pauses_until_it_is_resumed(
    client: TurngateClient, pair: Pair
) -> None:
    """Nothing goes on by itself; `ResumeQueue` lets it."""
    async with talk(client, "failing") as trip:
        sent = [await trip.session.send(f"message {number}") for number in range(4)]
        pair.open_gate(f"go-{trip.id}")
        paused = await trip.until(lambda view: view.queue_pause, "the queue to pause")
        assert paused.reason == session_pb2.QUEUE_PAUSE_REASON_FAILURES
        held = (await trip.session.held_messages()).messages
        assert [m.message.id for m in held] == [sent[2].message_id, sent[3].message_id]
        assert held[0].reason == session_pb2.HOLD_REASON_QUEUE_PAUSED
        failures = [
            view.run.failure for view in trip.view.runs.values() if view.run.HasField("failure")
        ]
        assert [f.reason for f in failures] == [
            run_pb2.RUN_FAILURE_REASON_MODEL_UNAVAILABLE,
            run_pb2.RUN_FAILURE_REASON_MODEL_UNAVAILABLE,
        ]
        assert failures[0].message == "the provider is down"

        pair.open_gate(f"up-{trip.id}")
        assert trip.view.queue_pause is not None, "nothing goes on by itself"
        run_id = await trip.session.resume_queue()
        assert await trip.completed(run_id) == "You said: message 2"
        last = await entered_run(trip, sent[3].message_id)
        assert await trip.completed(last) == "You said: message 3"
        assert trip.view.queue_pause is None
        assert await trip.session.resume_queue() == "", "C5: what holds already answers OK"


async def test_G2_a_new_message_ends_the_pause_too(client: TurngateClient, pair: Pair) -> None:
    async with talk(client, "failing") as trip:
        for number in range(3):
            await trip.session.send(f"message {number}")
        pair.open_gate(f"go-{trip.id}")
        await trip.until(lambda view: view.queue_pause, "the queue to pause")
        pair.open_gate(f"up-{trip.id}")
        last = await trip.session.send("try again")
        await trip.completed(await entered_run(trip, last.message_id))
        texts = [trip.view.text(run_id) for run_id in trip.view.runs]
        assert texts[2:] == ["You said: message 2", "You said: try again"]


async def test_E1_the_same_message_sent_three_times_enters_once(client: TurngateClient) -> None:
    async with talk(client, "echo") as trip:
        answers = [
            await trip.session.send("hello", message_id="mine", request_id="r1") for _ in range(3)
        ]
        assert answers[0] == answers[1] == answers[2]
        assert answers[0].message_id == "mine"
        await refusal(trip.session.send("hello!", request_id="r1"), "REQUEST_ID_REUSED")
        await refusal(trip.session.send("other", message_id="mine"), "MESSAGE_ID_TAKEN")
        await trip.completed(answers[0].run_id)
        log = await log_of(trip.session)
        assert len(of_kind(log, "prompt_added")) == 1
        assert states(log, answers[0].run_id) == ["RUNNING", "COMPLETED"]


async def test_messages_of_many_clients_enter_each_once(client: TurngateClient) -> None:
    """G1, E1: twenty at the same instant; each gets its run, in the order in which it came."""
    async with talk(client, "echo") as trip, asyncio.timeout(DEADLINE_SECONDS):
        sent = await asyncio.gather(*(trip.session.send(f"n{n}") for n in range(20)))
        for one in sent:
            await trip.completed(one.run_id or await entered_run(trip, one.message_id))
        log = await log_of(trip.session)
        entered = [e.prompt_added.message.id for e in of_kind(log, "prompt_added")]
        assert sorted(entered) == sorted(one.message_id for one in sent)
        held = [e.message_held.held.message.id for e in of_kind(log, "message_held")]
        assert [m for m in entered if m in held] == held, "first in, first out"
