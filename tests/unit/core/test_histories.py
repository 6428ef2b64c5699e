"""X2 to X7, A1 to A3, F10, G2, D1: histories in which one entry must not hide the next one."""

from __future__ import annotations

import json

import pytest

from tests.unit.core.transcripts import STEP, assistant, call, form, no, result, shown, user, yes
from turngate_core import gate
from turngate_core.client_tools import BUILT_IN
from turngate_core.degradation import (
    Display,
    ErrorSettlement,
    OutputSettlement,
    PartOutcome,
    degraded_error_text,
    part_outcome,
)
from turngate_core.display import ToolPart
from turngate_core.errors import Code, Reason, Refusal, invalid_field
from turngate_core.extraction import (
    IndexedCall,
    ReplayMatcher,
    index_calls,
    turn_answers,
    turn_decisions,
)
from turngate_core.forms import FormFault, UnsupportedForm
from turngate_core.grants import GrantKey, StartGate, StartVerdict, branch_grants, grant_key
from turngate_core.number import Number, compare_numbers, number_is_exact_in_double
from turngate_core.policy import GrantScope, Policy, Setting
from turngate_core.registry import CONNECT, Registration, widget_for
from turngate_core.resume import resume_due
from turngate_core.synthetic import SyntheticReason, shows_start, text_for_model
from turngate_core.transcript import CallPart, DecisionPart, ResultPart

ASKS = Policy(Setting.ASK)
SESSION, ONCE = GrantScope.SESSION, GrantScope.ONCE
ALLOW, DENY, ASK = StartVerdict.ALLOW, StartVerdict.DENY, StartVerdict.ASK_USER


# --- extraction ---


def test_x1_a_call_has_its_latest_shape_and_place() -> None:
    messages = (user(), assistant(call("a", "old"), call("b")), assistant(call("a", "new")))
    assert index_calls(messages) == {
        "a": IndexedCall(call("a", "new"), (2, 0)),
        "b": IndexedCall(call("b"), (1, 1)),
    }


def test_x7_the_first_result_that_names_its_call_tells_its_shape() -> None:
    own = ResultPart("a", "1", tool="ask")
    other = DecisionPart("a", approved=True, tool="pay", arguments='{"n":1}')
    messages = (user(), assistant(own, other))
    assert index_calls(messages) == {"a": IndexedCall(CallPart("a", "ask", ""), (1, 0))}
    decided = (user(), assistant(other))
    assert index_calls(decided)["a"].call == CallPart("a", "pay", '{"n":1}')


def test_x1_answers_and_decisions_come_in_the_order_of_calls_not_of_ids() -> None:
    calls = assistant(call("z"), call("a"), call("m"))
    answers = (user(), calls, assistant(result("a"), result("m"), result("z")))
    assert list(turn_answers(answers)) == ["z", "a", "m"]
    decided = (user(), calls, assistant(no("a"), yes("m"), yes("z")))
    assert list(turn_decisions(decided)) == ["z", "a", "m"]


def test_a2_the_first_approval_and_the_first_denial_count() -> None:
    first, again = yes("a", ONCE), yes("a", SESSION)
    assert turn_decisions((user(), assistant(call("a"), first, again)))["a"] is first
    denied = DecisionPart("a", approved=False, reason="first")
    later = DecisionPart("a", approved=False, reason="later")
    assert turn_decisions((user(), assistant(call("a"), denied, later)))["a"] is denied


def test_p3_an_imported_or_foreign_decision_hides_no_later_one() -> None:
    imported = DecisionPart("a", approved=False, imported=True)
    messages = (user(), assistant(call("a"), imported, yes("nobody"), yes("a")))
    assert turn_decisions(messages)["a"].approved


def test_x3_a_call_without_a_key_hides_no_later_one() -> None:
    messages = (user(), assistant(call("bad", "ask", "{"), call("b")))
    matched = ReplayMatcher(messages).take("ask", "{}")
    assert matched is not None
    assert matched.call.call_id == "b"


def test_x2_a_call_of_an_earlier_turn_hides_no_later_one() -> None:
    messages = (user(), assistant(call("old")), user(), assistant(call("new"), no("new")))
    matched = ReplayMatcher(messages).take("ask", "{}")
    assert matched is not None
    assert (matched.call.call_id, matched.decision) == ("new", no("new"))


# --- grants ---


def test_a3_what_grants_nothing_hides_no_later_grant() -> None:
    """Denied, not started, not in the history, revoked, once, and without a key; then one."""
    messages = (
        user(),
        assistant(
            *(
                call(name, "pay", f'{{"n":"{name}"}}')
                for name in ("denied", "idle", "gone", "once")
            ),
            call("odd", "pay", "{"),
            call("good", "pay", '{"n":1}'),
        ),
        assistant(
            no("denied"),
            yes("idle"),
            yes("nobody"),
            yes("gone"),
            yes("once", ONCE),
            yes("odd"),
            yes("good"),
        ),
        assistant(*(result(i) for i in ("denied", "nobody", "gone", "once", "odd", "good"))),
        user(),
    )
    grants = branch_grants(messages, SESSION, revoked_calls=frozenset({"gone"}))
    assert grants == {GrantKey("", "", "pay", '{"n":1}'): "good"}
    assert grant_key(call("odd", "pay", "{")) is None


