"""Watching the inbox at a store: limits, slow readers, drain, other replicas, deleted sessions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from broker_service.domain.decision import RUNNER, principal
from broker_service.domain.interactions import InteractionRef
from broker_service.domain.limits import Limits
from broker_service.domain.model import Session, SessionConfig
from broker_service.domain.reports import Began, Finished, Parked
from broker_service.domain.reports import report as report_events
from broker_service.domain.sessions import CreateSession
from broker_service.domain.settlement import SettleToolCall, settle_tool_call
from broker_service.sessions import Sessions
from broker_service.storage.port import (
    Append,
    CommitListener,
    Entry,
    EntryKind,
    Fence,
    SessionKey,
    Store,
    WorkKey,
    WorkKind,
    Write,
)
from broker_service.storage.sqlite import open_sqlite
from broker_service.watch import inbox as inbox_module
from broker_service.watch.hub import WatchHub
from broker_service.watch.inbox import InboxHub, InboxWatch
from broker_service.watch.tail import WatchSettings
from tests.unit.broker.conversation import ANN, VISBY, form, said, user
from tests.unit.watch.samples import within
from turngate.v1.broker_pb2 import InteractionFilter, WatchInteractionsResponse
from turngate_core.errors import Code, Reason, Refusal


class Broker:
    """Sessions over a store, with an inbox."""

    def __init__(self, store: Store, settings: WatchSettings | None = None) -> None:
        self.store = store
        self.sessions = Sessions(store, Limits(), "b1", 5_000)
        self.hub = WatchHub(store, settings)
        self.inbox = InboxHub(self.sessions, self.hub)

    def watch(self, where: InteractionFilter | None = None, *, tenant: str = "t-1") -> InboxWatch:
        return self.inbox.watch(where or InteractionFilter(), tenant_id=tenant, principal=ANN)

    async def parked(self, session_id: str) -> str:
        """A session whose run waits for a form; the form's interaction."""
        session = Session(
            id=session_id, tenant_id="t-1", owner=ANN, config=SessionConfig(agent="travel")
        )
        command = CreateSession(session, (user(f"m-{session_id}", "hello"),))
        run_id, _ = await self.sessions.create(command, principal(ANN))
        message = said(f"msg-{session_id}", form(f"c-{session_id}"))
        events = (Began(message.id), Finished(message), Parked())
        _, state = await self.sessions.execute(
            SessionKey("t-1", session_id),
            RUNNER,
            lambda d: report_events(d, run_id, 1, events),
        )
        return next(iter(state.open_interactions))

    async def settle(self, session_id: str, interaction_id: str) -> None:
        command = SettleToolCall(InteractionRef(interaction_id), VISBY, None)
        await self.sessions.execute(
            SessionKey("t-1", session_id), principal(ANN), lambda d: settle_tool_call(d, command)
        )


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    opened = open_sqlite(tmp_path / "store.db")
    yield opened
    await opened.close()


async def next_of(frames: AsyncIterator[bytes]) -> WatchInteractionsResponse:
    return WatchInteractionsResponse.FromString(await within(anext(frames)))


def opened(frame: WatchInteractionsResponse) -> list[str]:
    return [one.id for one in frame.opened]


def closed(frame: WatchInteractionsResponse) -> list[str]:
    return [one.id for one in frame.closed]


async def test_I5_what_opens_while_the_open_set_is_read_is_not_missed(store: Store) -> None:
    broker = Broker(store)
    first = await broker.parked("s-1")
    frames = broker.watch().frames()
    second = await broker.parked("s-2")
    await broker.settle("s-1", first)
    assert opened(await next_of(frames)) == [second], "the state is the one of when it is read"
    third = await broker.parked("s-3")
    frame = await next_of(frames)
    assert (opened(frame), closed(frame)) == ([third], []), "what was never shown is not closed"


async def test_W4_a_reader_that_is_late_gets_the_present_state_and_not_its_history(
    store: Store,
) -> None:
    broker = Broker(store)
    frames = broker.watch().frames()
    assert (await next_of(frames)).live
    gone = await broker.parked("s-1")
    await broker.settle("s-1", gone)
    stays = await broker.parked("s-2")
    assert opened(await next_of(frames)) == [stays]


async def test_W4_too_many_changed_sessions_end_the_watch_of_a_slow_reader(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inbox_module, "CHANGED_SESSIONS", 2)
    broker = Broker(store)
    slow, other = broker.watch(), broker.watch(InteractionFilter(session_id="s-2"))
    frames, others = slow.frames(), other.frames()
    await next_of(frames)
    await next_of(others)
    ids = [await broker.parked(f"s-{number}") for number in range(3)]
    with pytest.raises(Refusal) as refused:
        await next_of(frames)
    assert refused.value.reason is Reason.WATCH_TOO_SLOW
    assert opened(await next_of(others)) == [ids[2]], "nobody else notices"


