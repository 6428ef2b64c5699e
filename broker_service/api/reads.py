"""Reading runs, the tree and transcripts."""

from __future__ import annotations

from broker_service.api import pages
from broker_service.domain.events import PromptAdded
from broker_service.domain.grants import grants_of_branch
from broker_service.domain.model import Interaction, Message, Role, Run
from broker_service.domain.nodes import find_node
from broker_service.domain.state import RunNode, SessionState
from broker_service.effects import interaction_view, session_key
from broker_service.encoding import decode_event, to_proto
from broker_service.storage.port import EntryKind, Store
from broker_service.transcripts import NodeReader, read_transcript, split_message
from turngate.v1 import broker_pb2, interaction_pb2, message_pb2, run_pb2, session_pb2
from turngate_core.errors import Reason, Refusal, invalid_field
from turngate_core.ids import split_message_id

NODES_AT_ONCE = 50
"""Nodes read together while a page of a transcript is filled."""


def run_view(state: SessionState, run: RunNode) -> Run:
    """The public run, with what only reads fill in."""
    return Run(
        id=run.id,
        session_id=state.session.id,
        prompt_id=run.prompt_id,
        state=run.state,
        cause=run.cause,
        origin_run_id=run.origin_id,
        supersedes_run_id=run.supersedes,
        superseded_by_run_id=run.superseded_by,
        attempt=run.attempt,
        waits_for_interaction_ids=tuple(run.waits),
        failure=run.failure,
        agent=run.agent,
        create_time=run.create_time,
        update_time=run.update_time,
        usage=run.usage,
        trace_context=run.trace_context,
        unplaced=run.unplaced,
        sibling_run_ids=state.siblings(run),
        on_selected_branch=state.on_selected_branch(run.id),
        operator_policy_id=run.operator_policy_id,
    )


def run_proto(state: SessionState, run: RunNode) -> run_pb2.Run:
    message = to_proto(run_view(state, run))
    assert isinstance(message, run_pb2.Run)
    return message


def interaction_proto(state: SessionState, interaction: Interaction) -> interaction_pb2.Interaction:
    """The public interaction; answers without contents (see the contract)."""
    message = to_proto(interaction_view(state, interaction))
    assert isinstance(message, interaction_pb2.Interaction)
    return message


def get_run(state: SessionState, request: broker_pb2.GetRunRequest) -> broker_pb2.GetRunResponse:
    """F9: by run, message or interaction id."""
    match request.WhichOneof("lookup"):
        case "run_id":
            run = state.runs.get(request.run_id)
            if run is None:
                raise Refusal(
                    Reason.RUN_NOT_FOUND,
                    f"no run {request.run_id} in this session",
                    {"run_id": request.run_id},
                )
        case "message_id":
            run = run_of_message(state, request.message_id)
        case "interaction_id":
            run = _run_of_interaction(state, request.interaction_id)
        case _:
            raise invalid_field("lookup", "one of run_id, message_id and interaction_id")
    return broker_pb2.GetRunResponse(
        run=run_proto(state, run),
        open_interactions=[interaction_proto(state, state.interactions[i]) for i in run.waits],
    )


def list_grants(
    state: SessionState, request: broker_pb2.ListGrantsRequest, max_page: int
) -> broker_pb2.ListGrantsResponse:
    """The grants of a branch, oldest first (A3)."""
    place = pages.place_of("grants", request.page_token, 1)
    start = pages.number(place[0]) if place else 0
    size = pages.page_size(request.page_size, max_page)
    tip = find_node(state, request.node_id) if request.node_id else state.selected
    grants = grants_of_branch(state, tip) if tip else []
    response = broker_pb2.ListGrantsResponse()
    length = 0
    for index, grant in enumerate(grants[start : start + size], start):
        proto = to_proto(grant)
        assert isinstance(proto, session_pb2.Grant)
        length += proto.ByteSize()
        if response.grants and length > pages.PAGE_BYTES:
            response.next_page_token = pages.token("grants", index)
            return response
        response.grants.append(proto)
    if start + size < len(grants):
        response.next_page_token = pages.token("grants", start + size)
    return response


def run_of_message(state: SessionState, message_id: str) -> RunNode:
    """The run that wrote a message, or the fork that has this copy of it (T3)."""
    base, copy_of = split_message_id(message_id)
    writer = state.message_nodes.get(base)
    run = state.runs.get(copy_of or writer or "")
    if run is None or writer not in {r.id for r in state.origin_chain(run.id)}:
        raise Refusal(
            Reason.MESSAGE_NOT_FOUND,
            f"no run of this session has a message {message_id}",
            {"message_id": message_id},
        )
    return run


