"""What is told of a conversation: that a question opened or closed, once each, by ids (P3)."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from broker_service.domain.decision import BROKER, Actor, Decision, principal
from broker_service.domain.importing import ImportSession, import_session
from broker_service.domain.model import (
    ApprovalPolicy,
    Permission,
    ProposedTool,
    SessionConfig,
)
from broker_service.effects import effects_of
from broker_service.storage.port import PutWork, SessionKey, WorkKind
from broker_service.webhooks.outbox import decode_webhook, outbox
from broker_service.webhooks.targets import CLOSED, OPENED, Target
from tests.unit.broker.conversation import (
    ANN,
    BEN,
    LUND,
    NESTED_FORM,
    VISBY,
    Conversation,
    connection,
    form,
    server_call,
)

T = TypeVar("T")

OPS = Target("ops", "https://ops.example", (b"k" * 32,))
LINKED = SessionConfig(agent="travel", interaction_link="https://a.example/{interaction_id}")
ASKS = SessionConfig(agent="travel", approval_policy=ApprovalPolicy(Permission.ASK))


class Told(Conversation):
    """A conversation, and the rows that each of its commands leaves."""

    def __init__(self, *targets: Target, config: SessionConfig | None = None) -> None:
        self.targets = targets or (OPS,)
        self.rows: list[PutWork] = []
        super().__init__(config)

    def act(self, act: Callable[[Decision], T], actor: Actor = BROKER, client: str = "") -> T:
        before = len(self.log)
        reply = super().act(act, actor, client)
        events = self.log[before:]
        decision = Decision(self.state, self.now, actor, self.mint, self.limits, events=events)
        self.rows += outbox(decision, self.targets)
        return reply

    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(decode_webhook(row.payload).body) for row in self.rows]

    def told(self) -> list[tuple[str, str]]:
        """Type and state, in order."""
        return [(body["type"], body["data"]["state"]) for body in self.bodies()]


def parked(told: Told, *calls: Any) -> tuple[str, list[str]]:
    """A run that waits for these calls, and its questions."""
    run_id = told.start()
    told.step(run_id, *calls)
    told.park(run_id)
    return run_id, list(told.state.open_interactions)


def test_P3_ids_and_the_link_are_told_and_nothing_that_was_said() -> None:
    told = Told(config=LINKED)
    run_id, (question,) = parked(told, form("c-1"))
    told.settle(question, VISBY, by=BEN)
    opened, closed = told.bodies()
    common = {
        "tenant_id": "t-1",
        "session_id": "s-1",
        "interaction_id": question,
        "run_id": run_id,
        "kind": "client_tool",
        "owner": ANN,
        "opened_for": ANN,
        "link": f"https://a.example/{question}",
    }
    assert opened["type"] == OPENED
    assert opened["data"] == common | {"state": "open"}
    assert closed["type"] == CLOSED
    assert closed["data"] == common | {"state": "answered"}
    assert opened["timestamp"].endswith("Z")
    assert opened["timestamp"] < closed["timestamp"]
    everything = b"".join(row.payload for row in told.rows).decode()
    for word in ("Where to", "Visby", "city", "hello", "request_input"):
        assert word not in everything


def test_rows_are_due_at_once_and_stand_beside_the_events() -> None:
    told = Told()
    parked(told, form("c-1"))
    (row,) = told.rows
    assert row.work.kind is WorkKind.WEBHOOK
    assert row.work.session == SessionKey("t-1", "s-1")
    assert (row.due_at, row.owner) == (told.now, None)
    decision = Decision(told.state, told.now, BROKER, told.mint, told.limits, events=told.log)
    effects = effects_of(decision, "b1", 0, 0, (OPS,))
    assert row.work in [effect.work for effect in effects if isinstance(effect, PutWork)]
    without = effects_of(decision, "b1", 0, 0)
    kinds = {effect.work.kind for effect in without if isinstance(effect, PutWork)}
    assert WorkKind.WEBHOOK not in kinds, "without targets nothing is stored"


def test_each_target_has_a_row_of_its_own_under_one_webhook_id() -> None:
    told = Told(OPS, replace(OPS, name="chat"))
    parked(told, form("c-1"))
    webhooks = [decode_webhook(row.payload) for row in told.rows]
    assert [webhook.target for webhook in webhooks] == ["ops", "chat"]
    assert len({webhook.id for webhook in webhooks}) == 1
    assert len({row.work for row in told.rows}) == 2


def test_ids_of_webhooks_are_stable_unique_and_nobodys_words() -> None:
    """A decision that is made again after a conflict has the same id; others have others."""
    told, again = Told(), Told()
    for conversation in (told, again):
        _, questions = parked(conversation, form("c-1"), connection("c-2"))
        for question in questions:
            conversation.cancel_interaction(question)
    ids = [decode_webhook(row.payload).id for row in told.rows]
    assert ids == [decode_webhook(row.payload).id for row in again.rows]
    assert len(set(ids)) == 4
    assert all(webhook_id.replace("_", "").isalnum() for webhook_id in ids)


def test_a_target_is_told_only_of_what_it_wants() -> None:
    told = Told(
        replace(OPS, name="closed", events=frozenset({CLOSED})),
        replace(OPS, name="others", tenants=frozenset({"t-9"})),
        replace(OPS, name="ours", tenants=frozenset({"t-1", "t-9"})),
    )
    _, (question,) = parked(told, form("c-1"))
    told.settle(question, VISBY)
    webhooks = [decode_webhook(row.payload) for row in told.rows]
    assert [webhook.target for webhook in webhooks] == ["ours", "closed", "ours"]


def test_a_link_of_the_operator_goes_before_that_of_the_session() -> None:
    told = Told(replace(OPS, link="https://ops.example/{session_id}"), config=LINKED)
    parked(told, form("c-1"))
    assert told.bodies()[0]["data"]["link"] == "https://ops.example/s-1"


def test_without_a_link_and_a_person_there_is_null() -> None:
    told = Told()
    parked(told, form("c-1"))
    assert told.bodies()[0]["data"]["link"] is None


def test_F5_second_answers_close_nothing() -> None:
    told = Told()
    _, (question,) = parked(told, form("c-1"))
    told.settle(question, VISBY, by=ANN)
    told.settle(question, LUND, by=BEN)
    assert told.told() == [(OPENED, "open"), (CLOSED, "answered")]


def test_A2_a_denial_in_place_of_an_approval_is_told() -> None:
    told = Told(config=ASKS)
    run_id = told.start()
    told.step(run_id, form("c-1"), server_call("c-2"))
    told.park(run_id, ProposedTool("c-2"))
    approval = next(one for one in told.state.interactions.values() if one.call_id == "c-2")
    told.decide(approval.id)
    told.decide(approval.id)
    told.decide(approval.id, approve=False)
    about = [body["data"] for body in told.bodies() if body["data"]["kind"] == "approval"]
    assert [data["state"] for data in about] == ["open", "approved", "denied"]


def test_C1_what_closes_with_its_run_is_told() -> None:
    told = Told()
    run_id, _ = parked(told, form("c-1"), connection("c-2"))
    told.cancel(run_id)
    assert told.told() == [(OPENED, "open")] * 2 + [(CLOSED, "cancelled")] * 2


def test_what_waited_for_nobody_is_not_told() -> None:
    """D2: forms that cannot be shown are settled in the write that parks the run."""
    told = Told()
    parked(told, form("c-1", NESTED_FORM))
    assert told.rows == []


def test_P3_imported_history_tells_nothing_and_what_comes_then_is_told() -> None:
    source = Told()
    _, (question,) = parked(source, form("c-1"))
    there = Told()
    there._minted, there.now = 1_000, source.now
    command = ImportSession(tuple(source.log), "t-2", "s-2")
    decision = import_session(command, there.now, principal("root"), there.mint, there.limits)
    assert outbox(decision, (OPS,)) == []
    there.state, there.log = decision.state, decision.events
    there.settle(question, VISBY)
    (body,) = there.bodies()
    assert (body["type"], body["data"]["tenant_id"]) == (CLOSED, "t-2")
