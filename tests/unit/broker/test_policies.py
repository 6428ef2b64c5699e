"""The operator's policy (A1, R7): kept with the runs that it starts, and what it denies today."""

from __future__ import annotations

from dataclasses import replace

import pytest

from broker_service.domain.decision import RUNNER, Decision
from broker_service.domain.events import OperatorPolicyRecorded, RunCreated, ToolStarted
from broker_service.domain.model import (
    ApprovalPolicy,
    GrantScope,
    OperatorPolicy,
    Permission,
    PolicyRule,
    ProposedTool,
    ResultKind,
    RunState,
    SessionConfig,
)
from broker_service.domain.policies import policy_for, policy_of_start
from broker_service.domain.starts import Verdict
from broker_service.policy_file import operator_policy
from tests.unit.broker.conversation import (
    LUND,
    VISBY,
    Conversation,
    client_call,
    form,
    server_call,
    tool_result,
    user,
)
from turngate_core.policy import Permission as Allowed
from turngate_core.policy import permission_for

ALLOW, ASK, DENY = Permission.ALLOW, Permission.ASK, Permission.DENY


def rule(pattern: str, permission: Permission) -> ApprovalPolicy:
    """A policy of one rule."""
    return ApprovalPolicy(rules=(PolicyRule(pattern, permission),))


def operator(policy: ApprovalPolicy | None) -> OperatorPolicy | None:
    return None if policy is None else operator_policy(policy)


DENIES_PAY = operator(rule("pay", DENY))
ASKS = operator(ApprovalPolicy(ASK))
PAY = ProposedTool("c-1")


def started(
    policy: OperatorPolicy | None = None, session: ApprovalPolicy | None = None
) -> tuple[Conversation, str]:
    """A run of a session that was started under these policies."""
    config = SessionConfig(agent="travel", approval_policy=session)
    chat = Conversation(config, operator_policy=policy)
    return chat, chat.start()


def asked_for_payment() -> tuple[Conversation, str]:
    """A run that is parked on the approval of a payment, from a time without a policy."""
    chat, run_id = started()
    ask = ProposedTool("c-1", tool_permission=ASK)
    chat.step(run_id, server_call("c-1", "pay"))
    chat.propose(run_id, ask)
    chat.park(run_id, ask)
    return chat, run_id


@pytest.mark.parametrize(
    ("session", "of_operator", "tool", "verdict"),
    [
        # A DENY anywhere wins.
        (rule("pay", ALLOW), rule("p*", DENY), PAY, Verdict.DENIED),
        (rule("p*", DENY), rule("pay", ALLOW), PAY, Verdict.DENIED),
        (None, ApprovalPolicy(DENY), ProposedTool("c-1", tool_permission=ALLOW), Verdict.DENIED),
        # Else the tool's own setting, its server's.
        (None, rule("*", ASK), ProposedTool("c-1", tool_permission=ALLOW), Verdict.GRANTED),
        (None, rule("*", ALLOW), ProposedTool("c-1", server_permission=ASK), Verdict.ASK),
        # Of all rules that match the strictest, whosever it is.
        (rule("pay", ALLOW), rule("p*", ASK), PAY, Verdict.ASK),
        (rule("p*", ASK), rule("pay", ALLOW), PAY, Verdict.ASK),
        # A rule of either goes before the default of either.
        (rule("pay", ALLOW), ApprovalPolicy(ASK), PAY, Verdict.GRANTED),
        # Of both defaults the stricter.
        (ApprovalPolicy(ALLOW), ApprovalPolicy(ASK), PAY, Verdict.ASK),
        (ApprovalPolicy(ASK), ApprovalPolicy(ALLOW), PAY, Verdict.ASK),
        (ApprovalPolicy(ALLOW), ApprovalPolicy(Permission.ALLOW_READS), PAY, Verdict.ASK),
        (
            ApprovalPolicy(Permission.ALLOW_READS),
            ApprovalPolicy(ALLOW),
            ProposedTool("c-1", read_only=True),
            Verdict.GRANTED,
        ),
        (None, rule("other", DENY), PAY, Verdict.GRANTED),
        # What cannot be understood asks.
        (None, ApprovalPolicy(ALLOW, (PolicyRule("pay", None),)), PAY, Verdict.ASK),
    ],
)
def test_A1_both_policies_are_judged_as_one(
    session: ApprovalPolicy | None,
    of_operator: ApprovalPolicy,
    tool: ProposedTool,
    verdict: Verdict,
) -> None:
    chat, run_id = started(operator(of_operator), session)
    chat.step(run_id, server_call("c-1", "pay"))
    assert chat.propose(run_id, tool) == [verdict]
    assert len(chat.events_of(ToolStarted)) == (verdict is Verdict.GRANTED)


