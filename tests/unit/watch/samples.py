"""A log in memory, a clock that only a test moves, and short ways to read frames."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import TypeVar

from broker_service.storage.port import CommitListener, EntryKind, SessionKey, StoredEntry
from broker_service.watch.cursor import position_of
from broker_service.watch.hub import Watch
from turngate.v1.broker_pb2 import WatchSessionResponse
from turngate.v1.event_pb2 import SessionDeleted, SessionEvent, TextDelta

T = TypeVar("T")

S = SessionKey("acme", "s1")
OTHER = SessionKey("acme", "s2")


def text(content: str) -> SessionEvent:
    return SessionEvent(text_delta=TextDelta(text=content))


def deleted() -> SessionEvent:
    return SessionEvent(session_deleted=SessionDeleted())


def stored(
    position: int, event: SessionEvent | None = None, kind: EntryKind = EntryKind.EVENT
) -> StoredEntry:
    payload = (event or text(f"e{position}")).SerializeToString()
    return StoredEntry(position, position, kind, payload, "", "")


class MemoryLog:
    """The log of S. Reads wait at `gate`, when it is closed, and answer with what is then there.

    `reads`: after which positions it was read. `last`: its newest position.
    """

    def __init__(self, entries: int = 0) -> None:
        self.entries = [stored(position + 1) for position in range(entries)]
        self.last = entries
        self.reads: list[int] = []
        self.reading = asyncio.Event()
        self.gate = asyncio.Event()
        self.gate.set()
        self.error: Exception | None = None
        self._listeners: list[CommitListener] = []

    def listen(self, listener: CommitListener) -> None:
        self._listeners.append(listener)

    def append(
        self, *events: SessionEvent, kind: EntryKind = EntryKind.EVENT, told: bool = True
    ) -> None:
        """Commit entries; with `told` false, as another replica that has sent no word yet."""
        new = tuple(
            stored(self.last + 1 + index, event, kind) for index, event in enumerate(events)
        )
        self.entries.extend(new)
        self.last += len(new)
        if told:
            self.tell(new)

    def tell(self, new: tuple[StoredEntry, ...] = ()) -> None:
        for listener in self._listeners:
            listener(S, self.last, new)

    def compact(self, *positions: int) -> None:
        self.entries = [entry for entry in self.entries if entry.position not in positions]

    async def read(
        self, session: SessionKey, after: int, max_entries: int, max_bytes: int
    ) -> tuple[StoredEntry, ...]:
        self.reads.append(after)
        self.reading.set()
        await self.gate.wait()
        if self.error is not None:
            raise self.error
        page: list[StoredEntry] = []
        size = 0
        for entry in self.entries:
            if entry.position <= after:
                continue
            size += len(entry.payload)
            if page and (size > max_bytes or len(page) == max_entries):
                break
            page.append(entry)
        return tuple(page)

    async def last_position(self, session: SessionKey) -> int | None:
        return self.last if session == S and self.last else None


class ManualTimer:
    def __init__(self, due: float, callback: Callable[[], object]) -> None:
        self.due = due
        self.callback: Callable[[], object] | None = callback

    def cancel(self) -> None:
        self.callback = None


class ManualClock:
    """Seconds that pass only in `advance`; timers that are due fire there."""

    def __init__(self) -> None:
        self._now = 100.0
        self._timers: list[ManualTimer] = []

    def time(self) -> float:
        return self._now

    def call_later(self, delay: float, callback: Callable[[], object], /) -> ManualTimer:
        timer = ManualTimer(self._now + delay, callback)
        self._timers.append(timer)
        return timer

    @property
    def armed(self) -> int:
        return sum(timer.callback is not None for timer in self._timers)

    async def advance(self, seconds: float) -> None:
        await settled()
        self._now += seconds
        due = [timer for timer in self._timers if timer.due <= self._now]
        self._timers = [timer for timer in self._timers if timer.due > self._now]
        for timer in due:
            if timer.callback is not None:
                timer.callback()
        await settled()


async def settled(turns: int = 20) -> None:
    """Let all that can go on without the outside go on: some turns of the loop."""
    loop = asyncio.get_running_loop()
    for _ in range(turns):
        turn = asyncio.Event()
        loop.call_soon(turn.set)
        await turn.wait()


async def within(awaitable: Awaitable[T], seconds: float = 10.0) -> T:
    """Its result; TimeoutError if it does not come."""
    async with asyncio.timeout(seconds):
        return await awaitable


async def next_frame(watch: AsyncIterator[bytes]) -> WatchSessionResponse:
    return WatchSessionResponse.FromString(await within(anext(watch)))


async def frames_until(watch: Watch, position: int) -> list[WatchSessionResponse]:
    """The frames up to the one whose cursor is at `position`, or behind it."""
    frames: list[WatchSessionResponse] = []
    while not frames or place(frames[-1]) < position:
        frames.append(await next_frame(watch))
    return frames


def place(frame: WatchSessionResponse, key: SessionKey = S) -> int:
    """The position that the frame's cursor names."""
    return position_of(key, frame.cursor, 1 << 62)


def positions(frames: Sequence[WatchSessionResponse]) -> list[int]:
    return [event.position for frame in frames for event in frame.events]


def texts(frames: Sequence[WatchSessionResponse]) -> list[str]:
    return [event.text_delta.text for frame in frames for event in frame.events]
