"""Watching over the wire (scenario 7): wherever a watch is resumed, the text is the same."""

from __future__ import annotations

import asyncio
import base64

from grpc import StatusCode

from tests.e2e.conftest import StartPair
from tests.e2e.pair import Pair
from tests.e2e.talk import DEADLINE_SECONDS, VISBY, log_of, of_kind, refusal, talk
from turngate.v1 import run_pb2
from turngate.v1.event_pb2 import SessionEvent
from turngate_client import SessionClient, TurngateClient, fold

COMPLETED = run_pb2.RUN_STATE_COMPLETED
WHOLE = "The first words have come, and now a word ends. Attempt 1."


async def first_event(session: SessionClient, after: str) -> SessionEvent:
    """The first event of a watch from a cursor."""
    async with asyncio.timeout(DEADLINE_SECONDS), session.watch(after=after) as watch:
        async for event in watch:
            return event
    raise AssertionError("the watch ended")


async def events_until(
    session: SessionClient, kind: str, after: str = ""
) -> tuple[list[SessionEvent], str]:
    """The events from a cursor until one of this kind has come, and the cursor behind it."""
    events: list[SessionEvent] = []
    async with asyncio.timeout(DEADLINE_SECONDS), session.watch(after=after) as watch:
        async for frame in watch.frames():
            events.extend(frame.events)
            if of_kind(frame.events, kind):
                return events, frame.cursor
    raise AssertionError(f"the watch ended before {kind}")


async def test_scenario_7_a_reload_in_the_middle_of_a_word(
    client: TurngateClient, pair: Pair
) -> None:
    """W1, W3: resumed from the cursor, from the start, twice in parallel: always the same text."""
    async with talk(client, "gated") as trip:
        run_id = await trip.start()
        await trip.text_came(run_id, "now a wo")
        before, cursor = await events_until(trip.session, "text_delta")
        assert fold(before).text(run_id) == "The first words have come, and now a wo"

        resumed = [
            asyncio.create_task(events_until(trip.session, "message_completed", after=cursor))
            for _ in range(2)
        ]
        from_start = asyncio.create_task(events_until(trip.session, "message_completed"))
        pair.open_gate(f"go-{trip.id}")
        assert await trip.completed(run_id) == WHOLE

        (one, _), (two, _), (whole, _) = [*await asyncio.gather(*resumed), await from_start]
        assert one == two
        assert before + one == whole, "no gap and no duplicate"
        deltas = [e.text_delta.text for e in of_kind(whole, "text_delta")]
        assert "".join(deltas) == WHOLE
        assert fold(one, fold(before)).text(run_id) == WHOLE
        assert fold(whole).text(run_id) == WHOLE
        assert fold(await log_of(trip.session)).text(run_id) == WHOLE


