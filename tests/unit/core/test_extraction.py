"""X1-X7, T5: which answers belong to the current turn, and to which call."""

from __future__ import annotations

import pytest

from tests.unit.core.transcripts import assistant, call, no, result, user, yes
from turngate_core.extraction import (
    Answer,
    ClientCallVerdict,
    ReplayMatcher,
    client_call_verdict,
    index_calls,
    turn_answers,
    turn_decisions,
)
from turngate_core.synthetic import SyntheticReason
from turngate_core.transcript import (
    CallPart,
    ResultPart,
    ResultSource,
    TextPart,
    TranscriptMessage,
    turn_start_index,
)


def test_t5_turn_starts_at_the_last_user_message() -> None:
    assert turn_start_index(()) == 0
    assert turn_start_index((assistant(), assistant())) == 0
    assert turn_start_index((user(), assistant(), user(), assistant())) == 2
    assert turn_start_index((user(), TranscriptMessage("User", ()))) == 0
    assert turn_start_index((user(), TranscriptMessage("user ", ()))) == 0


def test_x1_only_results_of_this_turn_are_answers() -> None:
    messages = (user(), assistant(call("k-1"), result("k-1")), user(), assistant(call("k-2")))
    assert turn_answers(messages) == {}
    assert turn_answers(messages[:2]) == {"k-1": Answer("k-1", '"x"')}


def test_x5_the_same_question_with_the_same_id_in_the_next_turn_parks() -> None:
    messages = (user(), assistant(call("k-1"), result("k-1")), user(), assistant(call("k-1")))
    assert turn_answers(messages) == {}
    matched = ReplayMatcher(messages).take("ask", "{}")
    assert matched is not None
    assert matched.answer is None


def test_answers_come_in_call_order() -> None:
    messages = (user(), assistant(call("a"), call("b"), result("b"), result("a")))
    assert list(turn_answers(messages)) == ["a", "b"]


def test_first_of_two_results_for_a_call_closes_it() -> None:
    messages = (user(), assistant(call("a"), result("a", "1"), result("a", "2")))
    assert turn_answers(messages)["a"].output == "1"


@pytest.mark.parametrize("output", [None, "null", '""', "[]", "{}"])
def test_x4_empty_output_is_an_answer(output: str | None) -> None:
    messages = (user(), assistant(call("a"), result("a", output)))
    assert turn_answers(messages) == {"a": Answer("a", output)}


@pytest.mark.parametrize(
    ("reason", "answers", "is_error"),
    [
        (SyntheticReason.CANCELLED_BY_USER, False, None),
        (SyntheticReason.RUN_FAILED, False, None),
        (SyntheticReason.OUTCOME_UNKNOWN, False, None),
        (SyntheticReason.EXPIRED, True, True),
        (SyntheticReason.DENIED, True, True),
        (SyntheticReason.DEGRADED, True, True),
        (SyntheticReason.NOT_HANDLED, True, False),
    ],
)
def test_x4_the_type_says_what_a_synthetic_result_is(
    reason: SyntheticReason, answers: bool, is_error: bool | None
) -> None:
    messages = (user(), assistant(call("a"), ResultPart("a", '"t"', synthetic=reason)))
    found = turn_answers(messages)
    assert ("a" in found) is answers
    if answers:
        assert found["a"].is_error is is_error


def test_x4_a_text_that_looks_like_a_reason_is_an_answer() -> None:
    messages = (user(), assistant(call("a"), result("a", '"cancelled_by_user"')))
    assert "a" in turn_answers(messages)


def test_x4_a_real_answer_counts_after_a_synthetic_one() -> None:
    cancelled = ResultPart("a", None, synthetic=SyntheticReason.CANCELLED_BY_USER)
    messages = (user(), assistant(call("a"), cancelled, result("a", "1")))
    assert turn_answers(messages)["a"].output == "1"


def test_x4_error_answers_stay_errors() -> None:
    messages = (user(), assistant(call("a"), ResultPart("a", '"no"', is_error=True)))
    assert turn_answers(messages)["a"].is_error


def test_p3_imported_results_fulfil_nothing() -> None:
    imported = ResultPart("a", "1", source=ResultSource.IMPORTED)
    assert turn_answers((user(), assistant(call("a"), imported))) == {}


def test_a5_a_decision_is_no_answer() -> None:
    messages = (user(), assistant(call("a"), yes("a")))
    assert turn_answers(messages) == {}
    assert turn_decisions(messages)["a"].approved


