"""The files of a golden set: `<name>.log` is what is compared, `<name>.jsonl` and `<name>.txt` are
there to be read.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from pathlib import Path

from google.protobuf import json_format

from broker_service.domain.events import SessionEvent
from broker_service.encoding import decode_event
from broker_service.storage.port import EntryKind
from turngate.v1 import event_pb2

HERE = Path(__file__).parent


@dataclass(frozen=True)
class StoredLog:
    """Entries as a store has them, in order: kind and payload."""

    entries: tuple[tuple[EntryKind, bytes], ...]

    def events(self) -> list[SessionEvent]:
        """What the broker folds: all but deltas."""
        return [decode_event(data) for kind, data in self.entries if kind is EntryKind.EVENT]

    def messages(self) -> list[event_pb2.SessionEvent]:
        """All of them as clients see them, with their positions."""
        found = []
        for position, (_, data) in enumerate(self.entries, 1):
            message = event_pb2.SessionEvent.FromString(data)
            message.position = position
            found.append(message)
        return found


def sets() -> list[Path]:
    """The folders of golden logs, oldest version first."""
    folders = [path for path in HERE.iterdir() if path.is_dir() and path.name[0].isdigit()]
    return sorted(folders, key=lambda path: [int(part) for part in path.name.split(".")])


def read(path: Path) -> StoredLog:
    """A `.log`: one entry a line, its kind and its bytes in base64."""
    lines = [line.split(" ") for line in path.read_text().splitlines()]
    return StoredLog(tuple((EntryKind[kind], base64.b64decode(data)) for kind, data in lines))


def write(path: Path, log: StoredLog) -> None:
    """The `.log`, and beside it the `.jsonl`."""
    lines = [f"{kind.name} {base64.b64encode(data).decode()}\n" for kind, data in log.entries]
    path.write_text("".join(lines))
    shown = [
        json_format.MessageToJson(message, indent=None, ensure_ascii=False) + "\n"
        for message in log.messages()
    ]
    path.with_suffix(".jsonl").write_text("".join(shown))
