"""Stops on purpose: watchers are told where to go on, and runs are handed over."""

from __future__ import annotations

import asyncio

from grpc import StatusCode

from tests.e2e.pair import Pair
from tests.e2e.talk import DEADLINE_SECONDS, log_of, of_kind, recorded, states, talk
from turngate.v1 import run_pb2
from turngate_client.errors import error_from_rpc


async def test_a_broker_that_is_stopped_in_the_middle_of_a_run(killable: Pair) -> None:
    """Watchers get UNAVAILABLE with reason and cursor; the run goes on and is not counted lost."""
    async with (
        killable.client() as client,
        talk(client, "gated") as trip,
        recorded(client, trip.id) as recorder,
    ):
        run_id = await trip.start()
        await trip.text_came(run_id, "now a wo")
        async with asyncio.timeout(DEADLINE_SECONDS):
            assert await killable.broker.stop() == 0
        await killable.broker.restart()
        killable.open_gate(f"go-{trip.id}")
        text = await trip.completed(run_id)
        assert text.startswith("The first words have come, and now a word ends.")

        told = error_from_rpc(recorder.breaks[0])
        assert told.code is StatusCode.UNAVAILABLE
        assert told.reason == "SHUTTING_DOWN"
        assert told.metadata["cursor"]
        log = await log_of(trip.session)
        await recorder.until(len(log))
        assert recorder.events == log
        causes = [e.run_state_changed.cause for e in of_kind(log, "run_state_changed")]
        assert run_pb2.RUN_CHANGE_CAUSE_HANDED_OVER in causes
        assert run_pb2.RUN_CHANGE_CAUSE_ATTEMPT_LOST not in causes
        assert states(log, run_id) == ["RUNNING", "PENDING", "RUNNING", "COMPLETED"]


async def test_the_cursor_of_a_stop_names_the_place_where_the_stream_ended(
    killable: Pair,
) -> None:
    async with (
        killable.client() as client,
        talk(client, "echo") as trip,
        recorded(client, trip.id) as recorder,
    ):
        await trip.completed(await trip.start())
        await recorder.until(len(await log_of(trip.session)))
        assert await killable.broker.stop() == 0
        await killable.broker.restart()
        await trip.completed(await trip.start("again"))
        cursor = error_from_rpc(recorder.breaks[0]).metadata["cursor"]
        rest = await log_of(trip.session, after=cursor)
        assert rest[0].prompt_added.message.parts[0].text.text == "again"


async def test_a_runner_that_is_stopped_in_the_middle_of_a_run(killable: Pair) -> None:
    """Its run goes on at the next runner, and is not counted lost."""
    async with killable.client() as client, talk(client, "gated") as trip:
        run_id = await trip.start()
        await trip.text_came(run_id, "now a wo")
        assert await killable.runner.stop() == 0
        await killable.runner.restart()
        killable.open_gate(f"go-{trip.id}")
        text = await trip.completed(run_id)
        assert text.count("The first words") == 1
        causes = [
            e.run_state_changed.cause
            for e in of_kind(await log_of(trip.session), "run_state_changed")
        ]
        assert run_pb2.RUN_CHANGE_CAUSE_ATTEMPT_LOST not in causes


async def test_idle_services_stop_at_once_with_exit_code_0(killable: Pair) -> None:
    async with asyncio.timeout(DEADLINE_SECONDS):
        assert await killable.broker.stop() == 0
        assert await killable.runner.stop() == 0
