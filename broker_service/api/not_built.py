"""What the contract has and this build has not: each RPC refuses by its name."""

from __future__ import annotations

from abc import ABC
from collections.abc import AsyncIterator
from typing import Any, NoReturn

from broker_service.api.commands import not_implemented
from turngate.v1 import broker_pb2, broker_pb2_grpc

NOT_IMPLEMENTED = (
    "WatchInteractions",
)
"""What this build answers with NOT_IMPLEMENTED, as GetServerInfo tells."""


class NotBuiltYet(broker_pb2_grpc.BrokerServiceServicer, ABC):
    """The RPCs that are still to come. Whoever builds one takes it out of here."""

    async def WatchInteractions(
        self, request: broker_pb2.WatchInteractionsRequest, context: Any
    ) -> AsyncIterator[broker_pb2.WatchInteractionsResponse]:
        _refuse("WatchInteractions")
        yield broker_pb2.WatchInteractionsResponse()


def _refuse(feature: str) -> NoReturn:
    raise not_implemented(feature)
