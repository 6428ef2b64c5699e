"""`ExtractToolResults`: what belongs to the current turn of any transcript (X1-X7)."""

from __future__ import annotations

from collections.abc import Mapping

from turngate.v1 import message_pb2, runner_pb2
from turngate_core.canonical_arguments import canonical_key_of_text
from turngate_core.errors import Reason, Refusal
from turngate_core.extraction import (
    Answer,
    MatchedCall,
    ReplayMatcher,
    index_calls,
    turn_answers,
    turn_decisions,
)
from turngate_core.json_text import JsonTextError, check
from turngate_core.synthetic import SyntheticReason
from turngate_core.transcript import (
    CallPart,
    DecisionPart,
    ResultPart,
    ResultSource,
    TextPart,
    TranscriptMessage,
    TranscriptPart,
    turn_start_index,
)

_SYNTHETIC = {
    message_pb2.RESULT_KIND_NOT_HANDLED: SyntheticReason.NOT_HANDLED,
    message_pb2.RESULT_KIND_UNSUPPORTED_PAYLOAD: SyntheticReason.DEGRADED,
    message_pb2.RESULT_KIND_CANCELLED_BY_USER: SyntheticReason.CANCELLED_BY_USER,
    message_pb2.RESULT_KIND_DENIED: SyntheticReason.DENIED,
    message_pb2.RESULT_KIND_EXPIRED: SyntheticReason.EXPIRED,
    message_pb2.RESULT_KIND_RUN_FAILED: SyntheticReason.RUN_FAILED,
    message_pb2.RESULT_KIND_OUTCOME_UNKNOWN: SyntheticReason.OUTCOME_UNKNOWN,
}
_SOURCES = {
    message_pb2.RESULT_KIND_CLIENT: ResultSource.CLIENT,
    message_pb2.RESULT_KIND_TOOL: ResultSource.SERVER_TOOL,
    message_pb2.RESULT_KIND_CALL_REFUSED: ResultSource.SERVER_TOOL,
    message_pb2.RESULT_KIND_UNSPECIFIED: ResultSource.UNKNOWN,
}


def extract_tool_results(
    request: runner_pb2.ExtractToolResultsRequest,
) -> runner_pb2.ExtractToolResultsResponse:
    """The answers, decisions and call ids of a transcript. Raises `Refusal`."""
    reading = _Reading()
    messages = tuple(
        TranscriptMessage(
            message.role,
            tuple(
                reading.part(part, f"messages[{index}].parts[{part_index}]")
                for part_index, part in enumerate(message.parts)
            ),
        )
        for index, message in enumerate(request.messages)
    )
    calls = index_calls(messages)
    shapes = {call_id: found.call for call_id, found in calls.items()}
    answers = turn_answers(messages)
    matcher = ReplayMatcher(messages)
    matches = []
    for replayed in request.replayed_calls:
        find = matcher.peek if replayed.peek else matcher.take
        found = find(replayed.tool_name, replayed.arguments_json)
        matches.append(_match(found, reading))
    return runner_pb2.ExtractToolResultsResponse(
        turn_start=turn_start_index(messages),
        results=[_extracted(answer, shapes, reading) for answer in answers.values()],
        decisions=[reading.decision_of(part) for part in turn_decisions(messages).values()],
        used_call_ids=sorted(calls, key=lambda call_id: calls[call_id].place),
        replay_matches=matches,
    )


class _Reading:
    """Parts of the contract as the core's, and the way back.

    The core looks at an output no further than whether there is one. So it is handed the number
    of the result, which is JSON text like any other, and each result comes back as it came in.
    """

    def __init__(self) -> None:
        self._results: list[message_pb2.ToolResult] = []
        self._decisions: dict[int, message_pb2.ApprovalDecision] = {}

    def part(self, part: runner_pb2.TranscriptPart, field: str) -> TranscriptPart:
        match part.WhichOneof("content"):
            case "text":
                return TextPart(part.text.text)
            case "call":
                _require(part.call.call_id, f"{field}.call.call_id")
                return CallPart(part.call.call_id, part.call.tool_name, part.call.arguments_json)
            case "result":
                return self._result(part.result, f"{field}.result")
            case "decision":
                _require(part.decision.call_id, f"{field}.decision.call_id")
                given = part.decision
                decision = DecisionPart(given.call_id, given.approved, imported=given.imported)
                self._decisions[id(decision)] = part.decision
                return decision
        raise _invalid(field, "has no content that this runner knows")

    def _result(self, given: runner_pb2.TranscriptResult, field: str) -> ResultPart:
        result = given.result
        _require(result.call_id, f"{field}.result.call_id")
        outcome = result.WhichOneof("outcome")
        if outcome == "output_json":
            _check_json(result.output_json, f"{field}.result.output_json")
        self._results.append(result)
        return ResultPart(
            result.call_id,
            str(len(self._results) - 1),
            is_error=outcome == "error_text",
            synthetic=_SYNTHETIC.get(result.kind),
            source=ResultSource.IMPORTED
            if result.imported
            else _SOURCES.get(result.kind, ResultSource.BROKER),
            tool=given.tool_name or None,
            arguments=given.arguments_json if given.HasField("arguments_json") else None,
        )

    def result_of(self, answer: Answer) -> message_pb2.ToolResult:
        return self._results[int(answer.output or "0")]

    def decision_of(self, part: DecisionPart) -> message_pb2.ApprovalDecision:
        return self._decisions[id(part)]


def _extracted(
    answer: Answer, shapes: Mapping[str, CallPart], reading: _Reading
) -> runner_pb2.ExtractedResult:
    call = shapes[answer.call_id]
    return runner_pb2.ExtractedResult(
        call_id=answer.call_id,
        tool_name=call.tool,
        result=reading.result_of(answer),
        canonical_arguments=canonical_key_of_text(call.arguments, unwrap_strings=True) or "",
    )


def _match(found: MatchedCall | None, reading: _Reading) -> runner_pb2.ReplayMatch:
    if found is None or (found.answer is None and found.decision is None):
        return runner_pb2.ReplayMatch(outcome=runner_pb2.REPLAY_OUTCOME_PARK)
    if found.answer is not None:
        return runner_pb2.ReplayMatch(
            outcome=runner_pb2.REPLAY_OUTCOME_ANSWERED,
            call_id=found.call.call_id,
            result=reading.result_of(found.answer),
        )
    if found.decision is not None and found.decision.approved:
        return runner_pb2.ReplayMatch(
            outcome=runner_pb2.REPLAY_OUTCOME_APPROVED,
            call_id=found.call.call_id,
            arguments_json=found.call.arguments,
        )
    return runner_pb2.ReplayMatch(
        outcome=runner_pb2.REPLAY_OUTCOME_DENIED, call_id=found.call.call_id
    )


def _require(call_id: str, field: str) -> None:
    if not call_id:
        raise _invalid(field, "is required")


def _check_json(text: str, field: str) -> None:
    try:
        check(text)
    except JsonTextError as error:
        raise Refusal(
            Reason.INVALID_JSON,
            f"{field}: {error}",
            {
                "field": field,
                "problem": error.fault.value,
                "offset": str(error.offset),
                "line": str(error.line),
                "column": str(error.column),
            },
        ) from error


def _invalid(field: str, description: str) -> Refusal:
    return Refusal(
        Reason.INVALID_TRANSCRIPT,
        f"{field}: {description}",
        {"field": field},
        violations=[(field, description)],
    )