def _run_of_interaction(state: SessionState, interaction_id: str) -> RunNode:
    interaction = state.interactions.get(interaction_id)
    if interaction is None:
        raise Refusal(
            Reason.INTERACTION_NOT_FOUND,
            f"no interaction {interaction_id} in this session",
            {"interaction_id": interaction_id},
        )
    having = [run for run in state.runs.values() if state.owns_call(run, interaction.call_id)]
    for run in having:
        if state.on_selected_branch(run.id):
            return run
    return having[0]


async def get_tree(
    store: Store, state: SessionState, request: broker_pb2.GetTreeRequest, max_page: int
) -> broker_pb2.GetTreeResponse:
    """The nodes, oldest first, paged by their place in the order of creation."""
    kind = "tree-newest" if request.newest_first else "tree"
    place = pages.place_of(kind, request.page_token, 1)
    start = pages.number(place[0]) if place else 0
    size = pages.page_size(request.page_size, max_page)
    shown = shown_nodes(state, include_superseded=request.include_superseded)
    if request.newest_first:
        shown.reverse()
    page = shown[start : start + size]
    prompts = await read_prompts(store, state, [n for n in page if n not in state.runs])
    selected = set(state.path_to(state.selected)) if state.selected else set()
    response = broker_pb2.GetTreeResponse(selected_node_id=state.selected)
    length = 0
    for index, node_id in enumerate(page):
        node = tree_node(state, node_id, selected=node_id in selected)
        if node_id in prompts:
            node.prompt.CopyFrom(message_proto(prompts[node_id]))
        length += node.ByteSize()
        if index and length > pages.PAGE_BYTES:
            page = page[:index]
            break
        response.nodes.append(node)
    if start + len(page) < len(shown):
        response.next_page_token = pages.token(kind, start + len(page))
    return response


def shown_nodes(state: SessionState, *, include_superseded: bool = False) -> list[str]:
    """The nodes that a tree shows, oldest first (F8)."""
    return [
        node_id
        for node_id in state.nodes
        if include_superseded or node_id not in state.runs or not state.runs[node_id].superseded_by
    ]


def tree_node(state: SessionState, node_id: str, *, selected: bool) -> broker_pb2.TreeNode:
    """The public node; a prompt's message is left out, since the state does not have it."""
    run = state.runs.get(node_id)
    if run is not None:
        return broker_pb2.TreeNode(
            id=node_id,
            parent_id=run.prompt_id,
            kind=session_pb2.NODE_KIND_RUN,
            selected=selected,
            run=run_proto(state, run),
        )
    prompt = state.prompts[node_id]
    is_user = prompt.role is Role.USER
    return broker_pb2.TreeNode(
        id=node_id,
        parent_id=prompt.parent_id,
        kind=(session_pb2.NODE_KIND_PROMPT if is_user else session_pb2.NODE_KIND_FIRST_MESSAGE),
        selected=selected,
        edits_prompt_id=prompt.edits_prompt_id,
    )


async def read_prompts(
    store: NodeReader, state: SessionState, node_ids: list[str]
) -> dict[str, Message]:
    """The messages of these prompts, out of the store."""
    found: dict[str, Message] = {}
    for entry in await store.read_nodes(session_key(state), node_ids):
        event = decode_event(entry.payload).event if entry.kind is EntryKind.EVENT else None
        if isinstance(event, PromptAdded):
            found[entry.node_id] = event.message
    return found


def message_proto(message: Message) -> message_pb2.Message:
    proto = to_proto(message)
    assert isinstance(proto, message_pb2.Message)
    return proto


async def get_transcript(
    store: Store, state: SessionState, request: broker_pb2.GetTranscriptRequest, max_page: int
) -> broker_pb2.GetTranscriptResponse:
    """The messages of a branch. Reads only the nodes that the page shows."""
    kind = "transcript-newest" if request.newest_first else "transcript"
    size = pages.page_size(request.page_size, max_page)
    tip = state.selected
    if request.node_id:
        tip = find_node(state, request.node_id)
    place = pages.place_of(kind, request.page_token, 3)
    if place:
        tip = find_node(state, place[0])
    path = state.path_to(tip) if tip else []
    if request.newest_first:
        path.reverse()
    at = pages.number(place[1]) if place else 0
    skip = pages.number(place[2]) if place else 0
    response = broker_pb2.GetTranscriptResponse()
    length = 0
    while at < len(path):
        batch = path[at : at + NODES_AT_ONCE]
        transcript = await read_transcript(store, state, batch)
        for node_id in batch:
            messages = transcript.messages([node_id], with_hints=True)
            if request.newest_first:
                messages.reverse()
            pieces = [p for m in messages for p in split_message(m, pages.PAGE_BYTES)]
            for index, piece in enumerate(pieces[skip:], skip):
                proto = message_proto(piece)
                length += proto.ByteSize()
                full = len(response.messages) >= size or length > pages.PAGE_BYTES
                if response.messages and full:
                    response.next_page_token = pages.token(kind, tip, at, index)
                    return response
                response.messages.append(proto)
            skip = 0
            at += 1
    return response
