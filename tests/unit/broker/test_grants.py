"""Grants: what an approval covers beyond its own call, and their revocation (A3, scenario 17)."""

from __future__ import annotations

import pytest

from broker_service.domain.events import GrantRevoked
from broker_service.domain.model import (
    ApprovalPolicy,
    GrantScope,
    Permission,
    PolicyRule,
    ProposedTool,
    SessionConfig,
    ToolCall,
)
from broker_service.domain.starts import Verdict
from tests.unit.broker.conversation import Conversation, server_call, tool_result
from turngate_core.errors import Reason


def asking(call_id: str, *, destructive: bool = False) -> ProposedTool:
    return ProposedTool(call_id, tool_permission=Permission.ASK, destructive=destructive)


def approved(
    arguments: str = "{}",
    *,
    scope: GrantScope | None = None,
    destructive: bool = False,
    ran: bool = True,
    config: SessionConfig | None = None,
) -> tuple[Conversation, str]:
    """A turn in which a call was approved; and its grant's id."""
    chat = Conversation(config)
    run_id = chat.start()
    tool = asking("c-1", destructive=destructive)
    chat.step(run_id, server_call("c-1", "pay", arguments))
    chat.propose(run_id, tool)
    chat.park(run_id, tool)
    chat.decide(chat.interaction("c-1").id, scope=scope)
    if ran:
        chat.propose(run_id, tool)
        chat.report(run_id, tool_result("c-1"))
        chat.complete(run_id)
    else:
        chat.cancel(run_id)
    return chat, chat.interaction("c-1").id


def again(chat: Conversation, call: ToolCall, run_id: str = "") -> Verdict:
    run_id = run_id or chat.start("again")
    chat.step(run_id, call)
    [verdict] = chat.propose(run_id, asking(call.call_id))
    return verdict


@pytest.mark.parametrize(
    ("first", "later", "verdict"),
    [
        ('{"n":9007199254740993}', '{"n":9007199254740993}', Verdict.GRANTED),
        ('{"n":9007199254740993}', '{"n":9007199254740992}', Verdict.ASK),
        ('{"n":9007199254740993}', '{"n":9007199254740994}', Verdict.ASK),
        ('{"n":1e400}', '{"n":1e401}', Verdict.ASK),
        ('{"n":1.0}', '{"n":1}', Verdict.GRANTED),
        ('{"a":1,"b":2}', '{ "b": 2, "a": 1 }', Verdict.GRANTED),
        ('{"to":["a","b"]}', '{"to":["b","a"]}', Verdict.ASK),
        ('{"to":{"a":1}}', '{"to":"{\\"a\\":1}"}', Verdict.ASK),
        ('{"a":null}', "{}", Verdict.ASK),
        ("", "{}", Verdict.GRANTED),
    ],
)
def test_identical_means_canonical_arguments_without_unwrapping(
    first: str, later: str, verdict: Verdict
) -> None:
    """A3, scenario 17: other integers beyond 2^53, another array order, a string that spells it."""
    chat, _ = approved(first)
    assert again(chat, server_call("c-2", "pay", later)) is verdict


def test_a_grant_is_listed_and_says_whether_it_reaches_others_yet() -> None:
    """A3: once its own call was started."""
    chat = Conversation()
    run_id = chat.start()
    chat.step(run_id, server_call("c-1", "pay", '{"n":1}'))
    chat.propose(run_id, asking("c-1"))
    chat.park(run_id, asking("c-1"))
    assert chat.grants() == []
    chat.decide(chat.interaction("c-1").id, by="ben")
    [grant] = chat.grants()
    assert (grant.granted_by, grant.tool_name, grant.arguments_json) == ("ben", "pay", '{"n":1}')
    assert not grant.effective
    chat.propose(run_id, asking("c-1"))
    assert [grant.effective for grant in chat.grants()] == [True]


def test_a_revoked_grant_reaches_nothing_more() -> None:
    """A3, scenario 17, C5: revoked once, OK twice; an unknown one is refused."""
    chat, grant = approved()
    assert again(chat, server_call("c-2", "pay")) is Verdict.GRANTED
    chat.report(chat.state.selected, tool_result("c-2"))
    chat.revoke(grant)
    chat.revoke(grant)
    assert len(chat.events_of(GrantRevoked)) == 1
    assert chat.grants() == []
    assert again(chat, server_call("c-3", "pay"), chat.state.selected) is Verdict.ASK
    with chat.refused(Reason.GRANT_NOT_FOUND):
        chat.revoke("grant-nowhere")


