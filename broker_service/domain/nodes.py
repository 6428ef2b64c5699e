"""Nodes of the conversation tree, as requests name them."""

from __future__ import annotations

from broker_service.domain.state import SessionState
from turngate_core.errors import Reason, Refusal
from turngate_core.ids import split_message_id


def find_node(state: SessionState, node_or_message_id: str) -> str:
    """The node of an id; a message's id stands for its node. Refuses with NODE_NOT_FOUND."""
    base, copy_of = split_message_id(node_or_message_id)
    node_id = copy_of or state.message_nodes.get(base, base)
    if not state.has_node(node_id):
        raise Refusal(
            Reason.NODE_NOT_FOUND,
            f"no prompt or run {node_or_message_id} in this session",
            {"node_id": node_or_message_id},
        )
    return node_id
