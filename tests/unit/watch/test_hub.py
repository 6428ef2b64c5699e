"""Idle frames, gathering, limits, drain, and that nothing is held for watchers that have gone."""

from __future__ import annotations

import asyncio
import gc
import weakref

import pytest

from broker_service.storage.port import EntryKind, SessionKey
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
from turngate.v1.broker_pb2 import WatchSessionResponse
from turngate_core.errors import Code, Reason, Refusal


def open_watch(hub: WatchHub, after: int = 0, *, principal: str = "ann") -> Watch:
    return hub.watch(S, after, principal=principal)


async def refusal_of(watch: Watch) -> Refusal:
    with pytest.raises(Refusal) as refused:
        await next_frame(watch)
    return refused.value


# Idle frames


async def test_a_frame_without_events_comes_when_nothing_happens() -> None:
    """It keeps the stream alive; 15 s after the last frame, and again."""
    clock = ManualClock()
    watch = open_watch(WatchHub(MemoryLog(entries=3), clock=clock))
    await next_frame(watch)
    for _ in range(2):
        idle = asyncio.create_task(next_frame(watch))
        await clock.advance(14.9)
        assert not idle.done()
        await clock.advance(0.1)
        frame = await within(idle)
        assert (positions([frame]), place(frame), frame.live) == ([], 3, True)


async def test_an_event_puts_the_idle_frame_off() -> None:
    log, clock = MemoryLog(entries=3), ManualClock()
    watch = open_watch(WatchHub(log, clock=clock))
    await next_frame(watch)
    await clock.advance(10)
    log.append(text("news"))
    await next_frame(watch)
    idle = asyncio.create_task(next_frame(watch))
    await clock.advance(10)
    assert not idle.done()
    await clock.advance(5)
    assert place(await within(idle)) == 4


async def test_the_idle_frame_moves_the_cursor_behind_what_was_left_out() -> None:
    """A client without deltas resumes behind them."""
    log, clock = MemoryLog(entries=3), ManualClock()
    watch = WatchHub(log, clock=clock).watch(S, 0, without_deltas=True, principal="ann")
    await next_frame(watch)
    idle = asyncio.create_task(next_frame(watch))
    await settled()
    log.append(text("d"), kind=EntryKind.DELTA)
    await clock.advance(15)
    frame = await within(idle)
    assert (positions([frame]), place(frame)) == ([], 4)


# Gathering


async def test_few_watchers_get_everything_at_once() -> None:
    log, clock = MemoryLog(entries=1), ManualClock()
    watch = open_watch(WatchHub(log, clock=clock))
    await next_frame(watch)
    for number in range(5):
        log.append(text(str(number)))
        assert texts([await next_frame(watch)]) == [str(number)]


async def test_for_many_watchers_the_first_event_is_not_delayed_and_others_are_gathered() -> None:
    """W4: here 2 watchers at 100 frames a second together, so 20 ms between frames."""
    log, clock = MemoryLog(entries=1), ManualClock()
    hub = WatchHub(log, WatchSettings(frames_a_second=100), clock)
    watches = [open_watch(hub) for _ in range(2)]
    for watch in watches:
        await next_frame(watch)
    log.append(text("first"))
    assert [texts([await next_frame(watch)]) for watch in watches] == [["first"]] * 2
    waiting = [asyncio.create_task(next_frame(watch)) for watch in watches]
    log.append(text("second"))
    await clock.advance(0.01)
    log.append(text("third"))
    await settled()
    assert not any(task.done() for task in waiting)
    await clock.advance(0.01)
    frames = await within(asyncio.gather(*waiting))
    assert [texts([frame]) for frame in frames] == [["second", "third"]] * 2
    await clock.advance(0.02)
    log.append(text("after a pause"))
    assert texts([await next_frame(watches[0])]) == ["after a pause"]


async def test_what_was_gathered_before_a_gap_is_not_taken_for_what_follows_it() -> None:
    """W1: another replica commits meanwhile, and nobody has told of it yet."""
    log, clock = MemoryLog(entries=1), ManualClock()
    hub = WatchHub(log, WatchSettings(frames_a_second=1), clock)
    first = open_watch(hub)
    await next_frame(first)
    log.append(text("announced"))
    await next_frame(first)
    log.append(text("gathered"))
    log.append(text("theirs"), told=False)
    log.append(text("ours"))
    await clock.advance(2)
    assert positions([await next_frame(open_watch(hub, after=4))]) == [5]
    assert positions(await frames_until(first, 5)) == [3, 4, 5]


async def test_what_fills_a_frame_waits_for_nothing() -> None:
    log, clock = MemoryLog(entries=1), ManualClock()
    settings = WatchSettings(frames_a_second=1, frame=FrameLimits(entries=3))
    watch = open_watch(WatchHub(log, settings, clock))
    await next_frame(watch)
    log.append(text("first"))
    await next_frame(watch)
    log.append(text("a"), text("b"), text("c"))
    assert texts([await next_frame(watch)]) == ["a", "b", "c"]


