"""Waiting for what happens in a session: with a deadline, by name, and missing nothing."""

from __future__ import annotations

import asyncio

import grpc
import pytest

from tests.unit.client.fake_broker import Failure, FakeBroker, frame, serving
from tests.unit.client.logs import answered_session, parked_session
from turngate.v1 import run_pb2 as rn
from turngate.v1.event_pb2 import SessionDeleted
from turngate_client import RetryPolicy, TurngateClient, TurngateError, WaitTimedOut
from turngate_client.session_view import SessionView

QUICK = RetryPolicy(timeout=5.0, first_pause=0.001, longest_pause=0.01)


def reply(view: SessionView) -> str | None:
    """The text of the selected run once it is completed."""
    run = view.runs.get(view.selected_node_id)
    if run is None or run.run.state != rn.RUN_STATE_COMPLETED:
        return None
    return view.text(view.selected_node_id)


async def test_until_gives_what_the_predicate_found() -> None:
    frames = [frame("x", answered_session().events)]
    async with (
        serving(FakeBroker(watches=[(frames, None)])) as broker,
        TurngateClient(broker.address, retry=QUICK) as client,
    ):
        text = await client.session("s-1").until(reply, 10, "the reply")
    assert text.endswith("Visby it is.")


async def test_until_fails_by_name_and_shows_the_last_state() -> None:
    frames = [frame("x", parked_session().events)]
    async with (
        serving(FakeBroker(watches=[(frames, None)])) as broker,
        TurngateClient(broker.address, retry=QUICK) as client,
    ):
        with pytest.raises(WaitTimedOut) as caught:
            await client.session("s-1").until(reply, 0.3, "the reply")
    assert "waited 0.3 s for the reply" in str(caught.value)
    assert "r-1 PARKED; open: i-1 request_input" in str(caught.value)


async def test_until_misses_no_state_within_a_frame_but_none_of_the_past_counts() -> None:
    log = answered_session().events
    parked = len(parked_session().events)
    broker = FakeBroker(watches=[([frame("x", log[:parked], live=True)], None)])

    def was_running(view: SessionView) -> bool:
        return any(run.run.state == rn.RUN_STATE_RUNNING for run in view.runs.values())

    async with (
        serving(broker),
        TurngateClient(broker.address, retry=QUICK) as client,
        client.session("s-1").follow() as followed,
    ):
        with pytest.raises(WaitTimedOut):  # r-1 has been running, but is parked now
            await followed.until(was_running, 0.3, "a running run")
        waiting = asyncio.ensure_future(followed.until(was_running, 10, "a running run"))
        broker.more.put_nowait(frame("y", log[parked:]))  # r-2 runs and is completed, in one frame
        assert await waiting is True
        assert await followed.until(reply, 10, "the reply")


async def test_until_asks_about_the_present_not_about_what_is_still_read() -> None:
    frames = [frame("x", parked_session().events)]
    async with (
        serving(FakeBroker(watches=[(frames, None)])) as broker,
        TurngateClient(broker.address, retry=QUICK) as client,
        client.session("s-1").follow() as followed,
    ):
        with pytest.raises(WaitTimedOut):
            await followed.until(lambda view: not view.runs, 0.3, "a session without runs")
        # Nothing more comes, and what is there already is found all the same.
        assert await followed.until(lambda view: view.open_interactions(), 10, "a question")


async def test_until_raises_what_the_watch_fails_with() -> None:
    refusal = Failure(grpc.StatusCode.NOT_FOUND, "SESSION_NOT_FOUND")
    async with (
        serving(FakeBroker(watches=[([], refusal)])) as broker,
        TurngateClient(broker.address, retry=QUICK) as client,
    ):
        with pytest.raises(TurngateError, match="SESSION_NOT_FOUND"):
            await client.session("s-1").until(reply, 10, "the reply")


async def test_until_raises_what_the_predicate_raises() -> None:
    def broken(view: SessionView) -> bool:
        return view.runs["no-such-run"].run.attempt > 0

    frames = [frame("x", parked_session().events)]
    async with (
        serving(FakeBroker(watches=[(frames, None)])) as broker,
        TurngateClient(broker.address, retry=QUICK) as client,
    ):
        with pytest.raises(KeyError, match="no-such-run"):
            await client.session("s-1").until(broken, 10, "nothing")


async def test_until_ends_with_the_session() -> None:
    log = parked_session()
    log.add(session_deleted=SessionDeleted())
    async with (
        serving(FakeBroker(watches=[([frame("x", log.events)], None)])) as broker,
        TurngateClient(broker.address, retry=QUICK) as client,
    ):
        with pytest.raises(ConnectionError, match="ended before the reply came"):
            await client.session("s-1").until(reply, 10, "the reply")
