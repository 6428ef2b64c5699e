"""What a client does with the open questions of one session."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from turngate.v1 import broker_pb2 as pb
from turngate.v1.interaction_pb2 import Interaction
from turngate.v1.message_pb2 import GrantScope
from turngate.v1.session_pb2 import Grant
from turngate_client.connection import Connection, new_request_id

PlainJson: TypeAlias = (
    "bool | int | float | str | Sequence[PlainJson] | Mapping[str, PlainJson] | None"
)

InteractionLike: TypeAlias = str | Interaction | pb.InteractionRef
"""An interaction's id, the interaction itself, or run and call as `InteractionRef`."""


def interaction_ref(interaction: InteractionLike) -> pb.InteractionRef:
    """How requests name an interaction."""
    if isinstance(interaction, pb.InteractionRef):
        return interaction
    if isinstance(interaction, Interaction):
        return pb.InteractionRef(interaction_id=interaction.id)
    return pb.InteractionRef(interaction_id=interaction)


class InteractionCalls:
    """The calls of a session that answer, decide, list and close interactions."""

    def __init__(self, connection: Connection, session_id: str) -> None:
        self.id = session_id
        self._connection = connection
        self._stub = connection.stub

    async def settle(
        self,
        interaction: InteractionLike,
        output: PlainJson,
        *,
        tool_name: str = "",
        client_ref: str = "",
        request_id: str = "",
    ) -> pb.SettleToolCallResponse:
        """Answer a client tool's call with a value (F1).

        For numbers that Python's `json` would write otherwise (1e400, 1.50) see `settle_json`.
        """
        text = json.dumps(output, ensure_ascii=False, allow_nan=False)
        return await self.settle_json(
            interaction, text, tool_name=tool_name, client_ref=client_ref, request_id=request_id
        )

    async def settle_json(
        self,
        interaction: InteractionLike,
        output_json: str,
        *,
        tool_name: str = "",
        client_ref: str = "",
        request_id: str = "",
    ) -> pb.SettleToolCallResponse:
        """Answer a client tool's call with exact JSON text (F1, T2)."""
        request = pb.SettleToolCallRequest(
            session_id=self.id,
            interaction=interaction_ref(interaction),
            output_json=output_json,
            tool_name=tool_name,
            client_ref=client_ref,
            request_id=request_id or new_request_id(),
        )
        return await self._connection.call(self._stub.SettleToolCall, request)

    async def settle_error(
        self,
        interaction: InteractionLike,
        error_text: str,
        *,
        tool_name: str = "",
        client_ref: str = "",
        request_id: str = "",
    ) -> pb.SettleToolCallResponse:
        """Answer a client tool's call with an error, as text for the model (F1)."""
        request = pb.SettleToolCallRequest(
            session_id=self.id,
            interaction=interaction_ref(interaction),
            error_text=error_text,
            tool_name=tool_name,
            client_ref=client_ref,
            request_id=request_id or new_request_id(),
        )
        return await self._connection.call(self._stub.SettleToolCall, request)

    async def approve(
        self,
        interaction: InteractionLike,
        *,
        reason: str = "",
        grant_scope: GrantScope.ValueType = GrantScope.GRANT_SCOPE_UNSPECIFIED,
        client_ref: str = "",
        request_id: str = "",
    ) -> pb.DecideApprovalResponse:
        """Approve the start of a server tool (A2)."""
        return await self._decide(
            interaction, pb.DECISION_APPROVE, reason, grant_scope, client_ref, request_id
        )

    async def deny(
        self,
        interaction: InteractionLike,
        *,
        reason: str = "",
        client_ref: str = "",
        request_id: str = "",
    ) -> pb.DecideApprovalResponse:
        """Deny the start of a server tool; the run goes on and the model is told (A2)."""
        scope = GrantScope.GRANT_SCOPE_UNSPECIFIED
        return await self._decide(
            interaction, pb.DECISION_DENY, reason, scope, client_ref, request_id
        )

    async def _decide(
        self,
        interaction: InteractionLike,
        decision: pb.Decision.ValueType,
        reason: str,
        grant_scope: GrantScope.ValueType,
        client_ref: str,
        request_id: str,
    ) -> pb.DecideApprovalResponse:
        request = pb.DecideApprovalRequest(
            session_id=self.id,
            interaction=interaction_ref(interaction),
            decision=decision,
            reason=reason,
            grant_scope=grant_scope,
            client_ref=client_ref,
            request_id=request_id or new_request_id(),
        )
        return await self._connection.call(self._stub.DecideApproval, request)

    async def report_unhandled(
        self, interaction: InteractionLike, *, detail: str = "", request_id: str = ""
    ) -> pb.ReportUnhandledResponse:
        """Report that this client cannot show a call (D1)."""
        request = pb.ReportUnhandledRequest(
            session_id=self.id,
            interaction=interaction_ref(interaction),
            detail=detail,
            request_id=request_id or new_request_id(),
        )
        return await self._connection.call(self._stub.ReportUnhandled, request)

    async def cancel_interaction(
        self, interaction: InteractionLike, *, request_id: str = ""
    ) -> pb.CancelInteractionResponse:
        """Close one interaction as cancelled; the run goes on in place (C4)."""
        request = pb.CancelInteractionRequest(
            session_id=self.id,
            interaction=interaction_ref(interaction),
            request_id=request_id or new_request_id(),
        )
        return await self._connection.call(self._stub.CancelInteraction, request)

    async def interaction(self, interaction_id: str) -> Interaction:
        """An interaction, open or closed."""
        request = pb.GetInteractionRequest(session_id=self.id, interaction_id=interaction_id)
        return (await self._connection.call(self._stub.GetInteraction, request)).interaction

    async def open_interactions(self) -> list[Interaction]:
        """The open interactions of this session, oldest first."""
        request = pb.ListInteractionsRequest(filter=pb.InteractionFilter(session_id=self.id))
        found: list[Interaction] = []
        while True:
            page = await self._connection.call(self._stub.ListInteractions, request)
            found.extend(page.interactions)
            if not page.next_page_token:
                return found
            request.page_token = page.next_page_token

    async def grants(self, node_id: str = "") -> list[Grant]:
        """The grants of a branch, of the selected one by default (A3)."""
        request = pb.ListGrantsRequest(session_id=self.id, node_id=node_id)
        found: list[Grant] = []
        while True:
            page = await self._connection.call(self._stub.ListGrants, request)
            found.extend(page.grants)
            if not page.next_page_token:
                return found
            request.page_token = page.next_page_token

    async def revoke_grant(self, grant_id: str, *, request_id: str = "") -> None:
        """Revoke a grant; calls that were started stay started (A3)."""
        request = pb.RevokeGrantRequest(
            session_id=self.id, grant_id=grant_id, request_id=request_id or new_request_id()
        )
        await self._connection.call(self._stub.RevokeGrant, request)
