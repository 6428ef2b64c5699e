"""What the broker sends first: the start and the history; and the turn that they make."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass

from runner_service.acknowledgements import protocol_violation
from turngate.v1 import message_pb2, runner_pb2
from turngate_core.errors import Reason, Refusal, invalid_field
from turngate_core.transcript import TranscriptMessage, turn_start_index

# The revision of `Execute` that this runner speaks.
PROTOCOL_REVISION = 1

# A runner holds the history of each of its runs in memory.
MAX_HISTORY_BYTES = 64 * 1024 * 1024

_ROLE_NAMES = {message_pb2.ROLE_USER: "user"}


@dataclass(frozen=True, slots=True)
class Opening:
    """The start of an attempt. `turn_start`: index in `history` of the turn's first message (T5).

    `cancelled`: a cancel came along with it.
    """

    start: runner_pb2.ExecuteStart
    history: tuple[message_pb2.Message, ...]
    turn_start: int
    cancelled: bool


async def broker_events(
    requests: AsyncIterator[runner_pb2.ExecuteRequest],
) -> AsyncIterator[runner_pb2.BrokerEvent]:
    """The broker's events one by one."""
    async for request in requests:
        for event in request.events:
            yield event


async def read_opening(events: AsyncIterator[runner_pb2.BrokerEvent]) -> Opening:
    """Read until the last chunk of the history. Raises `Refusal` for anything else."""
    start: runner_pb2.ExecuteStart | None = None
    history: list[message_pb2.Message] = []
    cancelled = False
    size = 0
    async for event in events:
        kind = event.WhichOneof("event")
        if kind == "cancel":
            cancelled = True
        elif kind == "start" and start is None:
            start = event.start
        elif kind == "history" and start is not None:
            size += event.history.ByteSize()
            if size > MAX_HISTORY_BYTES:
                raise _history_too_large(size)
            _append(history, event.history.messages)
            if event.history.last:
                _check(start)
                turn_start = _turn_start(start, history)
                return Opening(start, tuple(history), turn_start, cancelled)
        elif kind is not None:  # an event that this build does not know is skipped
            raise protocol_violation(f"{kind} came before the end of the history")
    if start is None:
        raise protocol_violation("the stream ended without a start")
    raise protocol_violation("the stream ended before the last chunk of the history")


def _append(history: list[message_pb2.Message], messages: Iterable[message_pb2.Message]) -> None:
    """Join what was divided: a message with the id of the one before it continues that one."""
    for message in messages:
        if history and message.id and message.id == history[-1].id:
            history[-1].parts.extend(message.parts)
        else:
            history.append(message)


def _check(start: runner_pb2.ExecuteStart) -> None:
    if not start.agent:
        raise invalid_field("start.agent", "is required")
    if start.protocol_revision > PROTOCOL_REVISION:
        raise protocol_violation(
            f"this runner speaks revision {PROTOCOL_REVISION} of the protocol at most"
        )
    if start.HasField("heartbeat_interval") and start.heartbeat_interval.ToMilliseconds() <= 0:
        raise invalid_field("start.heartbeat_interval", "must be more than zero")


def _turn_start(start: runner_pb2.ExecuteStart, history: list[message_pb2.Message]) -> int:
    if not history:
        raise protocol_violation("the history is empty: there is nothing to reply to")
    roles = (TranscriptMessage(_ROLE_NAMES.get(m.role, ""), ()) for m in history)
    found = turn_start_index(tuple(roles))
    # A caller by hand does not count: its history is the whole branch. A broker does, and since the
    # turn is whole in the history, both ways have to lead to the same message.
    if start.branch_message_count and start.turn_start - start.history_offset != found:
        raise invalid_field(
            "start.turn_start",
            f"leads to message {start.turn_start - start.history_offset} of the history, but its"
            f" turn begins at message {found} (rules T5, X6)",
        )
    return found


def _history_too_large(size: int) -> Refusal:
    return Refusal(
        Reason.LIMIT_EXCEEDED,
        f"the history has more than {MAX_HISTORY_BYTES} bytes",
        {"limit": "history_bytes", "maximum": str(MAX_HISTORY_BYTES), "actual": str(size)},
    )
