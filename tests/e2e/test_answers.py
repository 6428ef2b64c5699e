"""Answers of clients over the wire: forks, partial answers, repetitions, refusals."""

from __future__ import annotations

import asyncio
import json

import pytest
from grpc import StatusCode
from grpc.aio import AioRpcError

from tests.e2e.pair import Pair
from tests.e2e.talk import VISBY, Talk, attempts, log_of, of_kind, refusal, states, talk, the
from turngate.v1 import interaction_pb2
from turngate.v1.broker_pb2 import InteractionRef, SettleToolCallRequest
from turngate.v1.session_pb2 import SessionConfig
from turngate_client import TurngateClient, TurngateError
from turngate_client.errors import error_from_rpc
from turngate_client.interactions import PlainJson


async def test_scenario_4_parallel_calls_and_partial_answers(
    client: TurngateClient, pair: Pair
) -> None:
    """R4, F2, F4, T4: one fork, one resume, four results in call order."""
    async with pair.client("bob", "phone") as phone, talk(client, "four") as trip:
        run_id, waiting = await trip.start_parked()
        inbox = [one async for one in phone.interactions() if one.session_id == trip.id]
        order = ["request_input", "request_connection", "pay"]
        assert [one.tool_name for one in inbox] == order, "in call order"
        assert [one.tool_name for one in waiting] == order
        look_up = trip.view.calls(run_id)[0]
        assert look_up.result is not None, "stored when the run parks"
        assert look_up.result.output_json == '{"weather":"fine"}'
        assert pair.count(f"look_up-{trip.id}") == 1

        connected: PlainJson = {"connected": True, "integration": "calendar", "reference": "ref-1"}
        first = await trip.session.settle(the(waiting, "request_connection"), connected)
        assert first.fork_opened
        form, payment = the(waiting, "request_input"), the(waiting, "pay")
        assert list(first.waits_for_interaction_ids) == [form.id, payment.id]
        # The phone still knows the parked run only, and names it (F4, F8).
        second = await phone.session(trip.id).settle(
            InteractionRef(run_id=run_id, call_id=form.call_id), VISBY
        )
        assert not second.fork_opened
        assert second.run_id == first.run_id == second.acted_on_run_id
        assert list(second.waits_for_interaction_ids) == [payment.id]
        assert pair.count(f"pay-{trip.id}") == 0
        decided = await trip.session.approve(payment)
        assert decided.acted_on_run_id == first.run_id

        model_input = json.loads(await trip.completed(first.run_id))
        calls = [call["call_id"] for call in model_input[1]["calls"]]
        results = model_input[1]["results"]
        assert [result["call_id"] for result in results] == calls, "in call order (T4)"
        assert [result["kind"] for result in results] == ["tool", "client", "client", "tool"]
        assert json.loads(results[1]["output"]) == VISBY
        assert json.loads(results[2]["output"]) == connected
        assert json.loads(results[3]["output"]) == {"paid": 1}

        log = await log_of(trip.session)
        assert len(of_kind(log, "run_created")) == 2, "one fork"
        assert attempts(log, first.run_id) == [1], "one resume"
        assert attempts(log, run_id) == [1]
        assert pair.count(f"look_up-{trip.id}") == 1
        assert pair.count(f"pay-{trip.id}") == 1


async def test_scenario_5_the_same_question_in_the_next_turn_parks_again(
    client: TurngateClient,
) -> None:
    """X5, I2, F5: the answer of turn 1 is not reused, and its interaction is not this one."""
    async with talk(client, "form") as trip:
        _, (first,) = await trip.start_parked("turn 1")
        answered = await trip.session.settle(first, VISBY)
        await trip.completed(answered.run_id)

        run_id, (second,) = await trip.start_parked("turn 2")
        assert second.id != first.id
        assert second.call_id != first.call_id
        first_call = trip.view.calls(answered.run_id)[0].call
        assert trip.view.calls(run_id)[0].call.arguments_json == first_call.arguments_json
        # Turn 1's question has its answer: another one cannot be given once turn 2 has begun.
        error = await refusal(trip.session.settle(first, {"action": "decline"}), "ALREADY_SETTLED")
        assert error.metadata["run_id"] == answered.run_id
        answered = await trip.session.settle(
            second, {"action": "accept", "content": {"city": "Ystad", "nights": 1}}
        )
        assert (await trip.completed(answered.run_id)).endswith("Off to Ystad.")


