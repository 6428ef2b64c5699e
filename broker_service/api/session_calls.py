"""Sessions and their queue: created, listed, sent to."""

from __future__ import annotations

from typing import Any, TypeVar

from google.protobuf.message import Message as Proto

from broker_service.api import commands
from broker_service.api.calls import Calls
from broker_service.api.changes import DAY_MS, session_key, store_errors
from broker_service.api.session_list import list_sessions
from broker_service.domain import gate
from broker_service.domain.decision import Decision, principal
from broker_service.domain.deletion import delete_session
from broker_service.domain.model import HeldMessage
from broker_service.domain.state import SessionState
from broker_service.effects import session_view
from broker_service.encoding import to_proto
from broker_service.sessions import AnsweredBefore
from broker_service.watch.cursor import cursor_at
from turngate.v1 import (
    broker_pb2,
    session_pb2,
)
from turngate_core.errors import Reason, Refusal
from turngate_serving.caller import caller_of

R = TypeVar("R", bound=Proto)


class SessionCalls(Calls):
    """RPCs about sessions, messages, and the queue of held ones."""

    async def CreateSession(
        self, request: broker_pb2.CreateSessionRequest, context: Any
    ) -> broker_pb2.CreateSessionResponse:
        caller = caller_of(context)
        command = commands.create_session(
            request, caller, self._limits, self._settings.default_agent
        )

        def answer(run_id: str, state: SessionState) -> broker_pb2.CreateSessionResponse:
            # Remembered without the configuration, which never changes: this answer is not the
            # session's, and would outlive it when it is deleted.
            response = broker_pb2.CreateSessionResponse(session=_session(state), run_id=run_id)
            response.session.ClearField("config")
            return response

        ledger = self._changes.ledger(request, caller, "CreateSession", "", answer, DAY_MS)
        with store_errors():
            try:
                run_id, state = await self._sessions.create(
                    command, principal(caller.principal), ledger
                )
            except AnsweredBefore as before:
                answered = broker_pb2.CreateSessionResponse.FromString(before.response)
                async with self._reading(answered.session.id, context) as (_, state):
                    answered.session.config.CopyFrom(_session(state).config)
                return answered
        response = answer(run_id, state)
        response.session.config.CopyFrom(_session(state).config)
        return response

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
        with store_errors():
            return await list_sessions(
                self._store, caller_of(context), request, self._limits.page_size_limit
            )

    async def DeleteSession(
        self, request: broker_pb2.DeleteSessionRequest, context: Any
    ) -> broker_pb2.DeleteSessionResponse:
        try:
            return await self._changes.change(
                request,
                caller_of(context),
                "DeleteSession",
                delete_session,
                lambda _, __: broker_pb2.DeleteSessionResponse(),
                DAY_MS,
                broker_pb2.DeleteSessionResponse,
            )
        except Refusal as refusal:
            if refusal.reason is not Reason.SESSION_DELETED:
                raise
            return broker_pb2.DeleteSessionResponse()  # it is as asked for (C5)

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


def _session(state: SessionState) -> session_pb2.Session:
    return _typed(session_pb2.Session, session_view(state))


def _held(held: HeldMessage) -> session_pb2.HeldMessage:
    return _typed(session_pb2.HeldMessage, held)


def _typed(kind: type[R], value: object) -> R:
    message = to_proto(value)
    assert isinstance(message, kind)
    return message
