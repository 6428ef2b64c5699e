"""Who may close a question: the person it was opened for, where that matters (B2, P1)."""

from __future__ import annotations

from broker_service.domain.model import InteractionState
from tests.unit.broker.conversation import ANN, BEN, VISBY, Conversation, connection, form
from turngate_core.errors import Reason

CONNECTED = '{"connected":true,"integration":"bank"}'


def test_a_connection_is_finished_by_the_person_it_was_opened_for() -> None:
    """B2: another participant is refused by name, and the question stays open."""
    chat = Conversation()
    chat.ask(chat.start(), connection("c-1"))
    question = chat.interaction("c-1")
    assert question.opened_for == ANN
    assert question.closers == (ANN,)
    with chat.refused(Reason.NOT_THE_CLOSER):
        chat.settle(question.id, CONNECTED, by=BEN)
    chat.settle(question.id, CONNECTED, by=ANN)
    assert chat.state_of("c-1") is InteractionState.ANSWERED


def test_a_form_may_be_answered_by_any_participant() -> None:
    """B1 names nobody: a colleague may fill in the form."""
    chat = Conversation()
    chat.ask(chat.start(), form("c-1"))
    assert chat.interaction("c-1").closers == ()
    chat.settle(chat.interaction("c-1").id, VISBY, by=BEN)
    assert chat.state_of("c-1") is InteractionState.ANSWERED
