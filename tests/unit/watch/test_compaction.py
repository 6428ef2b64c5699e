"""The deltas of a finished message are removed some time after its end, a few messages at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from broker_service.compaction import MESSAGES_AT_ONCE, Compaction
from broker_service.domain.decision import RUNNER, principal
from broker_service.domain.limits import Limits
from broker_service.domain.model import Session, SessionConfig, TextPart
from broker_service.domain.reports import Began, Completed, Finished, RunnerEvent, Withdrew
from broker_service.domain.reports import report as report_events
from broker_service.domain.sessions import CreateSession
from broker_service.sessions import Deltas, Sessions
from broker_service.storage.port import (
    Entry,
    EntryKind,
    SessionKey,
    Store,
    StoreUnavailable,
    WorkKind,
    Write,
)
from broker_service.storage.sqlite import open_sqlite
from tests.unit.broker.conversation import ANN, said, user
from tests.unit.watch.samples import settled, within
from turngate.v1.event_pb2 import SessionEvent, TextDelta

COMPACT_AFTER_MS = 60_000


class Clock:
    def __init__(self) -> None:
        self.instant = 1_000_000

    def __call__(self) -> int:
        return self.instant


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def store(tmp_path: Path, clock: Clock) -> AsyncIterator[Store]:
    opened = open_sqlite(tmp_path / "store.db", clock)
    yield opened
    await opened.close()


class Written:
    """Sessions whose runs stream."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.compaction = Compaction(store, "b1", 5_000)
        self._sessions = Sessions(store, Limits(compact_after_ms=COMPACT_AFTER_MS), "b1", 5_000)

    async def start(self, name: str = "s-1") -> SessionKey:
        """A session with a run that may write."""
        session = Session(id=name, tenant_id="t-1", owner=ANN, config=SessionConfig(agent="a"))
        command = CreateSession(session, (user(f"m-{name}", "hello"),))
        await self._sessions.create(command, principal(ANN))
        return SessionKey("t-1", name)

    async def write(self, key: SessionKey, message_id: str, *ends: RunnerEvent) -> None:
        """A message with two deltas, and how it ends."""
        async with self._sessions.reading(key) as state:
            run_id = next(iter(state.live_runs))
        entries = tuple(
            Entry(
                EntryKind.DELTA,
                SessionEvent(text_delta=TextDelta(message_id=message_id)).SerializeToString(),
                run_id,
                message_id,
            )
            for _ in range(2)
        )
        steps: list[tuple[tuple[RunnerEvent, ...], Deltas]] = [
            ((Began(message_id),), Deltas(after=entries))
        ]
        if ends:
            steps.append((ends, Deltas()))
        for events, deltas in steps:
            await self._sessions.execute(
                key,
                RUNNER,
                partial(report_events, run_id=run_id, attempt=1, events=events),
                deltas=deltas,
            )

    async def deltas(self, key: SessionKey) -> list[str]:
        """Of which messages there are deltas, once each, in order."""
        entries = await self.store.read(key, 0, 10_000, 10_000_000)
        return list(dict.fromkeys(e.subject_id for e in entries if e.kind is EntryKind.DELTA))


def finished(message_id: str) -> Finished:
    return Finished(said(message_id, TextPart("text")))


async def test_W3_deltas_go_some_time_after_the_end_of_their_message(
    store: Store, clock: Clock
) -> None:
    written = Written(store)
    key = await written.start()
    await written.write(key, "msg-1", finished("msg-1"))
    clock.instant += COMPACT_AFTER_MS - 1
    assert not await written.compaction.compact()
    assert await written.deltas(key) == ["msg-1"], "who watches still gets them as they came"
    clock.instant += 1
    await written.compaction.compact()
    assert await written.deltas(key) == []


async def test_W3_withdrawn_messages_lose_theirs_and_open_ones_keep_them(
    store: Store, clock: Clock
) -> None:
    written = Written(store)
    key = await written.start()
    await written.write(key, "msg-cut", Withdrew("msg-cut"))
    await written.write(key, "msg-open")
    clock.instant += 100 * COMPACT_AFTER_MS
    await written.compaction.compact()
    assert await written.deltas(key) == ["msg-open"]
    kinds = [
        SessionEvent.FromString(entry.payload).WhichOneof("event")
        for entry in await store.read(key, 0, 1_000, 1_000_000)
        if entry.subject_id == "msg-cut"
    ]
    assert kinds == ["message_started", "message_withdrawn"], "starts and ends are kept"


async def test_a_few_messages_are_compacted_at_once_over_all_sessions(
    store: Store, clock: Clock
) -> None:
    """No commit of another session waits long for it."""
    written = Written(store)
    keys = [await written.start(f"s-{number}") for number in range(MESSAGES_AT_ONCE + 2)]
    for number, key in enumerate(keys):
        await written.write(key, f"msg-{number}", finished(f"msg-{number}"), Completed())
    clock.instant += COMPACT_AFTER_MS

    async def left() -> int:
        return sum([len(await written.deltas(key)) for key in keys])

    assert await written.compaction.compact(), "more may be due"
    assert await left() == 2
    assert not await written.compaction.compact()
    assert await left() == 0
    assert not await written.compaction.compact()
    assert await store.next_due(WorkKind.COMPACTION) is None, "nothing is left to do"


async def test_S2_what_another_broker_did_not_finish_is_taken_up(
    store: Store, clock: Clock
) -> None:
    written = Written(store)
    key = await written.start()
    await written.write(key, "msg-1", finished("msg-1"))
    clock.instant += COMPACT_AFTER_MS
    await store.claim(WorkKind.COMPACTION, "dead", clock.instant + 5_000, 10)
    await written.compaction.compact()
    assert await written.deltas(key) == ["msg-1"]
    clock.instant += 5_000
    await written.compaction.compact()
    assert await written.deltas(key) == []


async def test_it_goes_on_in_the_background_also_after_the_store_was_away(
    store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = Written(store)
    key = await written.start()
    await written.write(key, "msg-1", finished("msg-1"))
    clock.instant += COMPACT_AFTER_MS
    commit = store.commit
    failures = 1

    async def commit_later(write: Write) -> object:
        nonlocal failures
        if failures:
            failures -= 1
            clock.instant += 10_000  # the lease runs out
            raise StoreUnavailable("away")
        return await commit(write)

    monkeypatch.setattr(store, "commit", commit_later)
    written.compaction.start(0.01)
    async with asyncio.timeout(10):
        while await written.deltas(key):
            await settled()
    await within(written.compaction.close())
    await within(written.compaction.close())
    assert failures == 0
