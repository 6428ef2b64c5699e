"""Reads transcripts out of the store: what `domain.transcript` puts together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Protocol

from broker_service.domain.events import Event
from broker_service.domain.model import Message, Part
from broker_service.domain.state import SessionState
from broker_service.domain.transcript import Transcript, nodes_needed
from broker_service.effects import session_key
from broker_service.encoding import decode_event, to_proto
from broker_service.storage.port import EntryKind, SessionKey, StoredEntry


class NodeReader(Protocol):
    """What transcripts need of the `Store`; see there."""

    async def read_nodes(
        self, session: SessionKey, node_ids: Sequence[str]
    ) -> tuple[StoredEntry, ...]: ...


async def read_transcript(
    store: NodeReader, state: SessionState, path: Sequence[str]
) -> Transcript:
    """The transcript of these nodes. Reads them and what they copy from, nothing else (F3)."""
    stored = await store.read_nodes(session_key(state), nodes_needed(state, path))
    events: list[tuple[str, Event]] = [
        (entry.node_id, decode_event(entry.payload).event)
        for entry in stored
        if entry.kind is EntryKind.EVENT
    ]
    return Transcript(state, events)


def split_message(message: Message, max_bytes: int) -> Iterator[Message]:
    """A message in pieces of this size; each later one continues the one before (`Message`)."""
    if to_proto(message).ByteSize() <= max_bytes:
        yield message
        return
    parts: list[Part] = []
    size = 0
    for part in message.parts:
        part_size = to_proto(part).ByteSize() + 16
        if parts and size + part_size > max_bytes:
            yield replace(message, parts=tuple(parts))
            parts, size = [], 0
        parts.append(part)
        size += part_size
    yield replace(message, parts=tuple(parts))
