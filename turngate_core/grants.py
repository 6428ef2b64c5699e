"""Approvals that reach further than their own call, and the verdict on a start (A1, A3)."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import StrEnum

from turngate_core.canonical_arguments import canonical_key_of_text
from turngate_core.extraction import index_calls, replay_key, turn_decisions
from turngate_core.policy import (
    GrantScope,
    Permission,
    Policy,
    Setting,
    grant_scope_for,
    permission_for,
)
from turngate_core.synthetic import shows_start
from turngate_core.transcript import (
    CallPart,
    DecisionPart,
    ResultPart,
    ResultSource,
    TranscriptMessage,
)


class StartVerdict(StrEnum):
    """What the transcript and the policy say about the start of a server tool."""

    ALLOW = "allow"
    DENY = "deny"
    ASK_USER = "ask_user"


@dataclass(frozen=True, slots=True)
class GrantKey:
    """Identical calls (A3): same agent, tool origin, name, and canonical arguments.

    Strings that hold JSON are not unwrapped here: other bytes are another call.
    """

    agent: str
    origin: str
    tool: str
    arguments: str


def grant_key(call: CallPart) -> GrantKey | None:
    """The key of a call; `None` if its arguments cannot be canonical: no grant reaches it."""
    arguments = canonical_key_of_text(call.arguments, unwrap_strings=False)
    return None if arguments is None else GrantKey(call.agent, call.origin, call.tool, arguments)


def branch_grants(
    messages: tuple[TranscriptMessage, ...],
    scope: GrantScope,
    *,
    revoked_calls: frozenset[str] = frozenset(),
) -> dict[GrantKey, str]:
    """The grants of a branch, each with the id of the call that was approved (A3).

    Looked up over the full history: a call that was approved with scope `SESSION` grants, once it
    was started. `scope` is the run's; a decision may be stricter. Idempotent: using a grant does
    not use it up.
    """
    calls = index_calls(messages)
    started = _started_calls(messages)
    grants: dict[GrantKey, str] = {}
    for call_id, decision in _decisions(messages).items():
        if not decision.approved or call_id not in started or call_id not in calls:
            continue
        if call_id in revoked_calls:
            continue
        if grant_scope_for(destructive=False, scopes=(scope, decision.scope)) is GrantScope.ONCE:
            continue
        key = grant_key(calls[call_id].call)
        if key is not None:
            grants.setdefault(key, call_id)
    return grants


class StartGate:
    """Verdicts on the starts of one turn, in order (A1, A3).

    A call in the same turn as a decision is the re-issue of the decided call: each decision is
    taken by one start, in call order. Any other start is a new call, which policy and grants
    judge.
    """

    def __init__(
        self,
        messages: tuple[TranscriptMessage, ...],
        policy: Policy,
        scope: GrantScope,
        *,
        revoked_calls: frozenset[str] = frozenset(),
    ) -> None:
        self._policy = policy
        self._scope = scope
        self._revoked = revoked_calls
        self._grants = branch_grants(messages, scope, revoked_calls=revoked_calls)
        self._decided: dict[tuple[str, str], deque[tuple[CallPart, DecisionPart]]] = {}
        calls = index_calls(messages)
        dead = _dead_calls(messages)
        for call_id, decision in turn_decisions(messages).items():
            call = calls[call_id].call
            key = replay_key(call.tool, call.arguments)
            if key is not None and call_id not in dead:
                self._decided.setdefault(key, deque()).append((call, decision))

    def verdict(
        self,
        call: CallPart,
        *,
        tool_setting: Setting | None = None,
        server_setting: Setting | None = None,
        read_only: bool = False,
    ) -> StartVerdict:
        """The verdict on the next start. A `DENY` of the policy wins over any decision (R7)."""
        permission = permission_for(
            call.tool,
            self._policy,
            tool_setting=tool_setting,
            server_setting=server_setting,
            read_only=read_only,
        )
        if permission is Permission.DENY:
            return StartVerdict.DENY
        key = replay_key(call.tool, call.arguments)
        waiting = self._decided.get(key) if key is not None else None
        if waiting:
            return self._decided_verdict(*waiting.popleft())
        if permission is Permission.ALLOW or grant_key(call) in self._grants:
            return StartVerdict.ALLOW
        return StartVerdict.ASK_USER

    def _decided_verdict(self, call: CallPart, decision: DecisionPart) -> StartVerdict:
        if not decision.approved:
            return StartVerdict.DENY
        # It starts now, so that from here on its approval reaches identical calls (A3).
        scope = grant_scope_for(destructive=False, scopes=(self._scope, decision.scope))
        key = grant_key(call)
        if scope is GrantScope.SESSION and key is not None and call.call_id not in self._revoked:
            self._grants.setdefault(key, call.call_id)
        return StartVerdict.ALLOW


def _decisions(messages: tuple[TranscriptMessage, ...]) -> dict[str, DecisionPart]:
    """The decision on each call of the full history; a denial replaces an approval (A2)."""
    decisions: dict[str, DecisionPart] = {}
    for message in messages:
        for part in message.parts:
            if isinstance(part, DecisionPart) and not part.imported:
                earlier = decisions.get(part.call_id)
                if earlier is None or (earlier.approved and not part.approved):
                    decisions[part.call_id] = part
    return decisions


def _results(messages: tuple[TranscriptMessage, ...]) -> list[ResultPart]:
    return [
        part
        for message in messages
        for part in message.parts
        if isinstance(part, ResultPart) and part.source is not ResultSource.IMPORTED
    ]


def _started_calls(messages: tuple[TranscriptMessage, ...]) -> set[str]:
    """A result of its own shows that a call was started; so does `outcome_unknown` (S1)."""
    return {
        result.call_id
        for result in _results(messages)
        if result.synthetic is None or shows_start(result.synthetic)
    }


def _dead_calls(messages: tuple[TranscriptMessage, ...]) -> set[str]:
    """Calls that ended without a result of their own: their decision died with them (A3)."""
    return {result.call_id for result in _results(messages) if result.synthetic is not None}