def test_a3_the_oldest_of_identical_grants_is_named() -> None:
    one = assistant(call("a", "pay"), yes("a"), result("a"), call("b", "pay"), yes("b"))
    messages = (user(), one, assistant(result("b")), user())
    assert list(branch_grants(messages, SESSION).values()) == ["a"]


def test_a2_a_denial_takes_an_approval_back_in_the_history_too() -> None:
    messages = (user(), assistant(call("a", "pay"), yes("a"), no("a"), result("a")), user())
    assert branch_grants(messages, SESSION) == {}
    reverse = (user(), assistant(call("a", "pay"), no("a"), yes("a"), result("a")), user())
    assert branch_grants(reverse, SESSION) == {}


def verdict(
    policy: Policy,
    *,
    tool: Setting | None = None,
    server: Setting | None = None,
    read_only: bool = False,
) -> StartVerdict:
    return StartGate((), policy, SESSION).verdict(
        CallPart("", "pay", "{}"),
        tool_setting=tool,
        server_setting=server,
        read_only=read_only,
    )


def test_a1_settings_of_tool_and_server_and_whether_it_only_reads() -> None:
    assert verdict(ASKS) is ASK
    assert verdict(ASKS, tool=Setting.ALLOW) is ALLOW
    assert verdict(ASKS, server=Setting.ALLOW) is ALLOW
    assert verdict(ASKS, tool=Setting.ASK, server=Setting.ALLOW) is ASK
    assert verdict(Policy(Setting.ALLOW), server=Setting.DENY) is DENY
    reads = Policy(Setting.ALLOW_READS)
    assert verdict(reads, read_only=True) is ALLOW
    assert StartGate((), reads, SESSION).verdict(CallPart("", "pay", "{}")) is ASK


def test_a3_a_call_that_cannot_be_canonical_asks_whatever_was_decided() -> None:
    messages = (user(), assistant(call("a", "pay", "{"), yes("a")))
    assert StartGate(messages, ASKS, SESSION).verdict(CallPart("", "pay", "{")) is ASK


def test_a3_a_decision_that_died_hides_no_other() -> None:
    dead = ResultPart("a", None, synthetic=SyntheticReason.CANCELLED_BY_USER)
    messages = (user(), assistant(call("a", "pay"), call("b", "pay"), yes("a"), dead, no("b")))
    start = StartGate(messages, ASKS, SESSION)
    assert [start.verdict(CallPart("", "pay", "{}")) for _ in range(2)] == [DENY, ASK]


@pytest.mark.parametrize(
    ("run_scope", "own", "second"),
    [(SESSION, None, ALLOW), (SESSION, ONCE, ASK), (ONCE, None, ASK), (ONCE, SESSION, ASK)],
)
def test_a3_the_stricter_scope_of_run_and_decision_counts_from_the_start_on(
    run_scope: GrantScope, own: GrantScope | None, second: StartVerdict
) -> None:
    messages = (user(), assistant(call("a", "pay"), yes("a", own)))
    start = StartGate(messages, ASKS, run_scope)
    twin = CallPart("", "pay", "{}")
    assert [start.verdict(twin), start.verdict(twin)] == [ALLOW, second]


def test_a3_a_revoked_approval_starts_its_own_call_and_no_twin() -> None:
    messages = (user(), assistant(call("a", "pay"), yes("a")))
    start = StartGate(messages, ASKS, SESSION, revoked_calls=frozenset({"a"}))
    twin = CallPart("", "pay", "{}")
    assert [start.verdict(twin), start.verdict(twin)] == [ALLOW, ASK]


def test_s1_which_synthetic_results_show_a_start() -> None:
    assert [r for r in SyntheticReason if shows_start(r)] == [SyntheticReason.OUTCOME_UNKNOWN]


def test_t4_a_person_s_reason_stands_behind_the_words() -> None:
    told = "This call was not allowed. It was not executed."
    assert text_for_model(SyntheticReason.DENIED) == told
    assert text_for_model(SyntheticReason.DENIED, "dear") == f"{told} Reason: dear"


# --- what clients show ---


def test_d1_what_nobody_can_show_says_its_name() -> None:
    box = ToolPart("box", "c-1", "input-available", "{}")
    outcome = part_outcome(box, {}, streaming=False, last_message=True)
    (settlement,) = outcome.settlements
    assert isinstance(settlement, OutputSettlement)
    assert settlement.call_id == "c-1"
    assert json.loads(settlement.output) == {
        "status": "not_handled",
        "message": "No connected client can handle the tool box.",
    }


def test_b2_a_connection_is_shown_as_one() -> None:
    bank = ToolPart("request_connection", "c-1", "input-available", '{"integration":"bank"}')
    assert part_outcome(bank, {}, streaming=False, last_message=True) == PartOutcome(
        (), Display.CONNECT
    )


