"""The provocations of runners' reasons, and of what a healthy service does not answer.

`NEVER`: the reasons that nobody can be answered with in this build, and why.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from tests.docs.error_blocks import Refused, as_json, refused
from tests.docs.error_services import World, ended
from tests.e2e.runner.broker_side import BrokerSide, Stub, start, user
from turngate.v1 import broker_pb2 as pb
from turngate.v1 import runner_pb2
from turngate_core.errors import Reason

NEVER: Mapping[Reason, str] = {
    Reason.NOT_IMPLEMENTED: "it cannot happen in this build, which lacks no method",
    Reason.UNAUTHENTICATED: "it cannot happen in this build yet, which has no authentication",
    Reason.STALE_ATTEMPT: "the broker ends the stream of such an attempt instead",
}


async def internal(world: World) -> Refused:
    """A mistake in the service: its text stays in the log, under the id."""
    request = pb.GetServerInfoRequest()
    return await refused("GetServerInfo", request, world.faulty.GetServerInfo(request))


async def store_unavailable(world: World) -> Refused:
    """A message while the database is away."""
    request = pb.SendMessageRequest(session_id="trip-1", text="hello")
    return await refused("SendMessage", request, world.faulty.SendMessage(request))


async def session_too_new(world: World) -> Refused:
    """A session of a newer broker, after a step back to this one."""
    request = pb.GetSessionRequest(session_id="trip-1")
    return await refused("GetSession", request, world.faulty.GetSession(request))


async def watch_too_slow(world: World) -> Refused:
    """A watch of which nothing was read for the time of `stuck_reader`."""
    request = pb.WatchSessionRequest(session_id="trip-1")
    return await refused("WatchSession", request, ended(world.faulty.WatchSession(request)))


async def shutting_down(world: World) -> Refused:
    """A watch while the broker is stopped."""
    session = await world.client.create_session(agent="echo")
    request = pb.WatchSessionRequest(session_id=session.id)
    live = asyncio.Event()

    async def read() -> None:
        async for frame in world.client.stub.WatchSession(request):
            if frame.live:
                live.set()

    watching = asyncio.create_task(refused("WatchSession", request, read()))
    async with asyncio.timeout(20):
        await live.wait()
        assert await world.pair.broker.stop() == 0
        return await watching


async def agent_not_found(world: World) -> Refused:
    """A run of an agent that this runner does not have."""
    return await _executed(world.runner, start("planner", [user("go")]))


async def protocol_violation(world: World) -> Refused:
    """A start in a revision of the protocol that is to come."""
    return await _executed(world.runner, start("echo", [user("go")], protocol_revision=2))


async def runner_busy(world: World) -> Refused:
    """A second run for a runner that executes one (`--max-concurrent-runs=1`)."""
    first = await BrokerSide(world.small_runner, start("gated", [user("go")]), [user("go")]).open()
    await first.until("text_delta")
    try:
        return await _executed(world.small_runner, start("echo", [user("go")], run_id="r2"))
    finally:
        first.drop()


async def invalid_transcript(world: World) -> Refused:
    """A part of a message with nothing in it."""
    message = runner_pb2.TranscriptMessage(role="user", parts=[runner_pb2.TranscriptPart()])
    request = runner_pb2.ExtractToolResultsRequest(messages=[message])
    call = world.runner.ExtractToolResults(request)
    return await refused("ExtractToolResults", request, call)


async def _executed(stub: Stub, opening: runner_pb2.ExecuteStart) -> Refused:
    attempt = BrokerSide(stub, opening, [user("go")])

    async def run() -> None:
        await attempt.open()
        await attempt.until_closed()

    shown = runner_pb2.ExecuteStart(
        run_id=opening.run_id,
        attempt=opening.attempt,
        agent=opening.agent,
        protocol_revision=opening.protocol_revision,
    )
    return await refused("Execute", as_json(runner_pb2.BrokerEvent(start=shown)), run())


# The last one stops the broker.
PROVOCATIONS = (
    internal,
    store_unavailable,
    session_too_new,
    watch_too_slow,
    agent_not_found,
    protocol_violation,
    runner_busy,
    invalid_transcript,
    shutting_down,
)
