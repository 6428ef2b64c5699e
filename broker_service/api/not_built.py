"""What the contract has and this build has not: each RPC refuses by its name."""

from __future__ import annotations

from abc import ABC
from collections.abc import AsyncIterator
from typing import Any, NoReturn

from broker_service.api.commands import not_implemented
from turngate.v1 import broker_pb2, broker_pb2_grpc

NOT_IMPLEMENTED = (
    "CancelInteraction",
    "CancelRun",
    "DeleteSession",
    "ListGrants",
    "ListSessions.only_waiting",
    "ListSessions.owner",
    "RegenerateRun",
    "ReportUnhandled",
    "RetryRun",
    "RevokeGrant",
    "SelectBranch",
    "SendMessage.edits_message_id",
    "SendMessage.on_busy=ON_BUSY_INTERRUPT",
    "WatchInteractions",
    "WatchSession.snapshot",
)
"""What this build answers with NOT_IMPLEMENTED, as GetServerInfo tells."""


class NotBuiltYet(broker_pb2_grpc.BrokerServiceServicer, ABC):
    """The RPCs that are still to come. Whoever builds one takes it out of here."""

    async def DeleteSession(
        self, request: broker_pb2.DeleteSessionRequest, context: Any
    ) -> broker_pb2.DeleteSessionResponse:
        _refuse("DeleteSession")

    async def SelectBranch(
        self, request: broker_pb2.SelectBranchRequest, context: Any
    ) -> broker_pb2.SelectBranchResponse:
        _refuse("SelectBranch")

    async def ReportUnhandled(
        self, request: broker_pb2.ReportUnhandledRequest, context: Any
    ) -> broker_pb2.ReportUnhandledResponse:
        _refuse("ReportUnhandled")

    async def CancelInteraction(
        self, request: broker_pb2.CancelInteractionRequest, context: Any
    ) -> broker_pb2.CancelInteractionResponse:
        _refuse("CancelInteraction")

    async def ListGrants(
        self, request: broker_pb2.ListGrantsRequest, context: Any
    ) -> broker_pb2.ListGrantsResponse:
        _refuse("ListGrants")

    async def RevokeGrant(
        self, request: broker_pb2.RevokeGrantRequest, context: Any
    ) -> broker_pb2.RevokeGrantResponse:
        _refuse("RevokeGrant")

    async def WatchInteractions(
        self, request: broker_pb2.WatchInteractionsRequest, context: Any
    ) -> AsyncIterator[broker_pb2.WatchInteractionsResponse]:
        _refuse("WatchInteractions")
        yield broker_pb2.WatchInteractionsResponse()

    async def CancelRun(
        self, request: broker_pb2.CancelRunRequest, context: Any
    ) -> broker_pb2.CancelRunResponse:
        _refuse("CancelRun")

    async def RegenerateRun(
        self, request: broker_pb2.RegenerateRunRequest, context: Any
    ) -> broker_pb2.RegenerateRunResponse:
        _refuse("RegenerateRun")

    async def RetryRun(
        self, request: broker_pb2.RetryRunRequest, context: Any
    ) -> broker_pb2.RetryRunResponse:
        _refuse("RetryRun")


def _refuse(feature: str) -> NoReturn:
    raise not_implemented(feature)
