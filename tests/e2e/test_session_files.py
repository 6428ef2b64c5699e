"""Sessions as files over the wire: exported, imported, and gone on with (P3)."""

from __future__ import annotations

import asyncio
import json
import secrets
import sys
from pathlib import Path

from tests.e2e.pair import Pair, clean_environment
from tests.e2e.talk import DEADLINE_SECONDS, VISBY, log_of, of_kind, refusal, talk, the
from turngate.v1 import broker_pb2 as pb
from turngate.v1 import run_pb2, session_pb2
from turngate.v1.event_pb2 import SessionEvent
from turngate.v1.message_pb2 import Message, ToolResult
from turngate_client import SessionClient, TurngateClient
from turngate_client.interactions import PlainJson

PERMISSION = "PERMISSION_DENIED"


async def whole(session: SessionClient) -> bytes:
    return b"".join([piece async for piece in session.export()])


async def tree_of(session: SessionClient) -> list[pb.TreeNode]:
    nodes = await session.tree(include_superseded=True)
    for node in nodes:
        node.run.session_id = ""
    return list(nodes)


async def transcripts_of(session: SessionClient, nodes: list[pb.TreeNode]) -> list[list[Message]]:
    """Of every branch, without the marks that an import leaves."""
    found = []
    for node in nodes:
        messages = await session.transcript(node.id)
        for message in messages:
            for part in message.parts:
                if part.HasField("tool_result"):
                    part.tool_result.ClearField("imported")
                if part.HasField("approval_decision"):
                    part.approval_decision.ClearField("imported")
        found.append(messages)
    return found


async def test_a_session_goes_on_elsewhere_with_the_same_tree_and_transcript(
    client: TurngateClient, pair: Pair
) -> None:
    """P3: forks, an approval, an answer in two versions, a failed branch; and it can be answered
    where it was parked, as if it had always been there.
    """
    async with (
        talk(client, "four") as trip,
        TurngateClient(pair.broker.address) as operator,
    ):
        first, waiting = await trip.start_parked("one\u2028line")
        await trip.session.settle(the(waiting, "request_input"), VISBY)
        again = await trip.session.settle(
            the(waiting, "request_input"), {"action": "decline"}, request_id="another"
        )
        await trip.session.approve(the(waiting, "pay"))
        before = await tree_of(trip.session)
        texts = await transcripts_of(trip.session, before)

        copy = await operator.import_session([await whole(trip.session)], session_id="copy-of-trip")
        assert copy.id == "copy-of-trip"
        assert await tree_of(copy) == before
        assert await transcripts_of(copy, before) == texts
        log = await log_of(copy)
        assert log[-1].WhichOneof("event") == "session_imported"
        assert log[-1].session_imported.source_session_id == trip.id
        assert log[-1].actor == "local"
        assert all(result.imported for result in results_in(log))

        connected: PlainJson = {"connected": True, "integration": "calendar", "reference": "r"}
        async with copy.follow() as followed:
            settled = await client.session(copy.id).settle(
                the(waiting, "request_connection"), connected
            )
            # The approval came with the import: the tool asks again before it starts (P3, A1). The
            # fork is seen before the answer that opened it: for a moment the connection is open.
            asked = await followed.until(
                lambda view: (
                    [
                        one
                        for one in view.open_interactions(settled.run_id)
                        if one.id not in {before.id for before in waiting}
                    ]
                    or None
                ),
                DEADLINE_SECONDS,
                "a new question",
            )
        assert [one.tool_name for one in asked] == ["pay"]
        assert pair.count("pay-copy-of-trip") == 0
        assert first != again.run_id


def results_in(log: list[SessionEvent]) -> list[ToolResult]:
    return [event.tool_result_added.result for event in of_kind(log, "tool_result_added")]


async def test_an_imported_grant_lets_nothing_pass(client: TurngateClient, pair: Pair) -> None:
    """P3, A3: the identical call passes in the session, and is asked for in its import."""
    async with (
        talk(client, "pay") as trip,
        TurngateClient(pair.broker.address) as operator,
    ):
        run_id, (approval,) = await trip.start_parked()
        await trip.session.approve(approval)
        await trip.completed(run_id)
        assert len((await client.stub.ListGrants(grants_of(trip.session))).grants) == 1
        copy = await operator.import_session([await whole(trip.session)], session_id=new_id())
        assert not (await client.stub.ListGrants(grants_of(copy))).grants
        await trip.completed(await trip.start("again"))
        async with copy.follow() as followed:
            sent = await copy.send("again")
            [asked] = await followed.until(
                lambda view: view.open_interactions(sent.run_id) or None,
                DEADLINE_SECONDS,
                "a question",
            )
    assert asked.kind == approval.kind


