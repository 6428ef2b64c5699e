"""BrokerService over gRPC.

Every handler is a few lines: fields are checked and translated in `commands.py`, read in
`reads.py`; what changes something goes through `changes.py`, which knows about request ids (E1).
"""

from __future__ import annotations

from typing import Any

from broker_service.api.file_calls import FileCalls
from broker_service.api.interaction_calls import InteractionCalls
from broker_service.api.not_built import NOT_IMPLEMENTED
from broker_service.api.run_calls import RunCalls
from broker_service.api.session_calls import SessionCalls
from broker_service.api.watch_calls import WatchCalls
from broker_service.config import BrokerSettings
from broker_service.domain.interactions import BUILT_IN_KINDS
from turngate.v1 import (
    broker_pb2,
)
from turngate_serving.caller import caller_of


class BrokerApi(SessionCalls, WatchCalls, InteractionCalls, RunCalls, FileCalls):
    """The servicer: all RPCs of the contract."""

    async def GetServerInfo(
        self, request: broker_pb2.GetServerInfoRequest, context: Any
    ) -> broker_pb2.GetServerInfoResponse:
        caller_of(context)
        response = broker_pb2.GetServerInfoResponse(
            version=self._version,
            limits=_published(self._settings),
            built_in_client_tools=list(BUILT_IN_KINDS),
            authentication="none",
            not_implemented=NOT_IMPLEMENTED,
        )
        if policy := self._sessions.operator_policy:
            response.operator_policy_id = policy.id
        response.server_time.FromMilliseconds(self._store.now())
        return response


def _published(settings: BrokerSettings) -> list[broker_pb2.Limit]:
    """Every whole-number setting that is a limit of requests, with its unit (E3)."""
    units = {
        "json_bytes": "bytes",
        "json_depth": "levels",
        "text_bytes": "bytes",
        "message_bytes": "bytes",
        "held_messages": "messages",
        "questions_a_turn": "questions",
        "questions_a_step": "questions",
        "max_forks_per_call": "forks",
        "page_size_limit": "entries",
        "watches_a_session": "watches",
        "watches_a_principal": "watches",
    }
    return [
        broker_pb2.Limit(name=name, value=getattr(settings, name), unit=unit)
        for name, unit in units.items()
    ]
