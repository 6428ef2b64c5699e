"""Scenario 10: what no client can show, and who may close what; nothing hangs silently."""

from __future__ import annotations

import asyncio
import json

import pytest
from google.protobuf.duration_pb2 import Duration

from tests.e2e.conftest import StartPair
from tests.e2e.pair import Pair
from tests.e2e.talk import VISBY, Talk, log_of, of_kind, refusal, talk, the
from tests.e2e.variants import answer_twice, call_in, check, city, result_kinds, run_of
from turngate.v1 import interaction_pb2, run_pb2
from turngate.v1.interaction_pb2 import Interaction
from turngate.v1.session_pb2 import ClientTool, SessionConfig
from turngate_client import SessionClient, TurngateClient
from turngate_client.interactions import PlainJson

UNHANDLED = interaction_pb2.INTERACTION_NOTICE_UNHANDLED
UNSUPPORTED = interaction_pb2.INTERACTION_NOTICE_UNSUPPORTED_PAYLOAD
RESULT = "tool_result_added"
OPEN = interaction_pb2.INTERACTION_STATE_OPEN
DECLARES = SessionConfig(
    agent="degrading", client_tools=[ClientTool(name="show_plan", kind="plan")]
)


async def other_question(trip: Talk, *seen: Interaction) -> Interaction:
    """The one open question that is none of these."""
    ids = {one.id for one in seen}

    def found(view: object) -> Interaction | None:
        fresh = [one for one in trip.view.open_interactions() if one.id not in ids]
        return fresh[0] if fresh else None

    return await trip.until(found, "another question")


async def noticed(trip: Talk, question: Interaction) -> None:
    """Until an open question asks people to look at it."""
    await trip.until(
        lambda view: view.interactions[question.id].notice == UNHANDLED or None, "the notice"
    )


async def test_scenario_10_a_tool_that_the_client_cannot_show_is_called_again(
    client: TurngateClient, pair: Pair
) -> None:
    """Scenario 10, D1: settled in place with an output that is no error, once a turn; the same
    again stays open with a notice, and is answered by the phone. The next turn counts afresh."""
    async with pair.client("bob", "phone") as phone, talk(client, "degrading") as trip:
        run_id, (first,) = await trip.start_parked("map")
        assert not first.declared
        await trip.session.report_unhandled(call_in(run_id, first), detail="no maps here")
        second = await other_question(trip, first)
        closed = await trip.session.interaction(first.id)
        assert closed.state == interaction_pb2.INTERACTION_STATE_NOT_HANDLED
        (result,) = [
            e.tool_result_added.result for e in of_kind(await log_of(trip.session), RESULT)
        ]
        assert json.loads(result.output_json)["status"] == "not_handled"
        assert not result.HasField("error_text")
        await refusal(trip.session.settle(first, {}), "INTERACTION_NOT_HANDLED")

        await trip.session.report_unhandled(second)
        await noticed(trip, second)
        await phone.session(trip.id).report_unhandled(second)  # still, and once
        fork = await phone.session(trip.id).settle(second, {"shown": True})
        assert await trip.completed(fork.run_id) == "not_handled answered"
        run_id, (again,) = await trip.start_parked("map")
        await trip.session.report_unhandled(again)
        last = await other_question(trip, again)
        assert (await trip.session.interaction(again.id)).state != OPEN
        await trip.session.cancel_interaction(last)
        assert await trip.completed(run_id) == "not_handled cancelled_by_user"
        log = await check(trip)
        assert len(of_kind(log, "notice_added")) == 1
        assert len(of_kind(log, "run_created")) == 3, "what the broker settles opens no fork (R5)"


async def test_scenario_10_a_declared_tool_waits_for_the_phone(
    client: TurngateClient, pair: Pair
) -> None:
    """Scenario 10, D1: however often the laptop cannot show it."""
    async with pair.client("bob", "phone") as phone, talk(client, "", config=DECLARES) as trip:
        run_id, (plan,) = await trip.start_parked("declared")
        assert plan.declared
        assert plan.render_hint.kind == "plan"
        for ref in (plan, plan, call_in(run_id, plan)):
            await trip.session.report_unhandled(ref)
        still = await trip.session.interaction(plan.id)
        assert (still.state, still.notice) == (OPEN, 0)
        fork = await phone.session(trip.id).settle(plan, "seen")
        assert await trip.completed(fork.run_id) == "answered: seen"
        await trip.session.report_unhandled(plan)  # too late to matter
        await check(trip)


