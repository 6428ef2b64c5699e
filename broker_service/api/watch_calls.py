"""Looking on: watching, and reading runs, tree and transcript."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from broker_service.api import reads
from broker_service.api.calls import Calls
from broker_service.api.changes import DAY_MS, session_key, store_errors
from broker_service.domain import branches
from broker_service.watch.cursor import position_of
from broker_service.watch.frames import Snapshot
from broker_service.watch.snapshot import take_snapshot
from turngate.v1 import (
    broker_pb2,
)
from turngate_core.errors import invalid_field
from turngate_serving.caller import caller_of


class WatchCalls(Calls):
    """RPCs that show a session, and which of its branches is selected."""

    async def WatchSession(
        self, request: broker_pb2.WatchSessionRequest, context: Any
    ) -> AsyncIterator[broker_pb2.WatchSessionResponse]:
        raise AssertionError("served as ready bytes: see server.register")
        yield

    async def watch_frames(self, request: broker_pb2.WatchSessionRequest, context: Any) -> None:
        """WatchSession as ready bytes, encoded once for all watchers; `register` serves these."""
        caller = caller_of(context)
        key = session_key(request.session_id, caller)
        if request.snapshot and request.after:
            raise invalid_field("snapshot", "not together with after")
        last = await self._last_position(key)
        after = position_of(key, request.after, last) if request.after else 0

        async def snapshots() -> Snapshot:
            async with self._sessions.reading(key) as state:
                return await take_snapshot(self._store, state)

        watch = self._hub.watch(
            key,
            after,
            without_deltas=request.without_deltas,
            principal=caller.principal,
            snapshots=snapshots,
            begin_with_snapshot=request.snapshot,
        )
        context.add_done_callback(lambda _: watch.close())
        with store_errors():
            await watch.deliver(context.write)

    async def WatchInteractions(
        self, request: broker_pb2.WatchInteractionsRequest, context: Any
    ) -> AsyncIterator[broker_pb2.WatchInteractionsResponse]:
        raise AssertionError("served as ready bytes: see server.register")
        yield

    async def inbox_frames(
        self, request: broker_pb2.WatchInteractionsRequest, context: Any
    ) -> None:
        """WatchInteractions as ready bytes; `register` serves these."""
        caller = caller_of(context)
        watch = self._inbox.watch(
            request.filter, tenant_id=caller.tenant_id, principal=caller.principal
        )
        context.add_done_callback(lambda _: watch.close())
        with store_errors():
            await watch.deliver(context.write)

    async def GetRun(
        self, request: broker_pb2.GetRunRequest, context: Any
    ) -> broker_pb2.GetRunResponse:
        async with self._reading(request.session_id, context) as (_, state):
            return reads.get_run(state, request)

    async def GetTree(
        self, request: broker_pb2.GetTreeRequest, context: Any
    ) -> broker_pb2.GetTreeResponse:
        async with self._reading(request.session_id, context) as (_, state):
            return await reads.get_tree(self._store, state, request, self._limits.page_size_limit)

    async def GetTranscript(
        self, request: broker_pb2.GetTranscriptRequest, context: Any
    ) -> broker_pb2.GetTranscriptResponse:
        async with self._reading(request.session_id, context) as (_, state):
            return await reads.get_transcript(
                self._store, state, request, self._limits.page_size_limit
            )

    async def SelectBranch(
        self, request: broker_pb2.SelectBranchRequest, context: Any
    ) -> broker_pb2.SelectBranchResponse:
        return await self._changes.change(
            request,
            caller_of(context),
            "SelectBranch",
            lambda d: branches.select_branch(d, request.node_id),
            lambda _, state: broker_pb2.SelectBranchResponse(selected_node_id=state.selected),
            DAY_MS,
            broker_pb2.SelectBranchResponse,
        )