async def test_scenario_2_the_answer_whose_response_got_lost(client: TurngateClient) -> None:
    """E1, F5, F10: however often it is repeated, there is one fork."""
    first_wins = SessionConfig(conflict_policy=interaction_pb2.CONFLICT_POLICY_FIRST_WINS)
    async with talk(client, "form", config=first_wins) as trip:
        run_id, (form,) = await trip.start_parked()
        first, *repeated = [
            await trip.session.settle(form, VISBY, request_id="phone-1") for _ in range(3)
        ]
        assert repeated == [first, first]
        error = await refusal(
            trip.session.settle(form, {"action": "decline"}, request_id="phone-1"),
            "REQUEST_ID_REUSED",
        )
        assert error.code is StatusCode.ALREADY_EXISTS
        assert error.metadata["request_id"] == "phone-1"
        again = await trip.session.settle(form, VISBY, request_id="phone-2")
        assert (again.run_id, again.answer_id) == (first.run_id, first.answer_id)
        error = await refusal(
            trip.session.settle(form, {"action": "decline"}, request_id="phone-3"),
            "ALREADY_SETTLED",
        )
        assert error.metadata["interaction_id"] == form.id
        assert error.metadata["answer_id"] == first.answer_id
        assert error.metadata["run_id"] == first.run_id
        assert error.metadata["answered_at"].endswith("Z")

        await trip.completed(first.run_id)
        log = await log_of(trip.session)
        assert len(of_kind(log, "run_created")) == 2
        assert len(of_kind(log, "answer_added")) == 1
        assert attempts(log, first.run_id) == [1]
        assert states(log, run_id) == ["RUNNING", "PARKED"]


async def test_scenario_1_two_answers_to_one_form(client: TurngateClient, pair: Pair) -> None:
    """F2, F5, F8: siblings, each with its own answer; the first one's stays selected."""
    ystad: PlainJson = {"action": "accept", "content": {"city": "Ystad", "nights": 1}}
    async with pair.client("bob", "phone") as phone, talk(client, "form") as trip:
        run_id, (form,) = await trip.start_parked()
        one, two = await asyncio.gather(
            trip.session.settle(form, VISBY), phone.session(trip.id).settle(form, ystad)
        )
        assert one.run_id != two.run_id
        assert await trip.completed(one.run_id) == "Where to? Off to Visby."
        assert await trip.completed(two.run_id) == "Where to? Off to Ystad."
        (first, second) = (await trip.session.interaction(form.id)).answers
        assert {first.run_id, second.run_id} == {one.run_id, two.run_id}
        assert trip.view.branch()[-1] == first.run_id, "the first answer keeps the selection"
        prompt = trip.view.parent_of(run_id)
        assert trip.view.children(prompt) == [first.run_id, second.run_id]
        runs = {node.id: node.run for node in await trip.session.tree() if node.run.id}
        assert set(runs) == {one.run_id, two.run_id}
        assert {run.supersedes_run_id for run in runs.values()} == {run_id}


async def test_E1_the_same_answer_ten_times_at_once_opens_one_fork(
    client: TurngateClient,
) -> None:
    async with talk(client, "form") as trip:
        _, (form,) = await trip.start_parked()
        answers = await asyncio.gather(
            *(trip.session.settle(form, VISBY, request_id="same") for _ in range(10))
        )
        assert len({answer.SerializeToString() for answer in answers}) == 1
        await trip.completed(answers[0].run_id)
        assert len(of_kind(await log_of(trip.session), "run_created")) == 2


async def test_F7_a_foreign_call_is_refused_with_the_legacy_code(client: TurngateClient) -> None:
    async with talk(client, "form") as trip, talk(client, "form") as other:
        run_id, _ = await trip.start_parked()
        other_run, (foreign,) = await other.start_parked()
        error = await refusal(
            trip.session.settle(InteractionRef(run_id=run_id, call_id=foreign.call_id), VISBY),
            "TOOL_CALL_NOT_IN_RUN",
        )
        assert error.code is StatusCode.FAILED_PRECONDITION
        assert error.metadata["legacy_code"] == "40003"
        assert error.metadata["call_id"] == foreign.call_id
        assert error.metadata["run_id"] == run_id
        await refusal(
            trip.session.settle(InteractionRef(run_id=other_run, call_id=foreign.call_id), VISBY),
            "RUN_NOT_FOUND",
        )
        await refusal(trip.session.settle(foreign.id, VISBY), "INTERACTION_NOT_FOUND")
        assert len(trip.view.open_interactions()) == 1
        assert len(other.view.open_interactions()) == 1


