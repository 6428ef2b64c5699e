"""The Python client: sessions of a broker, over gRPC, for asyncio."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Self

import grpc

from turngate.v1 import broker_pb2 as pb
from turngate.v1.interaction_pb2 import Interaction
from turngate.v1.message_pb2 import Message
from turngate.v1.session_pb2 import Session, SessionConfig
from turngate_client.connection import DEFAULT_ADDRESS, Connection, new_request_id
from turngate_client.errors import error_from_rpc
from turngate_client.files import import_file
from turngate_client.retries import RetryPolicy
from turngate_client.session import SessionClient

if TYPE_CHECKING:  # the generated module knows the stub of asyncio by its types only
    from turngate.v1.broker_pb2_grpc import BrokerServiceAsyncStub


class TurngateClient:
    """A broker's client. Use it in `async with`; one is enough for a program.

        async with TurngateClient("127.0.0.1:50051", user="ann", client_name="laptop") as client:
            session = await client.create_session(agent="demo")
            await session.send("Book me a trip")
            async for event in session.watch():
                ...

    Every call raises TurngateError if it is refused or does not come through. A call that changes
    something carries a request id, so that it is made again safely while the broker is away (E1);
    give `request_id` yourself to repeat one after a restart of your own program.

    `credentials`: for TLS; without it the channel is plain text. `retry`: see RetryPolicy.
    """

    def __init__(
        self,
        address: str = DEFAULT_ADDRESS,
        *,
        user: str = "",
        client_name: str = "",
        credentials: grpc.ChannelCredentials | None = None,
        retry: RetryPolicy | None = None,
    ) -> None:
        self._connection = Connection(
            address,
            user=user,
            client_name=client_name,
            credentials=credentials,
            retry=retry or RetryPolicy(),
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    @property
    def stub(self) -> BrokerServiceAsyncStub:
        """The generated stub, for what has no method here; it neither retries nor names you."""
        return self._connection.stub

    async def close(self) -> None:
        """Close the channel; calls and watches that are under way end."""
        await self._connection.close()

    async def create_session(
        self,
        session_id: str = "",
        *,
        agent: str = "",
        config: SessionConfig | None = None,
        owner: str = "",
        participants: Iterable[str] = (),
        messages: Iterable[Message] = (),
        request_id: str = "",
    ) -> SessionClient:
        """Create a session; `agent` is short for a `config` with nothing else.

        Errors: `SESSION_ID_TAKEN`, `AGENT_NOT_FOUND`, and see broker.proto.
        """
        request = pb.CreateSessionRequest(
            session_id=session_id,
            config=config,
            owner=owner,
            participants=participants,
            messages=messages,
            request_id=request_id or new_request_id(),
        )
        if agent:
            request.config.agent = agent
        created = await self._connection.call(self.stub.CreateSession, request)
        return SessionClient(self._connection, created.session.id, first_run_id=created.run_id)

    async def import_session(
        self, pieces: Iterable[bytes], *, session_id: str = "", request_id: str = ""
    ) -> SessionClient:
        """Make a session of an exported file, given in pieces (P3); the caller has to be an admin.

        Errors: `PERMISSION_DENIED`, `SESSION_ID_TAKEN`, and `INVALID_FIELD` with the line.
        """
        imported = await import_file(
            self._connection, pieces, session_id, request_id or new_request_id()
        )
        return SessionClient(self._connection, imported.session_id)

    def session(self, session_id: str) -> SessionClient:
        """A session that exists already; nothing is asked for yet."""
        return SessionClient(self._connection, session_id)

    async def sessions(
        self,
        *,
        labels: Mapping[str, str] | None = None,
        owner: str = "",
        only_waiting: bool = False,
        page_size: int = 0,
    ) -> AsyncIterator[Session]:
        """The sessions that the caller may see, newest first, fetched page by page."""
        request = pb.ListSessionsRequest(
            labels=labels, owner=owner, only_waiting=only_waiting, page_size=page_size
        )
        while True:
            page = await self._connection.call(self.stub.ListSessions, request)
            for session in page.sessions:
                yield session
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    async def interactions(
        self, where: pb.InteractionFilter | None = None, *, page_size: int = 0
    ) -> AsyncIterator[Interaction]:
        """The inbox: open interactions of all sessions, oldest first (I5)."""
        request = pb.ListInteractionsRequest(filter=where, page_size=page_size)
        while True:
            page = await self._connection.call(self.stub.ListInteractions, request)
            for interaction in page.interactions:
                yield interaction
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    async def watch_inbox(
        self, where: pb.InteractionFilter | None = None
    ) -> AsyncGenerator[pb.WatchInteractionsResponse, None]:
        """The inbox as it changes: the open set, then changes; `InboxView` folds the frames (I5).

        It ends with TurngateError when the stream breaks; a new one begins again. Leave it with
        `aclose` (`contextlib.aclosing`).
        """
        call = self.stub.WatchInteractions(
            pb.WatchInteractionsRequest(filter=where), metadata=self._connection.metadata
        )
        try:
            async for frame in call:
                yield frame
        except grpc.aio.AioRpcError as error:
            raise error_from_rpc(error) from None
        finally:
            call.cancel()

    async def server_info(self) -> pb.GetServerInfoResponse:
        """Version, limits and what is built in."""
        return await self._connection.call(self.stub.GetServerInfo, pb.GetServerInfoRequest())
