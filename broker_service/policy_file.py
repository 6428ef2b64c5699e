"""The operator's policy (A1, R7): a TOML file, read at the start and again on SIGHUP.

```toml
default = "ask"
grant_scope = "once"

[[rules]]
pattern = "shell*"
permission = "deny"
```
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import signal
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

import structlog
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from broker_service.domain.model import (
    ApprovalPolicy,
    GrantScope,
    OperatorPolicy,
    Permission,
    PolicyRule,
)
from broker_service.encoding import to_proto

log = structlog.stdlib.get_logger(__name__)

PermissionName = Literal["allow", "ask", "deny", "allow_reads"]


class PolicyFileError(ValueError):
    """A file that is no policy; the text says where and why."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class _Rule(_Strict):
    pattern: Annotated[str, Field(min_length=1, max_length=128)]
    permission: PermissionName


class _File(_Strict):
    default: PermissionName | None = None
    grant_scope: Literal["session", "once"] | None = None
    # A list in TOML; strict would refuse it as a tuple.
    rules: Annotated[list[_Rule], Field(max_length=200)] = []


def read_policy(path: Path) -> OperatorPolicy:
    """The policy of a file. Raises PolicyFileError with the place of what is wrong."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise PolicyFileError(f"cannot read the policy {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise PolicyFileError(f"cannot read the policy {path}: it is no UTF-8 text") from error
    try:
        given = _File.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise PolicyFileError(f"{path}: {error}") from error
    except ValidationError as error:
        problems = [
            f"{_place(path, text, problem['loc'])}: {problem['msg']}"
            for problem in error.errors(include_input=False, include_url=False)
        ]
        raise PolicyFileError("; ".join(problems)) from error
    return operator_policy(_policy(given))


def operator_policy(policy: ApprovalPolicy) -> OperatorPolicy:
    """With the id that this policy has at every broker."""
    said = to_proto(policy).SerializeToString(deterministic=True)
    return OperatorPolicy(hashlib.blake2b(said, digest_size=8).hexdigest(), policy)


class PolicyReload:
    """SIGHUP reads the file again and hands the policy on to `take`.

    A file that is broken then changes nothing but the log: what was denied stays so.
    """

    def __init__(self, path: Path | None, take: Callable[[OperatorPolicy], None]) -> None:
        self._path = path
        self._take = take
        # Signals are served in order: the file as it is at the last one counts.
        self._turn = asyncio.Lock()
        self._reading: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self._hung_up)

    async def close(self) -> None:
        """Take no signal any more. Idempotent."""
        asyncio.get_running_loop().remove_signal_handler(signal.SIGHUP)
        if self._reading:
            await asyncio.wait(self._reading)

    def _hung_up(self) -> None:
        task = asyncio.create_task(self._read_again())
        self._reading.add(task)
        task.add_done_callback(self._reading.discard)

    async def _read_again(self) -> None:
        if self._path is None:
            log.warning("there is no policy file to read again")
            return
        async with self._turn:
            try:
                policy = await asyncio.to_thread(read_policy, self._path)
            except PolicyFileError as error:
                log.error("the policy stays as it was", problem=str(error))
                return
            self._take(policy)
            log.info("policy", policy_id=policy.id)


def _policy(given: _File) -> ApprovalPolicy:
    return ApprovalPolicy(
        default_permission=_permission(given.default),
        rules=tuple(
            PolicyRule(rule.pattern, Permission[rule.permission.upper()]) for rule in given.rules
        ),
        grant_scope=GrantScope[given.grant_scope.upper()] if given.grant_scope else None,
    )


def _permission(name: PermissionName | None) -> Permission | None:
    return Permission[name.upper()] if name else None


_RULE_HEADER = re.compile(r"""\s*\[\[\s*["']?rules["']?\s*\]\]""")


def _place(path: Path, text: str, loc: tuple[int | str, ...]) -> str:
    """`file:line: key`; `tomllib` does not say the line, so it is looked for."""
    key = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in loc)
    wanted = loc[1] if len(loc) > 1 and isinstance(loc[1], int) else None
    name = re.compile(rf"""\s*["']?{re.escape(str(loc[-1]))}["']?\s*=""")
    at, rule = 0, -1
    for number, line in enumerate(text.splitlines(), start=1):
        if _RULE_HEADER.match(line):
            rule += 1
            at = number if rule == wanted else at
        elif name.match(line) and (rule == wanted or (wanted is None and rule < 0)):
            at = number
            break
    return f"{path}:{at}: {key[1:]}" if at else f"{path}: {key[1:]}"
