"""A run that no runner takes says so, waits, and in the end fails by name (S2)."""

from __future__ import annotations

from tests.e2e.conftest import StartPair
from tests.e2e.pair import Pair
from tests.e2e.talk import log_of, of_kind, talk
from turngate.v1 import run_pb2
from turngate_client import TurngateClient


async def test_S2_a_run_that_no_runner_takes_says_so_and_goes_on_when_one_is_up(
    killable: Pair,
) -> None:
    killable.runner.kill()
    async with killable.client() as client, talk(client, "echo") as trip:
        run_id = await trip.start("anybody there?")
        await trip.unplaced(run_id)
        assert (await trip.session.run(run_id)).run.unplaced
        await killable.runner.restart()
        assert await trip.completed(run_id) == "You said: anybody there?"
        assert not trip.view.runs[run_id].run.unplaced
        marks = [
            e.run_state_changed.unplaced
            for e in of_kind(await log_of(trip.session), "run_state_changed")
        ]
        assert marks.count(True) == 1, "it is said once"


async def test_S2_a_run_that_no_runner_takes_fails_by_name_in_the_end(
    start_pair: StartPair,
) -> None:
    pair = start_pair(broker_flags=("--unplaced-limit=1.5",), start_runner=False)
    async with pair.client() as client, talk(client, "echo") as trip:
        run_id = await trip.start("anybody there?")
        held = await trip.session.send("and now?")
        failed = await trip.ended(run_id)
        assert failed.run.failure.reason == run_pb2.RUN_FAILURE_REASON_UNPLACED
        await trip.until(lambda view: held.message_id in view.prompts, "the queue to go on")


async def test_S2_an_agent_that_no_runner_offers_keeps_its_run_waiting(
    client: TurngateClient,
) -> None:
    """The runner is up, but has no such agent; other sessions are not held up (G5)."""
    async with (
        talk(client, "nobody") as lonely,
        talk(client, "echo") as other,
    ):
        run_id = await lonely.start("hello?")
        assert await other.completed(await other.start("hi")) == "You said: hi"
        await lonely.unplaced(run_id)