async def test_scenario_10_a_tool_that_was_never_offered(client: TurngateClient) -> None:
    """Scenario 10, R4: it goes back to the model as an error and never parks; the form beside it
    waits as ever. The same for a tool that another session has declared."""
    async with talk(client, "degrading") as trip:
        _, (form,) = await trip.start_parked("nobody")
        assert form.tool_name == "request_input"
        fork = await trip.session.settle(form, city("Visby"))
        assert await trip.completed(fork.run_id) == "refused accepted"
        assert result_kinds(await trip.session.transcript()) == ["CALL_REFUSED", "CLIENT"]
        elsewhere = await trip.start("declared")
        assert await trip.completed(elsewhere) == "refused: -"
        await check(trip)


async def test_scenario_10_forms_of_a_wrong_shape_beside_a_good_one(
    client: TurngateClient, pair: Pair
) -> None:
    """Scenario 10, D2: a nested one and one for a secret are settled in the write that parks, the
    good one stays; after two answers each branch has the next one open with a notice."""
    async with talk(client, "degrading") as trip:
        parked, (good,) = await trip.start_parked("shapes")
        log = await log_of(trip.session)
        errors = [e.tool_result_added.result.error_text for e in of_kind(log, RESULT)]
        assert len(errors) == 2
        assert all(text.startswith("elicitation: unsupported payload — ") for text in errors)
        fork, other = await answer_twice(trip, pair, good)
        for run in (fork, other):
            (noticed_one,) = await trip.parked(run.run_id)
            assert noticed_one.notice == UNSUPPORTED
            last = await trip.session.settle_error(noticed_one, "cannot be shown")
            text = await trip.completed(last.run_id)
            assert text == "unsupported accepted unsupported error"
        assert parked not in [node.id for node in await trip.session.tree()]
        await check(trip)


async def test_scenario_10_a_report_while_other_calls_of_the_step_are_open(
    client: TurngateClient, pair: Pair
) -> None:
    """Scenario 10, D1, F4: settled for every branch that waits for it, once; the second call of the
    step gets the notice, and nothing resumes before the rest is closed."""
    async with talk(client, "degrading") as trip:
        _, waiting = await trip.start_parked("both")
        form = the(waiting, "request_input")
        one, two = [question for question in waiting if question.tool_name == "map"]
        fork, other = await answer_twice(trip, pair, form)
        await trip.session.report_unhandled(one)
        await trip.session.report_unhandled(two)
        await noticed(trip, two)
        (left,) = await trip.session.open_interactions()
        assert left.id == two.id
        assert sorted(left.waiting_run_ids) == sorted([fork.run_id, other.run_id])
        done = await trip.session.settle(call_in(other.run_id, two), [])
        assert done.run_id == other.run_id
        for run in (fork, other):
            assert await trip.completed(run.run_id) == "not_handled accepted answered"
        assert trip.view.selected_node_id == fork.run_id
        await check(trip)


async def test_scenario_10_a_call_that_nobody_reports(killable: Pair) -> None:
    """Scenario 10, D1: after `unclaimed_after` the broker settles it, also after a kill -9."""
    config = SessionConfig(agent="degrading", unclaimed_after=Duration(seconds=1))
    async with killable.client() as client, talk(client, "", config=config) as trip:
        run_id, (first,) = await trip.start_parked("map")
        killable.broker.kill()
        await killable.broker.restart()
        second = await other_question(trip, first)
        await noticed(trip, second)
        await trip.session.cancel_interaction(second)
        assert await trip.completed(run_id) == "not_handled cancelled_by_user"
        assert {e.actor for e in of_kind(await check(trip), "notice_added")} == {""}


