"""Scenario 8: a stop closes everything, late answers start nothing, the model sees whole pairs."""

from __future__ import annotations

import json
import signal

import pytest

from tests.e2e.pair import Pair
from tests.e2e.talk import Talk, file_came, of_kind, refusal, state_of, states, talk, the
from tests.e2e.variants import answer_twice, call_in, check, city, entered, frozen, run_of
from turngate.v1 import broker_pb2, message_pb2, run_pb2, session_pb2
from turngate.v1.event_pb2 import SessionEvent
from turngate.v1.interaction_pb2 import INTERACTION_STATE_CANCELLED, Interaction
from turngate_client import TurngateClient

CANCELLED = run_pb2.RUN_STATE_CANCELLED
HELD = {"release": broker_pb2.HELD_MESSAGES_RELEASE, "keep": broker_pb2.HELD_MESSAGES_KEEP}


async def shown_results(trip: Talk, run_id: str) -> list[list[str]]:
    """The kinds of the results that the model was shown, of each message with calls (T4)."""
    found = []
    for message in json.loads(await trip.completed(run_id)):
        calls = [call["call_id"] for call in message.get("calls", ())]
        results = message.get("results", [])
        assert [result["call_id"] for result in results] == calls, "each call has its result"
        if calls:
            found.append([result["kind"] for result in results])
    return found


async def late_answers_are_refused(
    trip: Talk, pair: Pair, run_id: str, form: Interaction, scan: Interaction
) -> None:
    """By the phone and by the program, by whatever name. That a call cannot be shown, or is to be
    cancelled, is no longer of interest (C5)."""
    async with pair.client("bob", "phone") as phone:
        late = phone.session(trip.id)
        for ref in (form, call_in(run_id, form)):
            error = await refusal(late.settle(ref, city("late")), "INTERACTION_CANCELLED")
            assert error.metadata["interaction_id"] == form.id
        for ref in (scan, call_in(run_id, scan)):
            await refusal(late.settle(ref, {"pages": 2}), "INTERACTION_CANCELLED")
            await refusal(late.settle_error(ref, "no paper"), "INTERACTION_CANCELLED")
        await late.report_unhandled(scan)
        await late.cancel_interaction(form)


def place_of_end(log: list[SessionEvent], run_id: str) -> int:
    """The position at which a run was cancelled."""
    (found,) = [
        event.position
        for event in of_kind(log, "run_state_changed")
        if event.run_state_changed.run_id == run_id and event.run_state_changed.state == CANCELLED
    ]
    return found


@pytest.mark.parametrize("held", HELD)
async def test_scenario_8_stop_everywhere(client: TurngateClient, pair: Pair, held: str) -> None:
    """Scenario 8, C1, F6, T4: closed as cancelled, not denied; the inbox is empty; late answers are
    refused and start nothing; the next model request is well paired."""
    async with talk(client, "form_and_scan") as trip:
        run_id, waiting = await trip.start_parked()
        form, scan = the(waiting, "request_input"), the(waiting, "scan")
        waits = await trip.session.send("held")
        await trip.session.cancel_run(run_id, held=HELD[held])
        for question in (form, scan):
            closed = await trip.session.interaction(question.id)
            assert closed.state == INTERACTION_STATE_CANCELLED
            assert not closed.answers
        assert await trip.session.open_interactions() == []
        assert not [one async for one in client.interactions() if one.session_id == trip.id]
        await late_answers_are_refused(trip, pair, run_id, form, scan)
        if held == "keep":
            assert len(trip.view.runs) == 1, "nothing has begun"
        new = await trip.session.send("new")
        for message_id in (waits.message_id, new.message_id):
            seen = await shown_results(trip, await run_of(trip, message_id))
            assert seen == [["cancelled_by_user", "cancelled_by_user"]]
        log = await check(trip)
        assert entered(log) == ["Go", "held", "new"]
        assert states(log, run_id) == ["RUNNING", "PARKED", "CANCELLED"]
        closed_for = [e.interaction_closed.reason for e in of_kind(log, "interaction_closed")]
        assert closed_for == [message_pb2.RESULT_KIND_CANCELLED_BY_USER] * 2
        assert len(of_kind(log, "run_created")) == 3
        assert not of_kind(log, "answer_added")


