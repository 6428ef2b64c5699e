"""Removes the deltas of finished messages (W3): the log has each message whole by then.

Every message that ends, completed or withdrawn, leaves a row of work that falls due some time
later (`compact_after`). So nothing is searched for, no session is loaded, and a broker that dies
leaves its rows to the next one.
"""

from __future__ import annotations

from broker_service.storage.port import (
    DeleteDeltas,
    DeleteWork,
    Effect,
    SessionKey,
    Store,
    WorkKind,
    Write,
)
from broker_service.sweep import Sweep

MESSAGES_AT_ONCE = 4
"""Messages a commit: each may have thousands of deltas, and other commits wait for this one."""


class Compaction:
    """`owner`: under which name work is claimed, with leases of `lease_ms`."""

    def __init__(self, store: Store, owner: str, lease_ms: int) -> None:
        self._store = store
        self._owner = owner
        self._lease_ms = lease_ms
        self._sweep = Sweep(self.compact)

    def start(self, interval_s: float) -> None:
        """Look for finished messages every so many seconds, until `close`."""
        self._sweep.start(interval_s)

    async def close(self) -> None:
        """Finish what is being removed. Idempotent."""
        await self._sweep.close()

    async def compact(self) -> bool:
        """Remove the deltas of a few messages that are due; answers if more may be.

        Raises StoreUnavailable.
        """
        until = self._store.now() + self._lease_ms
        due = await self._store.claim(WorkKind.COMPACTION, self._owner, until, MESSAGES_AT_ONCE)
        finished: dict[SessionKey, list[str]] = {}
        for work in due:
            finished.setdefault(work.work.session, []).append(work.work.work_id)
        effects: list[Effect] = [
            DeleteDeltas(session, tuple(message_ids)) for session, message_ids in finished.items()
        ]
        effects += [DeleteWork(work.work) for work in due]
        if effects:
            await self._store.commit(Write(effects=tuple(effects)))
        return len(due) == MESSAGES_AT_ONCE