def grants_of(session: SessionClient) -> pb.ListGrantsRequest:
    return pb.ListGrantsRequest(session_id=session.id)


async def test_what_was_under_way_starts_nothing_elsewhere(
    client: TurngateClient, pair: Pair
) -> None:
    """P3, S1: it goes on here, and has failed there; what was held there waits to be let go."""
    async with (
        talk(client, "gated") as trip,
        TurngateClient(pair.broker.address) as operator,
    ):
        run_id = await trip.start()
        await trip.text_came(run_id, "now a wo")
        await trip.session.send("And then?")
        copy = await operator.import_session([await whole(trip.session)], session_id=new_id())
        pair.open_gate(f"go-{trip.id}")
        pair.open_gate(f"go-{copy.id}")
        assert (await trip.completed(run_id)).startswith("The first words")
        log = await log_of(copy)
        ended = [
            event.run_state_changed
            for event in of_kind(log, "run_state_changed")
            if event.run_state_changed.run_id == run_id
        ][-1]
        assert ended.failure.reason == run_pb2.RUN_FAILURE_REASON_IMPORTED
        assert len(of_kind(log, "run_created")) == 1
        held = await copy.held_messages()
        assert held.queue_pause.reason == session_pb2.QUEUE_PAUSE_REASON_IMPORTED
        assert len(held.messages) == 1
        async with copy.follow() as followed:
            resumed = await client.stub.ResumeQueue(pb.ResumeQueueRequest(session_id=copy.id))
            await followed.until(
                lambda view: (
                    view.runs[resumed.run_id].run.state == run_pb2.RUN_STATE_COMPLETED or None
                ),
                DEADLINE_SECONDS,
                "the held message to be replied to",
            )


async def test_only_the_operator_imports_and_no_id_twice(
    client: TurngateClient, pair: Pair
) -> None:
    """P3, P2, E1."""
    async with (
        talk(client, "echo") as trip,
        TurngateClient(pair.broker.address) as operator,
    ):
        await trip.completed(await trip.start("Hello"))
        data = await whole(trip.session)
        error = await refusal(client.import_session([data], session_id=new_id()), PERMISSION)
        assert error.metadata == {"scope": "admin"}
        await refusal(operator.import_session([data]), "SESSION_ID_TAKEN")
        name, request_id, other = new_id(), new_id(), data.replace(b"Hello", b"Hallo")
        for _ in range(2):
            copy = await operator.import_session([data], session_id=name, request_id=request_id)
            assert copy.id == name
        await refusal(
            operator.import_session([other], session_id=name, request_id=request_id),
            "REQUEST_ID_REUSED",
        )
        error = await refusal(operator.import_session([data[:-90]]), "INVALID_FIELD")
        assert error.violations[0].field == "data"
        await refusal(operator.import_session([]), "INVALID_FIELD")
        await trip.session.delete()
        await refusal(operator.import_session([data]), "SESSION_ID_TAKEN")
        await refusal(whole(trip.session), "SESSION_DELETED")


async def test_a_file_goes_through_the_command_line(pair: Pair, tmp_path: Path) -> None:
    """`turngate export | turngate import`, and `delete`."""
    async with TurngateClient(pair.broker.address) as operator, talk(operator, "form") as trip:
        await trip.start_parked()
        file = tmp_path / "trip.ndjson"
        name = new_id()
        await turngate(pair, "export", trip.id, "-o", str(file))
        head, *events = file.read_text().splitlines()
        assert json.loads(head)["events"] == len(events)
        assert await turngate(pair, "import", str(file), "--as", name) == f"{name}\n"
        assert (await operator.session(name).get()).open_interaction_count == 1
        await turngate(pair, "delete", name, "--yes")
        await refusal(operator.session(name).get(), "SESSION_DELETED")


async def turngate(pair: Pair, *words: str) -> str:
    """What the command prints; fails with its error if it does not succeed."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-c", "from turngate_client.cli import main; main()", *words),
        *("--broker", pair.broker.address),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=clean_environment(),
    )
    async with asyncio.timeout(DEADLINE_SECONDS):
        printed, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    return printed.decode()


def new_id() -> str:
    return f"id-{secrets.token_hex(6)}"
