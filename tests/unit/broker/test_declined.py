"""What counts as declined is what was shown, and checked, as a form (R4, B1, H3)."""

from __future__ import annotations

from broker_service.domain.model import ProposedTool, RenderHint
from broker_service.domain.reports import Hinted
from broker_service.domain.starts import Verdict
from tests.unit.broker.conversation import FORM, Conversation, client_call, server_call

WIPE = ProposedTool("c-2", destructive=True)


def test_a_form_by_its_hints_kind_that_is_declined_stops_what_waited_for_it() -> None:
    """R4: a session's own tool that is shown as a form is declined like any form."""
    chat = Conversation()
    run_id = chat.start()
    chat.step(run_id, client_call("c-1", "ask_owner", FORM), server_call("c-2", "wipe"))
    chat.report(run_id, Hinted("", RenderHint("c-1", "elicitation")))
    assert chat.propose(run_id, WIPE) == [Verdict.DEFERRED]
    chat.park(run_id, WIPE)
    fork = chat.settle(chat.interaction("c-1").id, '{"action":"decline"}').run_id
    assert chat.propose(fork, WIPE) == [Verdict.DENIED]
