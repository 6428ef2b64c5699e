"""Who hears of what in which order: own commits with their entries, those of others without.

Listeners are told in order of position within a session, each entry once (`CommitListener`). Two
things could break that, and are met here:

* The notification of another replica's commit arrives after the own commit that follows it: the
  news is told with the own commit, just before it, and the late notification dropped.
* It arrives before the database's answer to the own commit that it follows: all notifications are
  held while a COMMIT is under way.

The notifications of own commits come back, too. They tell nothing new, unless a commit's outcome
was never heard of because the connection broke: then they are how this replica learns of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from broker_service.storage.listeners import Listeners
from broker_service.storage.port import SessionKey, StoredEntry

_SESSIONS = 20_000


class Announcements:
    """What listeners were told, for the sessions that were written to last."""

    def __init__(self, listeners: Listeners) -> None:
        self._listeners = listeners
        self._told: dict[SessionKey, int] = {}
        self._held: list[tuple[SessionKey, int]] | None = None

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the news of others back for the length of the block, an own COMMIT."""
        held: list[tuple[SessionKey, int]] = []
        self._held = held
        try:
            yield
        finally:
            self._held = None
            for session, position in held:
                self.foreign(session, position)

    def own(self, published: Sequence[tuple[SessionKey, int, tuple[StoredEntry, ...]]]) -> None:
        """Own entries are durable."""
        for session, position, entries in published:
            before = entries[0].position - 1
            if before > self._told.get(session, 0):
                self._tell(session, before, ())
            self._tell(session, position, entries)
        self._trim()

    def foreign(self, session: SessionKey, position: int) -> None:
        """A session's log is known to go on to `position`."""
        if self._held is not None:
            self._held.append((session, position))
        elif position > self._told.get(session, 0):
            self._tell(session, position, ())
            self._trim()

    def _tell(self, session: SessionKey, position: int, entries: tuple[StoredEntry, ...]) -> None:
        self._told.pop(session, None)  # to the end: the newest
        self._told[session] = position
        self._listeners.tell(session, position, entries)

    def _trim(self) -> None:
        while len(self._told) > _SESSIONS:
            del self._told[next(iter(self._told))]
