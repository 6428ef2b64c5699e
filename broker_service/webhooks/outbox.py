"""What is told: the rows of work that a decision leaves, one for each event and target (P3).

They are stored in the commit that opens or closes the question: so nothing is told that did not
happen, and nothing that happened is forgotten. They carry ids and a link, never what was said.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from broker_service.domain.decision import Decision
from broker_service.domain.events import (
    AnswerAdded,
    InteractionClosed,
    InteractionOpened,
    SessionEvent,
    SessionImported,
)
from broker_service.domain.interactions import instant
from broker_service.domain.model import Interaction, InteractionState
from broker_service.domain.state import SessionState
from broker_service.storage.port import PutWork, SessionKey, WorkKey, WorkKind
from broker_service.webhooks.targets import CLOSED, OPENED, EventType, Target


@dataclass(frozen=True, slots=True)
class Webhook:
    """What a row holds: `body` is sent as it is, under the same `id` each time. `failures`: how
    often it was tried in vain.
    """

    target: str
    id: str
    body: str
    failures: int = 0

    def encode(self) -> bytes:
        return json.dumps(asdict(self)).encode()


def decode_webhook(payload: bytes) -> Webhook:
    """The inverse of `Webhook.encode`."""
    return Webhook(**json.loads(payload))


def outbox(decision: Decision, targets: Sequence[Target]) -> list[PutWork]:
    """The rows for what a decision has opened and closed. Imported history tells nothing (P3)."""
    if any(isinstance(entry.event, SessionImported) for entry in decision.events):
        return []
    tenant_id = decision.state.session.tenant_id
    key = SessionKey(tenant_id, decision.state.session.id)
    rows: list[PutWork] = []
    for entry, interaction, state in _told(decision):
        event_type = OPENED if state is InteractionState.OPEN else CLOSED
        said = (*key, interaction.id, event_type, state.name)
        webhook_id = "whk_" + hashlib.blake2b("\0".join(said).encode(), digest_size=16).hexdigest()
        for target in targets:
            if event_type not in target.events or tenant_id not in (target.tenants or {tenant_id}):
                continue
            link = target.link_for(*key, interaction.id) or interaction.link
            body = _body(decision.state, entry, interaction, state, event_type, link)
            work = WorkKey(WorkKind.WEBHOOK, key, f"{webhook_id}/{target.name}")
            payload = Webhook(target.name, webhook_id, body).encode()
            rows.append(PutWork(work, decision.now, payload=payload))
    return rows


def _told(decision: Decision) -> Iterator[tuple[SessionEvent, Interaction, InteractionState]]:
    """The events that open or close a question, with the state that they bring it to.

    What is opened and closed in one write never waited for anybody.
    """
    interactions = decision.state.interactions
    brief: set[str] = set()
    for entry in decision.events:
        match entry.event:
            case InteractionOpened(opened):
                if opened.id in decision.state.open_interactions:
                    yield entry, interactions[opened.id], InteractionState.OPEN
                else:
                    brief.add(opened.id)
            case InteractionClosed(interaction_id, state=state) if interaction_id not in brief:
                yield entry, interactions[interaction_id], state
            case AnswerAdded(interaction_id, answer=answer, state=state):
                interaction = interactions[interaction_id]
                first = interaction.answers[0].id == answer.id
                # A second answer (F5) closes nothing; a second decision is a change of mind (A2).
                if first or answer.approved is not None:
                    yield entry, interaction, state
            case _:
                pass


def _body(
    state: SessionState,
    entry: SessionEvent,
    interaction: Interaction,
    to: InteractionState,
    event_type: EventType,
    link: str,
) -> str:
    assert interaction.kind is not None, "a question has a kind from its opening on"
    data: dict[str, str | None] = {
        "tenant_id": state.session.tenant_id,
        "session_id": state.session.id,
        "interaction_id": interaction.id,
        "run_id": interaction.run_id,
        "kind": interaction.kind.name.lower(),
        "state": to.name.lower(),
        "owner": state.session.owner,
        "opened_for": interaction.opened_for or None,
        "link": link or None,
    }
    said = {"type": event_type, "timestamp": instant(entry.create_time), "data": data}
    return json.dumps(said, separators=(",", ":"))
