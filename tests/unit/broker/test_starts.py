"""Starts of server tools (A1, S1, R4): the runner proposes, the broker grants."""

from __future__ import annotations

import pytest

from broker_service.domain.decision import Decision
from broker_service.domain.events import RunCreated, ToolResultAdded, ToolStarted
from broker_service.domain.model import (
    ApprovalPolicy,
    Permission,
    PolicyRule,
    ProposedTool,
    ResultKind,
    Run,
    RunCause,
    RunState,
    SessionConfig,
    ToolCall,
    ToolResult,
)
from broker_service.domain.reports import Proposed, Resulted
from broker_service.domain.starts import Verdict
from tests.unit.broker.conversation import (
    DECLINED,
    LUND,
    VISBY,
    Conversation,
    client_call,
    connection,
    form,
    server_call,
    tool_result,
)
from turngate_core.errors import Reason

LATER = ProposedTool("c-2", after_answers=True)


def running(*calls: ToolCall, policy: ApprovalPolicy | None = None) -> tuple[Conversation, str]:
    """A run whose step with these calls has just been written."""
    chat = Conversation(SessionConfig(agent="travel", approval_policy=policy))
    run_id = chat.start()
    chat.step(run_id, *calls)
    return chat, run_id


def test_a_granted_start_is_durable_before_the_tool_runs() -> None:
    """S1, A1: the verdict comes with the event of the start."""
    chat, run_id = running(server_call("c-1"))
    (verdict,) = chat.verdicts(run_id, ProposedTool("c-1", idempotent=True))
    assert (verdict.verdict, verdict.result) == (Verdict.GRANTED, None)
    assert chat.events_of(ToolStarted) == [ToolStarted("c-1", run_id, 1, True)]


@pytest.mark.parametrize(
    ("policy", "tool", "verdict"),
    [
        (None, ProposedTool("c-1"), Verdict.GRANTED),
        (ApprovalPolicy(Permission.ASK), ProposedTool("c-1"), Verdict.ASK),
        (ApprovalPolicy(Permission.DENY), ProposedTool("c-1"), Verdict.DENIED),
        (ApprovalPolicy(Permission.ALLOW_READS), ProposedTool("c-1"), Verdict.ASK),
        (
            ApprovalPolicy(Permission.ALLOW_READS),
            ProposedTool("c-1", read_only=True),
            Verdict.GRANTED,
        ),
        # A DENY anywhere wins.
        (
            ApprovalPolicy(rules=(PolicyRule("look_*", Permission.DENY),)),
            ProposedTool("c-1", tool_permission=Permission.ALLOW),
            Verdict.DENIED,
        ),
        (
            None,
            ProposedTool(
                "c-1", tool_permission=Permission.ALLOW, server_permission=Permission.DENY
            ),
            Verdict.DENIED,
        ),
        # Else the tool's own setting, its server's, the strictest matching rule, the default.
        (
            ApprovalPolicy(Permission.ASK),
            ProposedTool("c-1", tool_permission=Permission.ALLOW),
            Verdict.GRANTED,
        ),
        (
            ApprovalPolicy(Permission.ALLOW),
            ProposedTool("c-1", server_permission=Permission.ASK),
            Verdict.ASK,
        ),
        (
            ApprovalPolicy(
                Permission.ASK,
                (PolicyRule("*", Permission.ALLOW), PolicyRule("look_up", Permission.ASK)),
            ),
            ProposedTool("c-1"),
            Verdict.ASK,
        ),
        # A policy that cannot be understood asks.
        (
            ApprovalPolicy(Permission.ALLOW, (PolicyRule("look_up", None),)),
            ProposedTool("c-1"),
            Verdict.ASK,
        ),
    ],
)
def test_policy(policy: ApprovalPolicy | None, tool: ProposedTool, verdict: Verdict) -> None:
    """A1."""
    chat, run_id = running(server_call("c-1"), policy=policy)
    assert chat.propose(run_id, tool) == [verdict]
    assert len(chat.events_of(ToolStarted)) == (verdict is Verdict.GRANTED)
    if verdict is Verdict.DENIED:
        assert chat.results()["c-1"].kind is ResultKind.DENIED


