"""The inbox as the frames of its watch tell it (I5). Pure: no I/O, no clock."""

from __future__ import annotations

from dataclasses import dataclass, field

from turngate.v1.broker_pb2 import WatchInteractionsResponse
from turngate.v1.interaction_pb2 import Interaction


@dataclass(slots=True)
class InboxView:
    """What waits and fits the filter of the watch. One view for each watch: after a break the open
    set comes again.

    `entries`: by id, in the order in which they came. `live`: the open set is complete.
    """

    entries: dict[str, Interaction] = field(default_factory=dict)
    live: bool = False

    def apply(self, frame: WatchInteractionsResponse) -> None:
        """Fold one frame. An entry that comes again has changed, and keeps its place."""
        for gone in frame.closed:
            self.entries.pop(gone.id, None)
        for interaction in frame.opened:
            self.entries[interaction.id] = interaction
        self.live = self.live or frame.live
