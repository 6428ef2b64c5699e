"""May a server tool start (A1)? The policies, and what tool and server set for themselves."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from turngate_core.json_text import JsonValue


class Permission(StrEnum):
    """What a policy says about a call."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


class Setting(StrEnum):
    """A permission as it is configured.

    `ALLOW_READS` allows tools that only read and asks for all others. `NOT_UNDERSTOOD` stands for
    a value that this version does not know: it asks (A1), whatever else would allow.
    """

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"
    ALLOW_READS = "allow_reads"
    NOT_UNDERSTOOD = "not_understood"


class GrantScope(StrEnum):
    """How far an approval reaches (A3)."""

    ONCE = "once"
    SESSION = "session"


@dataclass(frozen=True, slots=True)
class PolicyRule:
    """`pattern`: the exact name of a tool, or with `*` for any number of any characters."""

    pattern: str
    setting: Setting


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy. `has_unknown_rule`: a rule is there of which not even the pattern is known.

    Any tool may be meant by such a rule, so that every tool asks.
    """

    default: Setting = Setting.ASK
    rules: tuple[PolicyRule, ...] = ()
    has_unknown_rule: bool = False


# What a policy is if nothing of it can be understood.
UNKNOWN_POLICY = Policy(default=Setting.NOT_UNDERSTOOD)

_STRICTNESS = (Permission.ALLOW, Permission.ASK, Permission.DENY)
_STRICTNESS_OF_SETTINGS = (
    Setting.ALLOW,
    Setting.ALLOW_READS,
    Setting.ASK,
    Setting.NOT_UNDERSTOOD,
    Setting.DENY,
)


def permission_for(
    tool: str,
    policy: Policy,
    *,
    tool_setting: Setting | None = None,
    server_setting: Setting | None = None,
    read_only: bool = False,
) -> Permission:
    """The permission for a call of a server tool (A1).

    A `DENY` anywhere wins. What is not understood asks. Else the tool's own setting counts, then
    its server's, then the strictest rule that matches, then the default.

    `read_only` as `effective_read_only` gives it: what only a remote server says allows nothing.
    """
    matching = [rule.setting for rule in policy.rules if matches(rule.pattern, tool)]
    settings = [tool_setting, server_setting, *matching, policy.default]
    if Setting.DENY in settings:
        return Permission.DENY
    if policy.has_unknown_rule or Setting.NOT_UNDERSTOOD in settings:
        return Permission.ASK
    if tool_setting is not None:
        return _permission(tool_setting, read_only)
    if server_setting is not None:
        return _permission(server_setting, read_only)
    if matching:
        return strictest(_permission(setting, read_only) for setting in matching)
    return _permission(policy.default, read_only)


def denies_client_tool(tool: str, policy: Policy, *, tool_setting: Setting | None = None) -> bool:
    """Of a policy only `DENY` applies to client tools: they never need an approval (A1)."""
    return permission_for(tool, policy, tool_setting=tool_setting) is Permission.DENY


def together(*policies: Policy) -> Policy:
    """Several policies as one (A1): all their rules, and of their defaults the strictest.

    So a `DENY` of any of them wins, and of all rules that match a tool the strictest counts,
    whosever it is. None at all: `ALLOW`.
    """
    return Policy(
        default=max(
            (policy.default for policy in policies),
            key=_STRICTNESS_OF_SETTINGS.index,
            default=Setting.ALLOW,
        ),
        rules=tuple(rule for policy in policies for rule in policy.rules),
        has_unknown_rule=any(policy.has_unknown_rule for policy in policies),
    )


def denials(policy: Policy) -> Policy:
    """What a policy denies, and nothing else of it: today's word on runs that began before (R7)."""
    return Policy(
        default=Setting.DENY if policy.default is Setting.DENY else Setting.ALLOW,
        rules=tuple(rule for rule in policy.rules if rule.setting is Setting.DENY),
    )


def strictest(permissions: Iterable[Permission]) -> Permission:
    """The strictest of some permissions; `ALLOW` if there are none."""
    return max(permissions, key=_STRICTNESS.index, default=Permission.ALLOW)


def effective_read_only(*, declared: bool | None, remote_hint: bool | None) -> bool:
    """Hints from a remote tool server can only tighten (A1).

    `declared`: what the operator or the agent says; a remote server can take it back, not give it.
    """
    return declared is True and remote_hint is not False


def effective_destructive(*, declared: bool | None, remote_hint: bool | None) -> bool:
    """A tool is destructive if anybody says so: a hint can only tighten (A1)."""
    return declared is True or remote_hint is True


def grant_scope_for(*, destructive: bool, scopes: Iterable[GrantScope | None]) -> GrantScope:
    """The scope of an approval (A3): of tool, policy and decision the stricter wins.

    Where none of them says anything: `ONCE` for destructive tools, else `SESSION`.
    """
    said = [scope for scope in scopes if scope is not None]
    if not said:
        return GrantScope.ONCE if destructive else GrantScope.SESSION
    return GrantScope.ONCE if GrantScope.ONCE in said else GrantScope.SESSION


def matches(pattern: str, tool: str) -> bool:
    """True if the pattern names the tool; only `*` is special, case counts."""
    first, *rest = pattern.split("*")
    if not rest:
        return pattern == tool
    *middle, last = rest
    if len(tool) < len(first) + len(last):
        return False
    if not (tool.startswith(first) and tool.endswith(last)):
        return False
    # Piece by piece, each as early as it can be: linear, unlike a regular expression.
    offset, end = len(first), len(tool) - len(last)
    for piece in middle:
        found = tool.find(piece, offset, end)
        if found < 0:
            return False
        offset = found + len(piece)
    return True


def setting_from_json(value: JsonValue) -> Setting | None:
    """A setting as it stands in JSON: `None` for null, `NOT_UNDERSTOOD` for what is unknown."""
    if value is None:
        return None
    if isinstance(value, str) and value in _SETTINGS:
        return Setting(value)
    return Setting.NOT_UNDERSTOOD


def policy_from_json(value: JsonValue) -> Policy:
    """A policy as it stands in JSON: `{default?, rules?: [{pattern, permission}]}`.

    Never raises: what cannot be understood is kept as such, and asks (A1).
    """
    if value is None:
        return Policy()
    if not isinstance(value, dict):
        return UNKNOWN_POLICY
    rules_value = value.get("rules")
    rules: list[PolicyRule] = []
    has_unknown_rule = False
    if isinstance(rules_value, list):
        for item in rules_value:
            rule = _rule_from_json(item)
            if rule is None:
                has_unknown_rule = True
            else:
                rules.append(rule)
    elif rules_value is not None:
        has_unknown_rule = True
    default = setting_from_json(value.get("default")) or Setting.ASK
    return Policy(default, tuple(rules), has_unknown_rule)


_SETTINGS = frozenset({Setting.ALLOW, Setting.ASK, Setting.DENY, Setting.ALLOW_READS})


def _rule_from_json(value: JsonValue) -> PolicyRule | None:
    if not isinstance(value, dict):
        return None
    pattern = value.get("pattern")
    if not isinstance(pattern, str):
        return None
    setting = setting_from_json(value.get("permission")) or Setting.NOT_UNDERSTOOD
    return PolicyRule(pattern, setting)


def _permission(setting: Setting, read_only: bool) -> Permission:
    match setting:
        case Setting.ALLOW:
            return Permission.ALLOW
        case Setting.DENY:
            return Permission.DENY
        case Setting.ALLOW_READS:
            return Permission.ALLOW if read_only else Permission.ASK
        case Setting.ASK | Setting.NOT_UNDERSTOOD:
            return Permission.ASK
