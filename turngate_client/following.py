"""A session as a view that is kept up to date, and waits for what happens in it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self, TypeVar

from turngate.v1.broker_pb2 import WatchSessionResponse
from turngate_client.errors import WaitTimedOut
from turngate_client.folding import apply_event
from turngate_client.session_view import SessionView
from turngate_client.snapshots import SnapshotPieces, apply_snapshot
from turngate_client.watching import SessionWatch

T = TypeVar("T")


class FollowedSession:
    """Folds a watch in the background, from `async with` to its end.

    `view`: the state so far; the same object all the time. `until` waits for something in it.
    """

    def __init__(self, watch: SessionWatch) -> None:
        self.view = SessionView()
        self._watch = watch
        self._live = False
        self._pieces = SnapshotPieces()
        self._checks: set[Callable[[], None]] = set()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._follow())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._watch.aclose()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            if not self._task.cancelled():
                self._task.exception()  # raised in `until`, to whoever waited for something

    def until(
        self, predicate: Callable[[SessionView], T | None], timeout: float, what: str
    ) -> Awaitable[T]:
        """What the predicate finds, as soon as it finds something (not None, not False).

        It is asked once the view has caught up with the session, then after each event, so that
        no state is missed. Raises WaitTimedOut, which names `what` and shows the last state, after
        `timeout` seconds; what the watch or a predicate raises, which ends the following; and
        ConnectionError if the watch ends (the session was deleted) before.
        """
        return self._until(predicate, timeout, what)

    async def _until(
        self, predicate: Callable[[SessionView], T | None], seconds: float, what: str
    ) -> T:
        if self._task is None:
            raise RuntimeError("follow a session in `async with`")
        found: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        def check() -> None:
            if found.done():
                return
            value = predicate(self.view)
            if value is not None and value is not False:
                found.set_result(value)

        self._checks.add(check)
        try:
            if self._live:
                check()
            waited: set[asyncio.Future[T] | asyncio.Task[None]] = {found, self._task}
            await asyncio.wait(waited, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if found.done():
                return found.result()
            state = f"last state: {self.view.describe()}"
            if self._task.done():
                self._task.result()
                raise ConnectionError(f"the watch ended before {what} came; {state}")
            raise WaitTimedOut(f"waited {seconds:g} s for {what}; {state}")
        finally:
            self._checks.discard(check)

    async def _follow(self) -> None:
        async with contextlib.aclosing(self._watch.frames()) as frames:
            async for frame in frames:
                self._fold(frame)

    def _fold(self, frame: WatchSessionResponse) -> None:
        if frame.HasField("snapshot") and (whole := self._pieces.add(frame.snapshot)):
            apply_snapshot(self.view, whole)
            if self._live:  # in place of events that are not kept any more (W2)
                self._check()
        for event in frame.events:
            apply_event(self.view, event)
            if self._live:
                self._check()
        if frame.live and not self._live:
            self._live = True
            self._check()

    def _check(self) -> None:
        for check in tuple(self._checks):
            check()