def test_R7_a_run_goes_on_with_the_policy_that_it_was_started_with() -> None:
    """One that asks stays so, though today nothing asks; the next run is started with today's."""
    chat, run_id = started(ASKS)
    chat.operator_policy = None
    chat.step(run_id, server_call("c-1", "pay"))
    assert chat.propose(run_id, PAY) == [Verdict.ASK]
    chat.park(run_id, PAY)
    chat.decide(chat.interaction("c-1").id, approve=False)
    chat.complete(run_id)
    second = chat.start("again")
    chat.step(second, server_call("c-2", "pay"))
    assert chat.propose(second, ProposedTool("c-2")) == [Verdict.GRANTED]


@pytest.mark.parametrize("today", [ApprovalPolicy(ASK), rule("pay", ASK)])
def test_R7_what_only_asks_today_does_not_reach_a_run_from_before(today: ApprovalPolicy) -> None:
    chat, run_id = started()
    chat.operator_policy = operator(today)
    chat.step(run_id, server_call("c-1", "pay"))
    assert chat.propose(run_id, PAY) == [Verdict.GRANTED]


def test_R7_forks_and_retries_keep_the_policy_of_their_origin() -> None:
    """A regeneration is a fresh run: it is started with today's."""
    chat, run_id = started(ASKS)
    assert ASKS is not None
    chat.operator_policy = DENIES_PAY
    chat.ask(run_id, form("c-1"))
    fork = chat.settle(chat.interaction("c-1").id, VISBY).run_id
    beside = chat.settle(chat.interaction("c-1").id, LUND, by="ben", run=run_id).run_id
    chat.step(fork, server_call("c-2", "look_up"))
    assert chat.propose(fork, ProposedTool("c-2")) == [Verdict.ASK]
    chat.fail(fork)
    retry, _ = chat.retry(fork)
    assert {chat.run(r).operator_policy_id for r in (fork, beside, retry)} == {ASKS.id}
    afresh, _ = chat.regenerate(retry)
    assert DENIES_PAY is not None
    assert chat.run(afresh).operator_policy_id == DENIES_PAY.id


def test_R7_an_approved_call_that_the_operator_denies_today_gets_denied_and_the_run_goes_on() -> (
    None
):
    """Scenario 17: the deny comes after the question, the approval after the deny."""
    chat, run_id = asked_for_payment()
    chat.operator_policy = DENIES_PAY
    assert chat.open_calls() == ["c-1"], "the question stays open"
    chat.decide(chat.interaction("c-1").id)
    assert chat.propose(run_id, ProposedTool("c-1", tool_permission=ASK)) == [Verdict.DENIED]
    assert chat.results()["c-1"].kind is ResultKind.DENIED
    assert not chat.events_of(ToolStarted)
    chat.complete(run_id)


def test_R7_a_deny_that_was_taken_back_in_time_denies_nothing() -> None:
    chat, run_id = asked_for_payment()
    chat.operator_policy = DENIES_PAY
    chat.decide(chat.interaction("c-1").id)
    chat.operator_policy = None
    assert chat.propose(run_id, ProposedTool("c-1", tool_permission=ASK)) == [Verdict.GRANTED]


def test_R7_a_deny_between_the_verdict_and_the_park() -> None:
    """The runner was told to ask, or to wait: it parks rightly, and is told `denied` at once."""
    chat, run_id = started()
    ask = ProposedTool("c-1", tool_permission=ASK)
    later = ProposedTool("c-2", after_answers=True)
    chat.step(run_id, server_call("c-1", "pay"), server_call("c-2", "pay"))
    assert chat.propose(run_id, ask, later) == [Verdict.ASK, Verdict.DEFERRED]
    chat.operator_policy = DENIES_PAY
    chat.park(run_id, ask, later)
    assert {r.kind for r in chat.results().values()} == {ResultKind.DENIED}
    assert chat.run(run_id).state is RunState.PENDING
    chat.complete(run_id)


def test_R7_a_deferred_call_is_denied_when_its_time_comes() -> None:
    chat, run_id = started()
    later = ProposedTool("c-2", after_answers=True)
    chat.step(run_id, form("c-1"), server_call("c-2", "pay"))
    assert chat.propose(run_id, later) == [Verdict.DEFERRED]
    chat.park(run_id, later)
    fork = chat.settle(chat.interaction("c-1").id, VISBY).run_id
    chat.operator_policy = DENIES_PAY
    assert chat.propose(fork, later) == [Verdict.DENIED]


def test_R7_a_grant_does_not_pass_a_deny_of_today() -> None:
    chat, run_id = asked_for_payment()
    chat.decide(chat.interaction("c-1").id)
    chat.propose(run_id, ProposedTool("c-1", tool_permission=ASK))
    chat.report(run_id, tool_result("c-1"))
    chat.complete(run_id)
    chat.operator_policy = DENIES_PAY
    second = chat.start("again")
    chat.step(second, server_call("c-2", "pay"))
    assert chat.propose(second, ProposedTool("c-2", tool_permission=ASK)) == [Verdict.DENIED]


