"""H1-H4, F10, A4, G1-G3 as a client sees them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.core.transcripts import STEP, form, gated, hint, shown
from turngate_core import gate
from turngate_core.client_tools import BUILT_IN, is_client_tool, is_client_tool_result
from turngate_core.display import (
    ApprovalData,
    DisplayMessage,
    DisplayPart,
    DisplayTextPart,
    RenderHintPart,
    ToolPart,
)
from turngate_core.json_text import JsonValue
from turngate_core.number import Number
from turngate_core.registry import FALLBACK, Registration, widget_for
from turngate_core.render import build_render_map, render_kind_for
from turngate_core.resume import InteractionKind, LiveSettlement, resume_due, settlement_resumes

TEXT = DisplayTextPart("on")
LIVE = LiveSettlement(InteractionKind.CLIENT_TOOL, "c-1")
LIVE_APPROVAL = LiveSettlement(InteractionKind.APPROVAL, "ap-1")


@pytest.mark.parametrize(
    ("call_id", "render"),
    [
        (None, {"kind": "connect"}),
        ("", {}),
        (Number("1"), {}),
        ("c-1", None),
        ("c-1", []),
        ("c-1", "connect"),
    ],
)
def test_h1_malformed_hints_are_skipped(call_id: JsonValue, render: JsonValue) -> None:
    hints = build_render_map([hint("c-1", "elicitation"), RenderHintPart(call_id, render)])
    assert render_kind_for("c-1", None, hints) == "elicitation"
    assert len(hints) == 1


def test_h2_an_empty_kind_is_none() -> None:
    assert render_kind_for("c-1", {"kind": ""}, build_render_map([hint("c-1", "connect")])) == (
        "connect"
    )
    assert render_kind_for(None, None, build_render_map([hint("c-1", "connect")])) is None


def test_h3_kind_then_name_then_fallback() -> None:
    part = ToolPart("chart", "c-1", "input-available")
    hints = build_render_map([hint("c-1", "graph")])
    by_kind, by_tool = Registration({"graph": "K"}), Registration({}, {"chart": "T"})

    def widget(*registered: Registration, **ctx: bool) -> str | None:
        at = {"streaming": False, "last_message": True, **ctx}
        return widget_for(
            part,
            hints,
            streaming=at["streaming"],
            last_message=at["last_message"],
            registered=registered,
        )

    assert widget(by_kind, by_tool) == "K"
    assert widget(by_tool) == "T"
    assert widget() == FALLBACK
    assert widget(streaming=True) is None
    assert widget(last_message=False) is None
    assert widget(by_tool, streaming=True, last_message=False) == "T"


@pytest.mark.parametrize("state", ["approval-requested", "approval-responded"])
def test_h3_the_fallback_settles_no_approval(state: str) -> None:
    part = ToolPart("chart", "c-1", state)
    assert widget_for(part, {}, streaming=False, last_message=True) is None


def test_h3_a_state_that_is_not_known_is_not_settled() -> None:
    part = ToolPart("chart", "c-1", "preparing")
    assert widget_for(part, {}, streaming=False, last_message=True) == FALLBACK


def test_h4_client_tools_by_known_kind_or_name() -> None:
    chart = ToolPart("chart", "c-1", "output-available")
    declared = BUILT_IN.with_declared(kinds=frozenset({"graph"}), names=frozenset({"sign"}))
    graph = build_render_map([hint("c-1", "graph")])
    assert not is_client_tool(chart, {})
    assert not is_client_tool(chart, graph)
    assert is_client_tool(chart, graph, declared)
    assert is_client_tool(ToolPart("sign", "c-2", "input-available"), graph, declared)
    assert is_client_tool(form("input-available"), graph)


def test_a4_an_approved_tool_that_ran_is_no_client_result() -> None:
    """Load-bearing, even if its name is a client tool's."""
    ran = gated("output-available", approved=True, tool="request_input")
    assert not is_client_tool_result(ran, {})
    assert is_client_tool_result(form("output-available"), {})
    assert not resume_due(shown(STEP, ran))
    live = LiveSettlement(InteractionKind.CLIENT_TOOL, "d-1")
    assert not settlement_resumes(shown(STEP, ran), live)
    assert not settlement_resumes(shown(STEP, gated("output-available", True)), LIVE_APPROVAL)


def test_a4_a_client_result_beside_an_approved_tool_that_ran_still_resumes() -> None:
    assert resume_due(shown(STEP, gated("output-available", True), form("output-available")))


def test_f10_the_event_starts_the_resume_once_all_is_settled() -> None:
    assert settlement_resumes(shown(STEP, form("output-available")), LIVE)
    assert settlement_resumes(shown(STEP, form("output-error")), LIVE)
    assert settlement_resumes(shown(STEP, gated("approval-responded", False)), LIVE_APPROVAL)
    waiting = form("input-available", "c-2")
    assert not settlement_resumes(shown(STEP, form("output-available"), waiting), LIVE)


