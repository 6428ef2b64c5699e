"""One provocation for each reason of docs/errors.md: named as the reason, in the page's order.

The first line of its docstring stands above the block. Reasons of runners, and rare ones, are in
error_examples_rare.py.
"""

from __future__ import annotations

from google.protobuf.duration_pb2 import Duration

from broker_service.storage.port import SessionKey
from broker_service.watch.cursor import cursor_at
from tests.docs.error_blocks import Refused, refused
from tests.docs.error_services import World, as_user
from tests.e2e.talk import VISBY, Talk, raw_unary, talk
from turngate.v1 import broker_pb2 as pb
from turngate.v1 import broker_pb2_grpc
from turngate.v1.broker_pb2 import InteractionRef, SettleToolCallRequest
from turngate.v1.interaction_pb2 import CONFLICT_POLICY_FIRST_WINS
from turngate.v1.session_pb2 import ON_BUSY_REJECT, SessionConfig
from turngate_client.interactions import PlainJson

UNKNOWN = "0000000000000000"


def settles(
    trip: Talk, ref: InteractionRef, output: str = '{"action": "decline"}', tool: str = ""
) -> SettleToolCallRequest:
    return SettleToolCallRequest(
        session_id=trip.id, interaction=ref, output_json=output, tool_name=tool
    )


def by_id(interaction_id: str) -> InteractionRef:
    return InteractionRef(interaction_id=interaction_id)


# --- any request ---


async def malformed_request(world: World) -> Refused:
    """Bytes that no client of the contract sends."""
    call = raw_unary(world.channel, "/turngate.v1.BrokerService/SendMessage")
    return await refused("SendMessage", "(the bytes FF FF FF FF)", call(b"\xff\xff\xff\xff"))


async def invalid_field(world: World) -> Refused:
    """A message without content."""
    async with talk(world.client, "echo") as trip:
        return await world.refused("SendMessage", pb.SendMessageRequest(session_id=trip.id))


async def invalid_json(world: World) -> Refused:
    """An output with the same key twice."""
    async with talk(world.client, "form") as trip:
        _, (form,) = await trip.start_parked()
        output = '{"action": "cancel", "action": "accept"}'
        return await world.refused("SettleToolCall", settles(trip, by_id(form.id), output))


async def limit_exceeded(world: World) -> Refused:
    """A second message for a queue that holds one (`--held-messages=1`)."""
    async with talk(world.client, "form") as trip:
        await trip.start_parked()
        await trip.session.send("and then?")
        request = pb.SendMessageRequest(session_id=trip.id, text="and after that?")
        return await world.refused("SendMessage", request)


async def request_id_reused(world: World) -> Refused:
    """Another text under a request id that was used."""
    async with talk(world.client, "echo") as trip:
        await trip.session.send("hello", request_id="req-7")
        request = pb.SendMessageRequest(session_id=trip.id, text="bye", request_id="req-7")
        return await world.refused("SendMessage", request)


async def permission_denied(world: World) -> Refused:
    """An import by somebody who is no admin."""
    request = pb.ImportSessionRequest(session_id="trip-1")
    stub = broker_pb2_grpc.BrokerServiceStub(world.channel)
    call = stub.ImportSession(iter([request]), metadata=as_user("ann"))
    return await refused("ImportSession", request, call)


# --- something is not there ---


async def session_not_found(world: World) -> Refused:
    """An id that nobody has given."""
    return await world.refused("GetSession", pb.GetSessionRequest(session_id="trip-9"))


async def run_not_found(world: World) -> Refused:
    """A run of no session."""
    async with talk(world.client, "echo") as trip:
        request = pb.CancelRunRequest(session_id=trip.id, run_id=f"run_{UNKNOWN}")
        return await world.refused("CancelRun", request)


async def message_not_found(world: World) -> Refused:
    """An edit of a message that is not there."""
    async with talk(world.client, "echo") as trip:
        request = pb.SendMessageRequest(
            session_id=trip.id, text="Visby", edits_message_id=f"msg_{UNKNOWN}"
        )
        return await world.refused("SendMessage", request)


async def interaction_not_found(world: World) -> Refused:
    """A question of another session."""
    async with talk(world.client, "echo") as trip, talk(world.client, "form") as other:
        _, (form,) = await other.start_parked()
        request = pb.GetInteractionRequest(session_id=trip.id, interaction_id=form.id)
        return await world.refused("GetInteraction", request)


async def held_message_not_found(world: World) -> Refused:
    """The removal of a message that has entered."""
    async with talk(world.client, "echo") as trip:
        sent = await trip.session.send("hello")
        request = pb.RemoveHeldMessageRequest(session_id=trip.id, message_id=sent.message_id)
        return await world.refused("RemoveHeldMessage", request)


