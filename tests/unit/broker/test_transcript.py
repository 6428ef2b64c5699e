"""Transcripts (T1, T3 to T5): the messages of a branch, results beside their calls."""

from __future__ import annotations

from broker_service.domain.events import Event
from broker_service.domain.model import (
    Message,
    Permission,
    ProposedTool,
    RenderHint,
    ResultKind,
    Role,
    RunState,
    ToolCall,
    ToolExecutor,
    ToolResult,
)
from broker_service.domain.reports import Began, Finished, Hinted
from broker_service.domain.transcript import Transcript, nodes_needed
from broker_service.effects import place_of
from tests.unit.broker.conversation import (
    LUND,
    VISBY,
    Conversation,
    client_call,
    form,
    said,
    server_call,
    tool_result,
    transcript_of,
    user,
)
from turngate_core.ids import copy_message_id, split_message_id
from turngate_core.transcript import TextPart, TranscriptMessage, turn_start_index

LATER = ProposedTool("c-2", after_answers=True)


def pairs(message: Message) -> list[str]:
    """The calls of a message, each followed by what stands beside it."""
    shown = []
    for part in message.parts:
        if isinstance(part.content, ToolCall):
            shown.append(f"call {part.content.call_id}")
        elif isinstance(part.content, ToolResult):
            shown.append(f"result {part.content.call_id}")
    return shown


def test_each_result_stands_right_after_its_call() -> None:
    """T1, T4: in call order, in whatever order they came."""
    chat = Conversation()
    run_id = chat.start()
    chat.step(run_id, server_call("c-1"), server_call("c-2"), server_call("c-3"))
    tools = (ProposedTool("c-1"), ProposedTool("c-2"), ProposedTool("c-3"))
    chat.propose(run_id, *tools)
    chat.report(run_id, tool_result("c-3"), tool_result("c-1"))
    assert pairs(chat.transcript()[1]) == [
        "call c-1",
        "result c-1",
        "call c-2",
        "call c-3",
        "result c-3",
    ]


def test_arguments_and_outputs_come_back_as_they_were() -> None:
    """T2: digit for digit and key for key."""
    text = '{"z": 1.0, "a": 9007199254740993, "é": [1e400, null]}'
    chat = Conversation()
    run_id = chat.start()
    chat.ask(run_id, client_call("c-1", arguments=text))
    chat.settle(chat.interaction("c-1").id, text)
    (call,) = chat.transcript()[1].calls()
    assert call.arguments_json == text
    assert chat.results()["c-1"].output_json == text


def test_calls_of_a_live_run_stay_open() -> None:
    """T4: only what is final gets synthetic results."""
    chat = Conversation()
    run_id = chat.start()
    chat.ask(run_id, form("c-1"))
    assert pairs(chat.transcript()[1]) == ["call c-1"]


def test_a_failed_runs_calls_get_typed_results() -> None:
    """T4: `run_failed`, and `outcome_unknown` where a tool had started."""
    chat = Conversation()
    run_id = chat.start()
    chat.step(run_id, server_call("c-1"), server_call("c-2"), server_call("c-3"))
    chat.propose(run_id, ProposedTool("c-1"), ProposedTool("c-2"))
    chat.report(run_id, tool_result("c-1"))
    chat.fail(run_id)
    assert {call: result.kind for call, result in chat.results().items()} == {
        "c-1": ResultKind.TOOL,
        "c-2": ResultKind.OUTCOME_UNKNOWN,
        "c-3": ResultKind.RUN_FAILED,
    }
    assert all(r.error_text for r in list(chat.results().values())[1:])


def test_a_copy_has_an_id_that_a_client_can_compute_and_reverse() -> None:
    """T3: through a chain of three forks; hints are copied like messages (H1)."""
    chat = Conversation()
    run_id = chat.start()
    originals: list[str] = []
    for number in range(3):
        message_id = chat.step(run_id, form(f"c-{number}"))
        hint_id = chat.mint("msg")
        hint = RenderHint(f"c-{number}", "elicitation")
        chat.report(run_id, Hinted(hint_id, hint))
        chat.park(run_id)
        originals += [message_id, hint_id]
        run_id = chat.settle(chat.interaction(f"c-{number}").id, VISBY).run_id
    shown = [m.id for m in chat.transcript(with_hints=True)[1:]]
    assert shown == [copy_message_id(original, run_id) for original in originals]
    assert [split_message_id(i) for i in shown] == [(original, run_id) for original in originals]
    assert all(len(m.parts) == 1 for m in chat.transcript(with_hints=True)[2::2])


def test_the_superseded_run_is_still_readable() -> None:
    """F8: without the answer, which is its fork's."""
    chat = Conversation()
    run_id = chat.start()
    chat.ask(run_id, form("c-1"))
    chat.settle(chat.interaction("c-1").id, VISBY)
    assert pairs(chat.transcript(run_id)[1]) == ["call c-1"]
    assert chat.run(run_id).state is RunState.PARKED


