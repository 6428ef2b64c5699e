"""The main job: form, hint, held message, answer, fork, approval, tree, transcript."""

from __future__ import annotations

from tests.e2e.pair import Pair
from tests.e2e.talk import VISBY, log_of, of_kind, states, talk
from turngate.v1 import broker_pb2, run_pb2, session_pb2
from turngate.v1.message_pb2 import ROLE_ASSISTANT, ROLE_USER, Message
from turngate_client import TurngateClient, fold
from turngate_client.interactions import PlainJson


async def test_a_conversation_parks_on_a_form_and_goes_on(client: TurngateClient) -> None:
    """F2, H1, G1, G2, A2: the demo's own conversation."""
    async with talk(client, "demo") as trip:
        run_id, (form,) = await trip.start_parked("Plan a trip")
        assert form.tool_name == "request_input"
        (call,) = trip.view.calls(run_id)
        assert call.hint is not None
        assert call.hint.kind == "elicitation"
        assert call.hint.tool_call_id == form.call_id

        held = await trip.session.send("Actually, in euro")
        assert held.outcome == broker_pb2.SEND_OUTCOME_HELD
        assert list(held.held.waits_for_interaction_ids) == [form.id]

        content: PlainJson = {"city": "Visby", "nights": 3, "room": "double"}
        answered = await trip.session.settle(form, {"action": "accept", "content": content})
        assert answered.fork_opened
        assert answered.superseded_run_id == run_id
        fork_id = answered.run_id
        (approval,) = await trip.parked(fork_id)
        assert approval.tool_name == "book_hotel"
        decided = await trip.session.approve(approval)
        assert decided.acted_on_run_id == fork_id, "a decision goes on in place (R5)"

        text = await trip.completed(fork_id)
        assert "It is booked: 3 nights in Visby" in text
        entered = await trip.until(
            lambda view: next((p for p in view.prompts.values() if p.was_held), None),
            "the held message to enter",
        )
        assert entered.parent_id == fork_id
        (second_run,) = trip.view.children(entered.message.id)
        assert "Actually, in euro" in await trip.completed(second_run)

        tree = await trip.session.tree()
        selected = [node.id for node in tree if node.selected]
        assert selected == [answered.prompt_id, fork_id, entered.message.id, second_run]
        assert run_id not in [node.id for node in tree], "a superseded run is not shown (F8)"
        with_superseded = await trip.session.tree(include_superseded=True)
        assert run_id in [node.id for node in with_superseded]

        transcript = await trip.session.transcript()
        assert [message.role for message in transcript if message.role == ROLE_USER] == [
            ROLE_USER,
            ROLE_USER,
        ]
        watched = trip.view.transcript()
        assert without_hints(transcript) == without_hints(watched), "read is what was watched"


async def test_a_fork_has_the_whole_run_before_its_answer(client: TurngateClient) -> None:
    """F2, F3, T3: each message of the parked run stands in the fork, under an id of its own."""
    async with talk(client, "form") as trip:
        run_id, (form,) = await trip.start_parked()
        answered = await trip.session.settle(form, VISBY, client_ref="tab 1")
        assert answered.client_ref == "tab 1"
        assert await trip.completed(answered.run_id) == "Where to? Off to Visby."

        before = await trip.session.transcript(run_id)
        after = await trip.session.transcript(answered.run_id)
        copies = after[: len(before)]
        assert [m.id for m in copies[1:]] != [m.id for m in before[1:]]
        asked, answer = before[1].parts, copies[1].parts
        assert [part.WhichOneof("content") for part in asked] == ["text", "tool_call"]
        assert [part.WhichOneof("content") for part in answer] == [
            "text",
            "tool_call",
            "tool_result",
        ]
        assert answer[1].tool_call == asked[1].tool_call, "a copy of a call is that call (T3)"
        assert copies[1].id == answered.message_id
        assert after[-1].role == ROLE_ASSISTANT

        run = (await trip.session.run(message_id=copies[1].id)).run
        assert run.id == answered.run_id
        again = (await trip.session.run(run_id)).run
        assert again.superseded_by_run_id == answered.run_id
        assert again.state == run_pb2.RUN_STATE_PARKED


async def test_the_log_folds_to_the_same_view_and_says_each_thing_once(
    client: TurngateClient,
) -> None:
    """W1: positions rise, and a second watcher comes to the same state."""
    async with talk(client, "form") as trip:
        run_id, (form,) = await trip.start_parked()
        answered = await trip.session.settle(form, VISBY)
        await trip.completed(answered.run_id)
        log = await log_of(trip.session)
        positions = [event.position for event in log]
        assert positions == sorted(set(positions))
        assert fold(log).transcript() == trip.view.transcript()
        assert states(log, run_id) == ["RUNNING", "PARKED"]
        assert states(log, answered.run_id) == ["RUNNING", "COMPLETED"]
        assert len(of_kind(log, "run_created")) == 2
        assert len(of_kind(log, "answer_added")) == 1


async def test_the_inbox_has_what_waits_and_nothing_else(
    client: TurngateClient, pair: Pair
) -> None:
    """I3, I5: nobody needs to be attached; another client finds the question and answers it."""
    async with talk(client, "form") as trip, pair.client("bob", "phone") as phone:
        run_id, (form,) = await trip.start_parked()
        entries = [one async for one in phone.interactions() if one.session_id == trip.id]
        (entry,) = entries
        assert entry.id == form.id
        assert entry.on_selected_branch
        assert list(entry.waiting_run_ids) == [run_id]
        assert entry.render_hint.kind == "elicitation"
        assert "Where would you like to go?" in entry.arguments_json

        answered = await phone.session(trip.id).settle(entry, VISBY)
        await trip.completed(answered.run_id)
        assert [one async for one in phone.interactions() if one.session_id == trip.id] == []
        closed = await trip.session.interaction(form.id)
        (answer,) = closed.answers
        assert (answer.author, answer.client) == ("bob", "phone")


async def test_two_sessions_have_nothing_to_do_with_each_other(client: TurngateClient) -> None:
    """A session's client tools, runs and questions are its own; both appear in the list."""
    async with talk(client, "form") as one, talk(client, "form") as two:
        _, (first,) = await one.start_parked()
        _, (second,) = await two.start_parked()
        assert first.id != second.id
        listed = [session.id async for session in client.sessions()]
        assert {one.id, two.id} <= set(listed)
        session = await one.session.get()
        assert session.open_interaction_count == 1
        assert session.config.agent == "form"
        assert session.config.on_busy == session_pb2.ON_BUSY_UNSPECIFIED


def without_hints(messages: list[Message]) -> list[Message]:
    """The messages that are no render hints."""
    return [m for m in messages if not any(part.HasField("render_hint") for part in m.parts)]
