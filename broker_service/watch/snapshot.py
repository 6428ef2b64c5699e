"""Snapshots: the present state of a session in pieces, at a cursor (W1, W2).

State and position are taken together, under `Sessions.reading`, where no decision is in flight.
What is large and never changes (prompts, questions, held messages) is only encoded when its piece
is sent, so that a snapshot costs little memory while its reader takes it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass

from broker_service.api import pages, reads
from broker_service.domain.model import HeldMessage, Interaction
from broker_service.domain.state import SessionState
from broker_service.effects import interaction_view, session_key, session_view
from broker_service.encoding import to_proto
from broker_service.sessions import not_found
from broker_service.storage.port import SessionKey, Store, StoredEntry
from broker_service.transcripts import read_transcript, split_message
from broker_service.watch.frames import Snapshot
from turngate.v1 import event_pb2, interaction_pb2, message_pb2, session_pb2
from turngate.v1.broker_pb2 import SessionSnapshot, TreeNode

PROMPTS_AT_ONCE = 8
"""Prompts read together while pieces are sent: each may have 900 KiB."""


async def take_snapshot(store: Store, state: SessionState) -> Snapshot:
    """The snapshot of a state that nobody changes until this returns (`Sessions.reading`)."""
    key = session_key(state)
    position = await _position(store, key, state.version)
    as_of = _AsOf(store, position)
    page = await _newest_messages(as_of, state)
    node_ids = _nodes(state, page.node_ids)
    selected = set(state.path_to(state.selected)) if state.selected else set()
    taken = _Taken(
        session=_session_proto(state),
        nodes=[reads.tree_node(state, node, selected=node in selected) for node in node_ids],
        interactions=[
            interaction_view(state, state.interactions[one]) for one in state.open_interactions
        ],
        held=list(state.held),
        messages=page.messages,
        open_messages=await _open_messages(store, state, position),
        older_nodes=_older_nodes(state, set(node_ids)),
        older_messages=page.older,
    )
    return Snapshot(position, _pieces(taken, _contents(as_of, state, taken)))


@dataclass(frozen=True, slots=True)
class _Taken:
    """What a snapshot is made of. Prompts have yet to be read."""

    session: session_pb2.Session
    nodes: list[TreeNode]
    interactions: list[Interaction]
    held: list[HeldMessage]
    messages: list[message_pb2.Message]
    open_messages: list[message_pb2.Message]
    older_nodes: str
    older_messages: str


@dataclass(frozen=True, slots=True)
class _Page:
    """The newest messages of the selected branch, oldest first, and the nodes they are of."""

    messages: list[message_pb2.Message]
    node_ids: list[str]
    older: str


class _AsOf:
    """The store as it was at a position: other replicas may have written on."""

    def __init__(self, store: Store, position: int) -> None:
        self._store = store
        self._position = position

    async def read_nodes(
        self, session: SessionKey, node_ids: Sequence[str]
    ) -> tuple[StoredEntry, ...]:
        entries = await self._store.read_nodes(session, node_ids)
        return tuple([entry for entry in entries if entry.position <= self._position])


async def _position(store: Store, key: SessionKey, version: int) -> int:
    """The furthest position that a state of this version stands for: the end of the log, or, where
    another replica has written on, just before the first event that the state does not know.
    """
    last = await store.last_position(key)
    if last is None:
        raise not_found(key.session_id)
    unknown = await store.read_events(key, version)
    return unknown[0].position - 1 if unknown else last


def _session_proto(state: SessionState) -> session_pb2.Session:
    session = to_proto(session_view(state))
    assert isinstance(session, session_pb2.Session)
    return session


def _nodes(state: SessionState, of_messages: list[str]) -> list[str]:
    """The newest page of the selected branch, all live runs, and the run that is its end, each with
    prompt and origins: what later events may still copy from.
    """
    wanted = {*of_messages}
    if state.selected:
        wanted.update(state.path_to(state.selected, pages.DEFAULT_PAGE))
    for run_id in (*state.live_runs, state.selected):
        if run_id in state.runs:
            for run in state.origin_chain(run_id):
                wanted |= {run.id, run.prompt_id}
    return [node_id for node_id in state.nodes if node_id in wanted]


def _older_nodes(state: SessionState, known: set[str]) -> str:
    """Where `GetTree` finds, newest first, all that the snapshot leaves out."""
    for index, node_id in enumerate(reversed(reads.shown_nodes(state))):
        if node_id not in known:
            return pages.token("tree-newest", index)
    return ""


async def _newest_messages(nodes: _AsOf, state: SessionState) -> _Page:
    """A page of whole messages; only a message that alone is larger than a page exceeds it."""
    path = state.path_to(state.selected)[::-1] if state.selected else []
    taken: list[list[message_pb2.Message]] = []
    size = 0
    for start in range(0, len(path), reads.NODES_AT_ONCE):
        batch = path[start : start + reads.NODES_AT_ONCE]
        transcript = await read_transcript(nodes, state, batch)
        for at, node_id in enumerate(batch, start):
            skip = 0
            for message in reversed(transcript.messages([node_id], with_hints=True)):
                pieces = list(map(reads.message_proto, split_message(message, pages.PAGE_BYTES)))
                size += sum(piece.ByteSize() for piece in pieces)
                if taken and (len(taken) == pages.DEFAULT_PAGE or size > pages.PAGE_BYTES):
                    older = pages.token("transcript-newest", state.selected, at, skip)
                    return _Page(_oldest_first(taken), path[: at + 1], older)
                taken.append(pieces)
                skip += len(pieces)
    return _Page(_oldest_first(taken), path, "")


def _oldest_first(taken: list[list[message_pb2.Message]]) -> list[message_pb2.Message]:
    return [piece for pieces in reversed(taken) for piece in pieces]


async def _open_messages(
    store: Store, state: SessionState, position: int
) -> list[message_pb2.Message]:
    """What is being written on the selected branch, as far as it came by that position."""
    found: list[message_pb2.Message] = []
    for run_id in state.live_runs:
        run = state.runs[run_id]
        if run.open_message_id and state.on_selected_branch(run_id):
            entries = await store.read_subject(session_key(state), run.open_message_id)
            found.append(
                message_so_far(
                    [
                        event_pb2.SessionEvent.FromString(entry.payload)
                        for entry in entries
                        if entry.position <= position
                    ]
                )
            )
    return found


def message_so_far(events: Sequence[event_pb2.SessionEvent]) -> message_pb2.Message:
    """A message out of its start and its deltas. Its parts stand at their `part_index`."""
    message = message_pb2.Message(role=message_pb2.ROLE_ASSISTANT)
    for event in events:
        match event.WhichOneof("event"):
            case "message_started":
                started = event.message_started
                message.id, message.run_id, message.step = (
                    started.message_id,
                    started.run_id,
                    started.step,
                )
                message.create_time.CopyFrom(event.create_time)
            case "text_delta":
                delta = event.text_delta
                part = _part(message, delta.part_index)
                if delta.kind == event_pb2.TEXT_KIND_REASONING:
                    text = part.reasoning.text
                    part.reasoning.text = text[: delta.offset] + delta.text
                else:
                    part.text.text = part.text.text[: delta.offset] + delta.text
            case "tool_call_delta":
                piece = event.tool_call_delta
                call = _part(message, piece.part_index).tool_call
                call.call_id = piece.call_id
                call.name = piece.name or call.name
                call.arguments_json = call.arguments_json[: piece.offset] + piece.arguments_delta
            case _:
                pass
    return message


def _part(message: message_pb2.Message, index: int) -> message_pb2.Part:
    while len(message.parts) <= index:
        message.parts.add()
    return message.parts[index]


async def _contents(
    nodes: _AsOf, state: SessionState, taken: _Taken
) -> AsyncGenerator[SessionSnapshot, None]:
    """All there is to send, each thing alone."""
    # Only what never changes is asked of the state here: commands go on meanwhile.
    for start in range(0, len(taken.nodes), PROMPTS_AT_ONCE):
        batch = taken.nodes[start : start + PROMPTS_AT_ONCE]
        unread = [node.id for node in batch if not node.HasField("run")]
        prompts = await reads.read_prompts(nodes, state, unread) if unread else {}
        for node in batch:
            if node.id in prompts:
                node.prompt.CopyFrom(reads.message_proto(prompts[node.id]))
            yield SessionSnapshot(nodes=[node])
    for interaction in taken.interactions:
        question = to_proto(interaction)
        assert isinstance(question, interaction_pb2.Interaction)
        yield SessionSnapshot(interactions=[question])
    for held_message in taken.held:
        held = to_proto(held_message)
        assert isinstance(held, session_pb2.HeldMessage)
        yield SessionSnapshot(held_messages=[held])
    for message in taken.messages:
        yield SessionSnapshot(messages=[message])
    for message in taken.open_messages:
        yield SessionSnapshot(open_messages=[message])


async def _pieces(
    taken: _Taken, contents: AsyncGenerator[SessionSnapshot, None]
) -> AsyncGenerator[SessionSnapshot, None]:
    """The contents joined into as few pieces as their size allows."""
    piece = SessionSnapshot(session=taken.session)
    size = piece.ByteSize()
    async for content in contents:
        length = content.ByteSize()
        if size + length > pages.PAGE_BYTES and size:
            yield piece
            piece, size = SessionSnapshot(), 0
        piece.MergeFrom(content)
        size += length
    piece.complete = True
    piece.older_nodes_page_token = taken.older_nodes
    piece.older_messages_page_token = taken.older_messages
    yield piece
