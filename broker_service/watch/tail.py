"""The recent end of one session's log, shared by all who watch it.

The tail holds no more than somebody may still want, and never more than its limits: a watcher that
is further behind reads the store instead (W4). Watchers that stand at the same place share batches,
frames and reads.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field
from itertools import islice
from typing import Protocol

from broker_service.storage.port import CommitListener, SessionKey, StoredEntry
from broker_service.watch.clock import Clock, Timer
from broker_service.watch.frames import (
    ELEMENT_OVERHEAD,
    Batch,
    Element,
    FrameLimits,
    encode_entry,
    gather,
)

_SHORTEST_PAUSE = 0.001
"""Seconds. Below, gathering costs more than it saves."""


class Log(Protocol):
    """What watching needs of the `Store`; see there."""

    def listen(self, listener: CommitListener) -> None: ...

    async def read(
        self, session: SessionKey, after: int, max_entries: int, max_bytes: int
    ) -> tuple[StoredEntry, ...]: ...

    async def last_position(self, session: SessionKey) -> int | None: ...


@dataclass(frozen=True, slots=True)
class WatchSettings:
    """`idle_frame`, `stuck_reader`: seconds (settings of these names). `watches_*`: limits (E3).

    `frames_a_second`: how many frames a session's watchers get together; where there are more
    watchers than that allows at once, entries are gathered into one frame for a moment (200
    watchers: 10 ms). `ring_*`: what is kept of a session's log for watchers that lag behind.
    """

    idle_frame: float = 15.0
    stuck_reader: float = 30.0
    watches_a_session: int = 1000
    watches_a_principal: int = 200
    frames_a_second: float = 20_000
    ring_entries: int = 2048
    ring_bytes: int = 1024 * 1024
    frame: FrameLimits = field(default_factory=FrameLimits)


class Tail:
    """What is known of the end of a log: `position` is its newest entry that watchers may take."""

    def __init__(self, key: SessionKey, store: Log, settings: WatchSettings, clock: Clock) -> None:
        self.position = 0
        self.watches = 0
        self._key = key
        self._store = store
        self._settings = settings
        self._clock = clock
        # Entries after `_floor`, without gap, up to `_ring_end`.
        self._ring: deque[Element] = deque()
        self._ring_bytes = 0
        self._floor = 0
        self._gathered: list[Element] = []  # what follows, not yet announced
        self._gathered_bytes = 0
        self._timer: Timer | None = None
        self._announced_at = float("-inf")
        self._waiters: set[asyncio.Future[None]] = set()
        # The newest batch with and without deltas, with the place that it starts from.
        self._latest: dict[bool, tuple[int, Batch]] = {}
        self._reads: dict[tuple[int, bool], asyncio.Task[Batch]] = {}

    @property
    def _ring_end(self) -> int:
        return self._ring[-1].position if self._ring else self._floor

    @property
    def kept_bytes(self) -> int:
        """Bytes of the entries and frames that are held in memory."""
        frames = sum(batch.frames_size for _, batch in self._latest.values())
        return self._ring_bytes + self._gathered_bytes + frames

    def reach(self, position: int) -> None:
        """The log is known to go on to `position`."""
        self.position = max(self.position, position)

    def feed(self, position: int, entries: tuple[StoredEntry, ...]) -> None:
        """New durable entries, or the news that there are some in the store (`CommitListener`)."""
        known = self._gathered[-1].position if self._gathered else self._ring_end
        if not entries:
            if position > known:
                self.announce()
                self._forget(position)
                self.reach(position)
                self.wake()
            return
        if entries[0].position != known + 1:  # the ring may have no gap
            self.announce()
            self._forget(entries[0].position - 1)
        for entry in entries:
            element = encode_entry(entry)
            self._gathered.append(element)
            self._gathered_bytes += len(element.encoded)
        self._announce_in_time()

    def announce(self) -> None:
        """Let watchers have what was gathered."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._gathered:
            return
        self._ring.extend(self._gathered)
        self._ring_bytes += self._gathered_bytes
        self._gathered.clear()
        self._gathered_bytes = 0
        self._latest.clear()
        self._trim()
        self.reach(self._ring_end)
        self._announced_at = self._clock.time()
        self.wake()

    def recent(self, after: int, without_deltas: bool) -> Batch | None:
        """What follows `after`, out of memory; None if that has to be read."""
        if not self._floor <= after < self._ring_end:
            return None
        latest = self._latest.get(without_deltas)
        if latest is not None and latest[0] == after:
            return latest[1]
        elements = islice(self._ring, after - self._floor, None)
        batch = gather(self._key, after, elements, without_deltas, self._settings.frame)
        self._latest[without_deltas] = after, batch
        return batch

    async def older(self, after: int, without_deltas: bool) -> Batch:
        """What follows `after`, out of the store; who asks meanwhile for the same shares it."""
        question = (after, without_deltas)
        read = self._reads.get(question)
        if read is None:
            read = self._reads[question] = asyncio.create_task(self._read(*question))
            read.add_done_callback(lambda _: self._reads.pop(question))
        return await asyncio.shield(read)  # one who leaves ends nobody else's read

    def add_waiter(self, waiter: asyncio.Future[None]) -> None:
        """Set `waiter` at the next news. Whoever stops waiting earlier discards it."""
        self._waiters.add(waiter)
        if len(self._waiters) == self.watches:
            self._forget(self._ring_end)  # nobody needs it any more

    def discard_waiter(self, waiter: asyncio.Future[None]) -> None:
        self._waiters.discard(waiter)

    def close(self) -> None:
        """Nobody watches any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def wake(self) -> None:
        """Make everybody who waits look up."""
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._waiters.clear()

    def _announce_in_time(self) -> None:
        pause = self.watches / self._settings.frames_a_second
        due = self._announced_at + pause - self._clock.time()
        full = (
            self._gathered_bytes >= self._settings.frame.elements_size
            or len(self._gathered) >= self._settings.frame.entries
        )
        if pause < _SHORTEST_PAUSE or due <= 0 or full:
            self.announce()
        elif self._timer is None:
            self._timer = self._clock.call_later(due, self.announce)

    def _trim(self) -> None:
        while self._ring and (
            self._ring_bytes > self._settings.ring_bytes
            or len(self._ring) > self._settings.ring_entries
        ):
            oldest = self._ring.popleft()
            self._ring_bytes -= len(oldest.encoded)
            self._floor = oldest.position

    def _forget(self, position: int) -> None:
        """Keep nothing up to `position`, where the ring goes on."""
        self._ring.clear()
        self._ring_bytes = 0
        self._latest.clear()
        self._floor = position

    async def _read(self, after: int, without_deltas: bool) -> Batch:
        limits = self._settings.frame
        known = self.position
        entries = await self._store.read(
            self._key,
            after,
            limits.entries,
            max(1, limits.elements_size - limits.entries * ELEMENT_OVERHEAD),
        )
        jumps = not entries or entries[0].position > after + 1
        if jumps and await self._begins_later(after):
            return Batch(self._key, after, [], is_lost=True)
        if not entries:  # what was last may have been compacted away
            return Batch(self._key, max(after, known), [])
        return gather(self._key, after, map(encode_entry, entries), without_deltas, limits)

    async def _begins_later(self, after: int) -> bool:
        """Whether events are missing after a place, not only deltas (W2, W3).

        Deltas are taken out anywhere, events only from the start of a log on, where there never is
        a delta. So they are missing if the log begins behind that place. Of a deleted session
        nothing but its end is left, and nothing else is to be told.
        """
        first = await self._store.read(self._key, 0, 1, 1)
        if not first or encode_entry(first[0]).is_end:
            return False
        return first[0].position > after + 1