def test_of_a_policy_only_deny_applies_to_client_tools() -> None:
    """A1: a denied client call opens no question; the model is told; the others are asked."""
    rules = (PolicyRule("pick_*", Permission.DENY), PolicyRule("request_*", Permission.ASK))
    chat, run_id = running(client_call("c-1"), form("c-2"), policy=ApprovalPolicy(rules=rules))
    chat.park(run_id)
    assert chat.open_calls() == ["c-2"]
    assert chat.results()["c-1"].kind is ResultKind.DENIED
    alone, run_id = running(client_call("c-1"), policy=ApprovalPolicy(Permission.DENY))
    alone.park(run_id)
    assert alone.run(run_id).state is RunState.PENDING


def test_a_call_is_never_started_twice() -> None:
    """S1: a new attempt gets the recorded result, never a second start."""
    chat, run_id = running(server_call("c-1"), server_call("c-2"))
    chat.propose(run_id, ProposedTool("c-1"))
    chat.report(run_id, tool_result("c-1", '"once"'))
    chat.lose(run_id)
    first, second = chat.verdicts(run_id, ProposedTool("c-1"), ProposedTool("c-2"))
    assert first.verdict is Verdict.REUSE
    assert first.result is not None
    assert first.result.output_json == '"once"'
    assert second.verdict is Verdict.GRANTED
    assert [s.call_id for s in chat.events_of(ToolStarted)] == ["c-1", "c-2"]


def test_a_start_without_a_result_becomes_outcome_unknown_after_a_crash() -> None:
    """S1: told to the model, never silently repeated."""
    chat, run_id = running(server_call("c-1"), server_call("c-2"))
    chat.propose(run_id, ProposedTool("c-1"), ProposedTool("c-2"))
    chat.report(run_id, tool_result("c-2"))
    chat.lose(run_id)
    assert chat.results()["c-1"].kind is ResultKind.OUTCOME_UNKNOWN
    assert chat.results()["c-2"].kind is ResultKind.TOOL
    (verdict,) = chat.verdicts(run_id, ProposedTool("c-1"))
    assert verdict.verdict is Verdict.REUSE
    assert len(chat.events_of(ToolStarted)) == 2


def test_an_idempotent_tool_starts_again_after_a_crash() -> None:
    """S1: unless the tool is declared idempotent. It is not asked about again (A3)."""
    chat, run_id = running(server_call("c-1"))
    tool = ProposedTool("c-1", tool_permission=Permission.ASK, idempotent=True)
    chat.propose(run_id, tool)
    chat.park(run_id, tool)
    chat.decide(chat.interaction("c-1").id)
    assert chat.propose(run_id, tool) == [Verdict.GRANTED]
    chat.lose(run_id)
    assert "c-1" not in chat.results()
    assert chat.propose(run_id, tool) == [Verdict.GRANTED]
    assert [s.attempt for s in chat.events_of(ToolStarted)] == [2, 3]
    chat.report(run_id, tool_result("c-1"))
    chat.complete(run_id)


@pytest.mark.parametrize("idempotent", [False, True])
def test_an_attempt_gets_a_start_once(idempotent: bool) -> None:
    """S1: a proposal of a call that this attempt has been granted breaks the protocol."""
    chat, run_id = running(server_call("c-1"))
    tool = ProposedTool("c-1", idempotent=idempotent)
    chat.propose(run_id, tool)
    with chat.refused(Reason.PROTOCOL_VIOLATION):
        chat.propose(run_id, tool)


def test_a_call_stands_once_in_a_proposal() -> None:
    """A1: a verdict for each call, not two."""
    chat, run_id = running(server_call("c-1"))
    with chat.refused(Reason.PROTOCOL_VIOLATION):
        chat.propose(run_id, ProposedTool("c-1"), ProposedTool("c-1"))


@pytest.mark.parametrize("idempotent", [False, True])
def test_a_run_that_fails_leaves_no_start_without_an_outcome(idempotent: bool) -> None:
    """R6, S1: a start without a result is `outcome_unknown`, on the ledger too, so that no other
    run ever waits for it."""
    chat, run_id = running(server_call("c-1"), server_call("c-2"))
    chat.propose(run_id, ProposedTool("c-1", idempotent=idempotent))
    chat.fail(run_id)
    assert chat.state.calls["c-1"].result is not None
    assert chat.results()["c-1"].kind is ResultKind.OUTCOME_UNKNOWN
    assert chat.results()["c-2"].kind is ResultKind.RUN_FAILED


