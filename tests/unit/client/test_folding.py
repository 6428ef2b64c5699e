"""What a client shows is nothing but the fold of the session's events."""

from __future__ import annotations

import pytest

from tests.unit.client.logs import Log, answered_session, call_part, parked_session, text_part
from turngate.v1 import event_pb2 as ev
from turngate.v1 import interaction_pb2 as it
from turngate.v1 import message_pb2 as ms
from turngate.v1 import run_pb2 as rn
from turngate.v1 import session_pb2 as ss
from turngate_client import fold
from turngate_client.session_view import SessionView
from turngate_client.showing import widget_of


def states(view: SessionView, run_id: str) -> dict[str, str]:
    return {call.call.call_id: call.state for call in view.calls(run_id)}


def test_a_parked_form_stands_open_with_its_hint_and_arguments() -> None:
    view = fold(parked_session().events)
    [question] = view.open_interactions("r-1")
    # Events leave these out; the view has them, as the broker's reads do.
    assert question.arguments_json == '{"message":"Where?"}'
    assert question.render_hint.kind == "elicitation"
    assert question.session_id == "s-1"
    assert states(view, "r-1") == {
        "c-0": "output-available",
        "c-1": "input-available",
        "c-2": "output-available",
    }
    form = view.calls("r-1")[1]
    assert form.hint is not None
    assert widget_of(view, form) == "form"


def test_F2_F3_a_fork_shows_its_origins_messages_under_its_own_ids() -> None:
    view = fold(answered_session().events)
    assert [message.id for message in view.run_messages("r-2")] == [
        "m-1@r-2",
        "m-2@r-2",
        "h-1@r-2",
        "m-3",
    ]
    assert {message.run_id for message in view.run_messages("r-2")} == {"r-2"}
    assert view.text("r-2") == "Let me see. Where to?Visby it is."
    assert view.text("r-1") == "Let me see. Where to?"


def test_F2_the_answer_is_the_forks_and_earlier_results_come_along() -> None:
    view = fold(answered_session().events)
    results = {call.call.call_id: call.result for call in view.calls("r-2")}
    assert {call: one.output_json for call, one in results.items() if one is not None} == {
        "c-0": '"sunny"',  # of an earlier step: the origin's
        "c-1": '{"action":"accept"}',
        "c-2": "17",  # of the answered step: inherited by name
    }
    assert view.result("r-1", "c-1") is None, "the answer belongs to the fork"
    assert not view.open_interactions()


def test_a_result_of_the_answered_step_that_is_not_inherited_stays_with_the_origin() -> None:
    log = parked_session()
    log.run("r-2", "p-1", origin="r-1", supersedes="r-1", through="m-2")
    view = fold(log.events)
    assert view.result("r-2", "c-2") is None
    assert view.result("r-2", "c-0") is not None


def test_F8_a_chain_of_forks_shows_one_reply() -> None:
    log = answered_session()
    log.started("r-2", "m-4", step=4)
    log.completed("r-2", "m-4", call_part("c-4"), step=4)
    log.opened("i-4", "r-2", "m-4", "c-4")
    log.state("r-2", rn.RUN_STATE_PARKED, waits=["i-4"])
    log.run("r-3", "p-1", origin="r-2", supersedes="r-2", through="m-4")
    log.result("r-3", "c-4", "true", ms.RESULT_KIND_CLIENT)
    view = fold(log.events)
    assert [message.id for message in view.run_messages("r-3")] == [
        "m-1@r-3",
        "m-2@r-3",
        "h-1@r-3",
        "m-3@r-3",
        "m-4@r-3",
    ]
    assert states(view, "r-3") == dict.fromkeys(("c-0", "c-1", "c-2", "c-4"), "output-available")
    assert view.siblings("r-3") == ["r-3"]
    assert view.branch() == ["p-1", "r-3"]


def test_F8_a_superseded_run_is_in_no_sibling_list_and_still_readable() -> None:
    view = fold(answered_session().events)
    assert view.siblings("r-2") == ["r-2"]
    assert [node.id for node in view.nodes()] == ["p-1", "r-2"]
    assert [node.id for node in view.nodes(include_superseded=True)] == ["p-1", "r-1", "r-2"]
    assert view.runs["r-1"].run.superseded_by_run_id == "r-2"
    assert not view.runs["r-1"].run.waits_for_interaction_ids
    assert len(view.run_messages("r-1")) == 3


