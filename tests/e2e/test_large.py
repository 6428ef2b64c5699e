"""Large conversations over the wire: nothing in one message exceeds 1 MiB, nothing is left out."""

from __future__ import annotations

from grpc import StatusCode

from tests.e2e.talk import Talk, log_of, refusal, talk
from turngate.v1 import broker_pb2
from turngate.v1.broker_pb2 import WatchSessionRequest
from turngate_client import TurngateClient, fold

MIB = 1024 * 1024
TEXT = "Visby! " * 30_000  # 210 KB
TURNS = 8


async def large(trip: Talk) -> list[str]:
    """Turns with 3.4 MB of text in all; the runs."""
    runs = []
    for _ in range(TURNS):
        runs.append(await trip.start(TEXT))
        await trip.completed(runs[-1])
    return runs


async def test_a_large_conversation_is_read_watched_and_gone_on_with(
    client: TurngateClient,
) -> None:
    """W1, X6: its transcript, its tree and its log come in pieces; the model gets all of it."""
    async with talk(client, "echo") as trip:
        runs = await large(trip)
        whole = [text for _ in runs for text in (TEXT, f"You said: {TEXT}")]

        transcript = await trip.session.transcript()
        assert ["".join(p.text.text for p in m.parts) for m in transcript] == whole
        page_token = ""
        while True:
            page = await client.stub.GetTranscript(
                broker_pb2.GetTranscriptRequest(session_id=trip.id, page_token=page_token)
            )
            assert page.ByteSize() <= MIB
            page_token = page.next_page_token
            if not page_token:
                break

        tree = await trip.session.tree()
        assert len(tree) == 2 * TURNS
        first = await client.stub.GetTree(broker_pb2.GetTreeRequest(session_id=trip.id))
        assert first.ByteSize() <= MIB

        call = client.stub.WatchSession(WatchSessionRequest(session_id=trip.id))
        async for frame in call:
            assert frame.ByteSize() <= MIB
            if frame.live:
                break
        call.cancel()
        view = fold(await log_of(trip.session))
        assert [view.text(run_id) for run_id in runs] == [f"You said: {TEXT}"] * TURNS
        assert await trip.completed(await trip.start("short")) == "You said: short"


async def test_a_full_queue_refuses_the_next_message_by_its_limit(client: TurngateClient) -> None:
    """E3, G1: as many as the limit says are held; one more is refused and changes nothing."""
    limits = {limit.name: limit.value for limit in (await client.server_info()).limits}
    async with talk(client, "form") as trip:
        await trip.start_parked()
        for number in range(limits["held_messages"]):
            await trip.session.send(f"n{number}")
        error = await refusal(trip.session.send("one too many"), "LIMIT_EXCEEDED")
        assert error.code is StatusCode.RESOURCE_EXHAUSTED
        assert error.metadata["limit"] == "held_messages"
        held = (await trip.session.held_messages()).messages
        texts = [message.message.parts[0].text.text for message in held]
        assert texts == [f"n{number}" for number in range(limits["held_messages"])]