def test_tools_after_answers_wait_for_the_questions_of_the_step() -> None:
    """R4: deferred while a question is open, then granted."""
    chat, run_id = running(form("c-1"), server_call("c-2"))
    assert chat.propose(run_id, LATER) == [Verdict.DEFERRED]
    chat.park(run_id, LATER)
    assert chat.open_calls() == ["c-1"]
    fork = chat.settle(chat.interaction("c-1").id, VISBY).run_id
    assert chat.propose(fork, LATER) == [Verdict.GRANTED]


@pytest.mark.parametrize(
    ("tool", "verdict"),
    [
        (ProposedTool("c-2", destructive=True), Verdict.DEFERRED),
        (ProposedTool("c-2", destructive=True, after_answers=False), Verdict.GRANTED),
        (ProposedTool("c-2"), Verdict.GRANTED),
    ],
)
def test_destructive_tools_run_after_answers_by_default(
    tool: ProposedTool, verdict: Verdict
) -> None:
    """R4."""
    chat, run_id = running(form("c-1"), server_call("c-2"))
    assert chat.propose(run_id, tool) == [verdict]


def test_an_approval_of_another_call_defers_too() -> None:
    """R4: the order of the calls does not matter; and nothing is deferred by itself."""
    chat, run_id = running(server_call("c-2"), server_call("c-3"))
    ask = ProposedTool("c-3", tool_permission=Permission.ASK)
    assert chat.propose(run_id, LATER, ask) == [Verdict.DEFERRED, Verdict.ASK]
    chat.park(run_id, LATER, ask)
    chat.decide(chat.interaction("c-3").id)
    assert chat.propose(run_id, LATER, ask) == [Verdict.GRANTED, Verdict.GRANTED]
    alone, run_id = running(server_call("c-2"))
    assert alone.propose(run_id, LATER) == [Verdict.GRANTED]


@pytest.mark.parametrize(
    ("call", "output"),
    [
        (form("c-1"), DECLINED),
        (form("c-1"), '{"action":"cancel"}'),
        (connection("c-1"), '{"connected":false,"integration":"bank","reason":"declined"}'),
    ],
)
def test_a_declined_question_denies_what_was_to_run_after_it(call: ToolCall, output: str) -> None:
    """R4, B1, B2."""
    chat, run_id = running(call, server_call("c-2"))
    chat.propose(run_id, LATER)
    chat.park(run_id, LATER)
    fork = chat.settle(chat.interaction("c-1").id, output).run_id
    (verdict,) = chat.verdicts(fork, LATER)
    assert verdict.verdict is Verdict.DENIED
    assert chat.results()["c-2"].kind is ResultKind.DENIED
    assert chat.events_of(ToolStarted) == []


def test_a_denied_approval_denies_what_was_to_run_after_it() -> None:
    """R4: but a denial by the policy, which nobody was asked about, does not."""
    ask = ProposedTool("c-1", tool_permission=Permission.ASK)
    chat, run_id = running(server_call("c-1"), server_call("c-2"))
    chat.propose(run_id, ask, LATER)
    chat.park(run_id, ask, LATER)
    chat.decide(chat.interaction("c-1").id, approve=False)
    assert chat.propose(run_id, LATER) == [Verdict.DENIED]
    other, run_id = running(server_call("c-1"), server_call("c-2"))
    deny = ProposedTool("c-1", tool_permission=Permission.DENY)
    assert other.propose(run_id, deny, LATER) == [Verdict.DENIED, Verdict.GRANTED]


@pytest.mark.parametrize("output", ['{"action":"decline"}', '{"connected":false}', "false"])
def test_only_built_in_tools_are_declined_by_their_output(output: str) -> None:
    """R4, X4: what an output says is never read from the text of other tools."""
    chat, run_id = running(client_call("c-1"), server_call("c-2"))
    chat.propose(run_id, LATER)
    chat.park(run_id, LATER)
    fork = chat.settle(chat.interaction("c-1").id, output).run_id
    assert chat.propose(fork, LATER) == [Verdict.GRANTED]


