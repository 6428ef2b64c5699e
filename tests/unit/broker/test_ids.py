"""Ids: prompts, runs and messages share one space of names in a session (T3)."""

from __future__ import annotations

from broker_service.domain.interactions import InteractionRef, find_interaction
from broker_service.domain.model import RenderHint
from broker_service.domain.reports import Began, Hinted
from tests.unit.broker.conversation import Conversation, form
from turngate_core.errors import Reason


def test_a_message_cannot_take_the_id_of_a_run() -> None:
    """T3: else two nodes of the tree would have one name, and the session could not go on."""
    chat = Conversation()
    run_id = chat.start()
    chat.complete(run_id)
    with chat.refused(Reason.MESSAGE_ID_TAKEN):
        chat.send("hello?", message_id=run_id)


def test_a_runner_cannot_take_the_id_of_a_run() -> None:
    """T3: neither for a message nor for a hint."""
    chat = Conversation()
    run_id = chat.start()
    with chat.refused(Reason.PROTOCOL_VIOLATION):
        chat.report(run_id, Began(run_id))
    chat.step(run_id, form("c-1"))
    with chat.refused(Reason.PROTOCOL_VIOLATION):
        chat.report(run_id, Hinted(run_id, RenderHint("c-1", "elicitation")))


def test_a_reference_that_contradicts_itself_is_refused() -> None:
    """F1: an interaction's id and another question's call are not one question."""
    chat = Conversation()
    chat.ask(chat.start(), form("c-1"), form("c-2"))
    ref = InteractionRef(interaction_id=chat.interaction("c-1").id, call_id="c-2")
    with chat.refused(Reason.INVALID_FIELD):
        find_interaction(chat.state, ref)
