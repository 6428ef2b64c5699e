"""Client tools that a run's agent declares (D1, R7): kept with the call."""

from __future__ import annotations

import pytest

from broker_service.domain.events import RenderHintAdded
from broker_service.domain.model import (
    ClientTool,
    ConflictPolicy,
    ExpiryPolicy,
    InteractionState,
    RenderHint,
    ResultKind,
    RunState,
    SessionConfig,
    ToolCall,
)
from broker_service.domain.reports import Hinted
from tests.unit.broker.conversation import (
    BEN,
    VISBY,
    Conversation,
    client_call,
    form,
    server_call,
)
from turngate_core.errors import Reason, Refusal

MINUTE = 60_000
SCHEMA = '{"type":"string"}'


def declares(call_id: str, declaration: ClientTool | None = None) -> Hinted:
    """The runner's hint of a call whose tool the agent declares."""
    return Hinted("", RenderHint(call_id, "chooser"), declaration or ClientTool(name=""))


def asked(
    declaration: ClientTool | None = None,
    call: ToolCall | None = None,
    config: SessionConfig | None = None,
) -> tuple[Conversation, str]:
    """A run that is parked on a call of a tool that its agent declares."""
    chat = Conversation(config)
    run_id = chat.start()
    call = call or client_call("c-1")
    chat.step(run_id, call)
    chat.report(run_id, declares(call.call_id, declaration))
    chat.park(run_id)
    return chat, run_id


def test_D1_a_tool_that_the_agent_declares_stays_open_whatever_a_client_cannot_do() -> None:
    chat, _ = asked()
    assert chat.interaction("c-1").declared
    chat.report_unhandled(call="c-1", run=chat.interaction("c-1").run_id)
    chat.wait(2 * chat.limits.unclaimed_after_ms)
    assert chat.state_of("c-1") is InteractionState.OPEN
    chat.settle(chat.interaction("c-1").id, '"red"', by=BEN)
    assert chat.state_of("c-1") is InteractionState.ANSWERED


def test_D1_without_its_word_the_broker_settles() -> None:
    chat = Conversation()
    run_id = chat.start()
    chat.step(run_id, client_call("c-1"))
    chat.report(run_id, Hinted("", RenderHint("c-1", "chooser")))
    chat.park(run_id)
    assert not chat.interaction("c-1").declared
    chat.report_unhandled(chat.interaction("c-1").id)
    assert chat.state_of("c-1") is InteractionState.NOT_HANDLED


def test_F1_an_output_has_to_fit_the_declared_schema() -> None:
    """On a fork, too: what was declared is the call's."""
    chat, _ = asked(ClientTool("", output_schema_json=SCHEMA))
    with pytest.raises(Refusal) as refused:
        chat.settle(chat.interaction("c-1").id, "7")
    assert refused.value.reason is Reason.INVALID_ANSWER
    chat.settle(chat.interaction("c-1").id, '"red"')
    with pytest.raises(Refusal) as refused:
        chat.settle(chat.interaction("c-1").id, "8", by=BEN)
    assert refused.value.reason is Reason.INVALID_ANSWER


def test_I4_its_expiry_and_conflict_policy_are_those_of_the_question() -> None:
    chat, run_id = asked(
        ClientTool(
            "",
            expires_after=MINUTE,
            on_expiry=ExpiryPolicy.CANCEL_RUN,
            conflict_policy=ConflictPolicy.FIRST_WINS,
        ),
        config=SessionConfig(agent="travel", interaction_expires_after=9 * MINUTE),
    )
    assert chat.interaction("c-1").conflict_policy is ConflictPolicy.FIRST_WINS
    chat.wait(MINUTE)
    assert chat.state_of("c-1") is InteractionState.EXPIRED
    assert chat.run(run_id).state is RunState.CANCELLED


def test_the_agents_declaration_goes_before_the_sessions() -> None:
    """As at the runner, where an agent's own tool wins over a session's of the same name."""
    tools = (ClientTool("pick_colour", output_schema_json='{"type":"number"}'),)
    chat, _ = asked(
        ClientTool("", output_schema_json=SCHEMA),
        config=SessionConfig(agent="travel", client_tools=tools),
    )
    chat.settle(chat.interaction("c-1").id, '"red"')


def test_R7_the_first_declaration_of_a_call_counts() -> None:
    """The agent was changed before the run parked: a new attempt would say something else."""
    chat = Conversation()
    run_id = chat.start()
    chat.step(run_id, client_call("c-1"))
    chat.report(run_id, declares("c-1", ClientTool("", output_schema_json=SCHEMA)))
    chat.lose(run_id)
    chat.report(run_id, declares("c-1", ClientTool("", output_schema_json="false")))
    chat.park(run_id)
    chat.settle(chat.interaction("c-1").id, '"red"')
    assert chat.results(chat.state.selected)["c-1"].kind is ResultKind.CLIENT


def test_only_what_answers_need_is_kept() -> None:
    """Call and hint have the rest: it would be stored with each call again."""
    chat, _ = asked(
        ClientTool("pick_colour", "Picks.", "{}", "chooser", "{}", SCHEMA, expires_after=MINUTE)
    )
    (added,) = chat.events_of(RenderHintAdded)
    assert added.declaration == ClientTool("", output_schema_json=SCHEMA, expires_after=MINUTE)


def test_built_in_tools_are_answered_by_their_own_rules() -> None:
    """B1: a declaration of a form is not kept."""
    chat, _ = asked(ClientTool("", output_schema_json="false", expires_after=MINUTE), form("c-1"))
    assert chat.interaction("c-1").declared
    chat.wait(2 * MINUTE)
    chat.settle(chat.interaction("c-1").id, VISBY)


@pytest.mark.parametrize(
    ("call", "declaration", "told"),
    [
        (server_call("c-1"), ClientTool(""), "no client call"),
        (client_call("c-1"), ClientTool("", output_schema_json="{"), "no JSON Schema"),
        (client_call("c-1"), ClientTool("", output_schema_json='{"type":1}'), "no JSON Schema"),
        (client_call("c-1"), ClientTool("", output_schema_json=" " * 65_537), "65536 bytes"),
        (client_call("c-1"), ClientTool("", expires_after=0), "positive"),
    ],
)
def test_a_declaration_that_nobody_could_answer_by_breaks_the_protocol(
    call: ToolCall, declaration: ClientTool, told: str
) -> None:
    chat = Conversation()
    run_id = chat.start()
    chat.step(run_id, call)
    with pytest.raises(Refusal) as refused:
        chat.report(run_id, declares("c-1", declaration))
    assert refused.value.reason is Reason.PROTOCOL_VIOLATION
    assert told in refused.value.metadata["problem"]