async def grant_not_found(world: World) -> Refused:
    """A grant that is not there."""
    async with talk(world.client, "echo") as trip:
        request = pb.RevokeGrantRequest(session_id=trip.id, grant_id=f"int_{UNKNOWN}")
        return await world.refused("RevokeGrant", request)


async def node_not_found(world: World) -> Refused:
    """A branch that is not there."""
    async with talk(world.client, "echo") as trip:
        request = pb.SelectBranchRequest(session_id=trip.id, node_id=f"run_{UNKNOWN}")
        return await world.refused("SelectBranch", request)


async def session_deleted(world: World) -> Refused:
    """A message to a session that was deleted."""
    session = await world.client.create_session(agent="echo")
    await session.delete()
    request = pb.SendMessageRequest(session_id=session.id, text="hello?")
    return await world.refused("SendMessage", request)


# --- answers and decisions ---


async def tool_call_not_in_run(world: World) -> Refused:
    """A call that the run has not made."""
    async with talk(world.client, "form") as trip, talk(world.client, "form") as other:
        run_id, _ = await trip.start_parked()
        _, (foreign,) = await other.start_parked()
        ref = InteractionRef(run_id=run_id, call_id=foreign.call_id)
        return await world.refused("SettleToolCall", settles(trip, ref))


async def already_settled(world: World) -> Refused:
    """A second answer, in a session with `CONFLICT_POLICY_FIRST_WINS`."""
    config = SessionConfig(agent="form", conflict_policy=CONFLICT_POLICY_FIRST_WINS)
    async with talk(world.client, "", config=config) as trip:
        _, (form,) = await trip.start_parked()
        await trip.session.settle(form, VISBY)
        return await world.refused("SettleToolCall", settles(trip, by_id(form.id)))


async def wrong_interaction_kind(world: World) -> Refused:
    """An output for an approval."""
    async with talk(world.client, "pay") as trip:
        _, (payment,) = await trip.start_parked()
        return await world.refused("SettleToolCall", settles(trip, by_id(payment.id)))


async def tool_name_mismatch(world: World) -> Refused:
    """The answer of one tool for the question of another."""
    async with talk(world.client, "form") as trip:
        _, (form,) = await trip.start_parked()
        request = settles(trip, by_id(form.id), tool="scan")
        return await world.refused("SettleToolCall", request)


async def invalid_answer(world: World) -> Refused:
    """A form without a field that it requires, and with a number that is too high."""
    async with talk(world.client, "form") as trip:
        _, (form,) = await trip.start_parked()
        output = '{"action": "accept", "content": {"nights": 99}}'
        return await world.refused("SettleToolCall", settles(trip, by_id(form.id), output))


async def interaction_expired(world: World) -> Refused:
    """An answer after the deadline of the question."""
    config = SessionConfig(agent="form", interaction_expires_after=Duration(seconds=2))
    async with talk(world.client, "", config=config) as trip:
        run_id, (form,) = await trip.start_parked()
        await trip.completed(run_id)
        return await world.refused("SettleToolCall", settles(trip, by_id(form.id)))


async def interaction_cancelled(world: World) -> Refused:
    """An answer after the run was stopped."""
    async with talk(world.client, "form") as trip:
        run_id, (form,) = await trip.start_parked()
        await trip.session.cancel_run(run_id)
        return await world.refused("SettleToolCall", settles(trip, by_id(form.id)))


async def interaction_not_handled(world: World) -> Refused:
    """An answer after a client has reported that it cannot show the question."""
    async with talk(world.client, "degrading") as trip:
        _, (plan,) = await trip.start_parked("map")
        await trip.session.report_unhandled(plan)
        return await world.refused("SettleToolCall", settles(trip, by_id(plan.id), "{}"))


async def already_decided(world: World) -> Refused:
    """A denial after an approval."""
    async with talk(world.client, "pay") as trip:
        _, (payment,) = await trip.start_parked()
        await trip.session.approve(payment)
        request = pb.DecideApprovalRequest(
            session_id=trip.id, interaction=by_id(payment.id), decision=pb.DECISION_DENY
        )
        return await world.refused("DecideApproval", request)


async def run_cancelled(world: World) -> Refused:
    """A second answer after the run that went on with the first one was stopped."""
    async with talk(world.client, "asks_then_streams") as trip:
        _, (form,) = await trip.start_parked()
        answer: PlainJson = {"action": "accept", "content": {"city": "Visby"}}
        fork = await trip.session.settle(form, answer)
        await trip.session.cancel_run(fork.run_id)
        return await world.refused("SettleToolCall", settles(trip, by_id(form.id)))


async def not_the_closer(world: World) -> Refused:
    """A connection that was opened for Bob, closed by Ann."""
    async with world.pair.client("bob") as bob, talk(world.client, "degrading") as trip:
        sent = await bob.session(trip.id).send("connect")
        (connection,) = await trip.parked(sent.run_id)
        output = '{"connected": true, "integration": "calendar"}'
        return await world.refused("SettleToolCall", settles(trip, by_id(connection.id), output))


