"""A decision in the making: the state it is made from, and the events it has come to.

The functions of the core take one, look at its state, and emit events; each event is folded at
once, so that what comes later in the same decision sees it. Should a function refuse after it has
emitted, the shell throws the whole decision away, with the state that it was made from. No clock
and no randomness in here: `now` and `mint` come in from the shell.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from broker_service.domain import fold
from broker_service.domain.events import Event, SessionEvent
from broker_service.domain.limits import Limits
from broker_service.domain.model import ActorKind, OperatorPolicy
from broker_service.domain.state import SessionState


@dataclass(frozen=True, slots=True)
class Actor:
    """Who causes events; a principal has a name."""

    kind: ActorKind
    name: str = ""


RUNNER = Actor(ActorKind.RUNNER)
"""Actor of what a runner reported."""

BROKER = Actor(ActorKind.BROKER)
"""Actor of what nobody asked for: expiry, lost attempts, the queue."""


def principal(name: str) -> Actor:
    return Actor(ActorKind.PRINCIPAL, name)


@dataclass(slots=True)
class Decision:
    """`actor`: who asked. `mint`: a fresh id with this prefix (T3). `client`: the asking client's
    own name. `operator_policy`: the operator's of today; None: there is none (R7).
    """

    state: SessionState
    now: int
    actor: Actor
    mint: Callable[[str], str]
    limits: Limits = field(default_factory=Limits)
    client: str = ""
    operator_policy: OperatorPolicy | None = None
    events: list[SessionEvent] = field(default_factory=list)

    def emit(self, event: Event, *, actor: Actor | None = None) -> None:
        """Decide that this happens, caused by `actor` if not by who asked."""
        by = actor or self.actor
        tenant_id = self.state.session.tenant_id
        entry = SessionEvent(event, self.now, by.name, by.kind, tenant_id)
        fold.apply(self.state, entry)
        self.events.append(entry)
