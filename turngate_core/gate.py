"""The queue gate as a client sees it (G1, G2): may a user message enter now?

The broker decides from its stored state; these predicates say the same of what a client shows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from turngate_core.client_tools import BUILT_IN, ClientTools, is_client_tool
from turngate_core.display import APPROVAL_REQUESTED, DisplayMessage, ToolPart, is_settled
from turngate_core.render import build_render_map
from turngate_core.resume import resume_due

READY = "ready"
ERROR = "error"


def awaiting_user(
    status: str,
    messages: tuple[DisplayMessage, ...],
    *,
    stopped: bool = False,
    known: ClientTools = BUILT_IN,
) -> bool:
    """True if the conversation waits for a person: an approval or a client tool is open.

    While a run is at work nothing waits for anybody yet (R4); a stop voids what was waiting.
    """
    if status not in (READY, ERROR) or stopped:
        return False
    return any(_has_open_interaction(message, known) for message in messages)


def gate_open(
    status: str,
    messages: tuple[DisplayMessage, ...],
    *,
    stopped: bool = False,
    known: ClientTools = BUILT_IN,
) -> bool:
    """True if a user message may enter the conversation (G1).

    It may not while a run is at work (`submitted`, `streaming`, or a status not known), while an
    interaction is open, or between a settlement and the resume that it starts. A run that has
    failed holds nothing back (G2), nor does one that the user has stopped.
    """
    if status not in (READY, ERROR):
        return False
    if stopped:
        return True
    if awaiting_user(status, messages, known=known):
        return False
    return status == ERROR or not resume_due(messages, known)


@dataclass(frozen=True, slots=True)
class Queue:
    """A client's queue of messages: what was sent, and what is held, first in, first out.

    `in_flight`: a message was sent and the gate has not been seen closed since. Its run is still
    to come, so that nothing else enters (G2: exactly one).
    """

    status: str = READY
    messages: tuple[DisplayMessage, ...] = ()
    stopped: bool = False
    sent: tuple[str, ...] = ()
    held: tuple[str, ...] = ()
    in_flight: bool = False


def observe(
    queue: Queue, status: str, messages: tuple[DisplayMessage, ...], *, stopped: bool = False
) -> Queue:
    """The conversation has changed; the head of the queue enters if the gate lets it."""
    is_open = gate_open(status, messages, stopped=stopped)
    return _release(
        replace(
            queue,
            status=status,
            messages=messages,
            stopped=stopped,
            in_flight=queue.in_flight and is_open,
        )
    )


def submit(queue: Queue, text: str) -> Queue:
    """A user sends a message. It never overtakes one that is held."""
    if queue.held:
        return replace(queue, held=(*queue.held, text))
    return _release(replace(queue, held=(text,)))


def remove(queue: Queue, index: int) -> Queue:
    """Take one held message back; removing never sends (G3). No such index: nothing changes."""
    if not 0 <= index < len(queue.held):
        return queue
    return replace(queue, held=queue.held[:index] + queue.held[index + 1 :])


def clear(queue: Queue) -> Queue:
    """Take all held messages back; clearing never sends (G3)."""
    return replace(queue, held=())


def _release(queue: Queue) -> Queue:
    """Let one held message enter, if it may."""
    if not queue.held or queue.in_flight:
        return queue
    if not gate_open(queue.status, queue.messages, stopped=queue.stopped):
        return queue
    head, *rest = queue.held
    return replace(queue, sent=(*queue.sent, head), held=tuple(rest), in_flight=True)


def _has_open_interaction(message: DisplayMessage, known: ClientTools) -> bool:
    if message.role != "assistant":
        return False
    render_map = build_render_map(message.parts)
    return any(
        part.state == APPROVAL_REQUESTED
        or (not is_settled(part) and is_client_tool(part, render_map, known))
        for part in message.parts
        if isinstance(part, ToolPart)
    )