async def test_scenario_8_while_text_streams(client: TurngateClient, pair: Pair) -> None:
    """Scenario 8, R1, G2: no held message enters before the run is really over."""
    async with talk(client, "gated_or_seen") as trip:
        run_id = await trip.start()
        await trip.text_came(run_id, "Now a wo")
        first = await trip.session.send("held")
        with frozen(pair.runner):
            await trip.session.cancel_run(run_id)
            await trip.session.cancel_run(run_id)  # C5: said twice
            urgent = await trip.session.send("urgent", on_busy=session_pb2.ON_BUSY_INTERRUPT)
            assert state_of(trip.view, run_id) == run_pb2.RUN_STATE_CANCELLING
            assert len(trip.view.runs) == 1, "nothing enters while it ends"
        for message_id in (urgent.message_id, first.message_id):
            assert await shown_results(trip, await run_of(trip, message_id)) == []
        log = await check(trip)
        assert entered(log) == ["Go", "urgent", "held"]
        second = of_kind(log, "prompt_added")[1]
        assert place_of_end(log, run_id) < second.position
        assert states(log, run_id) == ["RUNNING", "CANCELLING", "CANCELLED"]


@pytest.mark.parametrize("ends", ["in time", "with the runner"])
async def test_scenario_8_while_tools_with_effects_run(killable: Pair, ends: str) -> None:
    """Scenario 8, C1, S1: a result that comes is recorded, else the call is `outcome_unknown`; what
    was not asked yet is `cancelled_by_user`. Never is a started call told as cancelled."""
    async with killable.client() as client, talk(client, "charge_or_seen") as trip:
        run_id = await trip.start()
        for file in ("started", "searching"):
            await file_came(killable.file(f"{file}-{trip.id}"))
        held = await trip.session.send("held")
        if ends == "in time":
            await trip.session.cancel_run(run_id)
        else:
            killable.runner.signal(signal.SIGSTOP)
            await trip.session.cancel_run(run_id)
            killable.runner.kill()
            await killable.runner.restart()
        charged = "tool" if ends == "in time" else "outcome_unknown"
        seen = await shown_results(trip, await run_of(trip, held.message_id))
        assert seen == [[charged, "outcome_unknown", "cancelled_by_user"]]
        assert killable.count(f"charged-{trip.id}") == int(ends == "in time")
        log = await check(trip)
        assert place_of_end(log, run_id) < of_kind(log, "prompt_added")[1].position
        assert len(of_kind(log, "tool_started")) == 2


async def test_scenario_8_the_broker_is_killed_right_after_the_stop(killable: Pair) -> None:
    """Scenario 8, E4: what was stopped stays so, and the late answers are refused after it, too."""
    async with killable.client() as client, talk(client, "form_and_scan") as trip:
        run_id, waiting = await trip.start_parked()
        held = await trip.session.send("held")
        await trip.session.cancel_run(run_id, held=broker_pb2.HELD_MESSAGES_KEEP)
        killable.broker.kill()
        await killable.broker.restart()
        form, scan = the(waiting, "request_input"), the(waiting, "scan")
        await late_answers_are_refused(trip, killable, run_id, form, scan)
        assert await trip.session.open_interactions() == []
        assert len(trip.view.runs) == 1
        resumed = await trip.session.resume_queue()
        assert resumed == await run_of(trip, held.message_id)
        assert await shown_results(trip, resumed) == [["cancelled_by_user", "cancelled_by_user"]]
        assert not of_kind(await check(trip), "answer_added")


async def test_scenario_8_one_of_two_branches_is_stopped(
    client: TurngateClient, pair: Pair
) -> None:
    """Scenario 8, C1, F4: two answers were given; what is stopped by R's name is the first one's
    run, and the question that the other one still waits for stays open and counts."""
    async with talk(client, "form_and_scan") as trip:
        parked, waiting = await trip.start_parked()
        form, scan = the(waiting, "request_input"), the(waiting, "scan")
        fork, other = await answer_twice(trip, pair, form)
        stopped = await trip.session.cancel_run(parked)
        assert stopped.acted_on_run_id == fork.run_id
        assert [one.id for one in await trip.session.open_interactions()] == [scan.id]
        await refusal(trip.session.settle(call_in(parked, scan), [1]), "RUN_CANCELLED")
        await refusal(trip.session.settle(call_in(fork.run_id, scan), [1]), "RUN_CANCELLED")
        await refusal(trip.session.settle(form, city("third")), "RUN_CANCELLED")
        done = await trip.session.settle(call_in(other.run_id, scan), [1])
        assert done.run_id == other.run_id
        assert await trip.completed(other.run_id) == "Wait. accepted answered"
        assert trip.view.selected_node_id == fork.run_id, "nothing is selected by it"
        new = await trip.session.send("new")
        assert await shown_results(trip, await run_of(trip, new.message_id)) == [
            ["client", "cancelled_by_user"]
        ]
        await check(trip)
