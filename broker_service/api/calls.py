"""What the handlers of all RPCs share: the caller's session, read or changed."""

from __future__ import annotations

from abc import ABC
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from broker_service.api.changes import Changes, session_key, store_errors
from broker_service.api.not_built import NotBuiltYet
from broker_service.config import BrokerSettings, published_limits
from broker_service.domain.state import SessionState
from broker_service.sessions import Sessions, not_found
from broker_service.storage.port import (
    SessionKey,
)
from broker_service.watch.hub import WatchHub
from broker_service.watch.inbox import InboxHub
from turngate_serving.caller import caller_of


class Calls(NotBuiltYet, ABC):
    """One base for the groups of RPCs. `version`: of this build."""

    def __init__(
        self, sessions: Sessions, hub: WatchHub, settings: BrokerSettings, version: str
    ) -> None:
        self._sessions = sessions
        self._changes = Changes(sessions)
        self._store = sessions.store
        self._hub = hub
        self._inbox = InboxHub(sessions, hub)
        self._settings = settings
        self._limits = published_limits(settings)
        self._version = version

    @asynccontextmanager
    async def _reading(
        self, session_id: str, context: Any
    ) -> AsyncIterator[tuple[SessionKey, SessionState]]:
        key = session_key(session_id, caller_of(context))
        with store_errors():
            async with self._sessions.reading(key) as state:
                yield key, state

    async def _last_position(self, key: SessionKey) -> int:
        with store_errors():
            position = await self._store.last_position(key)
        if position is None:
            raise not_found(key.session_id)
        return position
