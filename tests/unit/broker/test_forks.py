"""Settling client calls: forks, what they collect, and what is refused (F1 to F4, F6 to F10)."""

from __future__ import annotations

import pytest

from broker_service.domain.decision import Decision, principal
from broker_service.domain.events import (
    AnswerAdded,
    InheritedResult,
    PromptAdded,
    RunCreated,
    RunStateChanged,
    ToolResultAdded,
)
from broker_service.domain.interactions import InteractionRef
from broker_service.domain.model import (
    Answer,
    ClientTool,
    ConflictPolicy,
    InteractionState,
    Permission,
    ProposedTool,
    ResultKind,
    RunCause,
    RunState,
    SessionConfig,
    ToolCall,
)
from broker_service.domain.settlement import SettleToolCall, settle_tool_call
from broker_service.domain.starts import Verdict
from broker_service.effects import effects_of, entries_of
from tests.unit.broker.conversation import (
    ANN,
    BEN,
    CONNECTED,
    DECLINED,
    FORM,
    LUND,
    VISBY,
    Conversation,
    client_call,
    connection,
    fold_log,
    form,
    server_call,
    tool_result,
    user,
)
from turngate_core.errors import Reason

ASK = ProposedTool("c-pay", tool_permission=Permission.ASK)


def parked(*calls: ToolCall, config: SessionConfig | None = None) -> tuple[Conversation, str]:
    chat = Conversation(config)
    run_id = chat.start()
    chat.ask(run_id, *(calls or (form("c-1"),)))
    return chat, run_id


def test_the_first_answer_forks_the_parked_run() -> None:
    """F2: a sibling under the same prompt that supersedes R, takes its place and goes on."""
    chat, run_id = parked()
    question = chat.interaction("c-1")
    settled = chat.settle(question.id, VISBY, by=BEN, client="phone", client_ref="x-1")
    fork = chat.run(settled.run_id)
    parent = chat.run(run_id)
    assert settled.fork_opened
    assert (settled.superseded_run_id, settled.acted_on_run_id) == (run_id, run_id)
    assert settled.client_ref == "x-1"
    assert (fork.prompt_id, fork.origin_id, fork.cause) == (
        parent.prompt_id,
        run_id,
        RunCause.ANSWER,
    )
    assert (fork.state, fork.supersedes) == (RunState.PENDING, run_id)
    # R keeps its state, waits for nothing and is in no list of siblings (R1, F8).
    assert (parent.state, parent.superseded_by, parent.waits) == (RunState.PARKED, fork.id, [])
    assert chat.state.selected == fork.id
    assert chat.state.siblings(fork) == ()
    assert chat.state.open_interactions == {}
    answer = Answer(
        id=settled.answer_id,
        author=BEN,
        client="phone",
        create_time=chat.now,
        run_id=fork.id,
        client_ref="x-1",
    )
    closed = chat.interaction("c-1")
    assert (closed.state, closed.answers) == (InteractionState.ANSWERED, (answer,))
    assert closed.close_time == chat.now


def test_the_content_of_an_answer_stands_once_in_the_log() -> None:
    """T2, F3: exact text, in the result; the answer itself has none."""
    chat, _ = parked(client_call("c-1"))
    output = '{"b": 1.0, "a": 9007199254740993}'
    settled = chat.settle(call="c-1", run=chat.state.selected, output=output)
    (added,) = chat.events_of(ToolResultAdded)
    assert added.run_id == settled.run_id
    assert added.result.output_json == output
    assert (added.result.kind, added.result.answer_id) == (ResultKind.CLIENT, settled.answer_id)
    (answered,) = chat.events_of(AnswerAdded)
    assert answered.answer.output_json is None
    assert answered.addressed_run_id == settled.acted_on_run_id


