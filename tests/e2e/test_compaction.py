"""Compaction with real services: whoever resumes wherever ends with the same text (W2, W3)."""

from __future__ import annotations

import asyncio

import pytest

from tests.e2e.conftest import StartPair
from tests.e2e.pair import Pair
from tests.e2e.talk import DEADLINE_SECONDS, Talk, log_of, of_kind, talk
from turngate.v1.event_pb2 import SessionEvent
from turngate_client import SessionClient, fold

SOON = "--compact-after=0.3"


async def streamed(session: SessionClient) -> list[tuple[str, list[SessionEvent]]]:
    """Each cursor of a watch until the run ends, with all events up to it."""
    came: list[SessionEvent] = []
    cursors: list[tuple[str, list[SessionEvent]]] = []
    async with asyncio.timeout(DEADLINE_SECONDS), session.watch() as watch:
        async for frame in watch.frames():
            came.extend(frame.events)
            cursors.append((frame.cursor, list(came)))
            if of_kind(frame.events, "message_completed"):
                return cursors
    raise AssertionError("the watch ended")


async def compacted(session: SessionClient) -> list[SessionEvent]:
    """The log, once it has no deltas any more. Fails by name after `DEADLINE_SECONDS`."""
    log: list[SessionEvent] = []
    try:
        async with asyncio.timeout(DEADLINE_SECONDS):
            while not log or of_kind(log, "text_delta"):
                log = await log_of(session)
    except TimeoutError:
        pytest.fail(f"{len(of_kind(log, 'text_delta'))} deltas are still there")
    return log


async def test_W3_a_watcher_that_resumes_anywhere_ends_with_the_same_text(
    start_pair: StartPair,
) -> None:
    """W2: cursors within what was compacted go on, and no snapshot is needed: nothing is lost."""
    pair = start_pair(broker_flags=(SOON,))
    async with pair.client() as client, talk(client, "streamer") as trip:
        watching = asyncio.create_task(streamed(trip.session))
        run_id = await trip.start()
        await trip.completed(run_id)
        cursors = await watching
        inside = [(cursor, came) for cursor, came in cursors if of_kind(came, "text_delta")]
        assert len(inside) > 3, "there are cursors in the middle of the text"

        log = await compacted(trip.session)
        whole = fold(log)
        assert whole.text(run_id) == "so many words " * 100
        assert whole.transcript() == trip.view.transcript()
        positions = [event.position for event in log]
        assert positions == sorted(set(positions))
        assert positions[-1] == trip.view.position, "positions stay"
        for cursor, came in cursors[:: max(1, len(cursors) // 12)]:
            rest = await log_of(trip.session, after=cursor)
            assert not of_kind(rest, "text_delta")
            assert fold(rest, fold(came)).text(run_id) == "so many words " * 100
            assert fold(rest, fold(came)).transcript() == whole.transcript()

        # The session goes on, and an answer is as before.
        assert await trip.completed(await trip.start("again")) == "so many words " * 100


async def test_W3_withdrawals_and_ends_are_kept(start_pair: StartPair) -> None:
    """R3: the text of an attempt that was killed goes, that it was withdrawn stays."""
    pair = start_pair(broker_flags=(SOON,))
    async with pair.client() as client, talk(client, "gated") as trip:
        run_id = await trip.start()
        await trip.text_came(run_id, "now a wo")
        await cut(pair, trip)
        whole = await trip.completed(run_id)
        log = await compacted(trip.session)
        started = [e.message_started.message_id for e in of_kind(log, "message_started")]
        [withdrawn] = of_kind(log, "message_withdrawn")
        [completed] = of_kind(log, "message_completed")
        assert started == [
            withdrawn.message_withdrawn.message_id,
            completed.message_completed.message.id,
        ]
        assert fold(log).text(run_id) == whole


async def cut(pair: Pair, trip: Talk) -> None:
    """Kill the runner in the middle of a word, and let the next attempt end."""
    pair.runner.kill()
    await pair.runner.restart()
    pair.open_gate(f"go-{trip.id}")


async def test_W3_what_is_being_written_is_not_compacted(start_pair: StartPair) -> None:
    """It takes longer than `compact_after`; a snapshot and a watch from the start have it all."""
    pair = start_pair(broker_flags=("--compact-after=0.1",))
    async with pair.client() as client, talk(client, "gated") as trip:
        run_id = await trip.start()
        await trip.text_came(run_id, "now a wo")
        # Another session's message begins and is compacted meanwhile.
        async with talk(client, "echo") as other:
            await other.completed(await other.start("hello"))
            await compacted(other.session)
        assert fold(await log_of(trip.session)).text(run_id).endswith("now a wo")
        async with trip.session.follow(snapshot=True) as late:
            await late.until(
                lambda view: run_id in view.runs and view.text(run_id).endswith("now a wo"),
                DEADLINE_SECONDS,
                "what came so far",
            )
        pair.open_gate(f"go-{trip.id}")
        await trip.completed(run_id)
        assert fold(await compacted(trip.session)).text(run_id).endswith("Attempt 1.")


async def test_S2_compaction_goes_on_after_a_restart(start_pair: StartPair) -> None:
    pair = start_pair(broker_flags=(SOON,))
    async with pair.client() as client, talk(client, "echo") as trip:
        await trip.completed(await trip.start("hello"))
        pair.broker.kill()
        await pair.broker.restart()
        await compacted(trip.session)
