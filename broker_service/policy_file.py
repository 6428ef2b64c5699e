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
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

import structlog
from pydantic import BaseModel, ConfigDict, Field

from broker_service.domain.model import (
    ApprovalPolicy,
    GrantScope,
    OperatorPolicy,
    Permission,
    PolicyRule,
)
from broker_service.encoding import to_proto
from turngate_serving.exit import StartError
from turngate_serving.toml_file import read_toml

log = structlog.stdlib.get_logger(__name__)

PermissionName = Literal["allow", "ask", "deny", "allow_reads"]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class _Rule(_Strict):
    pattern: Annotated[str, Field(min_length=1, max_length=128)]
    permission: PermissionName


class _File(_Strict):
    default: PermissionName | None = None
    grant_scope: Literal["session", "once"] | None = None
    rules: Annotated[list[_Rule], Field(max_length=200)] = []


def read_policy(path: Path) -> OperatorPolicy:
    """The policy of a file. Raises StartError with the place of what is wrong."""
    return operator_policy(_policy(read_toml(path, _File)))


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
            except StartError as error:
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
