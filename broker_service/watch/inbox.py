"""Watching the inbox: all that waits in a tenant's sessions, then what changes of it (I5).

A watch is told which sessions have new events, and looks at each when its reader is ready: a slow
reader gets the present state later, and what came and went meanwhile not at all. So it holds one
mark for each changed session and one for each entry that it has shown, however much happens (W4).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass

from broker_service.api.reads import interaction_proto
from broker_service.sessions import Sessions
from broker_service.storage.port import EntryKind, SessionFilter, SessionKey, StoredEntry
from broker_service.watch.delivery import deliver
from broker_service.watch.hub import WatchHub
from turngate.v1.broker_pb2 import InteractionFilter, WatchInteractionsResponse
from turngate.v1.interaction_pb2 import INTERACTION_KIND_UNSPECIFIED, Interaction
from turngate_core.errors import Reason, Refusal

ROWS_AT_ONCE = 200
"""Entries of the open set that are read together."""

CHANGED_SESSIONS = 10_000
"""Sessions that may change before a reader has taken what it was sent; then it is too slow."""

FRAME_BYTES = 900 * 1024
FRAME_ENTRIES = 100


class InboxHub:
    """The inbox watches of this broker. To be made and used on the event loop of the store."""

    def __init__(self, sessions: Sessions, hub: WatchHub) -> None:
        self.sessions = sessions
        self.hub = hub
        self._watches: dict[str, set[InboxWatch]] = {}  # by tenant
        sessions.store.listen(self._committed)
        hub.at_close(self._wake_all)

    def watch(self, where: InteractionFilter, *, tenant_id: str, principal: str) -> InboxWatch:
        """Watch the inbox of a principal. Refuses with LIMIT_EXCEEDED and SHUTTING_DOWN."""
        if self.hub.closing:
            raise _shutting_down()
        self.hub.enter((tenant_id, principal))
        watch = InboxWatch(self, where, (tenant_id, principal))
        # Told of changes before the open set is read: nothing falls in between.
        self._watches.setdefault(tenant_id, set()).add(watch)
        return watch

    def leave(self, watch: InboxWatch, who: tuple[str, str]) -> None:
        """One watch less."""
        self.hub.leave_principal(who)
        watches = self._watches[who[0]]
        watches.discard(watch)
        if not watches:
            del self._watches[who[0]]

    def _committed(self, key: SessionKey, position: int, entries: tuple[StoredEntry, ...]) -> None:
        # No entries: another replica has written, whatever it was.
        if entries and all(entry.kind is EntryKind.DELTA for entry in entries):
            return
        for watch in self._watches.get(key.tenant_id, ()):
            watch.changed(key)

    def _wake_all(self) -> None:
        for watches in self._watches.values():
            for watch in watches:
                watch.wake()


@dataclass(frozen=True, slots=True)
class _Change:
    """An entry that is new or has changed, or one that is gone from what is watched."""

    opened: bool
    interaction: Interaction


class InboxWatch:
    """One watcher's frames. It refuses with SHUTTING_DOWN and WATCH_TOO_SLOW, and raises
    StoreUnavailable.
    """

    def __init__(self, inbox: InboxHub, where: InteractionFilter, who: tuple[str, str]) -> None:
        self._inbox = inbox
        self._where = where
        self._tenant_id = who[0]
        self._who = who
        self._changed: dict[SessionKey, None] = {}
        # What was shown: for each entry a hash of it, by session.
        self._shown: dict[SessionKey, dict[str, int]] = {}
        self._news = asyncio.Event()
        self._too_slow = False
        self._closed = False

    def changed(self, key: SessionKey) -> None:
        """A session has new events."""
        if self._where.session_id in ("", key.session_id) and not self._too_slow:
            self._changed[key] = None
            if len(self._changed) > CHANGED_SESSIONS:
                self._too_slow = True
                self._changed.clear()
            self._news.set()

    def wake(self) -> None:
        """Make the reader look up, if it waits."""
        self._news.set()

    def close(self) -> None:
        """Release what the watch holds. Idempotent; a reader finds the end."""
        if not self._closed:
            self._closed = True
            self._inbox.leave(self, self._who)
            self._changed.clear()
            self._shown.clear()
            self._news.set()

    async def deliver(self, write: Callable[[bytes], Awaitable[None]]) -> None:
        """Write all frames; a write that the reader holds up for `stuck_reader` ends it (W4)."""
        hub = self._inbox.hub
        frames = self.frames()
        try:
            await deliver(
                frames,
                write,
                clock=hub.clock,
                stuck_reader=hub.settings.stuck_reader,
                too_slow=_too_slow,
            )
        finally:
            self.close()
            await frames.aclose()

    async def frames(self) -> AsyncGenerator[bytes, None]:
        """Encoded `WatchInteractionsResponse`s: the open set, then changes."""
        frame = _Frame()
        async for page in self._open_set():
            for change in page:
                if not frame.fits(change):
                    yield frame.take(live=False)
                frame.add(change)
            self._check()
        yield frame.take(live=True)
        while not self._closed:
            is_idle = not await self._has_news()
            for key in self._next_changed():
                for change in await self._look(key):
                    if not frame.fits(change):
                        yield frame.take(live=True)
                    frame.add(change)
                self._check()
            if self._closed:
                return
            if frame or is_idle:
                yield frame.take(live=True)

    async def _open_set(self) -> AsyncGenerator[list[_Change], None]:
        if self._where.session_id:
            yield await self._look(SessionKey(self._tenant_id, self._where.session_id))
            return
        where = SessionFilter(self._tenant_id, labels=tuple(sorted(self._where.labels.items())))
        after: tuple[int, str] | None = None
        while True:
            listing = await self._inbox.sessions.store.list_interactions(where, after, ROWS_AT_ONCE)
            page: list[_Change] = []
            for row in listing.rows:
                found = Interaction.FromString(row)
                key = SessionKey(self._tenant_id, found.session_id)
                if may_match(self._where, found) and found.id not in self._shown.get(key, ()):
                    page += await self._look(key)
            yield page
            after = listing.next_after
            if after is None:
                return

    async def _has_news(self) -> bool:
        """Wait for news; False if there is none for as long as a frame may be missing."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._inbox.hub.settings.idle_frame):
                await self._news.wait()
        self._check()
        is_news = self._news.is_set()
        self._news.clear()
        return is_news

    def _check(self) -> None:
        if self._closed:
            return
        if self._inbox.hub.closing:
            raise _shutting_down()
        if self._too_slow:
            raise _too_slow()

    def _next_changed(self) -> Iterable[SessionKey]:
        while self._changed:
            key = next(iter(self._changed))
            # Forgotten before it is looked at: what comes after the look marks it again.
            del self._changed[key]
            yield key

    async def _look(self, key: SessionKey) -> list[_Change]:
        """What has changed in a session since it was last looked at."""
        shown = self._shown.get(key, {})
        present: dict[str, Interaction] = {}
        gone = [Interaction(id=one, session_id=key.session_id) for one in shown]
        try:
            async with self._inbox.sessions.reading(key) as state:
                if not shown and not state.open_interactions:
                    return []
                if self._where.labels.items() <= state.config.labels.items():
                    for one in state.open_interactions:
                        found = interaction_proto(state, state.interactions[one])
                        if matches(self._where, found):
                            present[one] = found
                gone = [
                    interaction_proto(state, state.interactions[one])
                    for one in shown
                    if one not in present
                ]
        except Refusal as refusal:
            if refusal.reason not in (Reason.SESSION_NOT_FOUND, Reason.SESSION_DELETED):
                raise
        if self._closed:
            return []
        hashes = {one: hash(found.SerializeToString()) for one, found in present.items()}
        changes = [_Change(False, one) for one in gone]
        changes += [
            _Change(True, found) for one, found in present.items() if shown.get(one) != hashes[one]
        ]
        if hashes:
            self._shown[key] = hashes
        else:
            self._shown.pop(key, None)
        return changes