async def test_F1_an_answer_that_breaks_the_form_gets_one_violation_a_field(
    client: TurngateClient,
) -> None:
    """F1, E1: the form stays open, and is corrected under the same request id."""
    async with talk(client, "form") as trip:
        _, (form,) = await trip.start_parked()
        wrong: PlainJson = {
            "action": "accept",
            "content": {"city": "", "nights": 99, "room": "suite"},
        }
        error = await refusal(
            trip.session.settle(form, wrong, request_id="form-1"), "INVALID_ANSWER"
        )
        assert error.code is StatusCode.INVALID_ARGUMENT
        assert error.metadata["interaction_id"] == form.id
        fields = [violation.field for violation in error.violations]
        assert [field.rpartition(".")[2] for field in fields] == ["city", "nights", "room"]
        assert all(violation.description for violation in error.violations)
        assert (await trip.session.interaction(form.id)).state == (
            interaction_pb2.INTERACTION_STATE_OPEN
        )
        answered = await trip.session.settle(form, VISBY, request_id="form-1")
        assert (await trip.completed(answered.run_id)).endswith("Off to Visby.")
        assert len(of_kind(await log_of(trip.session), "answer_added")) == 1


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_B1_to_decline_a_form_is_an_answer_and_no_error(
    client: TurngateClient, action: str
) -> None:
    async with talk(client, "form") as trip:
        _, (form,) = await trip.start_parked()
        answered = await trip.session.settle(form, {"action": action, "note": "not now"})
        past = {"decline": "declined", "cancel": "cancelled"}[action]
        assert (await trip.completed(answered.run_id)).endswith(f"No trip: {past}.")


async def test_F1_an_error_text_is_an_answer(client: TurngateClient) -> None:
    async with talk(client, "form") as trip:
        _, (form,) = await trip.start_parked()
        answered = await trip.session.settle_error(form, "the form did not open")
        assert (await trip.completed(answered.run_id)).endswith("No trip: error.")
        (call,) = trip.view.calls(answered.run_id)
        assert call.result is not None
        assert call.result.error_text == "the form did not open"


async def test_F1_what_is_not_an_answer_is_refused_by_name(client: TurngateClient) -> None:
    async with talk(client, "form") as trip:
        _, (form,) = await trip.start_parked()
        ref = InteractionRef(interaction_id=form.id)
        with_both = trip.session.settle(form, VISBY, tool_name="book_hotel")
        error = await refusal(with_both, "TOOL_NAME_MISMATCH")
        assert error.metadata == {"tool_name": "book_hotel", "expected": "request_input"}
        await refusal(trip.session.approve(form), "WRONG_INTERACTION_KIND")
        await refusal(trip.session.settle_error(form, ""), "INVALID_FIELD")
        await refusal(trip.session.settle(InteractionRef(), VISBY), "INVALID_FIELD")
        nothing = SettleToolCallRequest(session_id=trip.id, interaction=ref)
        await refusal(asked(client, nothing), "INVALID_FIELD")
        await refusal(client.session("ses_unknown").settle(form, VISBY), "SESSION_NOT_FOUND")
        assert trip.view.open_interactions() == [form]


async def asked(client: TurngateClient, request: SettleToolCallRequest) -> object:
    """The answer to a request that the client would not make."""
    try:
        return await client.stub.SettleToolCall(request)
    except AioRpcError as error:
        raise error_from_rpc(error) from None


async def answered_form(trip: Talk) -> str:
    """A turn with a form, answered; its run."""
    _, (form,) = await trip.start_parked()
    return (await trip.session.settle(form, VISBY)).run_id


async def test_F9_a_run_is_found_by_its_messages_and_questions(client: TurngateClient) -> None:
    async with talk(client, "form") as trip:
        run_id, (form,) = await trip.start_parked()
        assert (await trip.session.run(interaction_id=form.id)).run.id == run_id
        answered = await trip.session.settle(form, VISBY)
        await trip.completed(answered.run_id)
        assert (await trip.session.run(interaction_id=form.id)).run.id == answered.run_id
        assert (await trip.session.run(message_id=form.message_id)).run.id == run_id
        assert (await trip.session.run(message_id=answered.message_id)).run.id == answered.run_id
        with pytest.raises(TurngateError, match="RUN_NOT_FOUND"):
            await trip.session.run("run_unknown")


async def test_T3_each_turn_has_its_own_run_and_the_next_one_goes_on_after_it(
    client: TurngateClient,
) -> None:
    async with talk(client, "form") as trip:
        first = await answered_form(trip)
        await trip.completed(first)
        second = await answered_form(trip)
        await trip.completed(second)
        prompt = trip.view.parent_of(second)
        assert trip.view.parent_of(prompt) == first
        assert len({message.id for message in trip.view.transcript()}) == len(
            trip.view.transcript()
        )
