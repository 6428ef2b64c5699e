"""Killed at any moment (scenario 6): no acknowledged thing is lost, no effect is doubled."""

from __future__ import annotations

import signal

import pytest

from tests.e2e.conftest import StartPair
from tests.e2e.pair import Pair
from tests.e2e.talk import (
    VISBY,
    Talk,
    file_came,
    log_of,
    of_kind,
    recorded,
    states,
    talk,
)
from turngate.v1 import message_pb2, run_pb2
from turngate_client import fold
from turngate_client.interactions import PlainJson

WORDS = "The first words have come, and now a word ends."


async def causes(trip: Talk, run_id: str) -> list[str]:
    """Why the run's state changed, where a change says so."""
    return [
        run_pb2.RunChangeCause.Name(event.run_state_changed.cause).removeprefix("RUN_CHANGE_CAUSE_")
        for event in of_kind(await log_of(trip.session), "run_state_changed")
        if event.run_state_changed.run_id == run_id and event.run_state_changed.cause
    ]


@pytest.mark.parametrize(("moment", "effects"), [("before", 0), ("after", 1)])
async def test_S1_runner_killed_in_a_step_with_an_effect(
    killable: Pair, moment: str, effects: int
) -> None:
    """Before or after its effect: the call is `outcome_unknown`, and is never started again."""
    async with killable.client() as client, talk(client, "effect") as trip:
        run_id = await trip.start()
        if moment == "after":
            killable.open_gate(f"before-{trip.id}")
            await file_came(killable.file(f"charged-{trip.id}"))
        else:
            await file_came(killable.file(f"started-{trip.id}"))
        killable.runner.kill()
        for gate in ("before", "after"):
            killable.open_gate(f"{gate}-{trip.id}")
        await killable.runner.restart()
        assert await trip.completed(run_id) == "I charge. Charge: outcome_unknown."
        assert killable.count(f"charge-{trip.id}") == effects
        log = await log_of(trip.session)
        assert len(of_kind(log, "tool_started")) == 1
        (result,) = [e.tool_result_added.result for e in of_kind(log, "tool_result_added")]
        assert result.kind == message_pb2.RESULT_KIND_OUTCOME_UNKNOWN
        completed = [e.message_completed.message for e in of_kind(log, "message_completed")]
        assert len(completed) == 2, "the model is not asked again for a complete message (R3)"


async def test_S1_a_tool_that_is_declared_idempotent_runs_again_with_the_same_key(
    killable: Pair,
) -> None:
    async with killable.client() as client, talk(client, "idempotent_effect") as trip:
        run_id = await trip.start()
        killable.open_gate(f"before-{trip.id}")
        await file_came(killable.file(f"charged-{trip.id}"))
        killable.runner.kill()
        killable.open_gate(f"after-{trip.id}")
        await killable.runner.restart()
        assert await trip.completed(run_id) == "I charge. Charge: done."
        keys = killable.file(f"keys-{trip.id}").read_text().split()
        assert len(keys) == 2
        assert keys[0] == keys[1]
        assert trip.id in keys[0]
        assert await causes(trip, run_id) == ["ATTEMPT_LOST"]


async def test_R3_text_that_was_being_written_is_withdrawn_and_written_anew(
    killable: Pair,
) -> None:
    async with killable.client() as client, talk(client, "gated") as trip:
        run_id = await trip.start()
        await trip.text_came(run_id, "now a wo")
        killable.runner.kill()
        await trip.until(lambda view: not view.drafts, "the text to be withdrawn")
        assert trip.view.text(run_id) == ""
        killable.open_gate(f"go-{trip.id}")
        await killable.runner.restart()
        text = await trip.completed(run_id)
        assert text.startswith(WORDS)
        assert text.count("The first words") == 1
        log = await log_of(trip.session)
        begun = [e.message_started for e in of_kind(log, "message_started")]
        assert len({one.message_id for one in begun}) == len(begun) == 2
        assert begun[0].attempt < begun[1].attempt
        (withdrawn,) = of_kind(log, "message_withdrawn")
        assert withdrawn.message_withdrawn.message_id == begun[0].message_id
        assert fold(log).text(run_id) == text


async def test_S2_broker_killed_while_text_streams(killable: Pair) -> None:
    """W1: whoever watches goes on by cursor, without gap or duplicate, and the run goes on."""
    async with (
        killable.client() as client,
        talk(client, "gated") as trip,
        recorded(client, trip.id) as recorder,
    ):
        run_id = await trip.start()
        await trip.text_came(run_id, "now a wo")
        killable.broker.kill()
        await killable.broker.restart()
        killable.open_gate(f"go-{trip.id}")
        text = await trip.completed(run_id)
        assert text.startswith(WORDS)
        log = await log_of(trip.session)
        await recorder.until(len(log))
        assert recorder.breaks, "the watch was cut off"
        assert recorder.events == log
        assert states(log, run_id)[-1] == "COMPLETED"
        assert await causes(trip, run_id) == ["ATTEMPT_LOST"]


async def test_E4_broker_killed_right_after_an_answer_was_acknowledged(killable: Pair) -> None:
    async with (
        killable.client() as client,
        talk(client, "form") as trip,
        recorded(client, trip.id) as recorder,
    ):
        _, (form,) = await trip.start_parked()
        answered = await trip.session.settle(form, VISBY, request_id="a1")
        killable.broker.kill()
        await killable.broker.restart()
        again = await trip.session.settle(form, VISBY, request_id="a1")
        assert again == answered, "E1: the first answer again, also after a crash"
        assert await trip.completed(answered.run_id) == "Where to? Off to Visby."
        log = await log_of(trip.session)
        await recorder.until(len(log))
        assert recorder.events == log
        assert len(of_kind(log, "run_created")) == 2


