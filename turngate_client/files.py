"""Sessions as files: newline-delimited JSON, moved in pieces (P3)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator

import grpc

from turngate.v1 import broker_pb2 as pb
from turngate_client.connection import Connection
from turngate_client.errors import error_from_rpc

PIECE_BYTES = 256 * 1024
"""What goes into one message of the stream."""


async def export_file(connection: Connection, session_id: str) -> AsyncIterator[bytes]:
    """The pieces of a session's file, cut anywhere. Raises TurngateError; then it is not whole."""
    request = pb.ExportSessionRequest(session_id=session_id)
    try:
        async for piece in connection.stub.ExportSession(request, metadata=connection.metadata):
            yield piece.data
    except grpc.aio.AioRpcError as error:
        raise error_from_rpc(error) from None


async def import_file(
    connection: Connection, pieces: Iterable[bytes], session_id: str, request_id: str
) -> pb.ImportSessionResponse:
    """Make a session of a file. Raises TurngateError; it is not sent again by itself."""

    def requests() -> Iterator[pb.ImportSessionRequest]:
        yield pb.ImportSessionRequest(session_id=session_id, request_id=request_id)
        for piece in pieces:
            for at in range(0, len(piece), PIECE_BYTES):
                yield pb.ImportSessionRequest(data=piece[at : at + PIECE_BYTES])

    try:
        return await connection.stub.ImportSession(requests(), metadata=connection.metadata)
    except grpc.aio.AioRpcError as error:
        raise error_from_rpc(error) from None