@pytest.mark.parametrize(
    ("tool", "arguments", "fault"),
    [
        ("request_input", None, FormFault.MESSAGE_MISSING),
        ("ask_for_it", "[]", FormFault.NOT_AN_OBJECT),
    ],
)
def test_d2_an_unsupported_form_is_settled_by_its_call(
    tool: str, arguments: str | None, fault: FormFault
) -> None:
    """Also where a hint alone makes it a form, and empty arguments are `{}` (T2)."""
    part = ToolPart(tool, "c-1", "input-available", arguments)
    hints = {"c-1": {"kind": "elicitation"}}
    outcome = part_outcome(part, {**hints}, streaming=False, last_message=True)
    told = degraded_error_text(UnsupportedForm(fault))
    assert outcome.settlements == (ErrorSettlement("c-1", told),)


def test_d2_a_settled_form_is_shown_as_it_was() -> None:
    part = ToolPart("request_input", "c-1", "output-error", "[]")
    outcome = part_outcome(part, {}, streaming=False, last_message=True)
    assert outcome == PartOutcome((), Display.FORM)


def test_h3_a_kind_of_the_part_itself_counts_first() -> None:
    part = ToolPart("box", "c-1", "input-available", render={"kind": "connect"})
    hints = {"c-1": {"kind": "elicitation"}}
    assert widget_for(part, {**hints}, streaming=True, last_message=False) == CONNECT


def test_h3_the_latest_registration_wins() -> None:
    part = ToolPart("request_input", "c-1", "input-available")
    hosts = [Registration({}, {"request_input": "old"}), Registration({}, {"request_input": "new"})]
    found = widget_for(part, {}, streaming=False, last_message=True, registered=hosts)
    assert found == "new"


def test_f10_a_declared_tool_s_result_makes_a_resume_due() -> None:
    sign = ToolPart("sign", "c-1", "output-available")
    known = BUILT_IN.with_declared(names=frozenset({"sign"}))
    assert resume_due(shown(STEP, sign), known)
    assert not resume_due(shown(STEP, sign))
    assert not resume_due(())


def test_g1_declared_tools_count_for_the_gate() -> None:
    sign = ToolPart("sign", "c-1", "input-available")
    known = BUILT_IN.with_declared(names=frozenset({"sign"}))
    messages = shown(STEP, sign)
    assert gate.awaiting_user("ready", messages, known=known)
    assert not gate.gate_open("ready", messages, known=known)
    assert not gate.awaiting_user("ready", messages)


def test_g3_only_an_index_of_the_queue_removes_something() -> None:
    waiting = gate.observe(gate.Queue(), "ready", shown(STEP, form("input-available")))
    queue = gate.submit(gate.submit(waiting, "one"), "two")
    assert queue.held == ("one", "two")
    for index in (-1, 2):
        assert gate.remove(queue, index) is queue
    assert gate.remove(queue, 1).held == ("one",)
    assert gate.remove(queue, 0).held == ("two",)


# --- numbers, and errors ---


@pytest.mark.parametrize(
    ("left", "right", "order"),
    [("NaN", "1", None), ("1", "x", None), ("-0", "0", 0), ("-1", "-2", 1), ("2", "10", -1)],
)
def test_numbers_of_which_one_is_none_have_no_order(
    left: str, right: str, order: int | None
) -> None:
    assert compare_numbers(Number(left), Number(right)) == order


@pytest.mark.parametrize("literal", ["NaN", "Infinity", "-Infinity", "1e400", "-1e400", "0.1"])
def test_t2_what_no_double_holds_is_not_exact(literal: str) -> None:
    assert not number_is_exact_in_double(Number(literal))


def test_e2_a_refusal_carries_all_that_a_caller_needs() -> None:
    busy = Refusal(Reason.RUNNER_BUSY, "later", {"limit": "1"}, retry_after_ms=50)
    assert str(busy) == f"{Reason.RUNNER_BUSY}: later"
    assert (busy.code, busy.message) == (Code.RESOURCE_EXHAUSTED, "later")
    assert (busy.metadata, busy.violations, busy.retry_after_ms) == ({"limit": "1"}, (), 50)
    field = invalid_field("messages[2].text", "is empty")
    assert (field.reason, field.message) == (
        Reason.INVALID_FIELD,
        "messages[2].text: is empty",
    )
    assert field.violations == (("messages[2].text", "is empty"),)


def test_e2_a_reason_comes_with_its_own_codes_only() -> None:
    with pytest.raises(ValueError, match="RUN_STATE does not come with"):
        Refusal(Reason.RUN_STATE, "no", code=Code.NOT_FOUND)


def test_x4_an_answer_that_is_synthetic_says_why() -> None:
    expired = ResultPart("a", None, synthetic=SyntheticReason.EXPIRED)
    (answer,) = turn_answers((user(), assistant(call("a"), expired))).values()
    assert (answer.call_id, answer.synthetic) == ("a", SyntheticReason.EXPIRED)


def test_g2_a_stop_lets_the_next_message_enter() -> None:
    due = shown(STEP, form("output-available"))
    queue = gate.submit(gate.observe(gate.Queue(), "ready", due), "next")
    assert queue.held == ("next",)
    assert gate.observe(queue, "ready", due, stopped=True).sent == ("next",)
