"""What the contract has and this build has not: each RPC refuses by its name."""

from __future__ import annotations

from abc import ABC

from turngate.v1 import broker_pb2_grpc

NOT_IMPLEMENTED: tuple[str, ...] = ()
"""What this build answers with NOT_IMPLEMENTED, as GetServerInfo tells."""


class NotBuiltYet(broker_pb2_grpc.BrokerServiceServicer, ABC):
    """The RPCs that are still to come. There are none at present."""
