"""The operator's policy as a file: strictly checked, told with its place, read again on SIGHUP."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from broker_service import policy_file
from broker_service.domain.model import (
    ApprovalPolicy,
    GrantScope,
    OperatorPolicy,
    Permission,
    PolicyRule,
)
from broker_service.policy_file import PolicyReload, operator_policy, read_policy
from turngate_serving.exit import StartError

FILE = """\
default = "allow_reads"
grant_scope = "once"

[[rules]]
pattern = "shell*"
permission = "deny"

[[rules]]
pattern = "look_up"
permission = "allow"
"""
POLICY = ApprovalPolicy(
    Permission.ALLOW_READS,
    (PolicyRule("shell*", Permission.DENY), PolicyRule("look_up", Permission.ALLOW)),
    GrantScope.ONCE,
)
DEADLINE_SECONDS = 10.0


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "policy.toml"
    path.write_text(FILE, encoding="utf-8")
    return path


def test_a_file_says_what_the_contract_says(file: Path) -> None:
    assert read_policy(file).policy == POLICY


def test_what_is_not_said_is_not_set(file: Path) -> None:
    file.write_text("")
    assert read_policy(file).policy == ApprovalPolicy()


def test_the_id_is_made_of_what_the_policy_says(file: Path) -> None:
    """Brokers that have read the same policy tell the same id, however it is written."""
    first = read_policy(file)
    file.write_text("# the same\n" + FILE.replace('"shell*"', "'shell*'"))
    assert read_policy(file) == first
    file.write_text(FILE.replace("deny", "ask"))
    assert read_policy(file).id != first.id
    assert operator_policy(POLICY) == first


@pytest.mark.parametrize(
    ("text", "place", "told"),
    [
        (FILE.replace('"deny"', '"denied"'), ":6: rules[0].permission", "'deny'"),
        (FILE.replace('"look_up"', "7"), ":9: rules[1].pattern", "string"),
        (FILE.replace('pattern = "look_up"\n', ""), ":8: rules[1].pattern", "required"),
        (FILE.replace('"look_up"', '""'), ":9: rules[1].pattern", "at least 1"),
        (FILE.replace("look_up", "x" * 129), ":9: rules[1].pattern", "at most 128"),
        ('defualt = "deny"\n' + FILE, ":1: defualt", "not permitted"),
        (FILE.replace("once", "weekly"), ":2: grant_scope", "'session'"),
        (FILE + 'agent = "x"\n', ":11: rules[1].agent", "not permitted"),
        ("rules = 7", ":1: rules", "list"),
        ("default = deny", "", "line 1"),
        ('[[rules]]\npattern = "x"\npermission = "ask"\n' * 201, ": rules", "at most 200"),
    ],
)
def test_A1_a_broken_file_is_refused_with_its_place(
    file: Path, text: str, place: str, told: str
) -> None:
    file.write_text(text)
    with pytest.raises(StartError) as refused:
        read_policy(file)
    assert str(refused.value).startswith(f"{file}{place}: ")
    assert told in str(refused.value)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StartError, match=r"cannot read .*nowhere\.toml: No such file"):
        read_policy(tmp_path / "nowhere.toml")


class Log:
    """What the reload has to say, as it comes."""

    def __init__(self) -> None:
        self._said: asyncio.Queue[tuple[str, str]] = asyncio.Queue()

    def info(self, event: str, *, policy_id: str) -> None:
        self._said.put_nowait(("info", policy_id))

    def warning(self, event: str) -> None:
        self._said.put_nowait(("warning", event))

    def error(self, event: str, *, problem: str) -> None:
        self._said.put_nowait(("error", problem))

    async def next(self) -> tuple[str, str]:
        async with asyncio.timeout(DEADLINE_SECONDS):
            return await self._said.get()


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    log = Log()
    monkeypatch.setattr(policy_file, "log", log)
    return log


def hang_up(file: Path, text: str) -> None:
    """The operator has written the file, and says so."""
    file.write_text(text)
    os.kill(os.getpid(), signal.SIGHUP)


async def test_R7_a_hangup_reads_the_file_again_and_a_broken_one_changes_nothing(
    file: Path, log: Log
) -> None:
    taken: list[OperatorPolicy] = []
    reload = PolicyReload(file, taken.append)
    reload.start()
    try:
        hang_up(file, 'default = "deny"')
        denies = operator_policy(ApprovalPolicy(Permission.DENY))
        assert await log.next() == ("info", denies.id)
        hang_up(file, 'default = "perhaps"')
        level, problem = await log.next()
        assert level == "error"
        assert problem.startswith(f"{file}:1: default: ")
        assert taken == [denies]
    finally:
        await reload.close()


async def test_a_hangup_without_a_file_changes_nothing(log: Log) -> None:
    """And ends nothing, as it would by default."""
    reload = PolicyReload(None, lambda policy: pytest.fail("nothing to take"))
    reload.start()
    try:
        os.kill(os.getpid(), signal.SIGHUP)
        assert (await log.next())[0] == "warning"
    finally:
        await reload.close()
