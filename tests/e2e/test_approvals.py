"""Approvals over the wire: decisions go on in place, and an approved tool that ran is no answer."""

from __future__ import annotations

import pytest

from tests.e2e.pair import Pair
from tests.e2e.talk import log_of, of_kind, refusal, states, talk
from turngate.v1 import interaction_pb2, message_pb2, run_pb2, session_pb2
from turngate_client import TurngateClient
from turngate_client.interactions import PlainJson


async def test_A4_an_approved_tool_that_ran_triggers_no_second_resume(
    client: TurngateClient, pair: Pair
) -> None:
    """A4, R5: one run, two attempts (before and after the decision), one effect, one start."""
    async with talk(client, "pay") as trip:
        run_id, (approval,) = await trip.start_parked()
        assert pair.count(f"pay-{trip.id}") == 0, "nothing starts before it is approved"
        decided = await trip.session.approve(approval)
        assert decided.acted_on_run_id == run_id
        assert decided.state == interaction_pb2.INTERACTION_STATE_APPROVED
        assert await trip.completed(run_id) == "Paid, number 1."

        # A turn later: whatever would resume late would have done so by now.
        second = await trip.start()
        await trip.completed(second)
        log = await log_of(trip.session)
        assert states(log, run_id) == ["RUNNING", "PARKED", "PENDING", "RUNNING", "COMPLETED"]
        created = [e.run_created.run.id for e in of_kind(log, "run_created")]
        assert created == [run_id, second], "no fork"
        started = [e.tool_started for e in of_kind(log, "tool_started")]
        assert [one.call_id for one in started if one.run_id == run_id] == [approval.call_id]
        results = [
            e.tool_result_added.result
            for e in of_kind(log, "tool_result_added")
            if e.tool_result_added.run_id == run_id
        ]
        assert [r.kind for r in results] == [message_pb2.RESULT_KIND_TOOL]


async def test_A2_a_denial_lets_the_run_go_on_and_tells_the_model(
    client: TurngateClient, pair: Pair
) -> None:
    async with talk(client, "pay") as trip:
        run_id, (approval,) = await trip.start_parked()
        await trip.session.deny(approval, reason="too dear")
        text = await trip.completed(run_id)
        assert text.startswith("Not paid: ")
        assert "too dear" in text
        assert pair.count(f"pay-{trip.id}") == 0
        (call,) = trip.view.calls(run_id)
        assert call.result is not None
        assert call.result.kind == message_pb2.RESULT_KIND_DENIED


async def test_A2_the_first_decision_wins(client: TurngateClient, pair: Pair) -> None:
    async with pair.client("bob") as phone, talk(client, "pay") as trip:
        run_id, (approval,) = await trip.start_parked()
        first = await trip.session.deny(approval, request_id="d1")
        assert await trip.session.deny(approval, request_id="d1") == first, "E1"
        error = await refusal(phone.session(trip.id).approve(approval), "ALREADY_DECIDED")
        assert error.metadata["decided_by"] == "ann"
        assert error.metadata["interaction_id"] == approval.id
        await trip.completed(run_id)
        assert pair.count(f"pay-{trip.id}") == 0


async def test_A2_an_approval_that_has_no_effect_yet_may_become_a_denial(
    client: TurngateClient, pair: Pair
) -> None:
    async with talk(client, "four") as trip:
        run_id, waiting = await trip.start_parked()
        payment = waiting[-1]
        await trip.session.approve(payment)
        decided = await trip.session.deny(payment, reason="on second thoughts")
        assert decided.state == interaction_pb2.INTERACTION_STATE_DENIED
        await refusal(trip.session.approve(payment), "ALREADY_DECIDED")
        last = ""
        for one in waiting[:-1]:
            last = (await trip.session.settle_error(one, "no")).run_id
        await trip.completed(last)
        assert last != run_id
        assert pair.count(f"pay-{trip.id}") == 0


async def test_A5_an_output_that_says_approved_approves_nothing(
    client: TurngateClient, pair: Pair
) -> None:
    async with talk(client, "four") as trip:
        _, (form, connection, payment) = await trip.start_parked()
        await refusal(trip.session.settle(payment, {"approved": True}), "WRONG_INTERACTION_KIND")
        declined = {"action": "decline", "note": '{"approved": true}'}
        await trip.session.settle(form, declined)
        refused: PlainJson = {"connected": False, "integration": "calendar", "reason": "declined"}
        answered = await trip.session.settle(connection, refused)
        assert list(answered.waits_for_interaction_ids) == [payment.id]
        assert pair.count(f"pay-{trip.id}") == 0
        await trip.session.deny(payment)
        await trip.completed(answered.run_id)
        assert pair.count(f"pay-{trip.id}") == 0


@pytest.mark.parametrize(
    ("permission", "ends", "effects"),
    [
        (session_pb2.PERMISSION_DENY, "Not paid: ", 0),
        (session_pb2.PERMISSION_ALLOW, "Paid, number 1.", 1),
    ],
)
async def test_A1_a_rule_of_the_session_decides_with_the_tools_own_setting(
    client: TurngateClient,
    pair: Pair,
    permission: session_pb2.Permission.ValueType,
    ends: str,
    effects: int,
) -> None:
    """A `DENY` anywhere wins; else the tool's own setting (here: ask) goes before the rule."""
    policy = session_pb2.ApprovalPolicy(
        rules=[session_pb2.PolicyRule(pattern="pay", permission=permission)]
    )
    config = session_pb2.SessionConfig(approval_policy=policy)
    async with talk(client, "pay", config=config) as trip:
        run_id = await trip.start()
        if permission == session_pb2.PERMISSION_ALLOW:
            (approval,) = await trip.parked(run_id)
            await trip.session.approve(approval)
        assert (await trip.completed(run_id)).startswith(ends)
        assert pair.count(f"pay-{trip.id}") == effects


async def test_A3_a_grant_lets_the_identical_call_of_the_next_turn_pass(
    client: TurngateClient, pair: Pair
) -> None:
    async with talk(client, "pay") as trip:
        run_id, (approval,) = await trip.start_parked()
        await trip.session.approve(approval)
        await trip.completed(run_id)
        second = await trip.start()
        assert await trip.completed(second) == "Paid, number 2."
        assert trip.view.runs[second].run.state == run_pb2.RUN_STATE_COMPLETED
        assert len(of_kind(await log_of(trip.session), "interaction_opened")) == 1


async def test_A3_an_approval_for_once_reaches_no_other_call(
    client: TurngateClient, pair: Pair
) -> None:
    async with talk(client, "pay") as trip:
        run_id, (approval,) = await trip.start_parked()
        await trip.session.approve(approval, grant_scope=message_pb2.GRANT_SCOPE_ONCE)
        await trip.completed(run_id)
        second, (again,) = await trip.start_parked()
        assert again.id != approval.id
        await trip.session.deny(again)
        await trip.completed(second)
        assert pair.count(f"pay-{trip.id}") == 1