def test_a_fork_is_a_copy_by_reference_under_derived_ids() -> None:
    """F2, F3, T3: each message under a new id that a client can compute; the call keeps its id."""
    chat = Conversation()
    run_id = chat.start()
    first = chat.step(run_id, server_call("c-0"))
    chat.propose(run_id, ProposedTool("c-0"))
    chat.report(run_id, tool_result("c-0"))
    second = chat.step(run_id, form("c-1"))
    chat.park(run_id)
    fork = chat.settle(chat.interaction("c-1").id, VISBY).run_id
    (created,) = chat.events_of(RunCreated)[1:]
    assert created.origin_through_message_id == second
    assert created.answered_message_id == f"{second}@{fork}"
    messages = chat.transcript()
    assert [m.id for m in messages[1:]] == [f"{first}@{fork}", f"{second}@{fork}"]
    assert all(m.run_id == fork for m in messages[1:])
    assert chat.results()["c-0"].output_json == '"done"'
    assert chat.results()["c-1"].output_json == VISBY


def test_a_fork_of_a_fork_names_the_original_messages() -> None:
    """T3: exactly one `@`; a chain of client tools keeps its context (F2)."""
    chat = Conversation()
    run_id = chat.start()
    first = chat.step(run_id, form("c-1"))
    chat.park(run_id)
    fork = chat.settle(chat.interaction("c-1").id, VISBY).run_id
    second = chat.step(fork, form("c-2"))
    chat.park(fork)
    grandchild = chat.settle(chat.interaction("c-2").id, LUND).run_id
    third = chat.step(grandchild, text="Both, then.")
    assert [m.id for m in chat.transcript()[1:]] == [
        f"{first}@{grandchild}",
        f"{second}@{grandchild}",
        third,
    ]
    assert {call: r.output_json for call, r in chat.results().items()} == {
        "c-1": VISBY,
        "c-2": LUND,
    }
    assert [m.step for m in chat.transcript()[1:]] == [1, 2, 3]
    assert chat.state.successor(run_id) == grandchild


def test_the_cost_of_a_fork_does_not_depend_on_the_length_of_its_origin() -> None:
    """F3: bytes written and events made by the same answer after 1 and after 40 messages."""

    def size(steps: int) -> tuple[int, int]:
        chat = Conversation()
        run_id = chat.start()
        for number in range(steps):
            chat.step(run_id, server_call(f"c-{number}"), text="x" * 500)
            chat.propose(run_id, ProposedTool(f"c-{number}"))
            chat.report(run_id, tool_result(f"c-{number}"))
        chat.ask(run_id, form("c-form"))
        command = SettleToolCall(InteractionRef(chat.interaction("c-form").id), VISBY)
        state = fold_log(chat.log)
        decision = Decision(state, chat.now, principal(ANN), lambda prefix: f"{prefix}_fixed")
        settle_tool_call(decision, command)
        payload = sum(len(entry.payload) for entry in entries_of(decision))
        return payload, len(effects_of(decision, "broker", 0, 0))

    assert size(40)[1] == size(1)[1]
    assert size(40)[0] - size(1)[0] < 8  # ids that have a digit more


def test_answers_to_other_calls_are_collected_by_the_same_fork() -> None:
    """F4: to whichever of the two runs they are addressed; it goes to a runner once."""
    chat, run_id = parked(form("c-1"), connection("c-2"), client_call("c-3"))
    first = chat.settle(chat.interaction("c-2").id, CONNECTED)
    fork = chat.run(first.run_id)
    assert (fork.state, fork.collecting) == (RunState.PARKED, True)
    assert fork.waits == [chat.interaction("c-1").id, chat.interaction("c-3").id]
    # To the superseded run: acts on its successor, and says so (F8).
    second = chat.settle(run=run_id, call="c-1", output=VISBY, by=BEN)
    assert (second.run_id, second.fork_opened) == (fork.id, False)
    assert (second.acted_on_run_id, second.superseded_run_id) == (fork.id, run_id)
    assert fork.state is RunState.PARKED
    third = chat.settle(run=fork.id, call="c-3", output="7", by=BEN)
    assert third.run_id == fork.id
    assert chat.run(fork.id).state is RunState.PENDING
    pending = [e for e in chat.events_of(RunStateChanged) if e.state is RunState.PENDING]
    assert [change.run_id for change in pending] == [fork.id], "one resume (F10)"
    assert {call: r.output_json for call, r in chat.results().items()} == {
        "c-1": VISBY,
        "c-2": CONNECTED,
        "c-3": "7",
    }
    assert len(chat.events_of(RunCreated)) == 2


