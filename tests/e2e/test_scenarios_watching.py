"""Scenario 7 in more ways: reloads over forks, withdrawn text and words of many units."""

from __future__ import annotations

import asyncio

from tests.e2e.pair import Pair
from tests.e2e.talk import DEADLINE_SECONDS, log_of, of_kind, refusal, talk
from tests.e2e.variants import answer_twice, check
from turngate.v1.event_pb2 import SessionEvent
from turngate_client import SessionClient, TurngateClient, fold


async def frames_until(session: SessionClient, text: str) -> list[tuple[str, list[SessionEvent]]]:
    """Each cursor of a watch from the start, with all events up to it, until this text has come."""
    came: list[SessionEvent] = []
    cursors: list[tuple[str, list[SessionEvent]]] = []
    async with asyncio.timeout(DEADLINE_SECONDS), session.watch() as watch:
        async for frame in watch.frames():
            came.extend(frame.events)
            cursors.append((frame.cursor, list(came)))
            if text in "".join(e.text_delta.text for e in of_kind(came, "text_delta")):
                return cursors
    raise AssertionError(f"the watch ended before {text!r}")


async def test_scenario_7_words_of_many_units(client: TurngateClient, pair: Pair) -> None:
    """Scenario 7, W3: offsets count the same for everybody, also behind emoji and letters that
    take two units; a delta that comes twice changes nothing."""
    async with talk(client, "emoji") as trip:
        run_id = await trip.start()
        await trip.text_came(run_id, "👩‍👩‍👧 ")
        early = await frames_until(trip.session, "👩‍👩‍👧 ")
        pair.open_gate(f"one-{trip.id}")
        await trip.text_came(run_id, "e\u0301 ")
        late = await frames_until(trip.session, "e\u0301 ")
        pair.open_gate(f"two-{trip.id}")
        whole = await trip.completed(run_id)
        assert whole == "Fårö 🏝️ und 👩‍👩‍👧 \U0001d50aöteborg e\u0301 ends."
        for cursor, came in (early[-1], late[-1]):
            rest = await log_of(trip.session, after=cursor)
            assert fold(rest, fold(came)).text(run_id) == whole
            again = [*came, *of_kind(came, "text_delta"), *rest]
            assert fold(again).text(run_id) == whole, "some deltas came twice"
        assert fold(await log_of(trip.session)).text(run_id) == whole


async def test_scenario_7_a_reload_in_the_middle_of_a_word_that_is_withdrawn(
    killable: Pair,
) -> None:
    """Scenario 7, W3, R3: the runner is killed there, and writes the message anew: whoever resumes
    inside the withdrawn text, before or after, ends with the same."""
    async with killable.client() as client, talk(client, "gated") as trip:
        run_id = await trip.start()
        await trip.text_came(run_id, "now a wo")
        inside = await frames_until(trip.session, "now a wo")
        killable.runner.kill()
        await trip.until(lambda view: not view.drafts, "the text to be withdrawn")
        killable.open_gate(f"go-{trip.id}")
        await killable.runner.restart()
        whole = await trip.completed(run_id)
        log = await log_of(trip.session)
        for cursor, came in inside:
            one, two = await asyncio.gather(
                log_of(trip.session, after=cursor), log_of(trip.session, after=cursor)
            )
            assert one == two, "twice in parallel"
            assert came + one == log
            assert fold(one, fold(came)).text(run_id) == whole
        assert fold(log).text(run_id) == whole
        await check(trip)


async def test_scenario_7_a_reload_while_two_forks_stream(
    client: TurngateClient, pair: Pair
) -> None:
    """Scenario 7, W1, F5: a cursor of the parked run goes on over both forks; another session's
    cursor is refused, also that of one with the very same events."""
    async with talk(client, "asks_then_streams") as trip, talk(client, "form") as other:
        parked, (form,) = await trip.start_parked()
        await other.start_parked()
        at_parked = await frames_until(trip.session, "ere? ")
        fork, beside = await answer_twice(trip, pair, form)
        for run in (fork, beside):
            await trip.text_came(run.run_id, "Off to ")
        middle = await frames_until(trip.session, "Off to ")
        pair.open_gate(f"go-{trip.id}")
        assert await trip.completed(fork.run_id) == "Where? Off to Visby."
        assert await trip.completed(beside.run_id) == "Where? Off to Klinte."
        log = await log_of(trip.session)
        for cursor, came in (at_parked[-1], middle[-1]):
            rest = await log_of(trip.session, after=cursor)
            assert came + rest == log
            view = fold(rest, fold(came))
            assert view.text(fork.run_id) == "Where? Off to Visby."
            assert view.text(beside.run_id) == "Where? Off to Klinte."
            assert view.text(parked) == "Where? "
            await refusal(log_of(other.session, after=cursor), "CURSOR_FOREIGN")
        await check(trip)
