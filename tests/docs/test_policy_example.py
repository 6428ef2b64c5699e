"""The operator's policy in docs/operations.md is one."""

from __future__ import annotations

from pathlib import Path

from broker_service.domain.model import Permission
from broker_service.policy_file import read_policy
from tests.docs.pages import ROOT, blocks


def test_the_example_is_a_policy(tmp_path: Path) -> None:
    toml = blocks(ROOT / "docs/operations.md", "toml")
    [example] = [block for block in toml if block.info == "toml policy"]
    file = tmp_path / "policy.toml"
    file.write_text(example.body, encoding="utf-8")
    policy = read_policy(file).policy
    assert policy.default_permission is Permission.ASK
    assert [rule.permission for rule in policy.rules] == [Permission.DENY, Permission.ALLOW]