async def call_not_open(world: World) -> Refused:
    """An answer for a tool that the runner executes itself."""
    async with talk(world.client, "four") as trip:
        run_id, _ = await trip.start_parked()
        calls = [one.call for one in trip.view.calls(run_id)]
        (call,) = [call for call in calls if call.name == "look_up"]
        ref = InteractionRef(run_id=run_id, call_id=call.call_id)
        return await world.refused("SettleToolCall", settles(trip, ref))


# --- messages, sessions and runs ---


async def session_busy(world: World) -> Refused:
    """A message that would rather be refused than wait."""
    async with talk(world.client, "form") as trip:
        await trip.start_parked()
        request = pb.SendMessageRequest(session_id=trip.id, text="more", on_busy=ON_BUSY_REJECT)
        return await world.refused("SendMessage", request)


async def message_id_taken(world: World) -> Refused:
    """Another message under an id of the client's own."""
    async with talk(world.client, "echo") as trip:
        await trip.session.send("hello", message_id="m-1")
        request = pb.SendMessageRequest(session_id=trip.id, text="bye", message_id="m-1")
        return await world.refused("SendMessage", request)


async def session_id_taken(world: World) -> Refused:
    """A session under an id that another one has."""
    request = pb.CreateSessionRequest(session_id="trip-1", config=SessionConfig(agent="echo"))
    await world.client.stub.CreateSession(request)
    return await world.refused("CreateSession", request)


async def not_the_author(world: World) -> Refused:
    """Ann edits what Bob has sent."""
    async with world.pair.client("bob") as bob, talk(world.client, "form") as trip:
        await trip.start_parked()
        sent = await bob.session(trip.id).send("and then?")
        request = pb.UpdateHeldMessageRequest(
            session_id=trip.id, message_id=sent.message_id, text="never mind"
        )
        return await world.refused("UpdateHeldMessage", request)


async def run_state(world: World) -> Refused:
    """A retry of a run that has not failed."""
    async with talk(world.client, "echo") as trip:
        run_id = await trip.start()
        await trip.completed(run_id)
        request = pb.RetryRunRequest(session_id=trip.id, run_id=run_id)
        return await world.refused("RetryRun", request)


async def not_a_prompt(world: World) -> Refused:
    """An edit of what the agent has said."""
    async with talk(world.client, "echo") as trip:
        await trip.completed(await trip.start())
        page = await world.client.stub.GetTranscript(
            pb.GetTranscriptRequest(session_id=trip.id), metadata=as_user("ann")
        )
        request = pb.SendMessageRequest(
            session_id=trip.id, text="Visby", edits_message_id=page.messages[-1].id
        )
        return await world.refused("SendMessage", request)


# --- watching and pages ---


async def cursor_invalid(world: World) -> Refused:
    """A cursor of somebody's own making."""
    async with talk(world.client, "echo") as trip:
        return await world.watch_refused(pb.WatchSessionRequest(session_id=trip.id, after="42"))


async def cursor_foreign(world: World) -> Refused:
    """The cursor of another session."""
    async with talk(world.client, "echo") as trip, talk(world.client, "echo") as other:
        cursor = (await other.session.send("hello")).cursor
        return await world.watch_refused(pb.WatchSessionRequest(session_id=trip.id, after=cursor))


async def cursor_future(world: World) -> Refused:
    """A cursor of entries that a restored backup does not have."""
    async with talk(world.client, "echo") as trip:
        tenant = (await trip.session.get()).tenant_id
        cursor = cursor_at(SessionKey(tenant, trip.id), 1_000)
        return await world.watch_refused(pb.WatchSessionRequest(session_id=trip.id, after=cursor))


async def page_token_invalid(world: World) -> Refused:
    """A page token of somebody's own making."""
    return await world.refused("ListSessions", pb.ListSessionsRequest(page_token="2"))


PROVOCATIONS = (
    malformed_request,
    invalid_field,
    invalid_json,
    limit_exceeded,
    request_id_reused,
    permission_denied,
    session_not_found,
    run_not_found,
    message_not_found,
    interaction_not_found,
    held_message_not_found,
    grant_not_found,
    node_not_found,
    session_deleted,
    tool_call_not_in_run,
    already_settled,
    wrong_interaction_kind,
    tool_name_mismatch,
    invalid_answer,
    interaction_expired,
    interaction_cancelled,
    interaction_not_handled,
    already_decided,
    run_cancelled,
    not_the_closer,
    call_not_open,
    session_busy,
    message_id_taken,
    session_id_taken,
    not_the_author,
    run_state,
    not_a_prompt,
    cursor_invalid,
    cursor_foreign,
    cursor_future,
    page_token_invalid,
)
