"""Watching: each watch is a stream of ready frames, history first, then live (W1, W2, W4).

A servicer opens a watch with `WatchHub.watch`, closes it when the call ends, whatever ends it
(`context.add_done_callback`), and lets it write with `Watch.deliver(context.write)`.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress

from broker_service.storage.port import SessionKey, StoredEntry
from broker_service.watch.clock import Clock, Deadline
from broker_service.watch.cursor import cursor_at
from broker_service.watch.delivery import deliver
from broker_service.watch.frames import Batch, Snapshot, Snapshots
from broker_service.watch.tail import Log, Tail, WatchSettings
from turngate_core.errors import Code, Reason, Refusal


class WatchHub:
    """All watches of this broker. To be made and used on the event loop that the store serves."""

    def __init__(
        self, store: Log, settings: WatchSettings | None = None, clock: Clock | None = None
    ) -> None:
        self.closing = False
        self.settings = settings or WatchSettings()
        self.loop = asyncio.get_running_loop()
        self.clock: Clock = clock or self.loop
        self.store = store
        self._tails: dict[SessionKey, Tail] = {}
        self._watches: Counter[tuple[str, str]] = Counter()  # by tenant and principal
        self._at_close: list[Callable[[], None]] = []
        store.listen(self._feed)

    def __len__(self) -> int:
        return self._watches.total()

    @property
    def kept_bytes(self) -> int:
        """Bytes that are held in memory for watchers that have yet to take them."""
        return sum(tail.kept_bytes for tail in self._tails.values())

    def watch(
        self,
        key: SessionKey,
        after: int,
        without_deltas: bool = False,
        *,
        principal: str,
        snapshots: Snapshots | None = None,
        begin_with_snapshot: bool = False,
    ) -> Watch:
        """Watch a session from just after the position `after`; 0: from the start.

        `snapshots` takes one of the session, where the log has lost what should come next (W2), and
        at first with `begin_with_snapshot` (W1). That the session exists and that the principal may
        see it is the caller's to know. Refuses with LIMIT_EXCEEDED and SHUTTING_DOWN.
        """
        if self.closing:
            raise _shutting_down(key, after)
        tail = self._tails.get(key)
        who = (key.tenant_id, principal)
        _check_limit(
            "watches_a_session", self.settings.watches_a_session, tail.watches if tail else 0
        )
        self.enter(who)
        if tail is None:
            tail = self._tails[key] = Tail(key, self.store, self.settings, self.clock)
        # Subscribed before anything is read: nothing falls in between (W1).
        tail.watches += 1
        place = _Place(self, tail, key, who)
        watch = Watch(self, tail, key, after, without_deltas, place, snapshots)
        if begin_with_snapshot:
            watch.wants_snapshot()
        return watch

    def close(self) -> None:
        """Drain: each watch sends what it has at hand and ends with SHUTTING_DOWN. Idempotent."""
        if not self.closing:
            for tail in self._tails.values():
                tail.announce()
                tail.wake()
            self.closing = True
            for told in self._at_close:
                told()

    def leave(self, key: SessionKey, tail: Tail, who: tuple[str, str]) -> None:
        """One watch less."""
        tail.watches -= 1
        if tail.watches == 0:
            tail.close()
            del self._tails[key]
        self.leave_principal(who)

    def enter(self, who: tuple[str, str]) -> None:
        """One watch more of a principal, of whatever kind. Refuses with LIMIT_EXCEEDED."""
        _check_limit("watches_a_principal", self.settings.watches_a_principal, self._watches[who])
        self._watches[who] += 1

    def leave_principal(self, who: tuple[str, str]) -> None:
        """One watch less of it."""
        self._watches[who] -= 1
        if self._watches[who] == 0:
            del self._watches[who]

    def at_close(self, told: Callable[[], None]) -> None:
        """Call it at the drain, once `closing` is set."""
        self._at_close.append(told)

    def _feed(self, key: SessionKey, position: int, entries: tuple[StoredEntry, ...]) -> None:
        tail = self._tails.get(key)
        if tail is not None and not self.closing:
            tail.feed(position, entries)


class _Place:
    """What a watch holds, apart from it, so that one that is dropped can be given back."""

    def __init__(self, hub: WatchHub, tail: Tail, key: SessionKey, who: tuple[str, str]) -> None:
        self.released = False
        self.waiter: asyncio.Future[None] | None = None
        self.idle = Deadline(hub.clock, hub.settings.idle_frame, self.wake)
        self._hub = hub
        self._leave = (key, tail, who)

    def wake(self) -> None:
        """Make the reader look up, if it waits."""
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(None)

    def release(self) -> None:
        """Idempotent."""
        if not self.released:
            self.released = True
            self.idle.close()
            self.wake()
            self._hub.leave(*self._leave)


class Watch:
    """One watcher's frames, as an asynchronous iterator for one reader.

    It ends after the event `session_deleted` and when it is closed. It refuses with SHUTTING_DOWN
    and WATCH_TOO_SLOW, whose metadata has the cursor to resume from, with SESSION_NOT_FOUND, and
    with SESSION_DELETED if nothing is left to come; it raises StoreUnavailable. Then, and when its
    reader is cancelled, it is closed.
    """

    def __init__(
        self,
        hub: WatchHub,
        tail: Tail,
        key: SessionKey,
        after: int,
        without_deltas: bool,
        place: _Place,
        snapshots: Snapshots | None,
    ) -> None:
        self._hub = hub
        self._tail = tail
        self._key = key
        self._without_deltas = without_deltas
        self._place = place
        self._position = after
        self._written = after  # the reader has come back for more: this much it has taken
        self._opened = False
        self._live = False
        self._ended = False
        self._snapshots = snapshots
        self._wants_snapshot = False
        self._snapshot: Snapshot | None = None

    def wants_snapshot(self) -> None:
        """Let the next frames be a snapshot, and events go on from there."""
        self._wants_snapshot = True

    def __aiter__(self) -> Watch:
        return self

    async def __anext__(self) -> bytes:
        """The next frame. Everything that came since the last one is in it, if it fits (W4)."""
        self._written = self._position  # stays where it was within a snapshot
        try:
            if self._ended or self._place.released:
                raise StopAsyncIteration
            if not self._opened:
                self._place.idle.put_off()
                await self._open()
            frame = await self._next()
        except BaseException:  # a cancel, too: nothing is held for a reader that has gone
            self.close()
            raise
        self._place.idle.put_off()
        return frame

    async def deliver(self, write: Callable[[bytes], Awaitable[None]]) -> None:
        """Write all frames; a write that the reader holds up for `stuck_reader` ends it (W4)."""
        try:
            await deliver(
                self,
                write,
                clock=self._hub.clock,
                stuck_reader=self._hub.settings.stuck_reader,
                too_slow=lambda: _too_slow(self._key, self._written),
            )
        finally:
            self.close()

    def close(self) -> None:
        """Release what the watch holds. Idempotent; on the event loop. A reader finds the end."""
        self._place.release()

    def __del__(self) -> None:
        if not self._place.released:  # nobody closed it
            with suppress(RuntimeError):  # the loop is closed: nothing is counted any more
                # The collector runs in any thread.
                self._hub.loop.call_soon_threadsafe(self._place.release)

    async def _open(self) -> None:
        last = await self._hub.store.last_position(self._key)
        if last is None:
            raise Refusal(
                Reason.SESSION_NOT_FOUND,
                f"no session {self._key.session_id}",
                {"session_id": self._key.session_id},
            )
        self._tail.reach(last)
        if self._wants_snapshot:
            self._opened = True
            return
        if 0 < self._position == self._tail.position:
            newest = await self._tail.older(self._position - 1, False)
            if newest.is_end and newest.position == self._position:
                raise Refusal(
                    Reason.SESSION_DELETED,
                    "the session was deleted: nothing comes after this cursor",
                    {"session_id": self._key.session_id},
                )
        self._opened = True

    async def _next(self) -> bytes:
        hub, tail = self._hub, self._tail
        while not self._place.released:
            if self._wants_snapshot or self._snapshot is not None:
                return await self._next_piece()
            batch = tail.recent(self._position, self._without_deltas)
            if batch is None:
                if hub.closing:
                    raise _shutting_down(self._key, self._position)
                if self._position < tail.position:
                    batch = await tail.older(self._position, self._without_deltas)
                    if self._place.released:
                        break
            if batch is not None and batch.is_lost:
                self._wants_snapshot = True
                continue
            if batch is not None:
                self._position = batch.position
                self._ended = batch.is_end
            became_live = not self._live and self._position >= tail.position
            self._live = self._live or became_live
            has_events = batch is not None and bool(batch.elements)
            if has_events or became_live or hub.clock.time() >= self._place.idle.at:
                return (batch or Batch(self._key, self._position, [])).frame(self._live)
            if batch is None:
                await self._wait()
        raise StopAsyncIteration

    async def _next_piece(self) -> bytes:
        """A piece of the snapshot; behind the last one events go on from its position."""
        if self._hub.closing:
            raise _shutting_down(self._key, self._written)
        if self._snapshot is None:
            assert self._snapshots is not None, "who watches a log says how to take a snapshot"
            self._snapshot = await self._snapshots()
            self._wants_snapshot = False
            self._tail.reach(self._snapshot.position)
        snapshot = self._snapshot
        piece = await anext(snapshot.pieces)
        if piece.complete:
            self._snapshot = None
            self._position = snapshot.position
            self._live = self._position >= self._tail.position
        return snapshot.frame(self._key, piece, self._live)

    async def _wait(self) -> None:
        waiter = self._place.waiter = self._hub.loop.create_future()
        self._tail.add_waiter(waiter)
        try:
            await waiter
        finally:
            self._tail.discard_waiter(waiter)
            self._place.waiter = None


def _shutting_down(key: SessionKey, position: int) -> Refusal:
    return Refusal(
        Reason.SHUTTING_DOWN,
        "the service is stopping",
        {"cursor": cursor_at(key, position)},
    )


def _too_slow(key: SessionKey, position: int) -> Refusal:
    return Refusal(
        Reason.WATCH_TOO_SLOW,
        "the watcher read too slowly",
        {"cursor": cursor_at(key, position)},
    )


def _check_limit(name: str, maximum: int, present: int) -> None:
    if present >= maximum:
        raise Refusal(
            Reason.LIMIT_EXCEEDED,
            "there are too many watches",
            {"limit": name, "maximum": str(maximum), "actual": str(present + 1)},
            code=Code.RESOURCE_EXHAUSTED,
        )