def test_F5_a_second_answer_is_a_sibling_that_is_not_selected() -> None:
    log = answered_session()
    log.run(
        "r-9",
        "p-1",
        origin="r-1",
        supersedes="r-1",
        through="m-2",
        inherited=[("c-2", "r-1")],
        selected=False,
    )
    log.result("r-9", "c-1", '{"action":"decline"}', ms.RESULT_KIND_CLIENT)
    view = fold(log.events)
    assert view.siblings("r-9") == ["r-2", "r-9"]
    assert view.runs["r-1"].run.superseded_by_run_id == "r-2", "the first successor counts"
    assert view.branch() == ["p-1", "r-2"]
    answers = [view.result(run_id, "c-1") for run_id in ("r-2", "r-9")]
    assert [one.output_json for one in answers if one] == [
        '{"action":"accept"}',
        '{"action":"decline"}',
    ]


def test_a_shared_result_has_the_outcome_of_the_run_that_it_names() -> None:
    log = answered_session()
    log.run("r-9", "p-1", origin="r-1", through="m-2", selected=False)
    log.result("r-9", "c-2", same_as="r-1")
    result = fold(log.events).result("r-9", "c-2")
    assert result is not None
    assert result.output_json == "17"


def test_F4_what_closes_a_question_closes_it_for_every_run_that_waits() -> None:
    log = parked_session()
    log.opened("i-2", "r-1", "m-2", "c-2")
    log.state("r-1", rn.RUN_STATE_PARKED, waits=["i-1", "i-2"])
    log.answered("i-1", "c-1", "r-2")
    log.run("r-2", "p-1", origin="r-1", supersedes="r-1", through="m-2", waits=["i-2"])
    log.run("r-3", "p-1", origin="r-1", supersedes="r-1", through="m-2", waits=["i-2"])
    view = fold(log.events)
    assert [one.id for one in view.open_interactions("r-3")] == ["i-2"]
    assert not view.open_interactions("r-1"), "a superseded run waits for nothing (R1)"
    log.answered("i-2", "c-2", "r-2")
    view = fold(log.events)
    assert not view.open_interactions("r-2")
    assert not view.open_interactions("r-3")
    assert not view.runs["r-3"].run.waits_for_interaction_ids
    assert view.interactions["i-2"].state == it.INTERACTION_STATE_ANSWERED


def test_W3_completion_is_the_truth_whatever_deltas_came() -> None:
    log = Log()
    log.prompt("p-1", "hi")
    log.run("r-1", "p-1")
    log.started("r-1", "m-1")
    log.delta("r-1", "m-1", 0, "Hel")
    view = fold(log.events)
    assert view.text("r-1") == "Hel"
    log.completed("r-1", "m-1", text_part("Hello, world"))
    log.delta("r-1", "m-1", 0, "late")
    assert fold(log.events).text("r-1") == "Hello, world"


def test_R3_a_withdrawn_message_vanishes() -> None:
    log = Log()
    log.prompt("p-1", "hi")
    log.run("r-1", "p-1")
    log.started("r-1", "m-1")
    log.delta("r-1", "m-1", 0, "Half a sen")
    log.add(message_withdrawn=ev.MessageWithdrawn(message_id="m-1", run_id="r-1"))
    log.delta("r-1", "m-1", 10, "tence")
    log.started("r-1", "m-2")
    log.delta("r-1", "m-2", 0, "Anew.")
    view = fold(log.events)
    assert view.text("r-1") == "Anew."
    assert [message.id for message in view.transcript()] == ["p-1", "m-2"]


def test_a_call_streams_before_its_message_is_complete() -> None:
    log = Log()
    log.prompt("p-1", "hi")
    log.run("r-1", "p-1")
    log.started("r-1", "m-1")
    for offset, piece in ((0, '{"a'), (3, '":1}')):
        log.add(
            tool_call_delta=ev.ToolCallDelta(
                message_id="m-1",
                run_id="r-1",
                part_index=1,
                call_id="c-1",
                name="request_input",
                offset=offset,
                arguments_delta=piece,
            )
        )
    log.delta("r-1", "m-1", 0, "First part")
    view = fold(log.events)
    [call] = view.calls("r-1")
    assert (call.state, call.call.arguments_json) == ("input-streaming", '{"a":1}')
    assert [part.WhichOneof("content") for part in view.run_messages("r-1")[0].parts] == [
        "text",
        "tool_call",
    ]


