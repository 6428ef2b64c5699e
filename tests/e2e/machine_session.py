"""One session at the broker for the state machine, and what must be so after each command.

`log` and `state` are what the broker tells: after each command the events behind the last cursor
are read, and folded. Then everything that can be read is compared with them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, aclosing
from typing import NoReturn, TypeVar

from broker_service.domain import fold
from broker_service.domain.deadlines import next_deadline
from broker_service.domain.decision import BROKER, Actor, Decision
from broker_service.domain.events import SessionEvent
from broker_service.domain.limits import Limits
from broker_service.domain.model import (
    RunState,
    SessionConfig,
)
from broker_service.domain.starts import Verdict
from broker_service.encoding import decode_event, to_proto
from tests.e2e.machine_runner import DEADLINE_SECONDS, Hand, proto_of
from tests.e2e.machine_services import PEOPLE, Services
from tests.unit.broker.client_views import Client
from tests.unit.broker.conversation import ANN, Conversation
from tests.unit.broker.invariants import check
from tests.unit.broker.side_by_side import KNOWN, outcome
from turngate.v1 import broker_pb2, run_pb2
from turngate.v1.session_pb2 import SessionConfig as ProtoConfig
from turngate_client import (
    FollowedSession,
    InboxView,
    SessionClient,
    TurngateError,
)
from turngate_client.connection import new_request_id
from turngate_core.errors import Reason, Refusal

T = TypeVar("T")


class FollowedConversation(Conversation):
    """One session at the broker, and everybody who watches it."""

    def __init__(self, at: Services, config: SessionConfig, limits: Limits) -> None:
        self.limits = limits
        self.now = at.broker.now
        self.first_run = ""
        self.log: list[SessionEvent] = []
        self.decided_for: set[str] = set()
        """Runs on whose waiting calls the broker may have decided by itself (S1)."""
        self._minted = 0
        self._at = at
        self._given = 0
        self._at_once = False
        self._cursor = ""
        self._stack = AsyncExitStack()
        at.run(self._begin(config))

    async def _begin(self, config: SessionConfig) -> None:
        owner = self._at.clients[ANN]
        created = await owner.create_session(
            config=proto_of(ProtoConfig, config), participants=[p for p in PEOPLE if p != ANN]
        )
        self._sessions: dict[str, SessionClient] = {
            name: client.session(created.id) for name, client in self._at.clients.items()
        }
        self._owner = self._sessions[ANN]
        self._followed: FollowedSession
        self._followed = await self._stack.enter_async_context(created.follow())
        self._watcher = Client(KNOWN)
        self._watcher.view = self._followed.view
        await self._watch_inbox()
        await self._catch_up(lambda: True, "the session")

    async def _watch_inbox(self) -> None:
        where = broker_pb2.InteractionFilter(session_id=self._owner.id)
        self._inbox = InboxView()
        self._inbox_frames = await self._stack.enter_async_context(
            aclosing(self._at.clients["ben"].watch_inbox(where))
        )

    def restart(self) -> None:
        """`kill -9` to the broker, and another one in its place; those who watch go on (I3, E4)."""

        async def again() -> None:
            self._at.broker.kill()
            await self._at.broker.restart()
            await self._watch_inbox()

        self._and_compare(again())

    def close(self) -> None:
        """Leave, runs that are under way to themselves. The whole log keeps the rules."""
        check(self.state, self.log, new=len(self.log))

        async def leave() -> None:
            for run_id in self.state.runs:
                if hand := self._at.runner.hands.pop(run_id, None):
                    hand.leave(None)
            await self._stack.aclose()

        self._at.run(leave())

    # --- what the broker tells ---

    async def _catch_up(self, there: Callable[[], bool], what: str) -> None:
        """Read on from the last cursor: up to the present, and until it is so."""
        watch = self._owner.watch(after=self._cursor)
        try:
            async with asyncio.timeout(DEADLINE_SECONDS), watch:
                async for frame in watch.frames():
                    for event in frame.events:
                        event.position = 0  # stored beside it
                        self._take(decode_event(event.SerializeToString()))
                    self._cursor = frame.cursor or self._cursor
                    if frame.live and there():
                        return
        except TimeoutError:
            raise AssertionError(f"waited {DEADLINE_SECONDS:g} s for {what}") from None

    def _take(self, event: SessionEvent) -> None:
        if not self.log:
            self.state = fold.begin(event)
        else:
            fold.apply(self.state, event)
        self.log.append(event)

    def _nothing_due(self) -> bool:
        deadline = next_deadline(self.state, self.limits.unclaimed_after_ms)
        return deadline is None or deadline > self.now

    async def _settle_down(self) -> None:
        """Until the broker has done all that it does by itself."""
        await self._catch_up(self._nothing_due, "what is due (I4)")
        while waiting := self._resolvable():
            for hand, call_id in waiting:
                await hand.verdict_other_than_wait(call_id)
            await self._catch_up(lambda: True, "what was decided")
        self.decided_for = {hand.start.run_id for hand, _ in self._at_work() if hand.waited}
        for hand, state in self._at_work():
            if state is RunState.CANCELLING:
                await hand.told_to_cancel()

    def _at_work(self) -> list[tuple[Hand, RunState]]:
        hands = self._at.runner.hands
        return [
            (hands[run.id], run.state)
            for run in self.state.runs.values()
            if run.state in (RunState.RUNNING, RunState.CANCELLING)
            and run.id in hands
            and hands[run.id].start.attempt == run.attempt
        ]

    def _resolvable(self) -> list[tuple[Hand, str]]:
        """Calls that wait for another run's result, which is there (S1)."""
        return [
            (hand, call_id)
            for hand, state in self._at_work()
            for call_id, verdict in hand.verdicts.items()
            if verdict is Verdict.WAIT
            and state is RunState.RUNNING
            and self.state.calls[call_id].result is not None
        ]

    # --- giving commands ---

    def _give(self, call: Callable[[str], Awaitable[T]]) -> T:
        """A second later: the answer, with all that came of it. Every third command is given twice,
        as by a client that has not heard the answer: it gets the first one again (E1).
        """
        if not self._at_once:
            self._pass(1_000)
        self._given += 1
        twice = self._given % 3 == 0 and not self._at_once

        async def give() -> T:
            request_id = new_request_id()
            try:
                answer = await call(request_id)
                if twice:
                    assert await call(request_id) == answer, "E1"
            except TurngateError as error:
                raise Refusal(Reason(error.reason), error.message) from error
            return answer

        return self._at.run(give()) if self._at_once else self._and_compare(give())

    def at_once(self, commands: Sequence[Callable[[], object]]) -> list[object]:
        """Give all these commands in the same moment: the answers, refusals among them."""
        self._pass(1_000)

        async def do() -> list[object]:
            self._at_once = True
            given = [asyncio.to_thread(outcome, command) for command in commands]
            try:
                return list(await asyncio.gather(*given))
            finally:
                self._at_once = False

        return self._and_compare(do())

    def _and_compare(self, work: Coroutine[object, object, T]) -> T:
        """What came of it, once the broker has come to rest and all that it tells agrees."""

        async def do() -> T:
            try:
                return await work
            finally:
                await self._settle_down()
                await self._compare_reads()

        return self._at.run(do())

    def _pass(self, ms: int) -> None:
        self.now += ms
        self._at.broker.set_clock(self.now)

    async def _compare_reads(self) -> None:
        """Everything that can be read says what the log says; so do those who watch (W1, I5)."""
        state, owner = self.state, self._owner
        tree, inbox, held, transcript, grants, session = await asyncio.gather(
            owner.tree(include_superseded=True),
            owner.open_interactions(),
            owner.held_messages(),
            owner.transcript(),
            owner.grants(),
            owner.get(),
        )
        assert [(n.id, n.parent_id) for n in tree] == [(n, state.parent_of(n)) for n in state.nodes]
        assert [n.id for n in tree if n.selected] == state.path_to(state.selected)
        for node in tree:
            if run := state.runs.get(node.id):
                shown = run_pb2.RunState.Name(node.run.state)
                assert shown == f"RUN_STATE_{run.state.name}", run.id
                assert node.run.superseded_by_run_id == run.superseded_by
                assert list(node.run.waits_for_interaction_ids) == run.waits
        assert [one.id for one in inbox] == list(state.open_interactions)
        assert list(held.messages) == [to_proto(one) for one in state.held]
        assert held.HasField("queue_pause") == (state.queue_pause is not None)
        expected = [to_proto(message) for message in self.transcript(with_hints=True)]
        assert list(transcript) == expected, "the transcript"
        assert [grant.id for grant in grants] == [grant.id for grant in self.grants()]
        active = [run for run in state.runs.values() if run.active]
        assert session.active_run_count == len(active)
        assert session.selected_node_id == state.selected
        assert session.open_interaction_count == len(state.open_interactions)
        await self._followed.until(
            lambda view: view.position >= len(self.log), DEADLINE_SECONDS, "the watcher to catch up"
        )
        self._watcher.check(state, self.log)
        await self._inbox_says(list(state.open_interactions))

    async def _inbox_says(self, open_ids: list[str]) -> None:
        try:
            async with asyncio.timeout(DEADLINE_SECONDS):
                while not (self._inbox.live and list(self._inbox.entries) == open_ids):
                    self._inbox.apply(await anext(self._inbox_frames))
        except TimeoutError:
            raise AssertionError(
                f"the watched inbox has {list(self._inbox.entries)}, open are {open_ids} (I5)"
            ) from None

    def act(
        self, act: Callable[[Decision], T], actor: Actor = BROKER, client: str = ""
    ) -> NoReturn:
        raise AssertionError("a command that is given to the core, not to the service")

    def let_fall_due(self) -> None:
        raise AssertionError("the broker sees to that")
