"""Sessions as files: exported and imported (P3)."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from typing import Any

from broker_service import export
from broker_service.api import checks
from broker_service.api.calls import Calls
from broker_service.api.changes import DAY_MS, session_key, store_errors
from broker_service.domain.decision import principal
from broker_service.domain.importing import ImportSession
from broker_service.domain.state import SessionState
from broker_service.sessions import AnsweredBefore, Request, deleted
from broker_service.storage.port import EntryKind, RequestKey
from turngate.v1 import broker_pb2
from turngate_core.errors import Reason, Refusal
from turngate_serving.caller import PRINCIPAL, Caller, caller_of

_ENTRIES_AT_ONCE = 512
_BYTES_AT_ONCE = 1024 * 1024


class FileCalls(Calls):
    """RPCs that move a session as a whole."""

    async def ExportSession(
        self, request: broker_pb2.ExportSessionRequest, context: Any
    ) -> AsyncIterator[broker_pb2.ExportSessionResponse]:
        key = session_key(request.session_id, caller_of(context))
        with store_errors():
            async with self._sessions.reading(key) as state:
                left = state.version
            text = export.first_line(key, left)
            after = 0
            while left:
                entries = await self._store.read(key, after, _ENTRIES_AT_ONCE, _BYTES_AT_ONCE)
                events = [entry for entry in entries if entry.kind is EntryKind.EVENT][:left]
                if not entries or (after == 0 and entries[0].position != 1):
                    raise deleted(key.session_id)  # meanwhile
                after = entries[-1].position
                left -= len(events)
                text += await asyncio.to_thread(export.lines, events)
                for piece in export.pieces(text):
                    yield broker_pb2.ExportSessionResponse(data=piece)
                text = ""

    async def ImportSession(
        self, requests: AsyncIterator[broker_pb2.ImportSessionRequest], context: Any
    ) -> broker_pb2.ImportSessionResponse:
        caller = caller_of(context)
        _refuse_all_but_admins(caller)
        first, data = await _gather(requests)
        session_id = first.session_id and checks.identifier("session_id", first.session_id)
        ledger = _ledger(first, data, caller)
        with store_errors():
            try:
                log = await asyncio.to_thread(export.read_file, data)
                command = ImportSession(log, caller.tenant_id, session_id)
                state = await self._sessions.import_log(
                    command, principal(caller.principal), ledger
                )
            except AnsweredBefore as before:
                return broker_pb2.ImportSessionResponse.FromString(before.response)
        return _answer(len(log), state)


def _refuse_all_but_admins(caller: Caller) -> None:
    """Without authentication the one fixed principal is the operator, and nobody else (P3)."""
    if caller.principal != PRINCIPAL:
        raise Refusal(
            Reason.PERMISSION_DENIED,
            "only an admin may import sessions",
            {"scope": "admin"},
        )


async def _gather(
    requests: AsyncIterator[broker_pb2.ImportSessionRequest],
) -> tuple[broker_pb2.ImportSessionRequest, bytes]:
    """The first message without its piece, and all pieces together."""
    first: broker_pb2.ImportSessionRequest | None = None
    data = bytearray()
    async for request in requests:
        data += request.data
        if len(data) > export.IMPORT_BYTES:
            raise checks.over("data", "import_bytes", export.IMPORT_BYTES, len(data), "bytes")
        if first is None:
            first = request
            first.ClearField("data")
    return first or broker_pb2.ImportSessionRequest(), bytes(data)


def _ledger(
    first: broker_pb2.ImportSessionRequest, data: bytes, caller: Caller
) -> Request[int] | None:
    """E1: the request means what its file says."""
    request_id = checks.request_id(first.request_id)
    if not request_id:
        return None
    meaning = first.SerializeToString(deterministic=True) + hashlib.blake2b(data).digest()
    return Request(
        key=RequestKey(caller.tenant_id, "", caller.principal, "ImportSession", request_id),
        fingerprint=hashlib.blake2b(meaning, digest_size=16).digest(),
        answer=lambda count, state: _answer(count, state).SerializeToString(),
        keep_ms=DAY_MS,
    )


def _answer(count: int, state: SessionState) -> broker_pb2.ImportSessionResponse:
    return broker_pb2.ImportSessionResponse(session_id=state.session.id, event_count=count)