def approval_log() -> Log:
    log = Log()
    log.prompt("p-1", "book it")
    log.run("r-1", "p-1")
    log.started("r-1", "m-1")
    log.completed("r-1", "m-1", call_part("c-1", "book_hotel"))
    log.opened("i-1", "r-1", "m-1", "c-1", it.INTERACTION_KIND_APPROVAL, "book_hotel")
    log.state("r-1", rn.RUN_STATE_PARKED, waits=["i-1"])
    return log


def test_A2_the_display_states_of_an_approval() -> None:
    log = approval_log()
    assert states(fold(log.events), "r-1") == {"c-1": "approval-requested"}
    log.decided("i-1", "c-1", approved=True)
    view = fold(log.events)
    assert states(view, "r-1") == {"c-1": "approval-responded"}
    assert widget_of(view, view.calls("r-1")[0]) is None, "approval data is claimed by nobody (H3)"
    log.result("r-1", "c-1", '{"ok":true}')
    assert states(fold(log.events), "r-1") == {"c-1": "output-available"}


def test_A2_a_denied_call_is_shown_as_denied() -> None:
    log = approval_log()
    log.decided("i-1", "c-1", approved=False)
    log.result("r-1", "c-1", kind=ms.RESULT_KIND_DENIED, error_text="denied: too dear")
    view = fold(log.events)
    assert states(view, "r-1") == {"c-1": "output-denied"}
    [_, message] = view.transcript()
    assert [part.WhichOneof("content") for part in message.parts] == [
        "tool_call",
        "approval_request",
        "approval_decision",
        "tool_result",
    ]
    assert not message.parts[2].approval_decision.approved


def test_T4_in_a_transcript_each_result_stands_right_after_its_call() -> None:
    view = fold(answered_session().events)
    [prompt, first, second, hint, last] = view.transcript()
    assert hint.parts[0].render_hint.tool_call_id == "c-1"
    assert (prompt.id, last.id) == ("p-1", "m-3")
    assert [part.WhichOneof("content") for part in second.parts] == [
        "text",
        "tool_call",
        "tool_result",
        "tool_call",
        "tool_result",
    ]
    assert [part.tool_result.call_id for part in second.parts][2::2] == ["c-1", "c-2"]
    assert first.parts[-1].tool_result.output_json == '"sunny"'
    # The reply of the run that was left can be read, too.
    assert [message.id for message in view.transcript("r-1")] == ["p-1", "m-1", "m-2", "h-1"]


def test_X4_an_error_and_an_absent_result_are_told_apart_by_their_kind() -> None:
    log = Log()
    log.prompt("p-1", "hi")
    log.run("r-1", "p-1")
    calls = [call_part(f"c-{number}", "tool") for number in range(4)]
    log.completed("r-1", "m-1", *calls)
    log.result("r-1", "c-0", kind=ms.RESULT_KIND_TOOL)
    log.result("r-1", "c-1", kind=ms.RESULT_KIND_CANCELLED_BY_USER)
    log.result("r-1", "c-2", kind=ms.RESULT_KIND_EXPIRED, error_text="expired")
    assert states(fold(log.events), "r-1") == {
        "c-0": "output-available",
        "c-1": "output-error",
        "c-2": "output-error",
        "c-3": "input-available",
    }


@pytest.mark.parametrize(
    ("end", "started", "kind"),
    [
        (rn.RUN_STATE_CANCELLED, False, ms.RESULT_KIND_CANCELLED_BY_USER),
        (rn.RUN_STATE_CANCELLED, True, ms.RESULT_KIND_OUTCOME_UNKNOWN),
        (rn.RUN_STATE_FAILED, False, ms.RESULT_KIND_RUN_FAILED),
    ],
)
def test_T4_a_call_that_its_run_left_behind_is_not_shown_as_open(
    end: rn.RunState.ValueType, started: bool, kind: ms.ResultKind.ValueType
) -> None:
    log = parked_session()
    if started:
        log.add(tool_started=ev.ToolStarted(call_id="c-1", run_id="r-1"))
    log.state("r-1", end)
    view = fold(log.events)
    assert states(view, "r-1")["c-1"] == "output-error"
    result = view.transcript()[2].parts[2].tool_result
    assert (result.call_id, result.kind) == ("c-1", kind)
    assert result.error_text