def test_verdicts_come_in_the_order_of_the_proposals() -> None:
    """A1: one for each, whatever is judged last."""
    chat, run_id = running(server_call("c-2"), server_call("c-3"), form("c-4"))
    verdicts = chat.verdicts(run_id, LATER, ProposedTool("c-3"))
    assert [(v.call_id, v.verdict) for v in verdicts] == [
        ("c-2", Verdict.DEFERRED),
        ("c-3", Verdict.GRANTED),
    ]


def test_one_result_a_call_however_often_it_is_reported() -> None:
    """T4: the first one stays."""
    chat, run_id = running(server_call("c-1"))
    chat.propose(run_id, ProposedTool("c-1"))
    chat.report(run_id, tool_result("c-1", "1"), tool_result("c-1", "2"))
    chat.report(run_id, tool_result("c-1", "3"))
    assert chat.results()["c-1"].output_json == "1"
    assert len(chat.events_of(ToolResultAdded)) == 1


def test_a_result_that_a_runner_reports_is_no_clients_answer() -> None:
    """T1, S1: what it says about answers and interactions is not taken over."""
    chat, run_id = running(server_call("c-1"))
    chat.propose(run_id, ProposedTool("c-1"))
    forged = ToolResult(
        "c-1", output_json="1", kind=ResultKind.TOOL, interaction_id="int_9", answer_id="ans_9"
    )
    chat.report(run_id, Resulted(forged))
    (added,) = chat.events_of(ToolResultAdded)
    assert (added.result.interaction_id, added.result.answer_id) == ("", "")
    assert chat.state.calls["c-1"].result == added.result
    assert chat.state.answer_digests == {}


def test_results_without_a_grant_are_refused() -> None:
    """A1, S1: a tool that nobody granted has not run."""
    chat, run_id = running(server_call("c-1"), form("c-2"))
    for result in (tool_result("c-1"), tool_result("c-2")):
        with chat.refused(Reason.PROTOCOL_VIOLATION):
            chat.report(run_id, result)
    ask = ProposedTool("c-1", tool_permission=Permission.ASK)
    chat.report(run_id, Proposed((ask,)))
    with chat.refused(Reason.PROTOCOL_VIOLATION):
        chat.report(run_id, tool_result("c-1"))


def test_a_call_that_the_runner_refuses_goes_back_to_the_model() -> None:
    """R4: arguments that do not fit and tools that were not offered never park."""
    chat, run_id = running(server_call("c-1"), client_call("c-2"))
    for call_id in ("c-1", "c-2"):
        refused = ToolResult(call_id, error_text="no such tool", kind=ResultKind.CALL_REFUSED)
        chat.report(run_id, Resulted(refused))
    assert [r.kind for r in chat.results().values()] == [ResultKind.CALL_REFUSED] * 2
    chat.complete(run_id)
    assert chat.run(run_id).state is RunState.COMPLETED


def test_of_two_tools_after_answers_one_that_asks_defers_the_other() -> None:
    """R4: a question of the step is a question, whenever its own tool would run."""
    chat, run_id = running(server_call("c-1"), server_call("c-2"))
    ask = ProposedTool("c-1", tool_permission=Permission.ASK, after_answers=True)
    assert chat.propose(run_id, ask, LATER) == [Verdict.ASK, Verdict.DEFERRED]
    chat.park(run_id, ask, LATER)
    assert chat.open_calls() == ["c-1"]
    chat.decide(chat.interaction("c-1").id)
    assert chat.propose(run_id, ask, LATER) == [Verdict.GRANTED, Verdict.GRANTED]


# --- two runs at one step: what a second answer will open (F5), made by hand here ---