async def test_W4_a_write_that_is_stuck_ends_the_watch(store: Store) -> None:
    broker = Broker(store, WatchSettings(stuck_reader=0.05))
    watch = broker.watch()
    never = asyncio.Event()

    async def write(_: bytes) -> None:
        await never.wait()

    with pytest.raises(Refusal) as refused:
        await within(watch.deliver(write))
    assert refused.value.reason is Reason.WATCH_TOO_SLOW
    assert len(broker.hub) == 0


async def test_a_drain_ends_each_watch_whether_it_waits_or_not(store: Store) -> None:
    broker = Broker(store)
    waiting, unread = broker.watch().frames(), broker.watch().frames()
    await next_of(waiting)
    wait = asyncio.create_task(next_of(waiting))
    await next_of(unread)
    broker.hub.close()
    for frames in (within(wait), next_of(unread)):
        with pytest.raises(Refusal) as refused:
            await frames
        assert refused.value.reason is Reason.SHUTTING_DOWN
    with pytest.raises(Refusal) as refused:
        broker.watch()
    assert refused.value.reason is Reason.SHUTTING_DOWN


async def test_E3_inbox_watches_count_among_the_watches_of_a_principal(store: Store) -> None:
    broker = Broker(store, WatchSettings(watches_a_principal=2))
    await broker.parked("s-1")
    key = SessionKey("t-1", "s-1")
    watch = broker.watch()
    of_session = broker.hub.watch(key, 0, principal=ANN)
    for one_more in (broker.watch, lambda: broker.hub.watch(key, 0, principal=ANN)):
        with pytest.raises(Refusal) as refused:
            one_more()
        assert refused.value.reason is Reason.LIMIT_EXCEEDED
        assert refused.value.code is Code.RESOURCE_EXHAUSTED
    watch.close()
    watch.close()
    assert len(broker.hub) == 1
    of_session.close()
    broker.watch()


async def test_a_watch_that_is_closed_ends_and_is_told_nothing_more(store: Store) -> None:
    broker = Broker(store)
    watch = broker.watch()
    frames = watch.frames()
    await next_of(frames)
    wait = asyncio.create_task(next_of(frames))
    await asyncio.wait([wait], timeout=0.01)
    watch.close()
    with pytest.raises(StopAsyncIteration):
        await within(wait)
    await broker.parked("s-1")
    assert len(broker.hub) == 0


async def test_P2_a_watch_sees_its_own_tenant_only(store: Store) -> None:
    broker = Broker(store, WatchSettings(idle_frame=0.05))
    await broker.parked("s-1")
    frames = broker.watch(tenant="t-2").frames()
    assert not (await next_of(frames)).opened
    await broker.parked("s-2")
    assert not (await next_of(frames)).opened, "an idle frame"


async def test_deltas_wake_nobody(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Text of a run that streams changes nothing in the inbox."""
    broker = Broker(store)
    looked: list[str] = []
    watch = broker.watch()
    frames = watch.frames()
    await next_of(frames)
    changed = watch.changed

    def note(key: SessionKey) -> None:
        looked.append(key.session_id)
        changed(key)

    monkeypatch.setattr(watch, "changed", note)
    session = Session(id="s-1", tenant_id="t-1", owner=ANN, config=SessionConfig(agent="travel"))
    run_id, _ = await broker.sessions.create(
        CreateSession(session, (user("m-1", "hello"),)), principal(ANN)
    )
    key = SessionKey("t-1", "s-1")
    assert looked == ["s-1"]
    fence = Fence(WorkKey(WorkKind.RUN, key, run_id), "b1", 1)
    delta = Entry(EntryKind.DELTA, b"", run_id, "msg-1")
    await store.commit(Write((Append(key, (delta,), None, fence),)))
    assert looked == ["s-1"]


async def test_I5_what_another_replica_writes_is_looked_at(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store tells of such a commit without its entries."""
    listeners: list[CommitListener] = []
    monkeypatch.setattr(store, "listen", listeners.append)
    broker = Broker(store)
    frames = broker.watch().frames()
    await next_of(frames)
    interaction = await broker.parked("s-1")
    for listener in listeners:
        listener(SessionKey("t-1", "s-1"), 1, ())
    assert opened(await next_of(frames)) == [interaction]


async def test_I5_the_questions_of_a_session_that_is_gone_are_closed(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = Broker(store)
    frames = broker.watch().frames()
    await next_of(frames)
    interaction = await broker.parked("s-1")
    assert opened(await next_of(frames)) == [interaction]

    def gone(key: SessionKey) -> None:
        raise Refusal(Reason.SESSION_DELETED, "gone", {"session_id": key.session_id})

    monkeypatch.setattr(broker.sessions, "reading", gone)
    await broker.settle("s-1", interaction)
    frame = await next_of(frames)
    assert [(one.id, one.session_id) for one in frame.closed] == [(interaction, "s-1")]
