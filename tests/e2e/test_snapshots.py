"""Snapshots over the wire (W1): the present state first, then what follows, without a gap."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from grpc import StatusCode

from tests.e2e.pair import Pair
from tests.e2e.talk import DEADLINE_SECONDS, VISBY, Talk, log_of, refusal, talk, the
from turngate.v1.broker_pb2 import SessionSnapshot, WatchSessionRequest
from turngate.v1.event_pb2 import SessionEvent
from turngate.v1.run_pb2 import RUN_STATE_COMPLETED
from turngate_client import (
    FollowedSession,
    SessionClient,
    SessionView,
    TurngateClient,
    apply_snapshot,
    fold,
)
from turngate_client.snapshots import SnapshotPieces

WHOLE = "The first words have come, and now a word ends. Attempt 1."


class Snapshotted:
    """A watch that began with a snapshot: its pieces, and what came after them."""

    def __init__(self) -> None:
        self.pieces: list[SessionSnapshot] = []
        self.cursors: list[str] = []
        self.events: list[SessionEvent] = []

    def view(self) -> SessionView:
        """What the snapshot and the events after it come to."""
        joined = SnapshotPieces()
        [whole] = [one for piece in self.pieces if (one := joined.add(piece))]
        view = SessionView()
        apply_snapshot(view, whole)
        return fold(self.events, view)


async def snapshot_of(session: SessionClient) -> Snapshotted:
    """A snapshot of now, and the events up to the first live frame."""
    found = Snapshotted()
    async with asyncio.timeout(DEADLINE_SECONDS), session.watch(snapshot=True) as watch:
        async for frame in watch.frames():
            if frame.HasField("snapshot"):
                found.pieces.append(frame.snapshot)
            found.cursors.append(frame.cursor)
            found.events.extend(frame.events)
            if frame.live:
                return found
    raise AssertionError("the watch ended")


@asynccontextmanager
async def looking_on(trip: Talk) -> AsyncIterator[FollowedSession]:
    """Somebody who joins now, by a snapshot, and has seen it."""
    async with trip.session.follow(snapshot=True) as followed:
        await followed.until(lambda view: bool(view.session.id), DEADLINE_SECONDS, "a snapshot")
        yield followed


def same(one: SessionView, other: SessionView) -> None:
    """Two views show the same."""
    assert one.transcript() == other.transcript()
    assert one.held_messages == other.held_messages
    assert [i.id for i in one.open_interactions()] == [i.id for i in other.open_interactions()]
    assert one.selected_node_id == other.selected_node_id
    assert one.queue_pause == other.queue_pause


async def test_W1_a_snapshot_shows_a_parked_run_its_questions_and_the_queue(
    client: TurngateClient,
) -> None:
    async with talk(client, "four") as trip:
        run_id, questions = await trip.start_parked()
        held = await trip.session.send("meanwhile")
        await trip.until(lambda view: bool(view.held_messages), "the held message")
        async with looking_on(trip) as late:
            same(late.view, trip.view)
            assert [i.id for i in late.view.open_interactions(run_id)] == [
                one.id for one in questions
            ]
            form = the(late.view.open_interactions(), "request_input")
            assert form.render_hint.kind == "elicitation"
            assert list(form.waiting_run_ids) == [run_id]
            assert form.on_selected_branch
            assert late.view.held_messages[0].message.id == held.message_id
            look_up = next(c for c in late.view.calls(run_id) if c.call.name == "look_up")
            assert look_up.result is not None
            assert look_up.result.output_json == '{"weather":"fine"}'

            # What happens from here on comes as events, and leads both to the same.
            fork = (await trip.session.settle(form, VISBY)).run_id
            connection = the(late.view.open_interactions(), "request_connection")
            await trip.session.settle(connection, {"connected": True, "integration": "calendar"})
            await trip.session.approve(the(questions, "pay"))
            await trip.completed(fork)
            reply = await trip.until(
                lambda view: view.branch()[-1] if len(view.branch()) == 4 else None,
                "the held message to enter",
            )
            await trip.parked(reply)
            await late.until(
                lambda view: view.position == trip.view.position,
                DEADLINE_SECONDS,
                "the one who joined late to catch up",
            )
            same(late.view, trip.view)
            assert late.view.transcript() == await trip.session.transcript()


async def test_W1_a_snapshot_in_the_middle_of_a_word_has_what_came_and_goes_on(
    client: TurngateClient, pair: Pair
) -> None:
    """W3: what is being written is in the snapshot; the rest comes as deltas."""
    async with talk(client, "gated") as trip:
        run_id = await trip.start()
        await trip.text_came(run_id, "now a wo")
        async with looking_on(trip) as late:
            assert late.view.text(run_id) == "The first words have come, and now a wo"
            assert late.view.drafts
            pair.open_gate(f"go-{trip.id}")
            await late.until(
                lambda view: view.runs[run_id].run.state == RUN_STATE_COMPLETED,
                DEADLINE_SECONDS,
                "the run to be completed",
            )
            assert late.view.text(run_id) == WHOLE
            assert not late.view.drafts


async def test_W1_snapshots_of_a_session_that_streams_have_no_gap_and_no_duplicate(
    client: TurngateClient,
) -> None:
    """Taken one after the other while text, ends and starts of runs are stored."""
    async with talk(client, "streamer") as trip:
        taken: list[Snapshotted] = []
        for text in ("one", "two"):
            run_id = await trip.start(text)
            while len(taken) < 500:
                taken.append(await snapshot_of(trip.session))
                state = trip.view.runs[run_id].run.state if run_id in trip.view.runs else None
                if state == RUN_STATE_COMPLETED:
                    break
        log = await log_of(trip.session)
        assert len(taken) > 4
        in_the_middle = 0
        for one in taken:
            cursor = one.cursors[-1]
            rest = await log_of(trip.session, after=cursor)
            behind = rest[0].position - 1 if rest else log[-1].position
            came = fold([event for event in log if event.position <= behind])
            same(one.view(), came)
            view = fold(rest, one.view())
            same(view, fold(log))
            in_the_middle += bool(one.view().drafts)
        assert in_the_middle, "some were taken while a message was being written"


async def test_W1_a_snapshot_after_the_end_is_all_there_is(client: TurngateClient) -> None:
    async with talk(client, "echo") as trip:
        await trip.completed(await trip.start("hello"))
        found = await snapshot_of(trip.session)
        assert [piece.complete for piece in found.pieces] == [True]
        assert not found.events
        same(found.view(), trip.view)
        assert await log_of(trip.session, after=found.cursors[-1]) == []


async def test_W1_a_snapshot_of_a_session_without_messages(client: TurngateClient) -> None:
    session = await client.create_session(agent="echo")
    found = await snapshot_of(session)
    assert found.view().session.id == session.id
    assert not found.view().node_ids


async def test_a_snapshot_together_with_a_cursor_is_refused(client: TurngateClient) -> None:
    async with talk(client, "echo") as trip:
        await trip.completed(await trip.start())
        cursor = (await snapshot_of(trip.session)).cursors[-1]
        request = WatchSessionRequest(session_id=trip.id, after=cursor, snapshot=True)

        async def first() -> None:
            async with trip.session.watch(after=request.after, snapshot=True) as watch:
                async for _ in watch.frames():
                    return

        error = await refusal(first(), "INVALID_FIELD")
        assert error.code is StatusCode.INVALID_ARGUMENT


async def test_a_snapshot_of_a_session_that_is_not_there_is_refused(
    client: TurngateClient,
) -> None:
    await refusal(snapshot_of(client.session("ses_unknown")), "SESSION_NOT_FOUND")


async def test_W1_a_watch_that_began_with_a_snapshot_resumes_over_a_restart(
    killable: Pair,
) -> None:
    """After the snapshot the cursor counts: it does not come again, and nothing is missed."""
    async with killable.client() as client, talk(client, "form") as trip:
        run_id, [form] = await trip.start_parked()
        async with looking_on(trip) as late:
            killable.broker.kill()
            await killable.broker.restart()
            fork = (await trip.session.settle(form, VISBY)).run_id
            await trip.completed(fork)
            await late.until(
                lambda view: fork in view.runs and view.runs[fork].run.state == RUN_STATE_COMPLETED,
                DEADLINE_SECONDS,
                "the fork to end",
            )
            same(late.view, trip.view)
            assert late.view.is_superseded(run_id)