def test_S1_a_recorded_result_is_reused_whatever_is_denied_today() -> None:
    """What was started is no start any more: the other fork gets its result."""
    chat, run_id = started()
    ask = ProposedTool("c-2", tool_permission=ASK)
    chat.step(run_id, form("c-1"), server_call("c-2", "pay"))
    chat.propose(run_id, ask)
    chat.park(run_id, ask)
    chat.decide(chat.interaction("c-2").id)
    first = chat.settle(chat.interaction("c-1").id, VISBY).run_id
    second = chat.settle(chat.interaction("c-1").id, LUND, by="ben", run=run_id).run_id
    assert chat.propose(first, ask) == [Verdict.GRANTED]
    chat.operator_policy = DENIES_PAY
    assert chat.propose(second, ask) == [Verdict.WAIT]
    chat.report(first, tool_result("c-2", '"paid"'))
    assert chat.propose(second, ask) == [Verdict.REUSE]
    assert chat.results(second)["c-2"].output_json == '"paid"'


def test_S1_a_restart_that_is_denied_today_leaves_the_outcome_unknown() -> None:
    """An idempotent tool was started before a crash: it may have had its effect."""
    chat, run_id = started()
    tool = ProposedTool("c-1", idempotent=True)
    chat.step(run_id, server_call("c-1", "pay"))
    chat.propose(run_id, tool)
    chat.lose(run_id)
    chat.operator_policy = DENIES_PAY
    assert chat.propose(run_id, tool) == [Verdict.DENIED]
    assert chat.results()["c-1"].kind is ResultKind.OUTCOME_UNKNOWN
    assert len(chat.events_of(ToolStarted)) == 1


def test_A1_of_client_tools_what_is_denied_today_parks_no_more_and_open_questions_stay() -> None:
    chat, run_id = started()
    chat.ask(run_id, client_call("c-1"))
    chat.operator_policy = operator(rule("pick_*", DENY))
    fork = chat.settle(chat.interaction("c-1").id, '"red"').run_id
    chat.step(fork, client_call("c-2"), form("c-3"))
    chat.park(fork)
    assert chat.open_calls() == ["c-3"]
    assert chat.results(fork)["c-2"].kind is ResultKind.DENIED


def test_A3_the_operators_scope_counts_and_the_stricter_wins() -> None:
    chat, run_id = started(operator(ApprovalPolicy(ASK, grant_scope=GrantScope.ONCE)))
    chat.step(run_id, server_call("c-1", "pay"))
    chat.propose(run_id, PAY)
    chat.park(run_id, PAY)
    assert chat.interaction("c-1").grant_scope is GrantScope.ONCE
    chat.decide(chat.interaction("c-1").id, scope=GrantScope.SESSION)
    assert not chat.grants(run_id)


def test_R7_a_policy_is_recorded_once_a_session_and_named_by_runs() -> None:
    """Its size is paid once, however many runs are started with it and however often it is back."""
    other = operator(rule("x", ALLOW))
    chat = Conversation(messages=(user("m-0", "hello"),), operator_policy=ASKS)
    chat.complete(chat.first_run)
    for policy in (ASKS, other, ASKS, None, other):
        chat.operator_policy = policy
        chat.complete(chat.start())
    recorded = [event.operator_policy for event in chat.events_of(OperatorPolicyRecorded)]
    assert recorded == [ASKS, other]
    assert ASKS is not None
    assert other is not None
    named = [event.run.operator_policy_id for event in chat.events_of(RunCreated)]
    assert named == [ASKS.id, ASKS.id, other.id, ASKS.id, "", other.id]


def test_A1_a_run_whose_policy_is_not_in_the_log_asks() -> None:
    chat, run_id = started()
    run = replace(chat.run(run_id), operator_policy_id="lost")
    decision = Decision(chat.state, chat.now, RUNNER, chat.mint)
    assert permission_for("pay", policy_for(decision, run)) is Allowed.ASK


def test_a_runner_is_shown_what_the_run_was_started_with() -> None:
    """R7: the session's and the operator's as one; today's denials come with the verdicts."""
    chat, run_id = started(operator(rule("pay", ASK)), ApprovalPolicy(Permission.ALLOW_READS))
    chat.operator_policy = DENIES_PAY
    shown = policy_of_start(chat.state, chat.run(run_id))
    assert shown == ApprovalPolicy(
        Permission.ALLOW_READS, (PolicyRule("pay", ASK),), GrantScope.SESSION
    )
    bare, run_id = started()
    assert policy_of_start(bare.state, bare.run(run_id)) is None
