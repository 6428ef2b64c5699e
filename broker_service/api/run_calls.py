"""Runs: stopped, regenerated, tried again."""

from __future__ import annotations

from typing import Any

from broker_service.api import commands, reads
from broker_service.api.calls import Calls
from broker_service.api.changes import DAY_MS
from broker_service.domain import branches
from broker_service.domain.cancel import cancel_run
from broker_service.domain.retries import retry_run
from turngate.v1 import (
    broker_pb2,
)
from turngate_serving.caller import caller_of


class RunCalls(Calls):
    """RPCs that act on a run."""

    async def CancelRun(
        self, request: broker_pb2.CancelRunRequest, context: Any
    ) -> broker_pb2.CancelRunResponse:
        command = commands.cancel_run(request)
        return await self._changes.change(
            request,
            caller_of(context),
            "CancelRun",
            lambda d: cancel_run(d, command),
            lambda run_id, state: broker_pb2.CancelRunResponse(
                run=reads.run_proto(state, state.runs[run_id]), acted_on_run_id=run_id
            ),
            DAY_MS,
            broker_pb2.CancelRunResponse,
        )

    async def RegenerateRun(
        self, request: broker_pb2.RegenerateRunRequest, context: Any
    ) -> broker_pb2.RegenerateRunResponse:
        caller = caller_of(context)
        return await self._changes.change(
            request,
            caller,
            "RegenerateRun",
            lambda d: branches.regenerate_run(
                d,
                request.run_id,
                keep_running=request.keep_running,
                trace_context=commands.trace_context(caller),
            ),
            lambda made, state: broker_pb2.RegenerateRunResponse(
                run=reads.run_proto(state, state.runs[made[0]]), acted_on_run_id=made[1]
            ),
            DAY_MS,
            broker_pb2.RegenerateRunResponse,
        )

    async def RetryRun(
        self, request: broker_pb2.RetryRunRequest, context: Any
    ) -> broker_pb2.RetryRunResponse:
        return await self._changes.change(
            request,
            caller_of(context),
            "RetryRun",
            lambda d: retry_run(d, request.run_id),
            lambda made, state: broker_pb2.RetryRunResponse(
                run=reads.run_proto(state, state.runs[made[0]]), acted_on_run_id=made[1]
            ),
            DAY_MS,
            broker_pb2.RetryRunResponse,
        )
