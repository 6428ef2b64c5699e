"""Owners, participants and inboxes (P1, I5), as far as they need no authentication."""

from __future__ import annotations

from uuid import uuid4

from tests.e2e.pair import Pair
from tests.e2e.talk import VISBY, refusal, talk, the
from tests.e2e.variants import answer_twice
from turngate.v1 import broker_pb2 as pb
from turngate.v1.broker_pb2 import InteractionFilter
from turngate.v1.interaction_pb2 import INTERACTION_KIND_APPROVAL, INTERACTION_KIND_CLIENT_TOOL
from turngate.v1.session_pb2 import SessionConfig
from turngate_client import TurngateClient


async def ids(client: TurngateClient, where: InteractionFilter, page_size: int = 0) -> list[str]:
    """The ids of what the inbox shows, page by page."""
    return [one.id async for one in client.interactions(where, page_size=page_size)]


async def test_P1_a_session_names_its_owner_and_participants(
    client: TurngateClient, pair: Pair
) -> None:
    """They are stored, shown wherever the session is, and stay after a restart of nothing at all:
    whoever creates it owns it, unless another owner is named."""
    label = {"people": uuid4().hex}
    config = SessionConfig(agent="echo", labels=label)
    mine = await client.create_session(config=config, participants=["bob", "eve"])
    given = await client.create_session(config=config, owner="bob")
    alone = await client.create_session(config=config)
    shown = {one.id: one async for one in client.sessions(labels=label)}
    assert {key: (one.owner, list(one.participants)) for key, one in shown.items()} == {
        mine.id: ("ann", ["bob", "eve"]),
        given.id: ("bob", []),
        alone.id: ("ann", []),
    }
    assert await mine.get() == shown[mine.id]
    assert len({one.tenant_id for one in shown.values()}) == 1
    async with pair.client("bob") as bob:
        found = [one.id async for one in bob.sessions(labels=label, owner="bob")]
        assert found == [given.id]
        assert [one.id async for one in bob.sessions(labels=label, owner="eve")] == []


async def test_P1_every_command_and_answer_bears_its_author(
    client: TurngateClient, pair: Pair
) -> None:
    """P2: the name of the call's metadata, in messages, answers, decisions and events."""
    async with pair.client("bob", "phone") as phone, talk(client, "four") as trip:
        bob = phone.session(trip.id)
        sent = await bob.send("Go")
        waiting = await trip.parked(sent.run_id)
        form, connection, payment = waiting
        assert {one.opened_for for one in waiting} == {"bob"}
        assert trip.view.prompts[sent.message_id].message.author == "bob"
        await refusal(
            trip.session.settle(connection, {"connected": True, "integration": "calendar"}),
            "NOT_THE_CLOSER",
        )
        await trip.session.settle(form, VISBY)
        await bob.settle(connection, {"connected": True, "integration": "calendar"})
        await bob.approve(payment, reason="go ahead")
        for question, author, name in (
            (form, "ann", "laptop"),
            (connection, "bob", "phone"),
            (payment, "bob", "phone"),
        ):
            (answer,) = (await trip.session.interaction(question.id)).answers
            assert (answer.author, answer.client) == (author, name)
        (answer,) = (await trip.session.interaction(payment.id)).answers
        assert answer.reason == "go ahead"


async def test_I5_the_inbox_is_filtered_and_paged(client: TurngateClient) -> None:
    """By session, kind, tool, person and labels, alone and together; in call order, whatever the
    size of a page."""
    name = uuid4().hex
    config = SessionConfig(agent="four", labels={"inbox": name})
    async with (
        talk(client, "", config=config) as one,
        talk(client, "", config=config) as two,
    ):
        _, of_one = await one.start_parked()
        _, of_two = await two.start_parked()
        every = [question.id for question in (*of_one, *of_two)]
        label = {"inbox": name}
        for size in (0, 1, 2, 4, 6):
            assert await ids(client, InteractionFilter(labels=label), size) == every, size
        payments = [the(of_one, "pay").id, the(of_two, "pay").id]
        cases = [
            (InteractionFilter(labels=label, kind=INTERACTION_KIND_APPROVAL), payments),
            (InteractionFilter(labels=label, tool_name="pay"), payments),
            (
                InteractionFilter(labels=label, kind=INTERACTION_KIND_CLIENT_TOOL),
                [one for one in every if one not in payments],
            ),
            (InteractionFilter(session_id=two.id), every[3:]),
            (InteractionFilter(session_id=two.id, tool_name="pay"), payments[1:]),
            (InteractionFilter(session_id=two.id, labels={"inbox": "other"}), []),
            (InteractionFilter(labels=label, opened_for="ann"), every),
            (InteractionFilter(labels=label, opened_for="bob"), []),
        ]
        for where, expected in cases:
            for size in (0, 1):
                assert await ids(client, where, size) == expected, where
        await one.session.approve(payments[0])
        await two.session.cancel_interaction(the(of_two, "request_input"))
        left = [question for question in every if question not in (payments[0], of_two[0].id)]
        assert await ids(client, InteractionFilter(labels=label)) == left
        request = pb.ListInteractionsRequest(filter=InteractionFilter(labels=label), page_size=1)
        page = await client.stub.ListInteractions(request)
        await one.session.settle(of_one[0], VISBY)  # the one whose place the token is
        request.page_token = page.next_page_token
        page = await client.stub.ListInteractions(request)
        assert [found.id for found in page.interactions] == left[1:2], "nothing is left out"


async def test_I5_entries_say_whether_their_branch_is_selected(
    client: TurngateClient, pair: Pair
) -> None:
    """C3, F4: a question that a second answer's run waits for alone is on the other branch; with
    `only_selected_branch` it is left out until that is selected."""
    async with talk(client, "two_forms") as trip:
        _, (where, when) = await trip.start_parked()
        everything = InteractionFilter(session_id=trip.id)
        selected = InteractionFilter(session_id=trip.id, only_selected_branch=True)
        fork, beside = await answer_twice(trip, pair, where)
        assert await ids(client, selected) == [when.id], "both wait, and one is selected"
        await trip.session.cancel_run(fork.run_id)
        assert await ids(client, selected) == []
        (entry,) = [one async for one in client.interactions(everything)]
        assert (entry.id, entry.on_selected_branch) == (when.id, False)
        assert list(entry.waiting_run_ids) == [beside.run_id]
        await trip.session.select_branch(beside.run_id)
        assert await ids(client, selected) == [when.id]
        again = (await trip.session.regenerate(beside.run_id)).run.id
        new = [one.id for one in await trip.parked(again)]
        assert await ids(client, selected) == new
        assert await ids(client, everything) == [when.id, *new]