def test_revoking_does_not_take_back_the_decision_about_its_own_call() -> None:
    """A3: the decision belongs to its call; what was started stays started."""
    chat = Conversation()
    run_id = chat.start()
    chat.step(run_id, server_call("c-1", "pay"))
    chat.propose(run_id, asking("c-1"))
    chat.park(run_id, asking("c-1"))
    chat.decide(chat.interaction("c-1").id)
    chat.revoke(chat.interaction("c-1").id)
    assert chat.propose(run_id, asking("c-1")) == [Verdict.GRANTED]
    chat.report(run_id, tool_result("c-1"))
    assert again(chat, server_call("c-2", "pay"), run_id) is Verdict.ASK


@pytest.mark.parametrize("why", ["decision", "tool", "policy"])
def test_scope_once_is_no_grant(why: str) -> None:
    """A3, E3: by decision, by a destructive tool, by policy; the stricter wins."""
    policy = ApprovalPolicy(grant_scope=GrantScope.ONCE) if why == "policy" else None
    chat, grant = approved(
        scope=GrantScope.ONCE if why == "decision" else GrantScope.SESSION,
        destructive=why == "tool",
        config=SessionConfig(agent="travel", approval_policy=policy),
    )
    assert chat.grants() == []
    assert again(chat, server_call("c-2", "pay")) is Verdict.ASK
    with chat.refused(Reason.GRANT_NOT_FOUND):
        chat.revoke(grant)


def test_a_decision_dies_with_a_call_that_was_never_started() -> None:
    """A3, scenario 17: approved, then stopped before it ran."""
    chat, _ = approved(ran=False)
    assert again(chat, server_call("c-2", "pay")) is Verdict.ASK
    assert [grant.effective for grant in chat.grants()] == [False]


def test_a_grant_counts_on_branches_that_have_its_call() -> None:
    """A3: over the full history of the branch; an edit before it has it not, one after it has."""
    chat, _ = approved()
    after = chat.start("turn 2")
    chat.complete(after)
    edited_after = chat.edit(chat.run(after).prompt_id, "turn 2, better").run_id
    assert again(chat, server_call("c-2", "pay"), edited_after) is Verdict.GRANTED
    before = next(iter(chat.state.prompts))
    chat.report(edited_after, tool_result("c-2"))
    edited_before = chat.edit(before, "turn 1, better").run_id
    assert again(chat, server_call("c-3", "pay"), edited_before) is Verdict.ASK
    assert chat.grants() == []


def test_a_regenerated_run_does_not_inherit_the_grant_of_the_old_one() -> None:
    """A3: the approved call is not on its branch."""
    chat, _ = approved()
    created, _ = chat.regenerate(chat.state.selected)
    assert again(chat, server_call("c-2", "pay"), created) is Verdict.ASK


def test_a_deny_of_todays_policy_beats_a_grant() -> None:
    """A1, R7: a DENY anywhere wins."""
    rules = ApprovalPolicy(rules=(PolicyRule("forbidden", Permission.DENY),))
    chat, _ = approved(config=SessionConfig(agent="travel", approval_policy=rules))
    run_id = chat.start("again")
    chat.step(run_id, server_call("c-2", "pay"), server_call("c-3", "forbidden"))
    denied = ProposedTool("c-2", tool_permission=Permission.DENY)
    assert chat.propose(run_id, denied, asking("c-3")) == [Verdict.DENIED, Verdict.DENIED]


def test_many_approvals_of_the_same_call_are_one_permission() -> None:
    """A3: grants are idempotent; the last one that is left counts."""
    chat, first = approved()
    chat.revoke(first)
    run_id = chat.start("again")
    chat.step(run_id, server_call("c-2", "pay"))
    chat.propose(run_id, asking("c-2"))
    chat.park(run_id, asking("c-2"))
    chat.decide(chat.interaction("c-2").id)
    chat.propose(run_id, asking("c-2"))
    chat.report(run_id, tool_result("c-2"))
    assert again(chat, server_call("c-3", "pay"), run_id) is Verdict.GRANTED
