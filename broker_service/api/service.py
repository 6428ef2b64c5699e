"""BrokerService over gRPC: who calls, what is asked, the core's decision, the answer.

Every handler is a few lines: fields are checked and translated in `commands.py`, read in
`reads.py`; what changes something goes through `changes.py`, which knows about request ids (E1).
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from google.protobuf.message import Message as Proto

from broker_service.api import checks, commands, pages, reads
from broker_service.api.changes import DAY_MS, Changes, session_key, store_errors
from broker_service.api.inbox import list_interactions
from broker_service.api.not_built import NOT_IMPLEMENTED, NotBuiltYet
from broker_service.config import BrokerSettings, published_limits
from broker_service.domain import approvals, branches, gate, settlement
from broker_service.domain.cancel import cancel_run
from broker_service.domain.closing import cancel_interaction
from broker_service.domain.decision import Decision, principal
from broker_service.domain.degradation import report_unhandled
from broker_service.domain.grants import revoke_grant
from broker_service.domain.interactions import InteractionRef, find_interaction
from broker_service.domain.model import HeldMessage
from broker_service.domain.retries import retry_run
from broker_service.domain.state import SessionState
from broker_service.effects import session_view
from broker_service.encoding import enum_to_proto, to_proto
from broker_service.sessions import AnsweredBefore, Sessions, not_found
from broker_service.storage.port import (
    SessionFilter,
    SessionKey,
)
from broker_service.watch.cursor import cursor_at, position_of
from broker_service.watch.hub import WatchHub
from turngate.v1 import (
    broker_pb2,
    interaction_pb2,
    session_pb2,
)
from turngate_serving.caller import caller_of

T = TypeVar("T")
R = TypeVar("R", bound=Proto)


class BrokerApi(NotBuiltYet):
    """The servicer. `version`: of this build."""

    def __init__(
        self, sessions: Sessions, hub: WatchHub, settings: BrokerSettings, version: str
    ) -> None:
        self._sessions = sessions
        self._changes = Changes(sessions)
        self._store = sessions.store
        self._hub = hub
        self._settings = settings
        self._limits = published_limits(settings)
        self._version = version

    # --- sessions ---

    async def CreateSession(
        self, request: broker_pb2.CreateSessionRequest, context: Any
    ) -> broker_pb2.CreateSessionResponse:
        caller = caller_of(context)
        command = commands.create_session(
            request, caller, self._limits, self._settings.default_agent
        )

        def answer(run_id: str, state: SessionState) -> broker_pb2.CreateSessionResponse:
            return broker_pb2.CreateSessionResponse(session=_session(state), run_id=run_id)

        ledger = self._changes.ledger(request, caller, "CreateSession", "", answer, DAY_MS)
        with store_errors():
            try:
                run_id, state = await self._sessions.create(
                    command, principal(caller.principal), ledger
                )
            except AnsweredBefore as before:
                return broker_pb2.CreateSessionResponse.FromString(before.response)
        return answer(run_id, state)

    async def GetSession(
        self, request: broker_pb2.GetSessionRequest, context: Any
    ) -> broker_pb2.GetSessionResponse:
        async with self._reading(request.session_id, context) as (key, state):
            position = await self._last_position(key)
            return broker_pb2.GetSessionResponse(
                session=_session(state), cursor=cursor_at(key, position)
            )

    async def ListSessions(
        self, request: broker_pb2.ListSessionsRequest, context: Any
    ) -> broker_pb2.ListSessionsResponse:
        if request.owner:
            raise commands.not_implemented("ListSessions.owner")
        if request.only_waiting:
            raise commands.not_implemented("ListSessions.only_waiting")
        where = SessionFilter(
            caller_of(context).tenant_id, labels=tuple(sorted(request.labels.items()))
        )
        place = pages.place_of("sessions", request.page_token, 2)
        after = (pages.number(place[0]), place[1]) if place else None
        size = pages.page_size(request.page_size, self._limits.page_size_limit)
        with store_errors():
            listing = await self._store.list_sessions(where, after, size)
        response = broker_pb2.ListSessionsResponse(
            sessions=[session_pb2.Session.FromString(row) for row in listing.rows]
        )
        if listing.next_after:
            response.next_page_token = pages.token("sessions", *listing.next_after)
        return response

    # --- messages and the queue ---

    async def SendMessage(
        self, request: broker_pb2.SendMessageRequest, context: Any
    ) -> broker_pb2.SendMessageResponse:
        caller = caller_of(context)
        key = session_key(request.session_id, caller)
        command = commands.send_message(request, caller, self._limits)

        def send(decision: Decision) -> gate.Sent:
            if isinstance(command, gate.EditMessage):
                return gate.edit_message(decision, command)
            return gate.send_message(decision, command)

        position = await self._last_position(key)

        def answer(sent: gate.Sent, state: SessionState) -> broker_pb2.SendMessageResponse:
            started = broker_pb2.SEND_OUTCOME_STARTED
            held = broker_pb2.SEND_OUTCOME_HELD
            response = broker_pb2.SendMessageResponse(
                outcome=held if sent.held else started,
                message_id=sent.message_id,
                run_id=sent.run_id,
                cursor=cursor_at(key, position),
            )
            if sent.held:
                response.held.CopyFrom(_held(sent.held))
                response.branch_node_id = sent.held.branch_node_id
            else:
                response.branch_node_id = sent.run_id
            return response

        return await self._changes.change(
            request,
            caller,
            "SendMessage",
            send,
            answer,
            None,
            broker_pb2.SendMessageResponse,
        )

    async def ListHeldMessages(
        self, request: broker_pb2.ListHeldMessagesRequest, context: Any
    ) -> broker_pb2.ListHeldMessagesResponse:
        async with self._reading(request.session_id, context) as (_, state):
            return broker_pb2.ListHeldMessagesResponse(
                messages=[_held(held) for held in state.held],
                queue_pause=_session(state).queue_pause if state.queue_pause else None,
            )

    async def UpdateHeldMessage(
        self, request: broker_pb2.UpdateHeldMessageRequest, context: Any
    ) -> broker_pb2.UpdateHeldMessageResponse:
        parts = commands.content("", request.text, request.parts, self._limits)
        return await self._changes.change(
            request,
            caller_of(context),
            "UpdateHeldMessage",
            lambda d: gate.update_held(d, request.message_id, parts),
            lambda held, _: broker_pb2.UpdateHeldMessageResponse(held=_held(held)),
            None,
            broker_pb2.UpdateHeldMessageResponse,
        )

    async def RemoveHeldMessage(
        self, request: broker_pb2.RemoveHeldMessageRequest, context: Any
    ) -> broker_pb2.RemoveHeldMessageResponse:
        return await self._changes.change(
            request,
            caller_of(context),
            "RemoveHeldMessage",
            lambda d: gate.remove_held(d, request.message_id),
            lambda _, __: broker_pb2.RemoveHeldMessageResponse(),
            None,
            broker_pb2.RemoveHeldMessageResponse,
        )

    async def ResumeQueue(
        self, request: broker_pb2.ResumeQueueRequest, context: Any
    ) -> broker_pb2.ResumeQueueResponse:
        return await self._changes.change(
            request,
            caller_of(context),
            "ResumeQueue",
            gate.resume_queue,
            lambda run_id, _: broker_pb2.ResumeQueueResponse(run_id=run_id),
            DAY_MS,
            broker_pb2.ResumeQueueResponse,
        )

    # --- looking on ---

    async def WatchSession(
        self, request: broker_pb2.WatchSessionRequest, context: Any
    ) -> AsyncIterator[broker_pb2.WatchSessionResponse]:
        raise AssertionError("served as ready bytes: see server.register")
        yield

    async def watch_frames(self, request: broker_pb2.WatchSessionRequest, context: Any) -> None:
        """WatchSession as ready bytes, encoded once for all watchers; `register` serves these."""
        caller = caller_of(context)
        key = session_key(request.session_id, caller)
        if request.snapshot:
            raise commands.not_implemented("WatchSession.snapshot")
        last = await self._last_position(key)
        after = position_of(key, request.after, last) if request.after else 0
        watch = self._hub.watch(
            key, after, without_deltas=request.without_deltas, principal=caller.principal
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

    # --- interactions ---

    async def SettleToolCall(
        self, request: broker_pb2.SettleToolCallRequest, context: Any
    ) -> broker_pb2.SettleToolCallResponse:
        command = commands.settle_tool_call(request, self._limits)

        def answer(
            settled: settlement.Settled, state: SessionState
        ) -> broker_pb2.SettleToolCallResponse:
            run = state.runs[settled.run_id]
            return broker_pb2.SettleToolCallResponse(
                run_id=run.id,
                fork_opened=settled.fork_opened,
                prompt_id=run.prompt_id,
                superseded_run_id=settled.superseded_run_id,
                message_id=settled.message_id,
                acted_on_run_id=settled.acted_on_run_id,
                interaction_id=settled.interaction_id,
                answer_id=settled.answer_id,
                waits_for_interaction_ids=run.waits,
                client_ref=settled.client_ref,
            )

        return await self._changes.change(
            request,
            caller_of(context),
            "SettleToolCall",
            lambda d: settlement.settle_tool_call(d, command),
            answer,
            None,
            broker_pb2.SettleToolCallResponse,
        )

    async def DecideApproval(
        self, request: broker_pb2.DecideApprovalRequest, context: Any
    ) -> broker_pb2.DecideApprovalResponse:
        command = commands.decide_approval(request)

        def answer(
            decided: approvals.Decided, state: SessionState
        ) -> broker_pb2.DecideApprovalResponse:
            interaction = state.interactions[decided.interaction_id]
            return broker_pb2.DecideApprovalResponse(
                interaction_id=interaction.id,
                state=state_number(state, interaction.id),
                acted_on_run_id=decided.acted_on_run_id,
                waits_for_interaction_ids=state.runs[decided.acted_on_run_id].waits,
                answer_id=decided.answer_id,
                client_ref=decided.client_ref,
            )

        return await self._changes.change(
            request,
            caller_of(context),
            "DecideApproval",
            lambda d: approvals.decide_approval(d, command),
            answer,
            None,
            broker_pb2.DecideApprovalResponse,
        )

    async def ReportUnhandled(
        self, request: broker_pb2.ReportUnhandledRequest, context: Any
    ) -> broker_pb2.ReportUnhandledResponse:
        ref = commands.interaction_ref(request.interaction)
        checks.size("detail", "short_text", request.detail, commands.MAX_SHORT_TEXT)
        return await self._changes.change(
            request,
            caller_of(context),
            "ReportUnhandled",
            lambda d: report_unhandled(d, ref),
            lambda closed, state: broker_pb2.ReportUnhandledResponse(
                interaction_id=closed.interaction_id,
                state=state_number(state, closed.interaction_id),
                acted_on_run_id=closed.acted_on_run_id,
            ),
            None,
            broker_pb2.ReportUnhandledResponse,
        )

    async def CancelInteraction(
        self, request: broker_pb2.CancelInteractionRequest, context: Any
    ) -> broker_pb2.CancelInteractionResponse:
        ref = commands.interaction_ref(request.interaction)
        return await self._changes.change(
            request,
            caller_of(context),
            "CancelInteraction",
            lambda d: cancel_interaction(d, ref),
            lambda closed, state: broker_pb2.CancelInteractionResponse(
                interaction_id=closed.interaction_id,
                state=state_number(state, closed.interaction_id),
                acted_on_run_id=closed.acted_on_run_id,
            ),
            None,
            broker_pb2.CancelInteractionResponse,
        )

    async def ListGrants(
        self, request: broker_pb2.ListGrantsRequest, context: Any
    ) -> broker_pb2.ListGrantsResponse:
        async with self._reading(request.session_id, context) as (_, state):
            return reads.list_grants(state, request, self._limits.page_size_limit)

    async def RevokeGrant(
        self, request: broker_pb2.RevokeGrantRequest, context: Any
    ) -> broker_pb2.RevokeGrantResponse:
        return await self._changes.change(
            request,
            caller_of(context),
            "RevokeGrant",
            lambda d: revoke_grant(d, request.grant_id),
            lambda _, __: broker_pb2.RevokeGrantResponse(),
            DAY_MS,
            broker_pb2.RevokeGrantResponse,
        )

    async def GetInteraction(
        self, request: broker_pb2.GetInteractionRequest, context: Any
    ) -> broker_pb2.GetInteractionResponse:
        ref = InteractionRef(interaction_id=request.interaction_id)
        async with self._reading(request.session_id, context) as (_, state):
            interaction = find_interaction(state, ref)
            return broker_pb2.GetInteractionResponse(
                interaction=reads.interaction_proto(state, interaction)
            )

    async def ListInteractions(
        self, request: broker_pb2.ListInteractionsRequest, context: Any
    ) -> broker_pb2.ListInteractionsResponse:
        with store_errors():
            return await list_interactions(
                self._sessions, caller_of(context), request, self._limits.page_size_limit
            )

    # --- runs ---

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

    async def GetServerInfo(
        self, request: broker_pb2.GetServerInfoRequest, context: Any
    ) -> broker_pb2.GetServerInfoResponse:
        caller_of(context)
        response = broker_pb2.GetServerInfoResponse(
            version=self._version,
            limits=_published(self._settings),
            built_in_client_tools=["request_input", "request_connection"],
            authentication="none",
            not_implemented=NOT_IMPLEMENTED,
        )
        response.server_time.FromMilliseconds(self._store.now())
        return response

    # --- common ---

    @asynccontextmanager
    async def _reading(
        self, session_id: str, context: Any
    ) -> AsyncIterator[tuple[SessionKey, SessionState]]:
        key = session_key(session_id, caller_of(context))
        with store_errors():
            async with self._sessions.reading(key) as state:
                yield key, state

    async def _last_position(self, key: SessionKey) -> int:
        with store_errors():
            position = await self._store.last_position(key)
        if position is None:
            raise not_found(key.session_id)
        return position


def _session(state: SessionState) -> session_pb2.Session:
    return _typed(session_pb2.Session, session_view(state))


def _held(held: HeldMessage) -> session_pb2.HeldMessage:
    return _typed(session_pb2.HeldMessage, held)


def _typed(kind: type[R], value: object) -> R:
    message = to_proto(value)
    assert isinstance(message, kind)
    return message


def state_number(
    state: SessionState, interaction_id: str
) -> interaction_pb2.InteractionState.ValueType:
    number = enum_to_proto(state.interactions[interaction_id].state)
    return interaction_pb2.InteractionState.ValueType(number)


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
