"""Sessions as files: newline-delimited JSON, one event a line behind a line that says what it is.

The form is that of `ExportSession` and `ImportSession` in broker.proto.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from google.protobuf import json_format

from broker_service.domain.events import SessionEvent
from broker_service.domain.importing import does_not_fit
from broker_service.encoding import UnknownEventKind, decode_event
from broker_service.storage.port import EntryKind, SessionKey, StoredEntry
from turngate.v1 import event_pb2

FORMAT = "turngate.session"
VERSION = 1

PIECE_BYTES = 256 * 1024
"""What goes into one message of the stream."""

IMPORT_BYTES = 256 * 1024 * 1024
"""The largest file that is taken: it is held in memory, and stored in one commit."""


def first_line(key: SessionKey, events: int) -> str:
    """What stands on top of a file. `events`: the number of lines that follow, so that a file that
    was cut off is known for one.
    """
    what = {
        "format": FORMAT,
        "version": VERSION,
        "sessionId": key.session_id,
        "tenantId": key.tenant_id,
        "events": events,
    }
    return json.dumps(what, ensure_ascii=False) + "\n"


def lines(entries: Iterable[StoredEntry]) -> str:
    """The events among these entries, one a line; deltas are left out: messages are whole."""
    written = []
    for entry in entries:
        if entry.kind is EntryKind.EVENT:
            event = event_pb2.SessionEvent.FromString(entry.payload)
            event.position = entry.position
            text = json_format.MessageToJson(event, indent=None, ensure_ascii=False)
            written.append(text + "\n")
    return "".join(written)


def pieces(text: str) -> list[bytes]:
    """The text in pieces of `PIECE_BYTES` at most, cut anywhere."""
    data = text.encode()
    return [data[at : at + PIECE_BYTES] for at in range(0, len(data), PIECE_BYTES)]


def read_file(data: bytes) -> tuple[SessionEvent, ...]:
    """The events of a file. Refuses with INVALID_FIELD, naming the line."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise does_not_fit(line, "is no UTF-8") from error
    # Not splitlines: JSON text may hold other separators than the newline.
    head, *rest = text.removesuffix("\n").split("\n")
    count = _count(head)
    if count != len(rest):
        raise does_not_fit(1, f"says that {count} lines follow, but there are {len(rest)}")
    return tuple(_event(number, line) for number, line in enumerate(rest, 2))


def _count(head: str) -> int:
    try:
        what = json.loads(head)
    except (ValueError, RecursionError) as error:
        raise does_not_fit(1, "is no JSON") from error
    if not isinstance(what, dict) or what.get("format") != FORMAT:
        raise does_not_fit(1, f"does not say that the file is a {FORMAT}")
    if what.get("version") != VERSION:
        raise does_not_fit(1, f"is of another version than {VERSION}")
    count = what.get("events")
    if not isinstance(count, int):
        raise does_not_fit(1, "does not say how many lines follow")
    return count


def _event(number: int, line: str) -> SessionEvent:
    message = event_pb2.SessionEvent()
    try:
        json_format.Parse(line, message)
        return decode_event(message.SerializeToString())
    except (json_format.ParseError, UnknownEventKind, RecursionError) as error:
        raise does_not_fit(number, "is no event of a session that this version knows") from error
