"""A watch that goes on: after a break it resumes by its cursor, each event comes once (W1, W2)."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from types import TracebackType
from typing import Self, TypeAlias

import grpc

from turngate.v1.broker_pb2 import WatchSessionRequest, WatchSessionResponse
from turngate.v1.event_pb2 import SessionEvent
from turngate_client.errors import TurngateError, error_from_rpc
from turngate_client.retries import RetryPolicy, pause

# What restarts and proxies make of a stream whose session is well. One that somebody on the way
# has cancelled or timed out is of that kind too: the watch itself sets no deadline.
_RESUMABLE_CODES = frozenset(
    {
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.INTERNAL,
        grpc.StatusCode.UNKNOWN,
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.DEADLINE_EXCEEDED,
    }
)

# The service sends a frame every 15 s even if nothing happens. After three missed ones the
# connection is taken for dead, though no error came: a peer that vanished closes nothing.
SILENCE = 45.0

WATCH_POLICY = RetryPolicy(timeout=60.0)


_Call: TypeAlias = "grpc.aio.UnaryStreamCall[WatchSessionRequest, WatchSessionResponse]"

WatchCall: TypeAlias = Callable[[WatchSessionRequest], _Call]
"""`WatchSession` of the stub, with the metadata of its client already in."""


class SessionWatch:
    """The log of one session from a cursor on, then live: an async iterator of its events.

    Or `frames()`, as the service sends them, snapshots included; not both at once. It ends after
    the event `session_deleted` or `aclose()`. It raises TurngateError for what a resume cannot
    mend: a refused cursor, a session that is not there, a service that stays away for longer than
    the policy's time-out.

    `cursor`: where a later watch goes on. While the events of a frame are handed out one by one,
    it still names the frame before, so that none of them is lost. `live`: the present is reached.
    """

    def __init__(
        self,
        call: WatchCall,
        request: WatchSessionRequest,
        *,
        policy: RetryPolicy = WATCH_POLICY,
        silence: float = SILENCE,
    ) -> None:
        self.cursor = request.after
        self.live = False
        self._call = call
        self._request = request
        self._policy = policy
        self._silence = silence
        self._wants_snapshot = request.snapshot
        self._in_snapshot = False
        self._position = 0
        self._closed = False
        self._open: tuple[_Call, AsyncIterator[WatchSessionResponse]] | None = None
        self._events = self._iterate_events()

    def __aiter__(self) -> AsyncIterator[SessionEvent]:
        return self._events

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End the stream. Idempotent; it cancels nothing in the session (C1)."""
        self._closed = True
        self._drop_call()  # who is reading meanwhile finds the end

    async def frames(self) -> AsyncGenerator[WatchSessionResponse, None]:
        """The frames, less the events that were handed out before a resume."""
        while (frame := await self._next_frame()) is not None:
            yield frame
            self._use_up(frame)

    async def _iterate_events(self) -> AsyncGenerator[SessionEvent, None]:
        while (frame := await self._next_frame()) is not None:
            if frame.HasField("snapshot"):
                raise TurngateError(
                    grpc.StatusCode.OUT_OF_RANGE,
                    "",
                    "the log was compacted at this cursor: only a snapshot goes on; use frames()",
                )
            for event in frame.events:
                yield event
            self._use_up(frame)

    def _use_up(self, frame: WatchSessionResponse) -> None:
        """The frame has been handed out: a resume starts after it."""
        if frame.HasField("snapshot"):
            self._in_snapshot = not frame.snapshot.complete
        if not self._in_snapshot:  # the cursor of half a snapshot stands for nothing
            self.cursor = frame.cursor
            self._wants_snapshot = False

    async def _next_frame(self) -> WatchSessionResponse | None:
        """The next frame, from this stream or from one that resumes it; None at the end."""
        last_frame_at = time.monotonic()
        attempt = 1
        while not self._closed:
            try:
                frame = await self._read()
            except TurngateError as broken:
                error = broken
            else:
                self.live = self.live or frame.live
                self._closed = any(event.HasField("session_deleted") for event in frame.events)
                return self._without_repeated(frame)
            self._drop_call()
            if self._closed:
                break
            attempt += 1
            wait = self._policy.pause_before(attempt, random.random())
            gone_for = time.monotonic() - last_frame_at
            if not _is_resumable(error) or gone_for + wait > self._policy.timeout:
                raise error
            await pause(wait)
        self._drop_call()
        return None

    async def _read(self) -> WatchSessionResponse:
        if self._open is None:
            call = self._call(self._resumed_request())
            self._open = call, aiter(call)
        try:
            async with asyncio.timeout(self._silence):
                return await anext(self._open[1])
        except grpc.aio.AioRpcError as error:
            raise error_from_rpc(error) from None
        except TimeoutError:
            raise TurngateError(
                grpc.StatusCode.UNAVAILABLE, "", f"no frame for {self._silence:g} s"
            ) from None
        except StopAsyncIteration:
            # The service ends a watch only with an error; a proxy may end it without one.
            raise TurngateError(grpc.StatusCode.UNAVAILABLE, "", "the stream has ended") from None
        except asyncio.CancelledError:
            # grpc.aio raises this also where the call, not the task that reads it, was cancelled:
            # `aclose`, or a channel that was closed meanwhile.
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            raise TurngateError(
                grpc.StatusCode.FAILED_PRECONDITION, "", "the client was closed during a watch"
            ) from None

    def _resumed_request(self) -> WatchSessionRequest:
        self._in_snapshot = False
        request = WatchSessionRequest()
        request.CopyFrom(self._request)
        request.after = self.cursor
        request.snapshot = self._wants_snapshot
        return request

    def _without_repeated(self, frame: WatchSessionResponse) -> WatchSessionResponse:
        fresh = [event for event in frame.events if event.position > self._position]
        if fresh:
            self._position = fresh[-1].position
        if len(fresh) == len(frame.events):
            return frame
        rest = WatchSessionResponse()
        rest.CopyFrom(frame)
        del rest.events[:]
        rest.events.extend(fresh)
        return rest

    def _drop_call(self) -> None:
        if self._open is not None:
            self._open[0].cancel()
            self._open = None


def _is_resumable(error: TurngateError) -> bool:
    return error.code in _RESUMABLE_CODES or error.reason == "WATCH_TOO_SLOW"