def test_a_result_of_a_copied_call_belongs_to_the_fork_alone() -> None:
    """F2, R4: what runs after the answers stands beside the copy, not beside the original."""
    chat = Conversation()
    run_id = chat.start()
    chat.step(run_id, form("c-1"), server_call("c-2"))
    chat.propose(run_id, LATER)
    chat.park(run_id, LATER)
    fork = chat.settle(chat.interaction("c-1").id, VISBY).run_id
    chat.propose(fork, LATER)
    chat.report(fork, tool_result("c-2"))
    chat.complete(fork)
    assert pairs(chat.transcript()[1]) == ["call c-1", "result c-1", "call c-2", "result c-2"]
    assert pairs(chat.transcript(run_id)[1]) == ["call c-1", "call c-2"]


def test_a_hint_that_a_fork_adds_stands_after_its_copy() -> None:
    """H1: a resumed runner may hint a call of the step that its run was copied with."""
    chat = Conversation()
    run_id = chat.start()
    message_id = chat.step(run_id, form("c-1"), server_call("c-2"))
    chat.propose(run_id, LATER)
    chat.park(run_id, LATER)
    fork = chat.settle(chat.interaction("c-1").id, VISBY).run_id
    chat.report(fork, Hinted("msg_hint", RenderHint("c-2", "progress")))
    chat.propose(fork, LATER)
    chat.report(fork, tool_result("c-2"))
    chat.step(fork)
    ids = [m.id for m in chat.transcript(with_hints=True)]
    assert ids[1] == f"{message_id}@{fork}"
    assert ids[3] == "msg_hint"
    assert "msg_hint" not in [m.id for m in chat.transcript(run_id, with_hints=True)]


def test_a_message_that_is_being_written_or_was_withdrawn_is_not_shown() -> None:
    """R3, W3: the log's deltas show it, the transcript does not."""
    chat = Conversation()
    run_id = chat.start()
    chat.report(run_id, Began("msg_a"))
    assert [m.role for m in chat.transcript()] == [Role.USER]
    chat.lose(run_id)
    assert [m.role for m in chat.transcript()] == [Role.USER]


def test_the_nodes_that_are_needed_are_enough() -> None:
    """F3: a transcript is the same from the events of these nodes as from the whole log."""
    chat = Conversation()
    run_id = chat.start()
    chat.ask(run_id, form("c-1"), client_call("c-2"))
    fork = chat.settle(chat.interaction("c-1").id, VISBY).run_id
    chat.settle(chat.interaction("c-2").id, "2")
    chat.ask(fork, form("c-3"))
    last = chat.settle(chat.interaction("c-3").id, LUND).run_id
    chat.complete(last)
    chat.complete(chat.start("and?"))
    path = chat.state.path_to(chat.state.selected)
    everything: list[tuple[str, Event]] = [
        (place_of(chat.state, entry.event)[0], entry.event) for entry in chat.log
    ]
    whole = Transcript(chat.state, everything).messages(path, with_hints=True)
    assert transcript_of(chat.state, chat.log, path, with_hints=True) == whole
    assert set(nodes_needed(chat.state, [last])) == {last, fork, run_id}


def test_a_decision_stands_beside_its_call_the_last_one_counts() -> None:
    """T1, A2: an approval that became a denial is shown as one."""
    chat = Conversation()
    run_id = chat.start()
    ask = ProposedTool("c-2", tool_permission=Permission.ASK)
    chat.step(run_id, form("c-1"), server_call("c-2"))
    chat.propose(run_id, ask)
    chat.park(run_id, ask)
    chat.decide(chat.interaction("c-2").id)
    chat.decide(chat.interaction("c-2").id, approve=False, by="ben", reason="no")
    decisions = [
        part.content
        for part in chat.transcript()[1].parts
        if type(part.content).__name__ == "ApprovalDecision"
    ]
    assert len(decisions) == 1
    assert (getattr(decisions[0], "approved", None), getattr(decisions[0], "decided_by", "")) == (
        False,
        "ben",
    )


def test_a_fork_copies_what_the_provider_executed_with_its_result() -> None:
    """F2, T4: the result stands in the copied message, once; no event of its own holds it."""
    chat = Conversation()
    run_id = chat.start()
    search = ToolCall("c-1", "web_search", executor=ToolExecutor.PROVIDER)
    found = ToolResult("c-1", output_json="[]", kind=ResultKind.TOOL)
    chat.report(run_id, Began("msg"), Finished(said("msg", search, found, form("c-2"))))
    chat.park(run_id)
    chat.settle(chat.interaction("c-2").id, VISBY)
    shown = ["call c-1", "result c-1", "call c-2", "result c-2"]
    assert pairs(chat.transcript()[1]) == shown
    chat.fail(chat.state.selected)
    chat.retry(chat.state.selected)
    assert pairs(chat.transcript()[1]) == shown


def test_the_turn_starts_at_the_last_user_message_of_the_stored_branch() -> None:
    """T5: answers are part of the assistant's turn and never begin one."""
    chat = Conversation(messages=(said("m-0"), user("m-1", "hi")))
    chat.ask(chat.first_run, form("c-1"))
    chat.settle(chat.interaction("c-1").id, VISBY)

    def turn_start() -> int:
        roles = [m.role.name.lower() if m.role else "" for m in chat.transcript()]
        return turn_start_index(tuple(TranscriptMessage(r, (TextPart(""),)) for r in roles))

    assert turn_start() == 1
    fork = chat.state.selected
    chat.complete(fork)
    assert turn_start() == 1
    chat.start("next")
    assert turn_start() == len(chat.transcript()) - 1