async def test_W1_each_cursor_of_a_log_resumes_there_without_gap_or_duplicate(
    client: TurngateClient,
) -> None:
    async with talk(client, "streamer") as trip:
        run_id = await trip.start()
        cursors: list[tuple[str, int]] = []
        seen: list[SessionEvent] = []
        async with asyncio.timeout(DEADLINE_SECONDS), trip.session.watch() as watch:
            async for frame in watch.frames():
                seen.extend(frame.events)
                cursors.append((frame.cursor, len(seen)))
                if any(
                    e.run_state_changed.run_id == run_id and e.run_state_changed.state == COMPLETED
                    for e in of_kind(frame.events, "run_state_changed")
                ):
                    break
        assert len(cursors) > 3, "several frames while the text streams"
        log = await log_of(trip.session)
        assert log == seen
        for cursor, count in cursors[:: max(1, len(cursors) // 8)]:
            rest = await log_of(trip.session, after=cursor)
            assert seen[:count] + rest == log
            assert fold(seen[:count] + rest).text(run_id) == "so many words " * 100


async def test_W1_a_watch_works_while_parked_and_after_the_end(client: TurngateClient) -> None:
    async with talk(client, "form") as trip:
        run_id, (form,) = await trip.start_parked()
        parked = await log_of(trip.session)
        assert [i.id for i in fold(parked).open_interactions(run_id)] == [form.id]
        answered = await trip.session.settle(form, VISBY)
        await trip.completed(answered.run_id)
        ended = await log_of(trip.session)
        assert ended[: len(parked)] == parked
        assert fold(ended).text(answered.run_id) == "Where to? Off to Visby."
        assert await log_of(trip.session, after=await end_cursor(trip.session)) == []


async def end_cursor(session: SessionClient) -> str:
    """The cursor of the present."""
    async with asyncio.timeout(DEADLINE_SECONDS), session.watch() as watch:
        async for frame in watch.frames():
            if frame.live:
                return frame.cursor
    raise AssertionError("the watch ended")


async def test_W1_the_cursor_of_a_send_shows_all_that_follows_from_it(
    client: TurngateClient,
) -> None:
    async with talk(client, "echo") as trip:
        await trip.completed(await trip.start("first"))
        sent = await trip.session.send("second")
        await trip.completed(sent.run_id)
        rest = await log_of(trip.session, after=sent.cursor)
        assert rest[0].prompt_added.message.id == sent.message_id


async def test_W2_foreign_future_and_garbled_cursors_are_refused_by_name(
    client: TurngateClient,
) -> None:
    async with talk(client, "echo") as trip, talk(client, "echo") as other:
        await trip.completed(await trip.start())
        await other.completed(await other.start("one"))
        await other.completed(await other.start("two"))
        error = await refusal(
            first_event(trip.session, await end_cursor(other.session)), "CURSOR_FOREIGN"
        )
        assert error.code is StatusCode.INVALID_ARGUMENT
        cursor = await end_cursor(trip.session)
        data = bytearray(base64.urlsafe_b64decode(cursor))
        data[-1] ^= 1
        garbled = base64.urlsafe_b64encode(bytes(data)).decode()
        for text in (garbled, "17", "no cursor", cursor[:-1], cursor + "A", "å" * 28):
            error = await refusal(first_event(trip.session, text), "CURSOR_INVALID")
            assert error.code is StatusCode.INVALID_ARGUMENT


async def test_W2_a_cursor_from_the_future_is_refused_by_name(
    client: TurngateClient, start_pair: StartPair
) -> None:
    """Such a cursor is left over where a store was put back to an older state."""
    async with start_pair().client() as fresh:
        ahead = await client.create_session("ses-one", agent="echo")
        behind = await fresh.create_session("ses-one", agent="echo")
        sent = await ahead.send("hello")
        async with ahead.follow() as followed:
            await followed.until(
                lambda view: view.runs[sent.run_id].run.state == COMPLETED,
                DEADLINE_SECONDS,
                "the end",
            )
        error = await refusal(first_event(behind, await end_cursor(ahead)), "CURSOR_FUTURE")
        assert error.code is StatusCode.OUT_OF_RANGE


async def test_W1_a_watch_of_a_session_that_is_not_there_is_refused(
    client: TurngateClient,
) -> None:
    error = await refusal(first_event(client.session("ses_unknown"), ""), "SESSION_NOT_FOUND")
    assert error.code is StatusCode.NOT_FOUND


async def test_W1_leaving_a_watch_cancels_nothing(client: TurngateClient, pair: Pair) -> None:
    """C1: a run that nobody looks at goes on."""
    session = await client.create_session(agent="gated")
    sent = await session.send("go")
    await events_until(session, "text_delta")  # and then leaves
    pair.open_gate(f"go-{session.id}")
    async with session.follow() as followed:
        await followed.until(
            lambda view: sent.run_id in view.runs and view.runs[sent.run_id].run.state == COMPLETED,
            DEADLINE_SECONDS,
            "the run to be completed",
        )


async def test_without_deltas_a_watch_has_the_complete_messages(client: TurngateClient) -> None:
    async with talk(client, "streamer") as trip:
        run_id = await trip.start()
        await trip.completed(run_id)
        async with asyncio.timeout(DEADLINE_SECONDS):
            frames = trip.session.watch(without_deltas=True).frames()
            events: list[SessionEvent] = []
            async for frame in frames:
                events.extend(frame.events)
                if frame.live:
                    break
            await frames.aclose()
        assert not of_kind(events, "text_delta")
        assert fold(events).text(run_id) == "so many words " * 100
        assert [e for e in await log_of(trip.session) if e.WhichOneof("event") != "text_delta"] == (
            events
        )


async def test_W5_the_end_of_the_content_comes_before_the_end_of_the_run(
    client: TurngateClient,
) -> None:
    async with talk(client, "streamer") as trip:
        run_id = await trip.start()
        await trip.completed(run_id)
        kinds = [event.WhichOneof("event") for event in await log_of(trip.session)]
        completed = kinds.index("message_completed")
        assert "text_delta" not in kinds[completed:]
        assert kinds[-1] == "run_state_changed"
        assert completed < len(kinds) - 1