# Limits


async def test_a_session_has_so_many_watches() -> None:
    """E3: one below, at and one above the limit; a place that is given back is free."""
    hub = WatchHub(MemoryLog(entries=1), WatchSettings(watches_a_session=3))
    watches = [open_watch(hub, principal=f"p{number}") for number in range(3)]
    with pytest.raises(Refusal) as refused:
        open_watch(hub)
    assert refused.value.reason is Reason.LIMIT_EXCEEDED
    assert refused.value.code is Code.RESOURCE_EXHAUSTED
    assert refused.value.metadata == {"limit": "watches_a_session", "maximum": "3", "actual": "4"}
    other = hub.watch(SessionKey("acme", "s2"), 0, principal="ann")
    watches[0].close()
    assert place(await next_frame(open_watch(hub))) == 1
    other.close()


async def test_a_principal_has_so_many_watches() -> None:
    """E3: over all sessions; a namesake in another tenant is somebody else (P2)."""
    hub = WatchHub(MemoryLog(entries=1), WatchSettings(watches_a_principal=2))
    watches = [hub.watch(SessionKey("acme", f"s{n}"), 0, principal="ann") for n in range(2)]
    with pytest.raises(Refusal) as refused:
        open_watch(hub)
    assert refused.value.metadata["limit"] == "watches_a_principal"
    watches.append(hub.watch(SessionKey("other", "s1"), 0, principal="ann"))
    watches.append(open_watch(hub, principal="bob"))
    watches[0].close()
    watches[0].close()  # releases once only
    open_watch(hub)
    with pytest.raises(Refusal):
        open_watch(hub)


# Nothing is left behind


async def test_a_thousand_watchers_leave_nothing_behind() -> None:
    """Waiting, cancelled, closed or dropped: no place, task or timer stays."""
    log, clock = MemoryLog(entries=3), ManualClock()
    hub = WatchHub(log, WatchSettings(watches_a_principal=1000), clock)
    watches = [open_watch(hub) for _ in range(1000)]
    await within(asyncio.gather(*(next_frame(watch) for watch in watches)))
    readers = [asyncio.create_task(next_frame(watch)) for watch in watches[:900]]
    await settled()
    assert len(hub) == 1000
    assert clock.armed == 1000
    log.append(text("news"))
    frames = await within(asyncio.gather(*readers))
    assert {tuple(texts([frame])) for frame in frames} == {("news",)}
    readers = [asyncio.create_task(next_frame(watch)) for watch in watches[:900]]
    await settled()
    for reader in readers[:450]:
        reader.cancel()
    for watch in watches[450:950]:
        watch.close()
    await within(asyncio.wait(readers))
    assert all(reader.cancelled() for reader in readers[:450])
    assert all(isinstance(reader.exception(), StopAsyncIteration) for reader in readers[450:])
    assert len(hub) == 50
    del watches, readers, watch, reader
    gc.collect()
    await settled()
    assert len(hub) == 0
    assert clock.armed == 0
    assert asyncio.all_tasks() == {asyncio.current_task()}
    log.append(text("to nobody"))
    assert hub.kept_bytes == 0


async def test_a_watch_that_is_dropped_unread_is_released() -> None:
    hub = WatchHub(MemoryLog(entries=1))
    dropped = weakref.ref(open_watch(hub))
    await settled()
    assert dropped() is None
    assert len(hub) == 0


async def test_closing_ends_a_reader_that_waits() -> None:
    """What `context.add_done_callback` does when a client has left."""
    watch = open_watch(WatchHub(MemoryLog(entries=1)))
    await next_frame(watch)
    waiting = asyncio.create_task(next_frame(watch))
    await settled()
    watch.close()
    with pytest.raises(StopAsyncIteration):
        await within(waiting)


async def test_closing_ends_a_reader_whose_read_runs() -> None:
    log = MemoryLog(entries=1)
    log.gate.clear()
    watch = open_watch(WatchHub(log))
    waiting = asyncio.create_task(next_frame(watch))
    await within(log.reading.wait())
    watch.close()
    log.gate.set()
    with pytest.raises(StopAsyncIteration):
        await within(waiting)


async def test_the_last_who_leaves_takes_the_gathering_along() -> None:
    log, clock = MemoryLog(entries=1), ManualClock()
    hub = WatchHub(log, WatchSettings(frames_a_second=1), clock)
    watch = open_watch(hub)
    await next_frame(watch)
    log.append(text("first"))
    await next_frame(watch)
    log.append(text("gathered"))
    assert clock.armed == 2, "for the idle frame, and for what is gathered"
    watch.close()
    assert clock.armed == 0


# Drain


