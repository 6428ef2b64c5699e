"""The inbox as a stream (I5): the open set, then what opens, changes, closes and moves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from uuid import uuid4

import pytest
from grpc import StatusCode

from tests.e2e.conftest import StartPair
from tests.e2e.pair import Pair
from tests.e2e.talk import DEADLINE_SECONDS, VISBY, talk, the
from turngate.v1.broker_pb2 import InteractionFilter, WatchInteractionsResponse
from turngate.v1.interaction_pb2 import (
    INTERACTION_KIND_APPROVAL,
    INTERACTION_STATE_ANSWERED,
    INTERACTION_STATE_APPROVED,
    INTERACTION_STATE_OPEN,
    Interaction,
)
from turngate.v1.session_pb2 import SessionConfig
from turngate_client import InboxView, TurngateClient, TurngateError


class Follower:
    """A watch of the inbox, folded, with all its frames."""

    def __init__(self, client: TurngateClient, where: InteractionFilter) -> None:
        self.view = InboxView()
        self.frames: list[WatchInteractionsResponse] = []
        self._watch = client.watch_inbox(where)

    async def until(self, found: Callable[[InboxView], bool], what: str) -> None:
        """Read frames until the view is so. Fails by name after `DEADLINE_SECONDS`."""
        try:
            async with asyncio.timeout(DEADLINE_SECONDS):
                while not (self.view.live and found(self.view)):
                    frame = await anext(self._watch)
                    self.frames.append(frame)
                    self.view.apply(frame)
        except TimeoutError:
            pytest.fail(f"waited for {what}; the inbox has {list(self.view.entries)}")

    async def ended(self) -> TurngateError:
        """The error with which it ends."""
        async with asyncio.timeout(DEADLINE_SECONDS):
            try:
                while True:
                    await anext(self._watch)
            except TurngateError as error:
                return error

    def closed(self, interaction_id: str) -> Interaction:
        """What was said of it when it went; once."""
        [gone] = [one for f in self.frames for one in f.closed if one.id == interaction_id]
        return gone

    async def leave(self) -> None:
        await self._watch.aclose()


@asynccontextmanager
async def inbox(
    client: TurngateClient, where: InteractionFilter | None = None
) -> AsyncIterator[Follower]:
    """A watch of the inbox that has its open set."""
    follower = Follower(client, where or InteractionFilter())
    try:
        await follower.until(lambda view: True, "the open set")
        yield follower
    finally:
        await follower.leave()


def of_team(team: str) -> SessionConfig:
    """Labels keep a test's sessions apart from all others of the pair."""
    return SessionConfig(agent="form", labels={"team": team})


def team() -> str:
    return uuid4().hex


async def test_I5_the_open_set_comes_first_then_what_opens_and_closes(
    client: TurngateClient,
) -> None:
    name = team()
    where = InteractionFilter(labels={"team": name})
    async with (
        talk(client, "", config=of_team(name)) as one,
        talk(client, "", config=of_team(name)) as two,
        talk(client, "form") as other,
    ):
        run_id, [first] = await one.start_parked()
        await other.start_parked()
        async with inbox(client, where) as watched:
            assert list(watched.view.entries) == [first.id]
            entry = watched.view.entries[first.id]
            assert entry.session_id == one.id
            assert entry.arguments_json == first.arguments_json
            assert entry.render_hint.kind == "elicitation"
            assert list(entry.waiting_run_ids) == [run_id]
            assert entry.on_selected_branch
            assert not any(frame.closed for frame in watched.frames)
            assert [frame.live for frame in watched.frames][-1]

            _, [second] = await two.start_parked()
            await watched.until(lambda view: second.id in view.entries, "the second form")

            fork = (await one.session.settle(first, VISBY)).run_id
            await one.completed(fork)
            await watched.until(lambda view: first.id not in view.entries, "the first to go")
            gone = watched.closed(first.id)
            assert gone.state == INTERACTION_STATE_ANSWERED
            assert gone.session_id == one.id
            assert list(watched.view.entries) == [second.id]
            listed = [found async for found in client.interactions(where)]
            assert listed == list(watched.view.entries.values())


async def test_I5_entries_say_which_runs_wait_also_after_a_fork(client: TurngateClient) -> None:
    """F4: an answer to one of several questions leaves the others to the fork."""
    async with talk(client, "four") as trip:
        run_id, questions = await trip.start_parked()
        async with inbox(client, InteractionFilter(session_id=trip.id)) as watched:
            assert set(watched.view.entries) == {one.id for one in questions}
            pay = the(questions, "pay")
            assert list(watched.view.entries[pay.id].waiting_run_ids) == [run_id]
            fork = (await trip.session.settle(the(questions, "request_input"), VISBY)).run_id
            await watched.until(
                lambda view: list(view.entries[pay.id].waiting_run_ids) == [fork],
                "the approval to be the fork's",
            )
            assert len(watched.view.entries) == 2
            await trip.session.approve(pay)
            await watched.until(lambda view: pay.id not in view.entries, "the approval to go")
            assert watched.closed(pay.id).state == INTERACTION_STATE_APPROVED