async def test_I3_broker_killed_while_parked(killable: Pair) -> None:
    async with killable.client() as client, talk(client, "form") as trip:
        run_id, (form,) = await trip.start_parked()
        held = await trip.session.send("hello?")
        before = await log_of(trip.session)
        killable.broker.kill()
        await killable.broker.restart()
        assert await log_of(trip.session) == before, "a restart changes nothing"
        (waiting,) = await trip.session.open_interactions()
        assert waiting.id == form.id
        (queued,) = (await trip.session.held_messages()).messages
        assert queued.message.id == held.message_id
        answered = await trip.session.settle(form, VISBY)
        assert answered.superseded_run_id == run_id
        await trip.completed(answered.run_id)
        await trip.until(lambda view: held.message_id in view.prompts, "the message to enter")


async def test_I3_an_answer_after_a_restart_of_both_services_goes_on(killable: Pair) -> None:
    async with killable.client() as client, talk(client, "four") as trip:
        _, (form, connection, payment) = await trip.start_parked()
        first = await trip.session.settle(form, VISBY)
        killable.broker.kill()
        killable.runner.kill()
        await killable.runner.restart()
        await killable.broker.restart()
        connected: PlainJson = {"connected": True, "integration": "calendar"}
        second = await trip.session.settle(connection, connected)
        assert (second.run_id, second.fork_opened) == (first.run_id, False)
        await trip.session.approve(payment)
        await trip.completed(first.run_id)
        assert killable.count(f"look_up-{trip.id}") == 1
        assert killable.count(f"pay-{trip.id}") == 1


async def test_I3_a_clean_restart_of_both_services_while_parked(killable: Pair) -> None:
    async with killable.client() as client, talk(client, "form") as trip:
        _, (form,) = await trip.start_parked()
        assert await killable.broker.stop() == 0
        assert await killable.runner.stop() == 0
        await killable.runner.restart()
        await killable.broker.restart()
        answered = await trip.session.settle(form, VISBY)
        assert await trip.completed(answered.run_id) == "Where to? Off to Visby."


async def test_I3_an_answer_while_the_runner_is_down_goes_on_when_it_is_up(
    killable: Pair,
) -> None:
    async with killable.client() as client, talk(client, "form") as trip:
        _, (form,) = await trip.start_parked()
        killable.runner.kill()
        answered = await trip.session.settle(form, VISBY)
        held = await trip.session.send("still there?")
        assert held.held.waits_for_run_id == answered.run_id
        await killable.runner.restart()
        assert await trip.completed(answered.run_id) == "Where to? Off to Visby."


async def test_R3_a_runner_that_comes_back_from_a_freeze_changes_nothing(
    start_pair: StartPair,
) -> None:
    """S2: it is silent for too long, the attempt is lost; what it writes later is refused."""
    pair = start_pair(broker_flags=("--silent-runner=1",))
    async with pair.client() as client, talk(client, "gated") as trip:
        run_id = await trip.start()
        await trip.text_came(run_id, "now a wo")
        pair.runner.signal(signal.SIGSTOP)
        await trip.until(lambda view: not view.drafts, "the frozen attempt to be given up")
        pair.open_gate(f"go-{trip.id}")
        pair.runner.signal(signal.SIGCONT)
        text = await trip.completed(run_id)
        assert text.startswith(WORDS)
        assert "Attempt 1." not in text
        log = await log_of(trip.session)
        assert "Attempt 1." not in "".join(e.text_delta.text for e in of_kind(log, "text_delta"))
        assert states(log, run_id)[-1] == "COMPLETED"


async def test_R6_a_run_whose_attempts_are_all_lost_fails_by_name(start_pair: StartPair) -> None:
    pair = start_pair(broker_flags=("--runner-retries=1",))
    async with pair.client() as client, talk(client, "gated") as trip:
        run_id = await trip.start()
        await trip.text_came(run_id, "now a wo")
        held = await trip.session.send("next")
        pair.runner.kill()
        failed = await trip.ended(run_id)
        assert failed.run.failure.reason == run_pb2.RUN_FAILURE_REASON_ATTEMPTS_EXHAUSTED
        await pair.runner.restart()
        pair.open_gate(f"go-{trip.id}")
        await trip.until(lambda view: held.message_id in view.prompts, "the queue to go on")
        (next_run,) = trip.view.children(held.message_id)
        assert (await trip.completed(next_run)).startswith(WORDS)


async def test_S1_broker_killed_in_a_step_with_an_effect(killable: Pair) -> None:
    """The runner lives on, but its attempt is over: one effect, and the outcome is unknown."""
    async with killable.client() as client, talk(client, "effect") as trip:
        run_id = await trip.start()
        killable.open_gate(f"before-{trip.id}")
        await file_came(killable.file(f"charged-{trip.id}"))
        killable.broker.kill()
        killable.open_gate(f"after-{trip.id}")
        await killable.broker.restart()
        assert (await trip.completed(run_id)).startswith("I charge. Charge: ")
        assert killable.count(f"charge-{trip.id}") == 1
        assert len(of_kind(await log_of(trip.session), "tool_started")) == 1


async def test_A2_runner_killed_before_an_approved_tool_ran(killable: Pair) -> None:
    """An approval that was acknowledged is not lost: the tool runs once the runner is back."""
    async with killable.client() as client, talk(client, "pay") as trip:
        run_id, (approval,) = await trip.start_parked()
        killable.runner.kill()
        await trip.session.approve(approval)
        await killable.runner.restart()
        assert await trip.completed(run_id) == "Paid, number 1."
        assert killable.count(f"pay-{trip.id}") == 1