def two_forks(*, idempotent: bool = False) -> tuple[Conversation, str, str, ProposedTool]:
    """Scenario 15: a form and an approved payment; the form is answered by two clients."""
    pay = ProposedTool("c-pay", tool_permission=Permission.ASK, idempotent=idempotent)
    chat, run_id = running(form("c-1"), server_call("c-pay"))
    chat.propose(run_id, pay)
    chat.park(run_id, pay)
    chat.decide(chat.interaction("c-pay").id)
    first = chat.settle(chat.interaction("c-1").id, VISBY).run_id
    second = chat.mint("run")
    origin = chat.run(run_id)

    def answer_again(decision: Decision) -> None:
        fork = Run(
            id=second,
            prompt_id=origin.prompt_id,
            state=RunState.PENDING,
            cause=RunCause.SECOND_ANSWER,
            origin_run_id=run_id,
            supersedes_run_id=run_id,
            agent=origin.agent,
            create_time=decision.now,
        )
        decision.emit(RunCreated(fork, origin_through_message_id=origin.step_message_id))
        result = ToolResult("c-1", output_json=LUND, kind=ResultKind.CLIENT, answer_id="ans_b")
        decision.emit(ToolResultAdded(second, result))

    chat.act(answer_again)
    return chat, first, second, pay


@pytest.mark.parametrize("idempotent", [False, True])
def test_scenario_15_one_approval_one_effect(idempotent: bool) -> None:
    """S1, A3: the first run to reach the call starts it; another waits, then takes its result."""
    chat, first, second, pay = two_forks(idempotent=idempotent)
    assert chat.state.selected == first, "F5: the first answer keeps the branch"
    assert chat.propose(second, pay) == [Verdict.GRANTED]
    assert chat.propose(first, pay) == [Verdict.WAIT]
    chat.report(second, tool_result("c-pay", '"paid"'))
    (verdict,) = chat.verdicts(first, pay)
    assert verdict.verdict is Verdict.REUSE
    assert verdict.result is not None
    assert verdict.result.output_json == '"paid"'
    assert len(chat.events_of(ToolStarted)) == 1
    assert chat.events_of(ToolResultAdded)[-1].same_as_run_id == second
    for run_id, city in ((first, VISBY), (second, LUND)):
        assert chat.results(run_id)["c-pay"].output_json == '"paid"'
        assert chat.results(run_id)["c-1"].output_json == city
        chat.complete(run_id)


@pytest.mark.parametrize("end", ["lost", "failed"])
def test_scenario_15_the_starter_is_killed_in_the_middle(end: str) -> None:
    """S1: the other run learns that the outcome is unknown; it never starts the call again."""
    chat, first, second, pay = two_forks()
    chat.propose(first, pay)
    if end == "lost":
        chat.lose(first)
    else:
        chat.fail(first)
    (verdict,) = chat.verdicts(second, pay)
    assert verdict.verdict is Verdict.REUSE
    assert verdict.result is not None
    assert verdict.result.kind is ResultKind.OUTCOME_UNKNOWN
    assert len(chat.events_of(ToolStarted)) == 1
    chat.complete(second)


def test_scenario_15_the_runner_is_killed_after_the_payment_while_another_tool_runs() -> None:
    """S1, R3: the payment's result is reused, the other call's outcome is unknown."""
    chat, run_id = running(server_call("c-pay"), server_call("c-2"))
    chat.propose(run_id, ProposedTool("c-pay"), ProposedTool("c-2"))
    chat.report(run_id, tool_result("c-pay", '"paid"'))
    chat.lose(run_id)
    chat.complete(run_id)
    assert {call: result.kind for call, result in chat.results().items()} == {
        "c-pay": ResultKind.TOOL,
        "c-2": ResultKind.OUTCOME_UNKNOWN,
    }
    assert len(chat.events_of(ToolStarted)) == 2


def test_a_shared_result_is_read_after_both_runs_have_gone_on() -> None:
    """S1, F3: a transcript finds the run that holds the outcome, however far both have come."""
    chat, first, second, pay = two_forks()
    chat.propose(second, pay)
    chat.report(second, tool_result("c-pay", '"paid"'))
    chat.propose(first, pay)
    chat.step(second)
    chat.step(first)
    assert chat.results(first)["c-pay"].output_json == '"paid"'
    chat.ask(first, form("c-3"))
    fork = chat.settle(chat.interaction("c-3").id, VISBY).run_id
    assert chat.results(fork)["c-pay"].output_json == '"paid"'