def matches(where: InteractionFilter, found: Interaction) -> bool:
    """Whether an interaction, as a read shows it, fits a filter; labels are its session's."""
    return may_match(where, found) and (found.on_selected_branch or not where.only_selected_branch)


def may_match(where: InteractionFilter, found: Interaction) -> bool:
    """The same without what only reads fill in: for the rows of the inbox."""
    return (
        where.session_id in ("", found.session_id)
        and where.kind in (INTERACTION_KIND_UNSPECIFIED, found.kind)
        and where.tool_name in ("", found.tool_name)
        and where.opened_for in ("", found.opened_for)
    )


class _Frame:
    """A frame in the making."""

    def __init__(self) -> None:
        self._response = WatchInteractionsResponse()
        self._size = 0
        self._count = 0

    def __bool__(self) -> bool:
        return self._count > 0

    def fits(self, change: _Change) -> bool:
        return self._count == 0 or (
            self._count < FRAME_ENTRIES
            and self._size + change.interaction.ByteSize() <= FRAME_BYTES
        )

    def add(self, change: _Change) -> None:
        entries = self._response.opened if change.opened else self._response.closed
        entries.append(change.interaction)
        self._size += change.interaction.ByteSize()
        self._count += 1

    def take(self, *, live: bool) -> bytes:
        """The frame, encoded; another one begins."""
        self._response.live = live
        encoded = self._response.SerializeToString()
        self._response = WatchInteractionsResponse()
        self._size = self._count = 0
        return encoded


def _shutting_down() -> Refusal:
    return Refusal(Reason.SHUTTING_DOWN, "the service is stopping")


def _too_slow() -> Refusal:
    return Refusal(Reason.WATCH_TOO_SLOW, "the watcher read too slowly")