def test_a2_a_denial_replaces_an_approval_and_not_the_reverse() -> None:
    for parts, approved in (([yes("a"), no("a")], False), ([no("a"), yes("a")], False)):
        messages = (user(), assistant(call("a"), *parts))
        assert turn_decisions(messages)["a"].approved is approved


def test_x7_results_before_calls_and_inside_user_messages() -> None:
    messages = (user(result("a", "1"), TextPart("hi")), assistant(call("a")))
    assert turn_answers(messages) == {"a": Answer("a", "1")}


def test_x7_a_result_without_a_call_needs_a_name_of_its_own() -> None:
    own = ResultPart("a", "1", tool="ask", arguments='{"p":1}')
    assert turn_answers((user(), assistant(result("zz"), own))) == {"a": Answer("a", "1")}
    matcher = ReplayMatcher((user(), assistant(own)))
    assert matcher.take("ask", "{}") is None
    matched = matcher.take("ask", '{"p":1.0}')
    assert matched is not None
    assert matched.call.call_id == "a"


def test_x7_the_shape_of_the_call_counts_before_that_of_its_result() -> None:
    own = ResultPart("a", "1", tool="other", arguments='{"p":2}')
    messages = (user(), assistant(own, call("a", "ask", '{"p":1}')))
    assert index_calls(messages)["a"].call == CallPart("a", "ask", '{"p":1}')


def test_x2_a_re_issued_call_is_the_first_one_that_is_left() -> None:
    """By id, not by whatever answer is there: the unanswered first twin parks."""
    messages = (user(), assistant(call("a"), call("b"), result("b", '"south"')))
    matcher = ReplayMatcher(messages)
    first, second, third = (matcher.take("ask", None) for _ in range(3))
    assert first is not None
    assert (first.call.call_id, first.answer) == ("a", None)
    assert second is not None
    assert second.answer == Answer("b", '"south"')
    assert third is None


def test_x2_calls_of_earlier_turns_count_with_a_result_in_this_one() -> None:
    messages = (user(), assistant(call("a"), call("b")), user(), assistant(result("b", "1")))
    matcher = ReplayMatcher(messages)
    matched = matcher.take("ask", "{}")
    assert matched is not None
    assert matched.call.call_id == "b"
    assert matcher.take("ask", "{}") is None


def test_x2_peeking_uses_nothing_up() -> None:
    matcher = ReplayMatcher((user(), assistant(call("a"), result("a"))))
    assert matcher.peek("ask", "{}") == matcher.peek("ask", "") is not None
    assert matcher.take("ask", "{}") is not None
    assert matcher.peek("ask", "{}") is None


def test_x2_another_tool_or_other_arguments_are_a_new_call() -> None:
    matcher = ReplayMatcher((user(), assistant(call("a", "ask", '{"n":1}'), result("a"))))
    assert matcher.take("ask", '{"n":2}') is None
    assert matcher.take("Ask", '{"n":1}') is None
    assert matcher.take("ask", '{"n":1}') is not None


def test_x2_an_approved_call_runs_with_what_was_approved() -> None:
    """X3 lets a string count as the object it spells; what runs is the approved text."""
    messages = (user(), assistant(call("a", "pay", '{"to":{"n":1}}'), yes("a")))
    matched = ReplayMatcher(messages).take("pay", '{"to":"{\\"n\\": 1.0}"}')
    assert matched is not None
    assert matched.call.arguments == '{"to":{"n":1}}'
    assert matched.decision == yes("a")


def test_x3_what_cannot_be_canonical_is_dropped_and_its_call_parks() -> None:
    for arguments in ("[" * 100, '{"a":1,"a":1}', '"\\ud800"', "{"):
        messages = (user(), assistant(call("a", "ask", arguments), result("a")))
        assert ReplayMatcher(messages).take("ask", arguments) is None


def test_verdicts_on_client_calls() -> None:
    matcher = ReplayMatcher((user(), assistant(call("a"), result("a"), call("b", "c"), no("b"))))
    answered, denied = matcher.take("ask", "{}"), matcher.take("c", "{}")
    assert client_call_verdict(answered, denied_by_policy=False) is ClientCallVerdict.FULFILLED
    assert client_call_verdict(denied, denied_by_policy=False) is ClientCallVerdict.DENY
    assert client_call_verdict(None, denied_by_policy=False) is ClientCallVerdict.PARK
    assert client_call_verdict(None, denied_by_policy=True) is ClientCallVerdict.DENY