def test_scenario_4_parallel_calls_and_partial_answers() -> None:
    """Scenario 4: a server tool, a form, a connection and an approval in one step; one fork, one
    resume, and four results in call order right after the calls."""
    chat = Conversation()
    run_id = chat.start()
    chat.step(run_id, server_call("c-a"), form("c-b"), connection("c-c"), server_call("c-pay"))
    assert chat.propose(run_id, ProposedTool("c-a"), ASK) == [Verdict.GRANTED, Verdict.ASK]
    chat.report(run_id, tool_result("c-a", '"looked up"'))
    chat.park(run_id, ASK)
    assert chat.results()["c-a"].output_json == '"looked up"'
    assert chat.open_calls() == ["c-b", "c-c", "c-pay"]
    fork = chat.settle(chat.interaction("c-c").id, CONNECTED).run_id
    assert chat.settle(chat.interaction("c-b").id, VISBY, by=BEN).run_id == fork
    assert chat.run(fork).state is RunState.PARKED
    chat.now += 3_600_000
    decided = chat.decide(chat.interaction("c-pay").id, by=BEN)
    assert decided.acted_on_run_id == fork
    assert chat.run(fork).state is RunState.PENDING
    assert chat.propose(fork, ASK) == [Verdict.GRANTED]
    chat.report(fork, tool_result("c-pay", '"paid"'))
    message = chat.transcript()[1]
    assert [type(part.content).__name__ for part in message.parts] == [
        "TextPart",
        "ToolCall",
        "ToolResult",
        "ToolCall",
        "ToolResult",
        "ToolCall",
        "ToolResult",
        "ToolCall",
        "ApprovalRequest",
        "ApprovalDecision",
        "ToolResult",
    ]
    assert list(chat.results()) == ["c-a", "c-b", "c-c", "c-pay"]
    assert len(chat.events_of(RunCreated)) == 2
    resumes = [e for e in chat.events_of(RunStateChanged) if e.state is RunState.PENDING]
    assert len(resumes) == 1


def test_a_fork_brings_along_the_results_of_its_step() -> None:
    """F2: earlier resolved calls come along, server results and denials included."""
    chat = Conversation()
    run_id = chat.start()
    chat.step(run_id, server_call("c-a"), form("c-b"), server_call("c-pay"))
    chat.propose(run_id, ProposedTool("c-a"), ASK)
    chat.report(run_id, tool_result("c-a"))
    chat.park(run_id, ASK)
    chat.decide(chat.interaction("c-pay").id, approve=False)
    assert chat.run(run_id).state is RunState.PARKED
    fork = chat.settle(chat.interaction("c-b").id, VISBY).run_id
    created = chat.events_of(RunCreated)[-1]
    assert created.inherited_results == (
        InheritedResult("c-a", run_id),
        InheritedResult("c-pay", run_id),
    )
    kinds = {call: result.kind for call, result in chat.run(fork).results.items()}
    assert kinds == {
        "c-a": ResultKind.TOOL,
        "c-pay": ResultKind.DENIED,
        "c-b": ResultKind.CLIENT,
    }


def test_a_fork_takes_no_place_where_its_origin_is_not_selected() -> None:
    """F2: it takes R's place wherever R is selected, and nowhere else."""
    chat, run_id = parked()
    other = user("m-9", "instead")
    chat.act(lambda d: d.emit(PromptAdded(other, parent_node_id="", selected=True)))
    fork = chat.settle(chat.interaction("c-1").id, VISBY).run_id
    assert chat.state.selected == "m-9"
    assert chat.events_of(RunCreated)[-1].selected is False
    assert chat.state.end_of_branch(run_id) == fork


def test_an_error_text_is_an_answer_too() -> None:
    """F1: exactly one of output and error text; it stays marked as an error (X4)."""
    chat, _ = parked()
    settled = chat.settle(chat.interaction("c-1").id, error="the camera is broken")
    result = chat.results()["c-1"]
    assert (result.error_text, result.output_json) == ("the camera is broken", None)
    assert result.kind is ResultKind.CLIENT
    assert chat.run(settled.run_id).state is RunState.PENDING


