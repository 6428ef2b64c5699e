"""The channel to a broker: metadata, deadlines and retries of every call."""

from __future__ import annotations

import secrets
from ipaddress import ip_address
from typing import TYPE_CHECKING, TypeVar

import grpc

from turngate.v1.broker_pb2 import WatchSessionRequest, WatchSessionResponse
from turngate.v1.broker_pb2_grpc import BrokerServiceStub
from turngate_client.retries import RetryPolicy, call_with_retries
from turngate_client.watching import WATCH_POLICY, SessionWatch

if TYPE_CHECKING:  # the generated module knows the stub of asyncio by its types only
    from turngate.v1.broker_pb2_grpc import BrokerServiceAsyncStub

Request = TypeVar("Request")
Response = TypeVar("Response")

DEFAULT_ADDRESS = "127.0.0.1:50051"


def new_request_id() -> str:
    """A fresh request id (E1): random, so that no two requests ever share one by accident."""
    return secrets.token_hex(16)


class Connection:
    """One channel and what goes with each call on it.

    `user`: whom the calls name where no authentication is configured (P2). `client_name`: the
    client's own name, such as a device; it stands beside answers. Raises ValueError for names that
    metadata cannot carry.
    """

    def __init__(
        self,
        address: str,
        *,
        user: str,
        client_name: str,
        credentials: grpc.ChannelCredentials | None,
        retry: RetryPolicy,
        watch_retry: RetryPolicy = WATCH_POLICY,
    ) -> None:
        named = (("turngate-user", user), ("turngate-client", client_name))
        for key, value in named:
            if not (value.isascii() and (value.isprintable() or not value)):
                raise ValueError(f"{key} must be printable ASCII, is {value!r}")
        self.address = address
        self.metadata = tuple((key, value) for key, value in named if value)
        self._retry = retry
        self._watch_retry = watch_retry
        options = [
            # A broker that restarts is found again soon: gRPC's own pause grows up to 2 minutes.
            ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.max_reconnect_backoff_ms", 3_000),
            # A proxy of the environment has no way to this machine's own loopback.
            ("grpc.enable_http_proxy", 0 if _is_loopback(address) else 1),
        ]
        if credentials is None:
            self.channel = grpc.aio.insecure_channel(address, options)
        else:
            self.channel = grpc.aio.secure_channel(address, credentials, options)
        self.stub: BrokerServiceAsyncStub = BrokerServiceStub(self.channel)

    async def call(
        self,
        method: grpc.aio.UnaryUnaryMultiCallable[Request, Response],
        request: Request,
    ) -> Response:
        """The answer to a unary request.

        The request is sent again as it is, request id included, while the broker is unavailable.
        Raises TurngateError.
        """

        async def once(seconds: float) -> Response:
            return await method(request, timeout=seconds, metadata=self.metadata)

        return await call_with_retries(once, self._retry)

    def watch(self, request: WatchSessionRequest) -> SessionWatch:
        """A watch of a session that resumes by itself."""

        def call(
            resumed: WatchSessionRequest,
        ) -> grpc.aio.UnaryStreamCall[WatchSessionRequest, WatchSessionResponse]:
            return self.stub.WatchSession(resumed, metadata=self.metadata)

        return SessionWatch(call, request, policy=self._watch_retry)

    async def close(self) -> None:
        """Close the channel; calls that are under way end."""
        await self.channel.close()


def _is_loopback(address: str) -> bool:
    host = address.rpartition(":")[0].strip("[]")
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
