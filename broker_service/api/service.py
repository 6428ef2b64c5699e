"""BrokerService over gRPC: who calls, what is asked, the core's decision, the answer.

Every handler is a few lines: fields are checked and translated in `commands.py`, read in
`reads.py`; what changes something goes through `_change`, which knows about request ids (E1).
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, NoReturn, TypeVar

from google.protobuf.message import Message as Proto

from broker_service.api import checks, commands, pages, reads
from broker_service.config import BrokerSettings, published_limits
from broker_service.domain import approvals, gate, settlement
from broker_service.domain.decision import Decision, principal
from broker_service.domain.interactions import InteractionRef, find_interaction
from broker_service.domain.model import HeldMessage, Interaction
from broker_service.domain.state import SessionState
from broker_service.effects import session_view
from broker_service.encoding import enum_to_proto, from_proto, to_proto
from broker_service.sessions import AnsweredBefore, Request, Sessions, not_found
from broker_service.storage.port import (
    RequestKey,
    SessionFilter,
    SessionKey,
    StoreUnavailable,
)
from broker_service.watch.cursor import cursor_at, position_of
from broker_service.watch.hub import WatchHub
from turngate.v1 import (
    broker_pb2,
    broker_pb2_grpc,
    interaction_pb2,
    session_pb2,
)
from turngate_core.errors import Reason, Refusal, invalid_field
from turngate_serving.caller import Caller, caller_of

T = TypeVar("T")
R = TypeVar("R", bound=Proto)

DAY_MS = 24 * 3600 * 1000

NOT_IMPLEMENTED = (
    "CancelInteraction",
    "CancelRun",
    "DeleteSession",
    "ListGrants",
    "RegenerateRun",
    "ReportUnhandled",
    "RetryRun",
    "RevokeGrant",
    "SelectBranch",
    "SendMessage.edits_message_id",
    "SendMessage.on_busy=ON_BUSY_INTERRUPT",
    "WatchInteractions",
    "WatchSession.snapshot",
)
"""What this build answers with NOT_IMPLEMENTED, as GetServerInfo tells."""


class BrokerApi(broker_pb2_grpc.BrokerServiceServicer):
    """The servicer. `version`: of this build."""

    def __init__(
        self, sessions: Sessions, hub: WatchHub, settings: BrokerSettings, version: str
    ) -> None:
        self._sessions = sessions
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

        ledger = self._ledger(request, caller, "CreateSession", "", answer, DAY_MS)
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
        if request.owner or request.only_waiting:
            raise commands.not_implemented("ListSessions.owner, ListSessions.only_waiting")
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

    async def DeleteSession(
        self, request: broker_pb2.DeleteSessionRequest, context: Any
    ) -> broker_pb2.DeleteSessionResponse:
        _refuse("DeleteSession")

    # --- messages and the queue ---

    async def SendMessage(
        self, request: broker_pb2.SendMessageRequest, context: Any
    ) -> broker_pb2.SendMessageResponse:
        caller = caller_of(context)
        key = _key(request.session_id, caller)
        command = commands.send_message(request, caller, self._limits)
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

        return await self._change(
            request,
            caller,
            "SendMessage",
            lambda d: gate.send_message(d, command),
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
        return await self._change(
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
        return await self._change(
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
        return await self._change(
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
        key = _key(request.session_id, caller)
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
        _refuse("SelectBranch")

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

        return await self._change(
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
            response = broker_pb2.DecideApprovalResponse(
                interaction_id=interaction.id,
                acted_on_run_id=decided.acted_on_run_id,
                waits_for_interaction_ids=state.runs[decided.acted_on_run_id].waits,
                answer_id=decided.answer_id,
                client_ref=decided.client_ref,
            )
            _set_state(response, interaction)
            return response

        return await self._change(
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
        _refuse("ReportUnhandled")

    async def CancelInteraction(
        self, request: broker_pb2.CancelInteractionRequest, context: Any
    ) -> broker_pb2.CancelInteractionResponse:
        _refuse("CancelInteraction")

    async def ListGrants(
        self, request: broker_pb2.ListGrantsRequest, context: Any
    ) -> broker_pb2.ListGrantsResponse:
        _refuse("ListGrants")

    async def RevokeGrant(
        self, request: broker_pb2.RevokeGrantRequest, context: Any
    ) -> broker_pb2.RevokeGrantResponse:
        _refuse("RevokeGrant")

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
        caller = caller_of(context)
        asked = request.filter
        place = pages.place_of("interactions", request.page_token, 2)
        after = (pages.number(place[0]), place[1]) if place else None
        size = pages.page_size(request.page_size, self._limits.page_size_limit)
        where = SessionFilter(caller.tenant_id, labels=tuple(sorted(asked.labels.items())))
        response = broker_pb2.ListInteractionsResponse()
        while True:
            with store_errors():
                listing = await self._store.list_interactions(where, after, size)
            for row in listing.rows:
                found = interaction_pb2.Interaction.FromString(row)
                if len(response.interactions) == size:
                    return response
                if await self._matches(caller, asked, found):
                    response.interactions.append(await self._as_of_now(caller, found))
                created = found.create_time
                stamp = created.seconds * 1000 + created.nanos // 1_000_000
                response.next_page_token = pages.token("interactions", stamp, found.id)
            after = listing.next_after
            if after is None:
                response.next_page_token = ""
                return response

    async def _matches(
        self,
        caller: Caller,
        asked: broker_pb2.InteractionFilter,
        found: interaction_pb2.Interaction,
    ) -> bool:
        if asked.session_id and asked.session_id != found.session_id:
            return False
        if asked.kind and asked.kind != found.kind:
            return False
        if asked.tool_name and asked.tool_name != found.tool_name:
            return False
        if asked.opened_for and asked.opened_for != found.opened_for:
            return False
        if asked.only_selected_branch:
            return (await self._as_of_now(caller, found)).on_selected_branch
        return True

    async def _as_of_now(
        self, caller: Caller, found: interaction_pb2.Interaction
    ) -> interaction_pb2.Interaction:
        """With the runs that wait for it and whether its branch is selected (I5)."""
        key = SessionKey(caller.tenant_id, found.session_id)
        async with self._sessions.reading(key) as state:
            return reads.interaction_proto(state, from_proto(Interaction, found))

    async def WatchInteractions(
        self, request: broker_pb2.WatchInteractionsRequest, context: Any
    ) -> AsyncIterator[broker_pb2.WatchInteractionsResponse]:
        _refuse("WatchInteractions")
        yield broker_pb2.WatchInteractionsResponse()

    # --- runs ---

    async def CancelRun(
        self, request: broker_pb2.CancelRunRequest, context: Any
    ) -> broker_pb2.CancelRunResponse:
        _refuse("CancelRun")

    async def RegenerateRun(
        self, request: broker_pb2.RegenerateRunRequest, context: Any
    ) -> broker_pb2.RegenerateRunResponse:
        _refuse("RegenerateRun")

    async def RetryRun(
        self, request: broker_pb2.RetryRunRequest, context: Any
    ) -> broker_pb2.RetryRunResponse:
        _refuse("RetryRun")

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
        key = _key(session_id, caller_of(context))
        with store_errors():
            async with self._sessions.reading(key) as state:
                yield key, state

    async def _last_position(self, key: SessionKey) -> int:
        with store_errors():
            position = await self._store.last_position(key)
        if position is None:
            raise not_found(key.session_id)
        return position

    async def _change(
        self,
        request: Any,
        caller: Caller,
        method: str,
        act: Callable[[Decision], T],
        answer: Callable[[T, SessionState], R],
        keep_ms: int | None,
        response: type[R],
    ) -> R:
        """Decide, store, answer; the same request id gets the first answer again (E1)."""
        key = _key(request.session_id, caller)
        answered: list[R] = []

        def answer_once(reply: T, state: SessionState) -> R:
            if not answered:
                answered.append(answer(reply, state))
            return answered[0]

        def act_anew(decision: Decision) -> T:
            answered.clear()
            return act(decision)

        ledger = self._ledger(request, caller, method, key.session_id, answer_once, keep_ms)
        with store_errors():
            try:
                reply, state = await self._sessions.execute(
                    key,
                    principal(caller.principal),
                    act_anew,
                    client=caller.client,
                    request=ledger,
                )
            except AnsweredBefore as before:
                return response.FromString(before.response)
        return answer_once(reply, state)

    def _ledger(
        self,
        request: Any,
        caller: Caller,
        method: str,
        session_id: str,
        answer: Callable[[T, SessionState], Proto],
        keep_ms: int | None,
    ) -> Request[T] | None:
        request_id = checks.request_id(request.request_id)
        if not request_id:
            return None
        key = RequestKey(caller.tenant_id, session_id, caller.principal, method, request_id)
        meaning: bytes = request.SerializeToString(deterministic=True)
        return Request(
            key=key,
            fingerprint=hashlib.blake2b(meaning, digest_size=16).digest(),
            answer=lambda reply, state: answer(reply, state).SerializeToString(),
            keep_ms=keep_ms,
        )


@contextmanager
def store_errors() -> Iterator[None]:
    """A store that cannot be reached is told by name, without its own words (E2)."""
    try:
        yield
    except StoreUnavailable as error:
        raise Refusal(
            Reason.STORE_UNAVAILABLE,
            "the store takes no requests at the moment; nothing was stored",
            retry_after_ms=1000,
        ) from error


def _key(session_id: str, caller: Caller) -> SessionKey:
    if not session_id:
        raise invalid_field("session_id", "has to be given")
    return SessionKey(caller.tenant_id, session_id)


def _refuse(feature: str) -> NoReturn:
    raise commands.not_implemented(feature)


def _session(state: SessionState) -> session_pb2.Session:
    return _typed(session_pb2.Session, session_view(state))


def _held(held: HeldMessage) -> session_pb2.HeldMessage:
    return _typed(session_pb2.HeldMessage, held)


def _typed(kind: type[R], value: object) -> R:
    message = to_proto(value)
    assert isinstance(message, kind)
    return message


def _set_state(response: broker_pb2.DecideApprovalResponse, interaction: Interaction) -> None:
    for name, number in interaction_pb2.InteractionState.items():
        if number == enum_to_proto(interaction.state):
            response.state = interaction_pb2.InteractionState.Value(name)


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
