"""Interactions and grants: answered, decided, closed, listed."""

from __future__ import annotations

from typing import Any

from broker_service.api import checks, commands, reads
from broker_service.api.calls import Calls
from broker_service.api.changes import DAY_MS, store_errors
from broker_service.api.inbox import list_interactions
from broker_service.domain import approvals, settlement
from broker_service.domain.closing import cancel_interaction
from broker_service.domain.degradation import report_unhandled
from broker_service.domain.grants import revoke_grant
from broker_service.domain.interactions import InteractionRef, find_interaction
from broker_service.domain.state import SessionState
from broker_service.encoding import enum_to_proto
from turngate.v1 import (
    broker_pb2,
    interaction_pb2,
)
from turngate_serving.caller import caller_of


class InteractionCalls(Calls):
    """RPCs about what waits for people and clients."""

    async def SettleToolCall(
        self, request: broker_pb2.SettleToolCallRequest, context: Any
    ) -> broker_pb2.SettleToolCallResponse:
        command = commands.settle_tool_call(request, self._limits)

        def answer(
            settled: settlement.Settled, state: SessionState
        ) -> broker_pb2.SettleToolCallResponse:
            run = state.runs[settled.run_id]
            return broker_pb2.SettleToolCallResponse(
                run_id=run.id,
                fork_opened=settled.fork_opened,
                prompt_id=run.prompt_id,
                superseded_run_id=settled.superseded_run_id,
                message_id=settled.message_id,
                acted_on_run_id=settled.acted_on_run_id,
                interaction_id=settled.interaction_id,
                answer_id=settled.answer_id,
                waits_for_interaction_ids=run.waits,
                client_ref=settled.client_ref,
            )

        return await self._changes.change(
            request,
            caller_of(context),
            "SettleToolCall",
            lambda d: settlement.settle_tool_call(d, command),
            answer,
            None,
            broker_pb2.SettleToolCallResponse,
        )

    async def DecideApproval(
        self, request: broker_pb2.DecideApprovalRequest, context: Any
    ) -> broker_pb2.DecideApprovalResponse:
        command = commands.decide_approval(request)

        def answer(
            decided: approvals.Decided, state: SessionState
        ) -> broker_pb2.DecideApprovalResponse:
            interaction = state.interactions[decided.interaction_id]
            return broker_pb2.DecideApprovalResponse(
                interaction_id=interaction.id,
                state=state_number(state, interaction.id),
                acted_on_run_id=decided.acted_on_run_id,
                waits_for_interaction_ids=state.runs[decided.acted_on_run_id].waits,
                answer_id=decided.answer_id,
                client_ref=decided.client_ref,
            )

        return await self._changes.change(
            request,
            caller_of(context),
            "DecideApproval",
            lambda d: approvals.decide_approval(d, command),
            answer,
            None,
            broker_pb2.DecideApprovalResponse,
        )

    async def ReportUnhandled(
        self, request: broker_pb2.ReportUnhandledRequest, context: Any
    ) -> broker_pb2.ReportUnhandledResponse:
        ref = commands.interaction_ref(request.interaction)
        checks.size("detail", "short_text", request.detail, commands.MAX_SHORT_TEXT)
        return await self._changes.change(
            request,
            caller_of(context),
            "ReportUnhandled",
            lambda d: report_unhandled(d, ref),
            lambda closed, state: broker_pb2.ReportUnhandledResponse(
                interaction_id=closed.interaction_id,
                state=state_number(state, closed.interaction_id),
                acted_on_run_id=closed.acted_on_run_id,
            ),
            None,
            broker_pb2.ReportUnhandledResponse,
        )

    async def CancelInteraction(
        self, request: broker_pb2.CancelInteractionRequest, context: Any
    ) -> broker_pb2.CancelInteractionResponse:
        ref = commands.interaction_ref(request.interaction)
        return await self._changes.change(
            request,
            caller_of(context),
            "CancelInteraction",
            lambda d: cancel_interaction(d, ref),
            lambda closed, state: broker_pb2.CancelInteractionResponse(
                interaction_id=closed.interaction_id,
                state=state_number(state, closed.interaction_id),
                acted_on_run_id=closed.acted_on_run_id,
            ),
            None,
            broker_pb2.CancelInteractionResponse,
        )

    async def ListGrants(
        self, request: broker_pb2.ListGrantsRequest, context: Any
    ) -> broker_pb2.ListGrantsResponse:
        async with self._reading(request.session_id, context) as (_, state):
            return reads.list_grants(state, request, self._limits.page_size_limit)

    async def RevokeGrant(
        self, request: broker_pb2.RevokeGrantRequest, context: Any
    ) -> broker_pb2.RevokeGrantResponse:
        return await self._changes.change(
            request,
            caller_of(context),
            "RevokeGrant",
            lambda d: revoke_grant(d, request.grant_id),
            lambda _, __: broker_pb2.RevokeGrantResponse(),
            DAY_MS,
            broker_pb2.RevokeGrantResponse,
        )

    async def GetInteraction(
        self, request: broker_pb2.GetInteractionRequest, context: Any
    ) -> broker_pb2.GetInteractionResponse:
        ref = InteractionRef(interaction_id=request.interaction_id)
        async with self._reading(request.session_id, context) as (_, state):
            interaction = find_interaction(state, ref)
            return broker_pb2.GetInteractionResponse(
                interaction=reads.interaction_proto(state, interaction)
            )

    async def ListInteractions(
        self, request: broker_pb2.ListInteractionsRequest, context: Any
    ) -> broker_pb2.ListInteractionsResponse:
        with store_errors():
            return await list_interactions(
                self._sessions, caller_of(context), request, self._limits.page_size_limit
            )


def state_number(
    state: SessionState, interaction_id: str
) -> interaction_pb2.InteractionState.ValueType:
    number = enum_to_proto(state.interactions[interaction_id].state)
    return interaction_pb2.InteractionState.ValueType(number)
