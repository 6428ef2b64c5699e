"""Which answers belong to the current turn, and to which call (X1-X7)."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import StrEnum

from turngate_core.canonical_arguments import canonical_key_of_text
from turngate_core.synthetic import SyntheticReason, is_answer, is_error
from turngate_core.transcript import (
    CallPart,
    DecisionPart,
    ResultPart,
    ResultSource,
    TranscriptMessage,
    turn_start_index,
)


@dataclass(frozen=True, slots=True)
class IndexedCall:
    """A call by its latest shape. `place` orders calls: (message, part)."""

    call: CallPart
    place: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a call got in this turn. `output` is JSON text, or `None` for an absent output."""

    call_id: str
    output: str | None
    is_error: bool = False
    synthetic: SyntheticReason | None = None


@dataclass(frozen=True, slots=True)
class MatchedCall:
    """The call that a re-issued call *is* (X2).

    `call.arguments` are what was approved, and what is to run. `answer` is `None` while the call
    has no answer: it parks, or its tool is started. `decision`: a person's, of this turn.
    """

    call: CallPart
    answer: Answer | None
    decision: DecisionPart | None


def index_calls(messages: tuple[TranscriptMessage, ...]) -> dict[str, IndexedCall]:
    """Call id to shape, over the full history (X1).

    Of one id twice the later shape counts. A result or decision that brings its own name and
    arguments stands for a call that the transcript lacks (X7).
    """
    calls: dict[str, IndexedCall] = {}
    own_shapes: dict[str, IndexedCall] = {}
    for message_index, message in enumerate(messages):
        for part_index, part in enumerate(message.parts):
            place = (message_index, part_index)
            if isinstance(part, CallPart):
                calls[part.call_id] = IndexedCall(part, place)
            elif isinstance(part, ResultPart | DecisionPart) and part.tool is not None:
                shape = CallPart(part.call_id, part.tool, part.arguments or "")
                own_shapes.setdefault(part.call_id, IndexedCall(shape, place))
    return {**own_shapes, **calls}


def turn_answers(messages: tuple[TranscriptMessage, ...]) -> dict[str, Answer]:
    """The answers of this turn by the id of their call, in call order (X1, X4).

    Only results at or after the turn start count; of several for one call the first one does
    (I1). Not answers are `cancelled_by_user`, `run_failed` and `outcome_unknown`, and imported
    results (P3). A result without a call is dropped.
    """
    calls = index_calls(messages)
    answers: dict[str, Answer] = {}
    for message in messages[turn_start_index(messages) :]:
        for part in message.parts:
            if isinstance(part, ResultPart) and part.call_id in calls:
                answer = _answer(part)
                if answer is not None:
                    answers.setdefault(part.call_id, answer)
    return dict(sorted(answers.items(), key=lambda item: calls[item[0]].place))


def turn_decisions(messages: tuple[TranscriptMessage, ...]) -> dict[str, DecisionPart]:
    """The decision of this turn on each call that has one, in call order.

    Of several the first one counts, except that a denial replaces an approval (A2).
    """
    calls = index_calls(messages)
    decisions: dict[str, DecisionPart] = {}
    for message in messages[turn_start_index(messages) :]:
        for part in message.parts:
            if not isinstance(part, DecisionPart) or part.imported or part.call_id not in calls:
                continue
            earlier = decisions.get(part.call_id)
            if earlier is None or (earlier.approved and not part.approved):
                decisions[part.call_id] = part
    return dict(sorted(decisions.items(), key=lambda item: calls[item[0]].place))


class ClientCallVerdict(StrEnum):
    """What becomes of a client call."""

    FULFILLED = "fulfilled"
    PARK = "park"
    DENY = "deny"


def client_call_verdict(
    matched: MatchedCall | None, *, denied_by_policy: bool
) -> ClientCallVerdict:
    """An answer of this turn fulfils; a denial denies; everything else parks.

    Client tools need no approval, so that of a policy only `DENY` counts (A1): `denied_by_policy`
    as `policy.denies_client_tool` gives it.
    """
    if matched is not None and matched.answer is not None:
        return ClientCallVerdict.FULFILLED
    denied_by_person = (
        matched is not None and matched.decision is not None and not matched.decision.approved
    )
    return (
        ClientCallVerdict.DENY if denied_by_policy or denied_by_person else ClientCallVerdict.PARK
    )


def replay_key(tool: str, arguments: str | None) -> tuple[str, str] | None:
    """What makes a re-issued call the same call: name and canonical arguments (X2, X3)."""
    key = canonical_key_of_text(arguments, unwrap_strings=True)
    return None if key is None else (tool, key)


class ReplayMatcher:
    """For agents that declare `replays`: finds the calls that a new attempt issues again (X2).

    One matcher serves one attempt. Candidates are the calls of this turn and those with a result
    in it; each is matched once, in call order. Agents of all other kinds bind by id
    (`turn_answers`) and need no matcher.
    """

    def __init__(self, messages: tuple[TranscriptMessage, ...]) -> None:
        start = turn_start_index(messages)
        answers = turn_answers(messages)
        decisions = turn_decisions(messages)
        touched = {
            part.call_id
            for message in messages[start:]
            for part in message.parts
            if isinstance(part, ResultPart | DecisionPart)
        }
        self._waiting: dict[tuple[str, str], deque[MatchedCall]] = {}
        for indexed in sorted(index_calls(messages).values(), key=lambda call: call.place):
            call = indexed.call
            if indexed.place[0] < start and call.call_id not in touched:
                continue
            key = replay_key(call.tool, call.arguments)
            if key is None:
                continue  # X3: what cannot be canonical has no key, its result is dropped
            matched = MatchedCall(call, answers.get(call.call_id), decisions.get(call.call_id))
            self._waiting.setdefault(key, deque()).append(matched)

    def peek(self, tool: str, arguments: str | None) -> MatchedCall | None:
        """The call that the next `take` would give; it stays."""
        waiting = self._queue(tool, arguments)
        return waiting[0] if waiting else None

    def take(self, tool: str, arguments: str | None) -> MatchedCall | None:
        """The call that this one is, once; `None`: it is a new call."""
        waiting = self._queue(tool, arguments)
        return waiting.popleft() if waiting else None

    def _queue(self, tool: str, arguments: str | None) -> deque[MatchedCall] | None:
        key = replay_key(tool, arguments)
        return None if key is None else self._waiting.get(key)


def _answer(result: ResultPart) -> Answer | None:
    if result.source is ResultSource.IMPORTED:
        return None
    reason = result.synthetic
    if reason is not None and not is_answer(reason):
        return None
    # What kind of answer a synthetic result is, is in its type: `expired` is an error (X4).
    marked = result.is_error or (reason is not None and is_error(reason))
    return Answer(result.call_id, result.output, marked, reason)
