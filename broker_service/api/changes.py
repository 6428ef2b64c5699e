"""Requests that change something: decided, stored, answered, and remembered (E1, E4)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from google.protobuf.message import Message as Proto

from broker_service.api import checks
from broker_service.domain.decision import Decision, principal
from broker_service.domain.state import SessionState
from broker_service.sessions import AnsweredBefore, Request, Sessions
from broker_service.storage.port import RequestKey, SessionKey, StoreUnavailable
from turngate_core.errors import Reason, Refusal, invalid_field
from turngate_serving.caller import Caller

T = TypeVar("T")
R = TypeVar("R", bound=Proto)

DAY_MS = 24 * 3600 * 1000
"""How long requests are remembered that are neither settlements, decisions nor messages (E1)."""


class Changes:
    """One way for all commands on a session."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    async def change(
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
        key = session_key(request.session_id, caller)
        answered: list[R] = []

        def answer_once(reply: T, state: SessionState) -> R:
            if not answered:
                answered.append(answer(reply, state))
            return answered[0]

        def act_anew(decision: Decision) -> T:
            answered.clear()
            return act(decision)

        ledger = self.ledger(request, caller, method, key.session_id, answer_once, keep_ms)
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

    def ledger(
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


def session_key(session_id: str, caller: Caller) -> SessionKey:
    if not session_id:
        raise invalid_field("session_id", "has to be given")
    return SessionKey(caller.tenant_id, session_id)