async def test_at_a_drain_each_watch_sends_what_it_has_and_names_its_cursor() -> None:
    log, clock = MemoryLog(entries=3), ManualClock()
    hub = WatchHub(log, WatchSettings(frames_a_second=1), clock)
    behind, waiting = open_watch(hub), open_watch(hub)
    await next_frame(behind)
    await next_frame(waiting)
    log.append(text("first"))
    await next_frame(waiting)
    reader = asyncio.create_task(next_frame(waiting))
    await settled()
    log.append(text("gathered"))
    hub.close()
    log.append(text("too late"))
    assert texts([await within(reader)]) == ["gathered"]
    assert texts([await next_frame(behind)]) == ["first", "gathered"]
    for watch in (behind, waiting):
        refusal = await refusal_of(watch)
        assert refusal.reason is Reason.SHUTTING_DOWN
        resumed = WatchSessionResponse(cursor=refusal.metadata["cursor"])
        assert place(resumed) == 5
    assert len(hub) == 0
    assert clock.armed == 0


async def test_at_a_drain_a_watch_in_history_does_not_read_on() -> None:
    """It resumes elsewhere."""
    log = MemoryLog(entries=100)
    hub = WatchHub(log, WatchSettings(frame=FrameLimits(entries=10)))
    watch = open_watch(hub)
    await next_frame(watch)
    hub.close()
    refusal = await refusal_of(watch)
    assert place(WatchSessionResponse(cursor=refusal.metadata["cursor"])) == 10


async def test_after_a_drain_nothing_begins() -> None:
    hub = WatchHub(MemoryLog(entries=3))
    hub.close()
    hub.close()
    with pytest.raises(Refusal) as refused:
        open_watch(hub, after=2)
    assert refused.value.reason is Reason.SHUTTING_DOWN
    assert place(WatchSessionResponse(cursor=refused.value.metadata["cursor"])) == 2


# Delivery


async def test_a_write_that_is_stuck_ends_the_watch() -> None:
    """W4: after 30 s; told to resume from what was written, which the stuck frame is not."""
    log = MemoryLog(entries=8)
    written: list[bytes] = []

    async def write(frame: bytes) -> None:
        if written:
            await asyncio.Event().wait()
        written.append(frame)

    clock = ManualClock()
    hub = WatchHub(log, WatchSettings(frame=FrameLimits(entries=5)), clock)
    delivery = asyncio.create_task(open_watch(hub).deliver(write))
    await clock.advance(29.9)
    assert not delivery.done()
    await clock.advance(0.1)
    with pytest.raises(Refusal) as refused:
        await within(delivery)
    assert refused.value.reason is Reason.WATCH_TOO_SLOW
    assert place(WatchSessionResponse(cursor=refused.value.metadata["cursor"])) == 5
    assert len(hub) == 0
    assert clock.armed == 0


async def test_a_watch_on_which_nothing_happens_is_not_stuck() -> None:
    """Only writes are timed: one that took 20 s, then silence, then another one of 20 s."""
    log, clock = MemoryLog(entries=1), ManualClock()
    hub = WatchHub(log, WatchSettings(idle_frame=1000), clock)
    taken = asyncio.Event()
    written: list[bytes] = []

    async def write(frame: bytes) -> None:
        written.append(frame)
        await taken.wait()

    delivery = asyncio.create_task(open_watch(hub).deliver(write))
    await clock.advance(20)
    taken.set()
    await clock.advance(100)
    assert clock.armed == 1, "for the idle frame only"
    taken.clear()
    log.append(text("news"))
    await clock.advance(20)
    assert len(written) == 2
    taken.set()
    await clock.advance(100)
    assert not delivery.done()
    delivery.cancel()
    await within(asyncio.wait([delivery]))


async def test_delivery_ends_with_the_session() -> None:
    log = MemoryLog(entries=2)
    log.append(deleted())
    hub = WatchHub(log)
    written: list[bytes] = []

    async def write(frame: bytes) -> None:
        written.append(frame)

    await within(open_watch(hub).deliver(write))
    assert positions([WatchSessionResponse.FromString(frame) for frame in written]) == [1, 2, 3]
    assert len(hub) == 0


@pytest.mark.parametrize("error", [ConnectionResetError, TimeoutError])
async def test_a_write_that_fails_ends_the_watch(error: type[OSError]) -> None:
    """A time-out that is not ours is not called a slow reader."""
    clock = ManualClock()
    hub = WatchHub(MemoryLog(entries=2), clock=clock)

    async def write(frame: bytes) -> None:
        raise error

    with pytest.raises(error):
        await within(open_watch(hub).deliver(write))
    assert len(hub) == 0
    assert clock.armed == 0


async def test_a_deletion_that_comes_while_the_watch_opens_is_sent() -> None:
    """Only who has seen it is refused."""
    log = MemoryLog(entries=2)
    log.gate.clear()
    watch = open_watch(WatchHub(log), after=2)
    opening = asyncio.create_task(frames_until(watch, 3))
    await within(log.reading.wait())
    log.append(deleted())
    log.gate.set()
    assert positions(await within(opening)) == [3]