def test_f10_the_event_of_an_interaction_that_is_not_there_starts_nothing() -> None:
    settled = shown(STEP, form("output-available"))
    assert not settlement_resumes(settled, LiveSettlement(InteractionKind.CLIENT_TOOL, "c-9"))
    assert not settlement_resumes(settled, LiveSettlement(InteractionKind.APPROVAL, "c-1"))
    assert not settlement_resumes((), LIVE)


def test_f10_a_run_that_has_gone_on_is_not_resumed_again() -> None:
    assert not settlement_resumes(shown(STEP, form("output-available"), STEP, TEXT), LIVE)
    later = (*shown(STEP, form("output-available")), DisplayMessage("user", (TEXT,)))
    assert not settlement_resumes(later, LIVE)


def test_f10_an_interaction_is_one_by_record_whatever_its_name() -> None:
    """The fallback settles tools that no hint and no name tells."""
    box = ToolPart("mystery_box", "c-1", "output-available")
    assert settlement_resumes(shown(STEP, box), LIVE)
    assert not resume_due(shown(STEP, box))


def test_g1_between_settlement_and_resume_nothing_enters() -> None:
    due = shown(STEP, form("output-available"))
    assert not gate.gate_open("ready", due)
    assert not gate.awaiting_user("ready", due)
    assert gate.gate_open("ready", due, stopped=True)


def test_g2_a_failed_run_holds_nothing_back() -> None:
    assert gate.gate_open("error", shown(STEP, form("output-available")))
    assert not gate.gate_open("error", shown(STEP, form("input-available")))


@pytest.mark.parametrize("status", ["submitted", "streaming", "", "READY", "resuming"])
def test_g1_any_other_status_holds(status: str) -> None:
    assert not gate.gate_open(status, ())
    assert not gate.gate_open(status, (), stopped=True)
    assert not gate.awaiting_user(status, shown(STEP, form("input-available")))


def test_g1_an_open_interaction_of_an_older_reply_holds() -> None:
    messages = (*shown(STEP, form("input-available")), *shown(TEXT))
    assert gate.awaiting_user("ready", messages)
    assert not gate.gate_open("ready", messages)


def test_g2_a_second_message_waits_for_the_run_of_the_first() -> None:
    queue = gate.submit(gate.submit(gate.Queue(), "one"), "two")
    assert (queue.sent, queue.held) == (("one",), ("two",))
    queue = gate.observe(queue, "ready", shown(TEXT))
    assert queue.sent == ("one",)
    queue = gate.observe(queue, "streaming", shown(TEXT))
    queue = gate.observe(queue, "ready", shown(TEXT))
    assert queue.sent == ("one", "two")


def test_g3_removing_never_sends_and_a_wrong_index_changes_nothing() -> None:
    queue = gate.observe(gate.Queue(), "streaming", ())
    for message in ("one", "two"):
        queue = gate.submit(queue, message)
    assert gate.remove(queue, 2) == queue
    assert gate.remove(queue, -1) == queue
    assert gate.remove(queue, 0).held == ("two",)
    assert gate.clear(queue).held == ()


STATES = [
    (status, parts)
    for status in ("ready", "streaming", "error", "submitted")
    for parts in (
        (TEXT,),
        (STEP, form("input-available")),
        (STEP, form("output-available")),
        (STEP, gated("approval-requested")),
    )
]
SteppedParts = tuple[str, tuple[DisplayPart, ...]]


@given(
    st.lists(
        st.one_of(
            st.sampled_from(STATES), st.integers(0, 4), st.text("abc", min_size=1, max_size=3)
        ),
        max_size=25,
    )
)
def test_g2_no_message_is_lost_doubled_or_overtaken(
    steps: list[SteppedParts | int | str],
) -> None:
    queue, submitted = gate.Queue(), 0
    removed: list[str] = []
    for step in steps:
        before = queue
        if isinstance(step, str):
            queue = gate.submit(queue, f"{submitted}")
            submitted += 1
        elif isinstance(step, int):
            removed.extend(queue.held[step : step + 1])
            queue = gate.remove(queue, step)
        else:
            status, parts = step
            queue = gate.observe(queue, status, shown(*parts))
        assert len(queue.sent) - len(before.sent) <= 1
        if queue.sent != before.sent:
            assert gate.gate_open(queue.status, queue.messages)
        left = [f"{n}" for n in range(submitted) if f"{n}" not in removed]
        assert [*queue.sent, *queue.held] == left


def test_approval_data_on_a_part_is_data_even_if_empty() -> None:
    part = ToolPart("request_input", "c-1", "output-available", approval=ApprovalData())
    assert not is_client_tool_result(part, {})
    assert widget_for(part, {}, streaming=False, last_message=True) is None
