"""What an attempt says to the broker: numbered events, joined where they come together."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator

from turngate.v1 import runner_pb2

RunnerEvent = runner_pb2.RunnerEvent

# One message stays below this unless a group that must stay together is larger.
MAX_BATCH_BYTES = 512 * 1024
# An agent that writes faster than the broker stores waits here.
MAX_QUEUED_BYTES = 512 * 1024
# Joined text is copied with each piece; this keeps that cheap.
MAX_JOINED_CHARACTERS = 8 * 1024


class Outbox:
    """The events of one attempt, in order; numbers are given when an event is put in.

    `ended`: the last event of the attempt was put in.
    """

    def __init__(self, heartbeat_seconds: float) -> None:
        self._heartbeat_seconds = heartbeat_seconds
        self._groups: deque[list[RunnerEvent]] = deque()
        self._queued_bytes = 0
        self._last_number = 0
        self.ended = False
        self._filled = asyncio.Event()
        self._has_room = asyncio.Event()
        self._has_room.set()

    @property
    def last_number(self) -> int:
        """The number of the newest event; 0 if there is none."""
        return self._last_number

    def put(self, *events: RunnerEvent) -> int:
        """Queue events that the broker is to decide together: one message. The last one's number.

        Text that queues up behind text of the same part is joined with it.
        """
        if len(events) == 1 and self._joined_with_last(events[0]):
            return self._last_number
        for event in events:
            self._last_number += 1
            event.number = self._last_number
            self._queued_bytes += event.ByteSize()
        if events:
            self._groups.append(list(events))
            self._filled.set()
        if self._queued_bytes > MAX_QUEUED_BYTES:
            self._has_room.clear()
        return self._last_number

    async def room(self) -> None:
        """Wait until the broker has taken so much that more may be written."""
        await self._has_room.wait()

    def end(self) -> None:
        """Nothing follows, no heartbeat either; what is queued is still sent.

        The stream stays open until `close`, since the last event waits for its acknowledgement.
        """
        self.ended = True

    def close(self) -> None:
        """The stream ends when what is queued was taken."""
        self._groups.append([])
        self._filled.set()

    async def batches(self) -> AsyncGenerator[runner_pb2.ExecuteResponse, None]:
        """The messages for the broker, as they come; while there is nothing, heartbeats."""
        loop = asyncio.get_running_loop()
        spoken_at = loop.time()
        timer: asyncio.TimerHandle | None = None

        def beat() -> None:
            nonlocal timer
            if self.ended:
                return
            silent = loop.time() - spoken_at
            if silent >= self._heartbeat_seconds and not self._groups:
                self.put(RunnerEvent(heartbeat=runner_pb2.Heartbeat()))
                silent = 0.0
            timer = loop.call_later(self._heartbeat_seconds - silent, beat)

        timer = loop.call_later(self._heartbeat_seconds, beat)
        try:
            while True:
                await self._filled.wait()
                batch, is_last = self._take()
                if batch.events:
                    spoken_at = loop.time()
                    yield batch
                if is_last:
                    return
        finally:
            timer.cancel()

    def _take(self) -> tuple[runner_pb2.ExecuteResponse, bool]:
        batch = runner_pb2.ExecuteResponse()
        size = 0
        is_last = False
        while self._groups:
            group = self._groups[0]
            if not group:
                is_last = True
                break
            group_bytes = sum(event.ByteSize() for event in group)
            if size and size + group_bytes > MAX_BATCH_BYTES:
                break
            self._groups.popleft()
            size += group_bytes
            batch.events.extend(group)
        self._queued_bytes = max(0, self._queued_bytes - size)
        if not self._groups:
            self._filled.clear()
            self._queued_bytes = 0
        if self._queued_bytes <= MAX_QUEUED_BYTES:
            self._has_room.set()
        return batch, is_last

    def _joined_with_last(self, event: RunnerEvent) -> bool:
        if not self._groups or len(self._groups[-1]) != 1:
            return False
        last = self._groups[-1][0]
        if not (last.HasField("text_delta") and event.HasField("text_delta")):
            return False
        before, after = last.text_delta, event.text_delta
        if (before.message_id, before.part_index, before.kind) != (
            after.message_id,
            after.part_index,
            after.kind,
        ):
            return False
        if len(before.text) + len(after.text) > MAX_JOINED_CHARACTERS:
            return False
        self._queued_bytes += len(after.text.encode())
        before.text += after.text
        if self._queued_bytes > MAX_QUEUED_BYTES:
            self._has_room.clear()
        return True
