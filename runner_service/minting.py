"""Fresh ids of messages and calls (T3, R3)."""

from __future__ import annotations

import secrets
from collections.abc import Iterable


class IdMint:
    """Ids of one attempt: never one that the branch has used, never one twice."""

    def __init__(self, used_call_ids: Iterable[str] = ()) -> None:
        self._used = set(used_call_ids)

    def message_id(self) -> str:
        """A message id, new in every attempt (R3)."""
        return f"msg_{secrets.token_hex(10)}"

    def call_id(self) -> str:
        """A call id that the branch has not used yet."""
        while True:
            call_id = f"call_{secrets.token_hex(10)}"
            if call_id not in self._used:
                self._used.add(call_id)
                return call_id
