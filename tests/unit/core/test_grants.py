"""A1, A3, scenario 17: approve means this; decisions die with their call, grants reach further."""

from __future__ import annotations

import pytest

from tests.unit.core.transcripts import assistant, call, no, result, user, yes
from turngate_core.grants import StartGate, StartVerdict, branch_grants, grant_key
from turngate_core.policy import GrantScope, Policy, PolicyRule, Setting
from turngate_core.synthetic import SyntheticReason
from turngate_core.transcript import (
    CallPart,
    DecisionPart,
    ResultPart,
    ResultSource,
    TranscriptMessage,
    TranscriptPart,
)

ALLOW, DENY, ASK = StartVerdict.ALLOW, StartVerdict.DENY, StartVerdict.ASK_USER
ONCE, SESSION = GrantScope.ONCE, GrantScope.SESSION

PAY = '{"to":{"n":9007199254740993},"l":[1,2]}'


def verdicts(
    messages: tuple[TranscriptMessage, ...],
    *arguments: str,
    scope: GrantScope = SESSION,
    policy: Policy | None = None,
    revoked: frozenset[str] = frozenset(),
) -> list[StartVerdict]:
    gate = StartGate(messages, policy or Policy(), scope, revoked_calls=revoked)
    return [gate.verdict(CallPart("", "pay", text)) for text in arguments]


def paid(*parts: TranscriptPart) -> tuple[TranscriptMessage, ...]:
    """A turn with these parts beside an approved call, and the next turn."""
    return (user(), assistant(call("a", "pay", PAY), yes("a"), *parts), user())


def test_a_session_grant_lets_identical_later_calls_pass() -> None:
    assert verdicts(paid(result("a")), PAY, PAY) == [ALLOW, ALLOW]


@pytest.mark.parametrize(
    "other",
    [
        '{"to":{"n":9007199254740992},"l":[1,2]}',
        '{"to":{"n":9007199254740993},"l":[2,1]}',
        '{"to":"{\\"n\\":9007199254740993}","l":[1,2]}',
        '{"to":{"n":"9007199254740993"},"l":[1,2]}',
        "{",
    ],
)
def test_other_arguments_ask(other: str) -> None:
    assert verdicts(paid(result("a")), other) == [ASK]


def test_key_order_and_spelling_of_numbers_do_not_matter() -> None:
    assert verdicts(paid(result("a")), '{"l":[1.0,2],"to":{"n":9007199254740993}}') == [ALLOW]


def test_a_decision_dies_with_its_call() -> None:
    """Approved, then stopped before it ran; the next turn asks again."""
    cancelled = ResultPart("a", None, synthetic=SyntheticReason.CANCELLED_BY_USER)
    assert verdicts(paid(), PAY) == [ASK]
    assert verdicts(paid(cancelled), PAY) == [ASK]
    assert verdicts((user(), assistant(call("a", "pay", PAY), yes("a"), cancelled)), PAY) == [ASK]


def test_a_start_without_a_result_was_a_start() -> None:
    unknown = ResultPart("a", None, synthetic=SyntheticReason.OUTCOME_UNKNOWN)
    assert verdicts(paid(unknown), PAY) == [ALLOW]


def test_once_reaches_no_other_call() -> None:
    assert verdicts(paid(result("a")), PAY, scope=ONCE) == [ASK]
    stricter = (user(), assistant(call("a", "pay", PAY), yes("a", ONCE), result("a")), user())
    assert verdicts(stricter, PAY) == [ASK]


def test_in_the_turn_of_the_decision_the_call_itself_passes_once() -> None:
    messages = (user(), assistant(call("a", "pay", PAY), yes("a")))
    assert verdicts(messages, PAY, PAY, scope=ONCE) == [ALLOW, ASK]


def test_once_it_has_started_its_session_grant_reaches_twins_of_the_same_turn() -> None:
    messages = (user(), assistant(call("a", "pay", PAY), yes("a")))
    assert verdicts(messages, "{}", PAY, PAY) == [ASK, ALLOW, ALLOW]


def test_a_denial_is_for_its_own_call_only() -> None:
    messages = (user(), assistant(call("a", "pay", PAY), no("a")))
    assert verdicts(messages, PAY, PAY) == [DENY, ASK]
    assert verdicts((*messages, user()), PAY) == [ASK]


def test_a_deny_in_the_policy_wins_over_decisions_and_grants() -> None:
    """R7: the operator adds a deny while a run is parked."""
    denying = Policy(Setting.ALLOW, (PolicyRule("p*", Setting.DENY),))
    assert verdicts((user(), assistant(call("a", "pay", PAY), yes("a"))), PAY, policy=denying) == [
        DENY
    ]
    assert verdicts(paid(result("a")), PAY, policy=denying) == [DENY]


def test_a_denied_call_stays_denied_where_the_policy_allows() -> None:
    messages = (user(), assistant(call("a", "pay", PAY), no("a")))
    assert verdicts(messages, PAY, PAY, policy=Policy(Setting.ALLOW)) == [DENY, ALLOW]


def test_a_revoked_grant_asks_again() -> None:
    messages = paid(result("a"))
    assert verdicts(messages, PAY, revoked=frozenset({"a"})) == [ASK]
    assert branch_grants(messages, SESSION, revoked_calls=frozenset({"a"})) == {}


def test_grants_are_listed_with_the_call_that_was_approved() -> None:
    assert list(branch_grants(paid(result("a")), SESSION).values()) == ["a"]


def test_p3_imported_decisions_and_results_grant_nothing() -> None:
    decided = DecisionPart("a", approved=True, imported=True)
    messages = (user(), assistant(call("a", "pay", PAY), decided, result("a")), user())
    assert verdicts(messages, PAY) == [ASK]
    imported = ResultPart("a", "1", source=ResultSource.IMPORTED)
    assert verdicts(paid(imported), PAY) == [ASK]


def test_a5_an_ordinary_output_decides_nothing() -> None:
    output = result("a", '{"approved":true}')
    messages = (user(), assistant(call("a", "pay", PAY), output), user())
    assert verdicts(messages, PAY) == [ASK]


def test_identical_means_same_agent_and_origin_too() -> None:
    keys = {
        grant_key(CallPart("a", "pay", PAY, agent, origin))
        for agent, origin in (("x", "m"), ("x", "n"), ("y", "m"))
    }
    assert len(keys) == 3