async def test_I5_filters_by_session_kind_and_tool(client: TurngateClient) -> None:
    async with talk(client, "four") as trip:
        filters = [
            InteractionFilter(session_id=trip.id, kind=INTERACTION_KIND_APPROVAL),
            InteractionFilter(session_id=trip.id, tool_name="request_connection"),
            InteractionFilter(session_id=trip.id, opened_for="somebody else"),
            InteractionFilter(session_id=trip.id, labels={"no": "such"}),
            InteractionFilter(session_id=trip.id, opened_for="ann"),
        ]
        # One half of the watches is there before the questions, the other after.
        early = [Follower(client, where) for where in filters]
        for watched in early:
            await watched.until(lambda view: True, "the open set")
            assert not watched.view.entries
        _, questions = await trip.start_parked()
        late = [Follower(client, where) for where in filters]
        everything = {one.tool_name for one in questions}
        wanted = [{"pay"}, {"request_connection"}, set(), set(), everything]
        for followers in (early, late):
            for watched, tools in zip(followers, wanted, strict=True):

                def has(view: InboxView, tools: set[str] = tools) -> bool:
                    return {one.tool_name for one in view.entries.values()} >= tools

                await watched.until(has, f"{tools}")
                assert {one.tool_name for one in watched.view.entries.values()} == tools
                await watched.leave()


async def test_I5_the_selected_branch_moves_entries_in_and_out_of_its_filter(
    client: TurngateClient,
) -> None:
    """C3: what leaves the filter is told as closed, and its state says that it is still open."""
    async with talk(client, "form") as trip:
        where = InteractionFilter(session_id=trip.id, only_selected_branch=True)
        async with (
            inbox(client, where) as selected,
            inbox(client, InteractionFilter(session_id=trip.id)) as every,
        ):
            run_id, [first] = await trip.start_parked()
            await selected.until(lambda view: first.id in view.entries, "the first form")
            again = (await trip.session.regenerate(run_id)).run.id
            [second] = await trip.parked(again)
            await selected.until(lambda view: list(view.entries) == [second.id], "the second")
            assert selected.closed(first.id).state == INTERACTION_STATE_OPEN
            assert not selected.closed(first.id).on_selected_branch

            await trip.session.select_branch(run_id)
            await selected.until(lambda view: list(view.entries) == [first.id], "the first again")
            assert selected.view.entries[first.id].on_selected_branch
            await every.until(
                lambda view: (
                    set(view.entries) == {first.id, second.id}
                    and view.entries[first.id].on_selected_branch
                    and not view.entries[second.id].on_selected_branch
                ),
                "both, and which one is selected",
            )
            assert not any(frame.closed for frame in every.frames)


async def test_I5_a_cancelled_run_takes_its_questions_out_of_the_inbox(
    client: TurngateClient,
) -> None:
    async with talk(client, "four") as trip:
        run_id, questions = await trip.start_parked()
        async with inbox(client, InteractionFilter(session_id=trip.id)) as watched:
            await trip.session.cancel_run(run_id)
            await watched.until(lambda view: not view.entries, "all to go")
            gone = {one.id for frame in watched.frames for one in frame.closed}
            assert gone == {one.id for one in questions}


async def test_I5_a_large_open_set_comes_in_several_frames(client: TurngateClient) -> None:
    name = team()
    count = 120  # more than a frame has
    sessions = [await client.create_session(config=of_team(name)) for _ in range(count)]
    for session in sessions:
        await session.send("Go")
    where = InteractionFilter(labels={"team": name})
    async with inbox(client, where) as watched:
        await watched.until(lambda view: len(view.entries) == count, "all forms")
    async with inbox(client, where) as again:
        assert len(again.view.entries) == count
        assert [frame.live for frame in again.frames] == [
            *[False] * (len(again.frames) - 1),
            True,
        ]
        assert len(again.frames) > 1
        told = [one.id for frame in again.frames for one in frame.opened]
        assert len(told) == len(set(told)), "each once"


async def test_W4_an_inbox_in_which_nothing_happens_sends_idle_frames(
    start_pair: StartPair,
) -> None:
    pair = start_pair(broker_flags=("--idle-frame=0.1",))
    async with pair.client() as client, inbox(client) as watched:
        before = len(watched.frames)
        await watched.until(lambda _: len(watched.frames) > before + 2, "idle frames")
        assert all(not frame.opened and frame.live for frame in watched.frames)


async def test_a_stopping_broker_ends_the_watch_and_a_new_one_begins_again(
    killable: Pair,
) -> None:
    """I5: after a break the open set comes again."""
    async with killable.client() as client, talk(client, "form") as trip:
        _, [form] = await trip.start_parked()
        where = InteractionFilter(session_id=trip.id)
        async with inbox(client, where) as watched:
            ended, code = await asyncio.gather(watched.ended(), killable.broker.stop())
            assert (ended.code, ended.reason, code) == (
                StatusCode.UNAVAILABLE,
                "SHUTTING_DOWN",
                0,
            )
        await killable.broker.restart()
        await client.server_info()  # it is there again
        async with inbox(client, where) as again:
            assert list(again.view.entries) == [form.id]