def test_an_answer_that_does_not_fit_the_form_is_refused_field_by_field() -> None:
    """F1, B1: one violation a field, and the interaction stays open."""
    chat, _ = parked()
    question = chat.interaction("c-1").id
    with chat.refused(Reason.INVALID_ANSWER) as caught:
        chat.settle(question, '{"action":"accept","content":{"city":7},"mood":1}')
    assert [v.field for v in caught.value.violations] == ["output.mood", "output.content.city"]
    assert chat.state_of("c-1") is InteractionState.OPEN
    for bad in (
        '{"action":"accept","content":{}}',
        '{"action":"perhaps"}',
        '"Visby"',
        "[]",
        "null",
    ):
        with chat.refused(Reason.INVALID_ANSWER):
            chat.settle(question, bad)
    assert chat.settle(question, VISBY).fork_opened


def test_declining_a_form_is_an_output_not_an_error() -> None:
    """B1."""
    chat, _ = parked()
    chat.settle(chat.interaction("c-1").id, DECLINED)
    assert chat.results()["c-1"].output_json == DECLINED


def test_a_credential_in_a_connection_is_refused() -> None:
    """B2: references only; another integration is none of it either."""
    chat, _ = parked(connection("c-1"))
    question = chat.interaction("c-1").id
    for bad in (
        '{"connected":true,"integration":"bank","token":"x"}',
        '{"connected":true,"integration":"other"}',
        '{"integration":"bank"}',
    ):
        with chat.refused(Reason.INVALID_ANSWER):
            chat.settle(question, bad)
    assert chat.settle(question, CONNECTED).fork_opened


def test_a_form_by_its_hint_is_checked_as_a_form() -> None:
    """F1, B1: the kind `elicitation` makes a form, whatever its tool is called."""
    tool = ClientTool("travel_form", kind="elicitation")
    config = SessionConfig(agent="travel", client_tools=(tool,))
    chat, _ = parked(client_call("c-1", "travel_form", FORM), config=config)
    with chat.refused(Reason.INVALID_ANSWER):
        chat.settle(chat.interaction("c-1").id, '{"action":"accept","content":{}}')
    assert chat.settle(chat.interaction("c-1").id, VISBY).fork_opened


def test_an_output_is_checked_against_the_schema_of_its_tool() -> None:
    """F1: the output schema that the session declares."""
    schema = '{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}'
    tool = ClientTool("pick_colour", output_schema_json=schema)
    config = SessionConfig(agent="travel", client_tools=(tool,))
    chat, _ = parked(client_call("c-1"), config=config)
    question = chat.interaction("c-1").id
    with chat.refused(Reason.INVALID_ANSWER) as caught:
        chat.settle(question, '{"n":"seven"}')
    assert [v.field for v in caught.value.violations] == ["output.n"]
    assert chat.settle(question, '{"n":7}').fork_opened


def test_a_foreign_call_is_refused_with_its_legacy_code() -> None:
    """F7: a call that the run does not own, and one that does not exist."""
    chat, run_id = parked()
    question = chat.interaction("c-1").id
    fork = chat.settle(question, VISBY).run_id
    chat.complete(fork)
    later = chat.start("again")
    chat.ask(later, form("c-2"))
    for ref in (
        {"run": later, "call": "c-1"},
        {"run": run_id, "call": "c-2"},
        {"run": later, "call": "c-9"},
    ):
        with chat.refused(Reason.TOOL_CALL_NOT_IN_RUN) as caught:
            chat.settle(output=VISBY, **ref)
        assert caught.value.metadata["legacy_code"] == "40003"
    with chat.refused(Reason.TOOL_CALL_NOT_IN_RUN):
        chat.settle(question, VISBY, run=later)
    with chat.refused(Reason.RUN_NOT_FOUND):
        chat.settle(run="run_none", call="c-1", output=VISBY)
    with chat.refused(Reason.INTERACTION_NOT_FOUND):
        chat.settle("int_none", VISBY)


def test_a_call_that_waits_for_nobody_is_refused_by_name() -> None:
    """F1: a server call that was simply granted is no interaction."""
    chat = Conversation()
    run_id = chat.start()
    chat.step(run_id, server_call("c-1"))
    chat.propose(run_id, ProposedTool("c-1"))
    with chat.refused(Reason.CALL_NOT_OPEN):
        chat.settle(run=run_id, call="c-1", output="1")


