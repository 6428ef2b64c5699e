"""Where events are not kept any more, a snapshot goes first; not where deltas are gone (W2)."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest

from broker_service.watch.cursor import cursor_at
from broker_service.watch.frames import FrameLimits, Snapshot
from broker_service.watch.hub import Watch, WatchHub
from broker_service.watch.tail import WatchSettings
from tests.unit.watch.samples import MemoryLog, S, deleted, next_frame, place, positions, text
from turngate.v1.broker_pb2 import SessionSnapshot, WatchSessionResponse
from turngate.v1.session_pb2 import Session
from turngate_core.errors import Reason, Refusal


class Snapshots:
    """Snapshots of the session in two pieces, at what is then its end."""

    def __init__(self, log: MemoryLog) -> None:
        self.taken = 0
        self._log = log

    async def take(self) -> Snapshot:
        self.taken += 1
        return Snapshot(self._log.last, self._pieces())

    async def _pieces(self) -> AsyncGenerator[SessionSnapshot, None]:
        yield SessionSnapshot(session=Session(id="s1"))
        yield SessionSnapshot(complete=True)


def watch_of(
    hub: WatchHub, snapshots: Snapshots, after: int = 0, *, begin_with_snapshot: bool = False
) -> Watch:
    return hub.watch(
        S,
        after,
        principal="ann",
        snapshots=snapshots.take,
        begin_with_snapshot=begin_with_snapshot,
    )


async def snapshot_frames(watch: Watch) -> list[WatchSessionResponse]:
    frames = [await next_frame(watch) for _ in range(2)]
    assert [frame.snapshot.complete for frame in frames] == [False, True]
    assert [frame.snapshot.session.id for frame in frames] == ["s1", ""]
    assert positions(frames) == []
    return frames


@pytest.mark.parametrize("after", [0, 3, 5])
async def test_W2_a_cursor_before_the_first_kept_event_gets_a_snapshot_first(after: int) -> None:
    log = MemoryLog(entries=9)
    log.compact(1, 2, 3, 4, 5, 6)
    snapshots = Snapshots(log)
    watch = watch_of(WatchHub(log), snapshots, after)
    half, whole = await snapshot_frames(watch)
    assert (half.cursor, half.live) == ("", False), "half a snapshot stands for nothing"
    assert (place(whole), whole.live) == (9, True)
    log.append(text("news"))
    assert positions([await next_frame(watch)]) == [10], "then events from exactly there"
    assert snapshots.taken == 1


@pytest.mark.parametrize("after", [6, 7, 9])
async def test_W2_a_cursor_with_all_that_follows_needs_no_snapshot(after: int) -> None:
    log = MemoryLog(entries=9)
    log.compact(1, 2, 3, 4, 5, 6)
    snapshots = Snapshots(log)
    frame = await next_frame(watch_of(WatchHub(log), snapshots, after))
    assert positions([frame]) == list(range(after + 1, 10))
    assert (frame.live, snapshots.taken) == (True, 0)


@pytest.mark.parametrize("after", [0, 3, 4, 8])
async def test_W3_a_cursor_within_compacted_deltas_goes_on_without_a_snapshot(after: int) -> None:
    """The log has its first event: what is missing are deltas, and their message follows."""
    log = MemoryLog(entries=9)
    log.compact(4, 5, 6, 9)
    snapshots = Snapshots(log)
    frame = await next_frame(watch_of(WatchHub(log), snapshots, after))
    assert positions([frame]) == [one for one in (1, 2, 3, 7, 8) if one > after]
    assert (place(frame), snapshots.taken) == ((8, 0) if after < 8 else (9, 0))


async def test_W2_a_watcher_that_lags_behind_while_events_go_never_goes_live_silently() -> None:
    log = MemoryLog(entries=9)
    snapshots = Snapshots(log)
    watch = watch_of(WatchHub(log, WatchSettings(frame=FrameLimits(entries=3))), snapshots)
    assert positions([await next_frame(watch)]) == [1, 2, 3]
    log.compact(*range(1, 8))
    _, whole = await snapshot_frames(watch)
    assert (place(whole), whole.live) == (9, True)


async def test_W1_of_a_deleted_session_its_end_is_told_and_no_snapshot() -> None:
    """Its content is gone, whatever a watcher has yet to read."""
    log = MemoryLog(entries=9)
    log.append(deleted())
    log.compact(*range(1, 10))
    snapshots = Snapshots(log)
    watch = watch_of(WatchHub(log), snapshots, 3)
    frame = await next_frame(watch)
    assert [event.WhichOneof("event") for event in frame.events] == ["session_deleted"]
    assert snapshots.taken == 0
    with pytest.raises(StopAsyncIteration):
        await next_frame(watch)


async def test_W1_events_that_come_while_a_snapshot_is_sent_follow_it() -> None:
    log = MemoryLog(entries=3)
    watch = watch_of(WatchHub(log), Snapshots(log), begin_with_snapshot=True)
    first = await next_frame(watch)
    log.append(text("meanwhile"))
    last = await next_frame(watch)
    assert (first.snapshot.complete, last.snapshot.complete) == (False, True)
    assert (place(last), last.live) == (3, False), "the present is not reached yet"
    frame = await next_frame(watch)
    assert (positions([frame]), frame.live) == ([4], True)


async def test_W1_a_drain_ends_a_watch_within_its_snapshot() -> None:
    """Its cursor is that of before: with half a snapshot nobody can go on."""
    log = MemoryLog(entries=3)
    hub = WatchHub(log)
    watch = watch_of(hub, Snapshots(log), begin_with_snapshot=True)
    await next_frame(watch)
    hub.close()
    with pytest.raises(Refusal) as refused:
        await next_frame(watch)
    assert refused.value.reason is Reason.SHUTTING_DOWN
    assert refused.value.metadata == {"cursor": cursor_at(S, 0)}
    assert len(hub) == 0
