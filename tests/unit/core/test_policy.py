"""A1: policy, and how far an approval reaches (A3)."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate_core.json_text import JsonValue, parse
from turngate_core.policy import (
    GrantScope,
    Permission,
    Policy,
    PolicyRule,
    Setting,
    denials,
    denies_client_tool,
    effective_destructive,
    effective_read_only,
    grant_scope_for,
    matches,
    permission_for,
    policy_from_json,
    setting_from_json,
    together,
)

ALLOW, ASK, DENY = Permission.ALLOW, Permission.ASK, Permission.DENY


def test_order_tool_then_server_then_rule_then_default() -> None:
    policy = Policy(Setting.ASK, (PolicyRule("pay", Setting.ALLOW),))
    assert permission_for("pay", policy) is ALLOW
    assert permission_for("other", policy) is ASK
    assert permission_for("pay", policy, server_setting=Setting.ASK) is ASK
    assert (
        permission_for("pay", policy, tool_setting=Setting.ALLOW, server_setting=Setting.ASK)
        is ALLOW
    )


@pytest.mark.parametrize("place", ["tool", "server", "rule", "default"])
def test_a_deny_anywhere_wins(place: str) -> None:
    rules = (
        PolicyRule("*", Setting.ALLOW),
        PolicyRule("p*", Setting.DENY if place == "rule" else Setting.ALLOW),
    )
    policy = Policy(Setting.DENY if place == "default" else Setting.ALLOW, rules)
    assert (
        permission_for(
            "pay",
            policy,
            tool_setting=Setting.DENY if place == "tool" else Setting.ALLOW,
            server_setting=Setting.DENY if place == "server" else Setting.ALLOW,
            read_only=True,
        )
        is DENY
    )


def test_the_strictest_matching_rule_counts_in_whatever_order() -> None:
    rules = [
        PolicyRule("pay", Setting.ALLOW),
        PolicyRule("p*", Setting.ASK),
        PolicyRule("x*", Setting.DENY),
    ]
    for order in itertools.permutations(rules):
        assert permission_for("pay", Policy(Setting.ALLOW, order)) is ASK


@pytest.mark.parametrize(("read_only", "permission"), [(True, ALLOW), (False, ASK)])
def test_allow_reads(read_only: bool, permission: Permission) -> None:
    for policy in (
        Policy(Setting.ALLOW_READS),
        Policy(Setting.ASK, (PolicyRule("*", Setting.ALLOW_READS),)),
    ):
        assert permission_for("read", policy, read_only=read_only) is permission


def test_hints_from_a_remote_server_can_only_tighten() -> None:
    assert not effective_read_only(declared=None, remote_hint=True)
    assert not effective_read_only(declared=True, remote_hint=False)
    assert effective_read_only(declared=True, remote_hint=None)
    assert effective_read_only(declared=True, remote_hint=True)
    assert effective_destructive(declared=False, remote_hint=True)
    assert effective_destructive(declared=True, remote_hint=False)
    assert not effective_destructive(declared=None, remote_hint=None)


@pytest.mark.parametrize(
    "text",
    [
        '"allow"',
        "[]",
        "7",
        "{}",
        "null",
        '{"default":"perhaps"}',
        '{"default":"ALLOW"}',
        '{"default":7}',
        '{"default":"allow","rules":"none"}',
        '{"default":"allow","rules":[7]}',
        '{"default":"allow","rules":[{"permission":"allow"}]}',
        '{"default":"allow","rules":[{"pattern":"pay"}]}',
        '{"default":"allow","rules":[{"pattern":"p*","permission":"perhaps"}]}',
        '{"default":"allow","rules":[{"pattern":"*"},{"pattern":"*","permission":"allow"}]}',
    ],
)
def test_a_policy_that_cannot_be_understood_asks(text: str) -> None:
    assert permission_for("pay", policy_from_json(parse(text)), read_only=True) is ASK


@pytest.mark.parametrize("text", ['"odd"', "[]", '{"default":"perhaps"}', '{"rules":[7]}'])
def test_what_is_not_understood_neither_hides_a_deny_nor_lets_others_allow(text: str) -> None:
    policy = policy_from_json(parse(text))
    assert permission_for("pay", policy, tool_setting=Setting.DENY) is DENY
    assert permission_for("pay", policy, tool_setting=Setting.ALLOW) is ASK


def test_a_rule_that_is_not_understood_concerns_what_it_matches() -> None:
    policy = policy_from_json(
        parse('{"default":"allow","rules":[{"pattern":"pay*","permission":"perhaps"}]}')
    )
    assert permission_for("read", policy) is ALLOW
    assert permission_for("pay_out", policy) is ASK


@pytest.mark.parametrize(
    ("value", "setting"),
    [
        (None, None),
        ("allow", Setting.ALLOW),
        ("allow_reads", Setting.ALLOW_READS),
        ("not_understood", Setting.NOT_UNDERSTOOD),
        ("maybe", Setting.NOT_UNDERSTOOD),
        (True, Setting.NOT_UNDERSTOOD),
    ],
)
def test_settings(value: JsonValue, setting: Setting | None) -> None:
    assert setting_from_json(value) is setting


@pytest.mark.parametrize(
    ("pattern", "tool", "does"),
    [
        ("pay", "pay", True),
        ("pay", "Pay", False),
        ("pay", "pay_out", False),
        ("*", "", True),
        ("*", "a:b/c d😀", True),
        ("p*y", "py", True),
        ("p*y", "pay", True),
        ("p*y", "pays", False),
        ("aa*aa", "aaa", False),
        ("*a*b*", "xaxbx", True),
        ("*a*b*", "xbxax", False),
        ("**", "x", True),
        ("p?y", "pay", False),
        ("[a-z]*", "pay", False),
        ("p.y", "pay", False),
        ("", "", True),
        ("", "x", False),
    ],
)
def test_patterns(pattern: str, tool: str, does: bool) -> None:
    assert matches(pattern, tool) is does


def _matches_naively(pattern: str, tool: str) -> bool:
    if not pattern:
        return not tool
    if pattern[0] == "*":
        return any(_matches_naively(pattern[1:], tool[i:]) for i in range(len(tool) + 1))
    return bool(tool) and tool[0] == pattern[0] and _matches_naively(pattern[1:], tool[1:])


@given(st.text("ab*", max_size=7), st.text("ab", max_size=7))
def test_patterns_agree_with_the_definition(pattern: str, tool: str) -> None:
    assert matches(pattern, tool) is _matches_naively(pattern, tool)


def test_of_a_policy_only_deny_applies_to_client_tools() -> None:
    for setting in (Setting.ALLOW, Setting.ASK, Setting.ALLOW_READS, Setting.NOT_UNDERSTOOD):
        assert not denies_client_tool("t", Policy(setting))
    assert denies_client_tool("t", Policy(Setting.DENY))
    assert denies_client_tool("t", Policy(Setting.ALLOW, (PolicyRule("t", Setting.DENY),)))


def test_a3_scope_stricter_wins_and_once_is_the_default_of_destructive_tools() -> None:
    once, session = GrantScope.ONCE, GrantScope.SESSION
    assert grant_scope_for(destructive=False, scopes=[None, None]) is session
    assert grant_scope_for(destructive=True, scopes=[None]) is once
    assert grant_scope_for(destructive=True, scopes=[session, None]) is session
    assert grant_scope_for(destructive=False, scopes=[session, once]) is once


SETTINGS = st.sampled_from(Setting)
POLICIES = st.builds(
    Policy,
    SETTINGS,
    st.lists(st.builds(PolicyRule, st.sampled_from(["pay", "p*", "x"]), SETTINGS), max_size=3).map(
        tuple
    ),
    st.booleans(),
)


@given(st.lists(POLICIES, max_size=3), st.none() | SETTINGS, st.booleans())
def test_policies_together_are_judged_as_one(
    policies: list[Policy], own: Setting | None, read_only: bool
) -> None:
    """A1: a `DENY` of any wins; else the tool's own setting, the strictest rule of any, and only
    where none has a rule the strictest default.
    """
    joined = permission_for("pay", together(*policies), tool_setting=own, read_only=read_only)
    alone = [permission_for("pay", p, tool_setting=own, read_only=read_only) for p in policies]
    if DENY in alone or own is Setting.DENY:
        assert joined is DENY
    elif any(p.has_unknown_rule or Setting.NOT_UNDERSTOOD in _heard(p) for p in policies):
        assert joined is ASK
    elif own is not None:
        assert joined is permission_for("pay", Policy(own), read_only=read_only)
    else:
        ruled = [p for p in policies if len(_heard(p)) > 1] or policies
        expected = [permission_for("pay", p, read_only=read_only) for p in ruled]
        assert joined is max(expected, key=[ALLOW, ASK, DENY].index, default=ALLOW)


def _heard(policy: Policy) -> list[Setting]:
    """The settings of a policy that speak about the tool `pay`."""
    return [policy.default, *(r.setting for r in policy.rules if matches(r.pattern, "pay"))]


@given(POLICIES, POLICIES, st.booleans())
def test_r7_of_todays_policy_only_the_denials_are_added(
    then: Policy, today: Policy, read_only: bool
) -> None:
    before = permission_for("pay", then, read_only=read_only)
    denied = permission_for("pay", today, read_only=read_only) is DENY
    now = permission_for("pay", together(then, denials(today)), read_only=read_only)
    assert now is (DENY if denied else before)
