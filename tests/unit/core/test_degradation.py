"""D1, D2: nothing hangs silently."""

from __future__ import annotations

import json

import pytest

from turngate_core.degradation import (
    DEGRADED_PREFIX,
    Display,
    ErrorSettlement,
    OutputSettlement,
    ParkedCall,
    UnhandledOutcome,
    is_form_call,
    park_step,
    part_outcome,
    unhandled_outcome,
)
from turngate_core.display import ToolPart
from turngate_core.registry import Registration

GOOD = '{"message":"m","requestedSchema":{"type":"object","properties":{"p":{"type":"string"}}}}'
BAD = '{"message":"m","requestedSchema":{"type":"object","properties":{"p":{"type":"object"}}}}'


def call(call_id: str, arguments: str, tool: str = "request_input") -> ParkedCall:
    return ParkedCall(call_id, tool, None, arguments)


def test_d2_all_unsupported_forms_of_the_first_such_step_are_settled() -> None:
    parked = park_step(
        [call("a", BAD), call("b", GOOD), call("c", "{"), call("d", BAD, "chart")],
        degraded_earlier=False,
    )
    assert [settlement.call_id for settlement in parked.settlements] == ["a", "c"]
    assert (parked.open, parked.notices) == (("b", "d"), ())


def test_d2_the_model_is_told_by_the_fixed_prefix_what_to_repair() -> None:
    (settlement,) = park_step([call("a", BAD)], degraded_earlier=False).settlements
    assert settlement == ErrorSettlement(
        "a",
        'elicitation: unsupported payload — property "p": its type must be string, number, '
        "integer, boolean or array",
    )
    assert settlement.error_text.startswith(DEGRADED_PREFIX)


def test_d2_in_a_later_step_they_stay_open_with_a_notice() -> None:
    parked = park_step([call("a", BAD), call("b", GOOD)], degraded_earlier=True)
    assert (parked.settlements, parked.open, parked.notices) == ((), ("a", "b"), ("a",))


@pytest.mark.parametrize(
    ("tool", "kind", "is_form"),
    [
        ("request_input", None, True),
        ("request_input", "hologram", True),
        ("request_input", "connect", False),
        ("chart", "elicitation", True),
        ("chart", None, False),
    ],
)
def test_a_form_is_told_as_the_registry_tells_it(
    tool: str, kind: str | None, is_form: bool
) -> None:
    assert is_form_call(tool, kind) is is_form


def test_d1_once_a_turn_and_never_what_another_client_can_do() -> None:
    declared = frozenset({"sign"})

    def outcome(tool: str, earlier: int = 0) -> UnhandledOutcome:
        return unhandled_outcome(tool, declared_tools=declared, earlier_not_handled=earlier)

    assert outcome("box") is UnhandledOutcome.NOT_HANDLED
    assert outcome("box", 1) is UnhandledOutcome.OPEN_WITH_NOTICE
    assert outcome("box", 7) is UnhandledOutcome.OPEN_WITH_NOTICE
    for tool in ("sign", "request_input", "request_connection"):
        assert outcome(tool) is outcome(tool, 3) is UnhandledOutcome.OPEN


def part(tool: str, state: str = "input-available", arguments: str = GOOD) -> ToolPart:
    return ToolPart(tool, "c-1", state, arguments)


def test_d1_the_fallback_reports_what_nobody_can_show() -> None:
    outcome = part_outcome(part("box"), {}, streaming=False, last_message=True)
    (settlement,) = outcome.settlements
    assert isinstance(settlement, OutputSettlement)
    assert json.loads(settlement.output)["status"] == "not_handled"
    assert outcome.display is Display.FALLBACK_NOTE


@pytest.mark.parametrize(
    ("streaming", "last_message"), [(True, True), (False, False), (True, False)]
)
def test_d1_nothing_is_settled_before_the_run_has_parked_or_in_old_messages(
    streaming: bool, last_message: bool
) -> None:
    for shown in (part("box"), part("request_input", arguments=BAD)):
        outcome = part_outcome(shown, {}, streaming=streaming, last_message=last_message)
        assert outcome.settlements == ()
        assert outcome.display is Display.NOTHING_UNTIL_SETTLED


def test_a_host_widget_settles_nothing() -> None:
    outcome = part_outcome(
        part("box"),
        {},
        streaming=False,
        last_message=True,
        registered=[Registration({}, {"box": "box_view"})],
    )
    assert (outcome.settlements, outcome.display) == ((), Display.HOST_WIDGET)


def test_d2_an_unsupported_form_shows_nothing_until_it_is_settled() -> None:
    bad = part("request_input", arguments=BAD)
    first = part_outcome(bad, {}, streaming=False, last_message=True)
    assert [type(settlement) for settlement in first.settlements] == [ErrorSettlement]
    assert first.display is Display.NOTHING_UNTIL_SETTLED
    later = part_outcome(bad, {}, streaming=False, last_message=True, degraded_earlier=True)
    assert (later.settlements, later.display) == ((), Display.NEEDS_ATTENTION_NOTICE)


def test_a_form_that_is_still_being_written_is_not_judged() -> None:
    half = part("request_input", "input-streaming", '{"message":"m"')
    outcome = part_outcome(half, {}, streaming=True, last_message=True)
    assert (outcome.settlements, outcome.display) == ((), Display.FORM)
