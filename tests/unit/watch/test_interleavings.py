"""What can happen between a watch's steps, one order at a time (W1, W4)."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker_service.storage.port import EntryKind, StoreUnavailable
from broker_service.watch.frames import FrameLimits
from broker_service.watch.hub import Watch, WatchHub
from broker_service.watch.tail import WatchSettings
from tests.unit.watch.samples import (
    ManualClock,
    MemoryLog,
    S,
    deleted,
    frames_until,
    next_frame,
    place,
    positions,
    settled,
    text,
    texts,
    within,
)
from turngate_core.errors import Reason, Refusal

SMALL = WatchSettings(ring_entries=8, frame=FrameLimits(entries=4))


def open_watch(hub: WatchHub, after: int = 0, *, without_deltas: bool = False) -> Watch:
    return hub.watch(S, after, without_deltas, principal="ann")


async def test_history_comes_first_and_the_frame_that_ends_it_says_live() -> None:
    """W1."""
    log = MemoryLog(entries=10)
    watch = open_watch(WatchHub(log, SMALL))
    frames = await frames_until(watch, 10)
    assert positions(frames) == list(range(1, 11))
    assert [frame.live for frame in frames] == [False, False, True]
    log.append(text("news"))
    frame = await next_frame(watch)
    assert (positions([frame]), texts([frame]), frame.live) == ([11], ["news"], True)


async def test_at_the_tail_the_first_frame_comes_at_once_without_events() -> None:
    """A client knows that it is attached."""
    watch = open_watch(WatchHub(MemoryLog(entries=3)), after=3)
    frame = await next_frame(watch)
    assert (positions([frame]), place(frame), frame.live) == ([], 3, True)


async def test_what_is_committed_while_history_is_read_comes_once() -> None:
    """W1: subscribed first, then caught up."""
    log = MemoryLog(entries=6)
    log.gate.clear()
    watch = open_watch(WatchHub(log, SMALL))
    reading = asyncio.create_task(frames_until(watch, 9))
    await within(log.reading.wait())
    log.append(text("a"), text("b"))
    log.append(text("c"))
    log.gate.set()
    assert positions(await within(reading)) == list(range(1, 10))


async def test_a_read_that_is_ahead_of_the_news_repeats_nothing() -> None:
    """W1: a store shows a commit to readers before it tells listeners."""
    log = MemoryLog(entries=2)
    hub = WatchHub(log)
    watch = open_watch(hub)
    log.append(text("a"), text("b"), told=False)
    assert positions([await next_frame(watch)]) == [1, 2, 3, 4]
    log.tell(tuple(log.entries[2:]))
    log.append(text("c"))
    assert positions([await next_frame(watch)]) == [5]


async def test_another_replicas_commit_is_read_from_the_store() -> None:
    """A wake-up without entries; what comes after it comes out of memory again."""
    log = MemoryLog(entries=2)
    watch = open_watch(WatchHub(log))
    await next_frame(watch)
    waiting = asyncio.create_task(next_frame(watch))
    await settled()
    log.append(text("theirs"), told=False)
    await settled()
    assert not waiting.done()
    log.tell()
    assert texts([await within(waiting)]) == ["theirs"]
    log.append(text("ours"))
    assert texts([await next_frame(watch)]) == ["ours"]


async def test_own_commits_after_anothers_that_nobody_told_of_leave_no_gap() -> None:
    """W1: entries that do not follow the known ones show that some are missing."""
    log = MemoryLog(entries=2)
    watch = open_watch(WatchHub(log))
    await next_frame(watch)
    log.append(text("theirs"), told=False)
    log.append(text("ours"))
    assert texts(await frames_until(watch, 4)) == ["theirs", "ours"]


async def test_many_commits_between_two_writes_come_in_one_frame() -> None:
    """W4: frames grow with load."""
    log = MemoryLog(entries=1)
    watch = open_watch(WatchHub(log))
    await next_frame(watch)
    for number in range(100):
        log.append(text(str(number)))
    assert positions([await next_frame(watch)]) == list(range(2, 102))


async def test_who_comes_later_gets_all_that_is_there_in_one_frame() -> None:
    """W4: not the smaller frame that a quicker one got at the same place."""
    log = MemoryLog(entries=1)
    hub = WatchHub(log)
    slow, quick = open_watch(hub), open_watch(hub)
    await next_frame(slow)
    await next_frame(quick)
    log.append(text("a"))
    assert texts([await next_frame(quick)]) == ["a"]
    log.append(text("b"))
    assert texts([await next_frame(slow)]) == ["a", "b"]


async def test_a_watcher_that_fell_behind_reads_the_store() -> None:
    """W4: the ring has overflowed meanwhile; nothing is lost."""
    log = MemoryLog(entries=1)
    watch = open_watch(WatchHub(log, SMALL))
    await next_frame(watch)
    reads = len(log.reads)
    for number in range(50):
        log.append(text(str(number)))
    frames = await frames_until(watch, 51)
    assert positions(frames) == list(range(2, 52))
    assert all(frame.live for frame in frames), "it has reached the present once"
    assert len(log.reads) > reads


async def test_memory_for_a_stuck_watcher_is_bounded() -> None:
    """W4: whatever is committed while it takes nothing."""
    log = MemoryLog(entries=1)
    hub = WatchHub(log, WatchSettings(ring_bytes=50_000))
    stuck, quick = open_watch(hub), open_watch(hub)
    await next_frame(stuck)
    await next_frame(quick)
    for _ in range(200):
        log.append(text("x" * 1000))
        await next_frame(quick)
        assert hub.kept_bytes <= 50_000 + 1100, "the ring, and the frame that all share"
    assert positions(await frames_until(stuck, 201)) == list(range(2, 202))


async def test_one_large_entry_does_not_stay_in_memory() -> None:
    """W4: larger than the ring; it is read instead."""
    log = MemoryLog(entries=1)
    hub = WatchHub(log, WatchSettings(ring_bytes=500))
    watch = open_watch(hub)
    await next_frame(watch)
    log.append(text("x" * 1000))
    log.append(text("y"))
    assert hub.kept_bytes <= 500
    assert texts(await frames_until(watch, 3)) == ["x" * 1000, "y"]


async def test_nothing_is_kept_when_everybody_has_it() -> None:
    """Thousands of quiet sessions are watched: each holds nothing."""
    log = MemoryLog(entries=1)
    hub = WatchHub(log)
    watch = open_watch(hub)
    await next_frame(watch)
    log.append(text("a" * 1000))
    assert hub.kept_bytes > 1000
    await next_frame(watch)
    waiting = asyncio.create_task(next_frame(watch))
    await settled()
    assert hub.kept_bytes == 0
    log.append(text("b"))
    assert texts([await within(waiting)]) == ["b"]


async def test_who_has_left_is_not_waited_for() -> None:
    """What everybody has is dropped, too, when one has gone who had waited."""
    log = MemoryLog(entries=1)
    hub = WatchHub(log)
    leaves, stays = open_watch(hub), open_watch(hub)
    await next_frame(leaves)
    await next_frame(stays)
    log.append(text("a"))
    await next_frame(leaves)
    await next_frame(stays)
    leaving = asyncio.create_task(next_frame(leaves))
    await settled()
    leaving.cancel()
    await settled()
    waiting = asyncio.create_task(next_frame(stays))
    await settled()
    assert hub.kept_bytes == 0
    waiting.cancel()


async def test_watchers_at_one_place_get_the_same_bytes() -> None:
    """Encoded once, live and out of the store."""
    log = MemoryLog(entries=5)
    hub = WatchHub(log)
    watches = [open_watch(hub) for _ in range(50)]
    history = await within(asyncio.gather(*(anext(watch) for watch in watches)))
    assert len({id(frame) for frame in history}) == 1
    assert log.reads == [0], "one read for all of them"
    log.append(text("news"))
    live = await within(asyncio.gather(*(anext(watch) for watch in watches)))
    assert len({id(frame) for frame in live}) == 1


async def test_one_who_leaves_ends_nobody_elses_read() -> None:
    log = MemoryLog(entries=5)
    log.gate.clear()
    hub = WatchHub(log)
    leaves = asyncio.create_task(next_frame(open_watch(hub)))
    stays = asyncio.create_task(next_frame(open_watch(hub)))
    await within(log.reading.wait())
    leaves.cancel()
    await settled()
    assert leaves.cancelled()
    log.gate.set()
    assert positions([await within(stays)]) == [1, 2, 3, 4, 5]


async def test_a_read_that_fails_for_nobody_is_no_news() -> None:
    """All who asked have left: the loop has nothing to report."""
    reported: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, report: reported.append(report))
    log = MemoryLog(entries=5)
    log.gate.clear()
    leaves = asyncio.create_task(next_frame(open_watch(WatchHub(log))))
    await within(log.reading.wait())
    leaves.cancel()
    await settled()
    log.error = StoreUnavailable("away")
    log.gate.set()
    await settled()
    gc.collect()
    assert reported == []


async def test_a_store_that_fails_ends_the_watch_by_name() -> None:
    """E2; and the next watch asks again."""
    log = MemoryLog(entries=5)
    log.error = StoreUnavailable("away")
    hub = WatchHub(log)
    watch = open_watch(hub)
    with pytest.raises(StoreUnavailable):
        await next_frame(watch)
    with pytest.raises(StopAsyncIteration):
        await next_frame(watch)
    log.error = None
    assert positions([await next_frame(open_watch(hub))]) == [1, 2, 3, 4, 5]


async def test_a_session_that_is_not_there_is_refused() -> None:
    hub = WatchHub(MemoryLog())
    with pytest.raises(Refusal) as refused:
        await next_frame(open_watch(hub))
    assert refused.value.reason is Reason.SESSION_NOT_FOUND
    assert len(hub) == 0


async def test_the_watch_ends_after_the_deletion() -> None:
    """Nothing comes after it; who comes later is told so."""
    log = MemoryLog(entries=1)
    hub = WatchHub(log)
    watch = open_watch(hub)
    await next_frame(watch)
    log.append(text("last words"), deleted())
    frame = await next_frame(watch)
    assert [event.WhichOneof("event") for event in frame.events] == [
        "text_delta",
        "session_deleted",
    ]
    with pytest.raises(StopAsyncIteration):
        await next_frame(watch)
    with pytest.raises(Refusal) as refused:
        await next_frame(open_watch(hub, after=3))
    assert refused.value.reason is Reason.SESSION_DELETED
    assert len(hub) == 0


async def test_without_deltas_only_events_come() -> None:
    log = MemoryLog(entries=2)
    log.append(text("d"), text("e"), kind=EntryKind.DELTA)
    log.append(text("f"))
    watch = open_watch(WatchHub(log, SMALL), without_deltas=True)
    assert positions(await frames_until(watch, 5)) == [1, 2, 5]
    waiting = asyncio.create_task(next_frame(watch))
    log.append(text("g"), kind=EntryKind.DELTA)
    await settled()
    assert not waiting.done(), "a delta is no news to it"
    log.append(text("h"))
    assert positions([await within(waiting)]) == [7]


async def test_a_tail_of_nothing_but_deltas_still_attaches_at_once() -> None:
    log = MemoryLog(entries=2)
    log.append(text("d"), text("e"), kind=EntryKind.DELTA)
    watch = open_watch(WatchHub(log), after=2, without_deltas=True)
    frame = await next_frame(watch)
    assert (positions([frame]), place(frame), frame.live) == ([], 4, True)


async def test_entries_that_were_compacted_away_hold_nobody_up() -> None:
    """W3: the end of the log, too, may be gone."""
    log = MemoryLog(entries=9)
    log.compact(4, 5, 6, 9)
    watch = open_watch(WatchHub(log, SMALL))
    frames = await frames_until(watch, 9)
    assert positions(frames) == [1, 2, 3, 7, 8]
    assert frames[-1].live
    log.append(text("news"))
    assert positions([await next_frame(watch)]) == [10]


Step = st.sampled_from(("append", "two", "delta", "silent", "read", "cut"))


@settings(max_examples=150)
@given(st.lists(Step, max_size=40), st.integers(1, 6))
def test_whatever_the_order_nothing_is_missed_and_nothing_comes_twice(
    steps: Sequence[str], history: int
) -> None:
    """W1, W4: commits of this and of other replicas, reads, and breaks after which a client resumes
    by its cursor; with a ring and frames so small that they overflow all the time."""

    async def play() -> None:
        log = MemoryLog(history)
        clock = ManualClock()
        hub = WatchHub(log, WatchSettings(ring_entries=3, frame=FrameLimits(entries=2)), clock)
        watch = open_watch(hub)
        seen: list[int] = []
        at = 0
        for step in steps:
            if step == "append":
                log.append(text("a"))
            elif step == "two":
                log.append(text("a"), text("b"))
            elif step == "delta":
                log.append(text("d"), kind=EntryKind.DELTA)
            elif step == "silent":
                log.append(text("s"), told=False)
            elif step == "cut":
                watch.close()
                watch = open_watch(hub, at)
            elif at < log.last:
                log.tell()
                frame = await next_frame(watch)
                seen += positions([frame])
                at = place(frame)
        log.append(text("end"))
        log.tell()
        seen += positions(await frames_until(watch, log.last))
        assert seen == list(range(1, log.last + 1))
        watch.close()
        assert len(hub) == 0
        assert clock.armed == 0

    asyncio.run(play())
