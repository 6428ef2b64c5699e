"""Watching a real store: whatever a watcher resumes from, it gets the same log (W1, W3, W4)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from broker_service.storage.port import Append, Entry, EntryKind, SessionKey, Store, Write
from broker_service.storage.sqlite import open_sqlite
from broker_service.watch.cursor import cursor_at, position_of
from broker_service.watch.frames import FrameLimits
from broker_service.watch.hub import WatchHub
from broker_service.watch.tail import WatchSettings
from tests.unit.watch.samples import (
    OTHER,
    S,
    deleted,
    frames_until,
    next_frame,
    positions,
    text,
    texts,
    within,
)

SMALL = WatchSettings(ring_entries=10, frame=FrameLimits(entries=7))


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    opened = open_sqlite(tmp_path / "store.db")
    yield opened
    await opened.close()


class Session:
    """A session that is written to, one commit after the other."""

    def __init__(self, store: Store, key: SessionKey = S) -> None:
        self.key = key
        self._store = store
        self._version = 0

    async def append(self, *contents: str) -> None:
        entries = tuple(
            Entry(EntryKind.EVENT, text(content).SerializeToString()) for content in contents
        )
        await self._store.commit(Write((Append(self.key, entries, self._version),)))
        self._version += len(entries)

    async def delete(self) -> None:
        entry = Entry(EntryKind.EVENT, deleted().SerializeToString())
        await self._store.commit(Write((Append(self.key, (entry,), self._version),)))


async def test_a_watch_that_resumes_anywhere_gets_the_rest(store: Store) -> None:
    """W1: from every position, by cursor, over history and live."""
    session = Session(store)
    for number in range(20):
        await session.append(str(number))
    hub = WatchHub(store, SMALL)
    watches = [
        hub.watch(S, position_of(S, cursor_at(S, after), 20), principal="ann")
        for after in range(21)
    ]
    reading = [asyncio.create_task(frames_until(watch, 30)) for watch in watches]
    for number in range(20, 30):
        await session.append(str(number))
    for after, frames in enumerate(await within(asyncio.gather(*reading))):
        assert texts(frames) == [str(number) for number in range(after, 30)]
        assert positions(frames) == list(range(after + 1, 31))


async def test_commits_while_watchers_come_in_are_seen_once_by_each(store: Store) -> None:
    """W1: 300 commits, and a watcher that comes in after every tenth."""
    session = Session(store)
    await session.append("0")
    hub = WatchHub(store, SMALL)
    reading: list[asyncio.Task[list[int]]] = []

    async def read(after: int) -> list[int]:
        watch = hub.watch(S, after, principal="ann")
        found = positions(await frames_until(watch, 300))
        watch.close()
        return found

    for number in range(1, 300):
        if number % 10 == 0:
            reading.append(asyncio.create_task(read(number - 10)))
        await session.append(str(number))
    for index, found in enumerate(await within(asyncio.gather(*reading))):
        assert found == list(range(index * 10 + 1, 301))
    assert len(hub) == 0


async def test_a_slow_watcher_slows_down_nobody(store: Store) -> None:
    """W4: it has taken one frame and no more, while another one follows each commit."""
    session = Session(store)
    await session.append("0")
    hub = WatchHub(store, SMALL)
    slow, quick = hub.watch(S, 0, principal="ann"), hub.watch(S, 0, principal="ann")
    await next_frame(slow)
    await next_frame(quick)
    for number in range(1, 100):
        await session.append(str(number))
        assert texts([await next_frame(quick)]) == [str(number)]
    assert texts(await frames_until(slow, 100)) == [str(number) for number in range(1, 100)]


async def test_sessions_are_watched_apart(store: Store) -> None:
    """P2 and G5's kin: a session's watchers see it alone, and are woken by nothing else."""
    one, other = Session(store), Session(store, OTHER)
    await one.append("one")
    await other.append("other")
    hub = WatchHub(store)
    watch, other_watch = hub.watch(S, 0, principal="ann"), hub.watch(OTHER, 0, principal="ann")
    assert texts([await next_frame(watch)]) == ["one"]
    assert texts([await next_frame(other_watch)]) == ["other"]
    await other.append("more")
    await one.append("two")
    assert texts([await next_frame(watch)]) == ["two"]
    assert texts([await next_frame(other_watch)]) == ["more"]


async def test_a_large_history_comes_in_frames_that_can_be_sent(store: Store) -> None:
    """Nothing on the wire exceeds 1 MiB."""
    session = Session(store)
    for _ in range(5):
        await session.append(*(["x" * 200_000] * 4))
    watch = WatchHub(store).watch(S, 0, principal="ann")
    sizes: list[int] = []
    async with asyncio.timeout(10):
        while sum(sizes) < 20 * 200_000:
            sizes.append(len(await anext(watch)))
    assert max(sizes) <= 1024 * 1024
    assert len(sizes) < 10, "as much as fits goes into one frame"


async def test_a_deleted_session_ends_its_watches(store: Store) -> None:
    session = Session(store)
    await session.append("0")
    hub = WatchHub(store)
    watch = hub.watch(S, 0, principal="ann")
    await next_frame(watch)
    await session.delete()
    assert positions([await next_frame(watch)]) == [2]
    with pytest.raises(StopAsyncIteration):
        await next_frame(watch)