async def test_scenario_10_a_form_with_nobody_attached(killable: Pair) -> None:
    """Scenario 10, I3, I5: its client is gone, both services are started anew, and somebody who has
    never seen the session finds it in the inbox and answers."""
    async with killable.client() as client:
        session = await client.create_session(agent="chat", participants=["bob"])
        sent = await session.send("A trip")
        await session.until(lambda view: view.open_interactions() or None, 20, "the form")
    for service in (killable.broker, killable.runner):
        service.kill()
        await service.restart()
    async with killable.client("bob", "phone") as phone:
        (form,) = [one async for one in phone.interactions() if one.session_id == session.id]
        assert list(form.waiting_run_ids) == [sent.run_id]
        assert form.on_selected_branch
        found = phone.session(form.session_id)
        settled = await found.settle(form, VISBY)
        await found.until(
            lambda view: view.runs[settled.run_id].run.state == run_pb2.RUN_STATE_COMPLETED or None,
            20,
            "the run to end",
        )
        assert [one async for one in phone.interactions() if one.session_id == session.id] == []


async def test_scenario_10_a_connection_is_finished_by_whom_it_was_opened_for(
    client: TurngateClient, pair: Pair
) -> None:
    """Scenario 10, B2, P1: not by the session's owner, nor by somebody with a credential."""
    connected: dict[str, PlainJson] = {"connected": True, "integration": "calendar"}
    async with pair.client("bob", "phone") as phone, talk(client, "degrading") as trip:
        bob: SessionClient = phone.session(trip.id)
        run_id = (await bob.send("connect")).run_id
        (connection,) = await trip.parked(run_id)
        assert (connection.opened_for, list(connection.closers)) == ("bob", ["bob"])
        for ref in (connection, call_in(run_id, connection)):
            error = await refusal(trip.session.settle(ref, connected), "NOT_THE_CLOSER")
            assert error.metadata["interaction_id"] == connection.id
            await refusal(trip.session.settle_error(ref, "never mind"), "NOT_THE_CLOSER")
        await refusal(
            bob.settle(connection, connected | {"access_token": "s3cr3t"}), "INVALID_ANSWER"
        )
        await refusal(bob.settle(connection, connected | {"integration": "mail"}), "INVALID_ANSWER")
        assert (await trip.session.interaction(connection.id)).state == OPEN
        fork = await bob.settle(connection, connected)
        assert await trip.completed(fork.run_id) == "accepted: true"
        await refusal(trip.session.settle(connection, connected), "NOT_THE_CLOSER")
        assert len(of_kind(await check(trip), "answer_added")) == 1


# --- D3 ---


@pytest.mark.parametrize("limit", ["turn", "step"])
async def test_D3_over_the_limit_twice_in_a_row_fails_by_name(
    start_pair: StartPair, limit: str
) -> None:
    """Scenario 10: the third question gets an error; those that are answered in between open a
    fork, and it counts on. What is held goes on then."""
    pair = start_pair(broker_flags=(f"--questions-a-{limit}=2",))
    async with pair.client() as client, talk(client, "curious") as trip:
        _, (one, two) = await trip.start_parked("3 3")
        log = await log_of(trip.session)
        (over,) = [e.tool_result_added.result for e in of_kind(log, RESULT)]
        assert over.error_text.startswith("Too many questions")
        held = await trip.session.send("2")
        await asyncio.gather(
            trip.session.settle(one, city("a")), trip.session.settle(two, city("b"))
        )
        (fork,) = [run_id for run_id in trip.view.runs if run_id != one.run_id]
        failed = (await trip.ended(fork)).run
        assert failed.failure.reason == run_pb2.RUN_FAILURE_REASON_QUESTION_LIMIT
        # The next turn may ask again, as many as the limit says.
        next_run = await run_of(trip, held.message_id)
        assert len(await trip.parked(next_run)) == 2
        await check(trip)


async def test_D3_a_step_without_too_many_in_between_is_forgiven(start_pair: StartPair) -> None:
    """Scenario 10: over the limit, then not, then over it again: each time an error, and the model
    goes on."""
    pair = start_pair(broker_flags=("--questions-a-step=2",))
    async with pair.client() as client, talk(client, "curious") as trip:
        _, (one, two) = await trip.start_parked("3 0 3")
        await trip.session.settle(one, city("a"))
        fork = await trip.session.settle(two, city("b"))
        three, four = await trip.parked(fork.run_id)
        await trip.session.settle(three, {"action": "decline"})
        last = await trip.session.settle(four, {"action": "decline"})
        text = await trip.completed(last.run_id)
        assert text == "Well. question_limit declined declined question_limit"
        await check(trip)