def test_G2_G4_held_messages_stand_in_the_order_in_which_they_will_enter() -> None:
    log = parked_session()
    log.held("q-1")
    log.held("q-2")
    log.held("q-3", interrupting=True)
    log.held("q-4", interrupting=True)
    log.held("q-1", text="edited")
    log.add(
        hold_changed=ev.HoldChanged(
            message_id="q-2", reason=ss.HOLD_REASON_QUEUED_BEHIND, waits_for_run_id="r-1"
        )
    )
    view = fold(log.events)
    assert [one.message.id for one in view.held_messages] == ["q-3", "q-4", "q-1", "q-2"]
    assert view.held_by_id["q-1"].message.parts[0].text.text == "edited"
    assert view.held_by_id["q-2"].reason == ss.HOLD_REASON_QUEUED_BEHIND
    log.prompt("q-3", "hi", "r-1")
    log.add(held_message_removed=ev.HeldMessageRemoved(message_id="q-4"))
    assert [one.message.id for one in fold(log.events).held_messages] == ["q-1", "q-2"]


def test_C2_C3_an_edit_is_a_sibling_and_the_selected_branch_moves() -> None:
    log = answered_session()
    log.prompt("p-2", "a trip by train", edits="p-1")
    log.run("r-5", "p-2")
    view = fold(log.events)
    assert view.siblings("p-2") == ["p-1", "p-2"]
    assert view.branch() == ["p-2", "r-5"]
    log.add(branch_selected=ev.BranchSelected(node_id="r-2"))
    view = fold(log.events)
    assert {node.id for node in view.nodes() if node.selected} == {"p-1", "r-2"}
    assert view.text(view.branch()[-1]).endswith("Visby it is.")


def test_first_messages_form_a_chain_from_the_root() -> None:
    log = Log()
    system = ms.Message(id="f-1", role=ms.ROLE_SYSTEM, parts=[text_part("Be kind.")])
    log.add(prompt_added=ev.PromptAdded(message=system, selected=True))
    log.prompt("p-1", "hi", "f-1")
    log.run("r-1", "p-1")
    view = fold(log.events)
    assert view.branch() == ["f-1", "p-1", "r-1"]
    assert [node.kind for node in view.nodes()] == [
        ss.NODE_KIND_FIRST_MESSAGE,
        ss.NODE_KIND_PROMPT,
        ss.NODE_KIND_RUN,
    ]


def test_G2_a_pause_of_the_queue_is_seen_and_ends() -> None:
    log = parked_session()
    pause = ss.QueuePause(reason=ss.QUEUE_PAUSE_REASON_FAILURES, run_id="r-1")
    log.add(queue_paused=ev.QueuePaused(pause=pause))
    paused = fold(log.events)
    assert paused.queue_pause == pause
    assert "queue paused" in paused.describe()
    log.add(queue_resumed=ev.QueueResumed())
    assert fold(log.events).queue_pause is None


def test_a_deleted_session_keeps_nothing_but_its_name() -> None:
    log = answered_session()
    log.add(session_deleted=ev.SessionDeleted())
    view = fold(log.events)
    assert (view.deleted, view.session.id, view.position) == (True, "s-1", len(log.events))
    assert not view.runs
    assert not view.transcript()


def test_an_unknown_kind_of_event_is_skipped() -> None:
    log = parked_session()
    log.add()
    log.prompt("p-2", "still folded", "r-1")
    assert "p-2" in fold(log.events).prompts


def test_the_view_changes_none_of_the_events_that_it_was_given() -> None:
    log = answered_session()
    before = [event.SerializeToString(deterministic=True) for event in log.events]
    fold(log.events)
    assert [event.SerializeToString(deterministic=True) for event in log.events] == before
