"""Which tool parts are client tools, and which are their results (H4, A4).

For clients, which see parts only. For the broker an interaction is one by record.
"""

from __future__ import annotations

from dataclasses import dataclass

from turngate_core import connection, forms
from turngate_core.display import OUTPUT_AVAILABLE, OUTPUT_ERROR, ToolPart
from turngate_core.render import RenderMap, render_kind_for


@dataclass(frozen=True, slots=True)
class ClientTools:
    """Kinds and tool names that are known: built in, registered, or declared for the run."""

    kinds: frozenset[str] = frozenset({forms.KIND, connection.KIND})
    names: frozenset[str] = frozenset({forms.TOOL_NAME, connection.TOOL_NAME})

    def with_declared(
        self, *, kinds: frozenset[str] = frozenset(), names: frozenset[str] = frozenset()
    ) -> ClientTools:
        """These, and what a host or a session adds."""
        return ClientTools(self.kinds | kinds, self.names | names)


BUILT_IN = ClientTools()


def is_client_tool(part: ToolPart, render_map: RenderMap, known: ClientTools = BUILT_IN) -> bool:
    """True if only a client can fulfil the call: by its kind, or by its name without a hint."""
    if part.provider_executed:
        return False
    kind = render_kind_for(part.call_id, part.render, render_map)
    return kind in known.kinds or part.tool in known.names


def is_client_tool_result(
    part: ToolPart, render_map: RenderMap, known: ClientTools = BUILT_IN
) -> bool:
    """True if a client has fulfilled the call.

    Approval data tells a server tool that was approved and ran: no client's result (A4).
    """
    return (
        is_client_tool(part, render_map, known)
        and part.state in (OUTPUT_AVAILABLE, OUTPUT_ERROR)
        and part.approval is None
    )
