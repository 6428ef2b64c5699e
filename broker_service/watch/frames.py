"""Frames of a watch, made of stored bytes: nothing is parsed or encoded again for each watcher.

A stored payload is an encoded `SessionEvent` without its position. Protobuf merges fields in
whatever order they come, so the position is appended to the payload, and entries in front of the
rest of the frame are `WatchSessionResponse.events`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from broker_service.storage.port import EntryKind, SessionKey, StoredEntry
from broker_service.watch.cursor import cursor_at
from turngate.v1 import broker_pb2, event_pb2

_EVENTS = b"\x0a"  # WatchSessionResponse.events: field 1, length-delimited
_POSITION = b"\x08"  # SessionEvent.position: field 1, varint
_SESSION_DELETED = b"\x82\x02"  # SessionEvent.session_deleted: field 32, length-delimited

ELEMENT_OVERHEAD = 16
"""Bytes that an entry grows by at most: tag and length (6), tag and position (10)."""

_REST_BYTES = 64  # what else is in a frame: cursor (30) and `live` (2)


@dataclass(frozen=True, slots=True)
class FrameLimits:
    """What goes into one frame at most. An entry is never split: a larger one goes alone."""

    size: int = 1024 * 1024
    entries: int = 512

    @property
    def elements_size(self) -> int:
        return self.size - _REST_BYTES


class Element(NamedTuple):
    """An entry as an encoded element of `events`. `is_end`: nothing comes after it."""

    position: int
    encoded: bytes
    is_delta: bool
    is_end: bool


def encode_entry(entry: StoredEntry) -> Element:
    """The one time that an entry is encoded, for all its watchers."""
    position = _POSITION + _varint(entry.position)
    length = _varint(len(entry.payload) + len(position))
    encoded = b"".join((_EVENTS, length, entry.payload, position))
    is_delta = entry.kind is EntryKind.DELTA
    return Element(entry.position, encoded, is_delta, _is_end(entry.payload))


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of a session at a position, in pieces for one watcher; events follow from there."""

    position: int
    pieces: AsyncGenerator[broker_pb2.SessionSnapshot, None]

    def frame(self, key: SessionKey, piece: broker_pb2.SessionSnapshot, live: bool) -> bytes:
        """A piece as a frame. Only the last one has a cursor: half a snapshot stands for nothing,
        and a watch that breaks in it has to begin again.
        """
        response = broker_pb2.WatchSessionResponse(snapshot=piece)
        if piece.complete:
            response.cursor = cursor_at(key, self.position)
            response.live = live
        return response.SerializeToString()


Snapshots: TypeAlias = Callable[[], Awaitable[Snapshot]]
"""Takes a snapshot of the session that is watched."""


@dataclass(slots=True)
class Batch:
    """What one frame says, for all watchers that stand at the same place.

    `position` is where they stand after it, behind deltas that were left out, too. `is_end`: it
    ends with `session_deleted`. `is_lost`: events that should come next are not kept any more, and
    only a snapshot goes on (W2).
    """

    key: SessionKey
    position: int
    elements: list[bytes]
    is_end: bool = False
    is_lost: bool = False
    _frames: dict[bool, bytes] = field(default_factory=dict)

    def frame(self, live: bool) -> bytes:
        """The encoded `WatchSessionResponse`; the same object for each who asks."""
        frame = self._frames.get(live)
        if frame is None:
            rest = broker_pb2.WatchSessionResponse(
                cursor=cursor_at(self.key, self.position), live=live
            )
            frame = b"".join((*self.elements, rest.SerializeToString()))
            self._frames[live] = frame
        return frame

    @property
    def frames_size(self) -> int:
        """Bytes of the frames that were made of it."""
        return sum(map(len, self._frames.values()))


def gather(
    key: SessionKey,
    after: int,
    elements: Iterable[Element],
    without_deltas: bool,
    limits: FrameLimits,
) -> Batch:
    """As many of `elements`, which follow `after` in order, as fit into a frame."""
    batch = Batch(key, after, [])
    size = 0
    for element in elements:
        if not (element.is_delta and without_deltas):
            size += len(element.encoded)
            if batch.elements and (
                size > limits.elements_size or len(batch.elements) == limits.entries
            ):
                break
            batch.elements.append(element.encoded)
        batch.position = element.position
        if element.is_end:
            batch.is_end = True
            break
    return batch


def _is_end(payload: bytes) -> bool:
    # The tag's bytes can be part of any text: only then is the event decoded.
    return _SESSION_DELETED in payload and event_pb2.SessionEvent.FromString(payload).HasField(
        "session_deleted"
    )


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)