def test_the_wrong_kind_and_the_wrong_tool_are_refused() -> None:
    """F1: a decision for a client tool, an output for an approval, another tool's name."""
    chat = Conversation()
    run_id = chat.start()
    chat.step(run_id, form("c-1"), server_call("c-pay"))
    chat.propose(run_id, ASK)
    chat.park(run_id, ASK)
    with chat.refused(Reason.WRONG_INTERACTION_KIND) as caught:
        chat.decide(chat.interaction("c-1").id)
    assert caught.value.metadata["kind"] == "CLIENT_TOOL"
    with chat.refused(Reason.WRONG_INTERACTION_KIND):
        chat.settle(chat.interaction("c-pay").id, "1")
    with chat.refused(Reason.TOOL_NAME_MISMATCH) as caught:
        chat.settle(chat.interaction("c-1").id, VISBY, tool="request_connection")
    assert caught.value.metadata == {"tool_name": "request_connection", "expected": "request_input"}
    assert chat.settle(chat.interaction("c-1").id, VISBY, tool="request_input").fork_opened


def test_the_same_answer_again_gets_the_first_outcome() -> None:
    """F5, scenario 2: the same principal repeating the same answer, however it is spelled."""
    chat, _ = parked()
    question = chat.interaction("c-1").id
    first = chat.settle(question, VISBY)
    length = len(chat.log)
    again = chat.settle(question, '{ "content": {"city": "Visby"}, "action": "accept" }')
    assert (again.run_id, again.answer_id) == (first.run_id, first.answer_id)
    assert again.superseded_run_id == first.superseded_run_id
    assert len(chat.log) == length
    chat.complete(first.run_id)
    assert chat.settle(question, VISBY).run_id == first.run_id


@pytest.mark.parametrize("on_tool", [False, True])
def test_another_answer_is_refused_naming_the_first(on_tool: bool) -> None:
    """F5 with FIRST_WINS, of session or tool: id, run and time of the first answer."""
    first_wins = ConflictPolicy.FIRST_WINS
    tools = (ClientTool("pick_colour", conflict_policy=first_wins),) if on_tool else ()
    policy = None if on_tool else first_wins
    config = SessionConfig(agent="travel", client_tools=tools, conflict_policy=policy)
    chat, run_id = parked(client_call("c-1"), config=config)
    question = chat.interaction("c-1").id
    first = chat.settle(question, '"red"')
    for by, output in ((BEN, '"red"'), (ANN, '"blue"')):
        with chat.refused(Reason.ALREADY_SETTLED) as caught:
            chat.settle(question, output, by=by)
        metadata = caught.value.metadata
        assert (metadata["answer_id"], metadata["run_id"]) == (first.answer_id, first.run_id)
        assert metadata["answered_at"].endswith("Z")
    with chat.refused(Reason.ALREADY_SETTLED):
        chat.settle(run=run_id, call="c-1", error="no")


def test_the_shape_of_a_transcript_resumes_nothing() -> None:
    """F10: only the event of settling does; what comes later in the session starts no run."""
    chat, _ = parked()
    fork = chat.settle(chat.interaction("c-1").id, VISBY).run_id
    runs = len(chat.state.runs)
    chat.report(fork)  # handed over
    chat.lose(fork)
    assert chat.run(fork).state is RunState.PENDING
    chat.report(fork)
    chat.complete(fork)
    chat.settle(chat.interaction("c-1").id, VISBY)
    assert len(chat.state.runs) == runs
    assert chat.run(fork).state is RunState.COMPLETED


def test_a_fork_keeps_agent_trace_and_count_of_messages() -> None:
    """R7, F3: what the origin was started with."""
    chat, run_id = parked()
    fork = chat.run(chat.settle(chat.interaction("c-1").id, VISBY).run_id)
    origin = chat.run(run_id)
    assert (fork.agent, fork.trace_context) == (origin.agent, origin.trace_context)
    assert (fork.message_count, fork.step) == (1, 1)
    assert fork.step_calls == ("c-1",)


def test_an_answer_is_taken_with_no_runner_and_no_client_attached() -> None:
    """I3: any time while open; a restart in between changes nothing."""
    chat, _ = parked()
    chat.state = fold_log(chat.log)
    chat.now += 30 * 24 * 3_600_000
    assert chat.settle(chat.interaction("c-1").id, VISBY, by=BEN).fork_opened
