"""The life of sessions over the wire: lists with filters, deletion, retention."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration
from grpc.aio import AioRpcError

from tests.contract.postgres_server import ask
from tests.e2e.conftest import StartPair, all_scripts
from tests.e2e.pair import Pair, new_pair
from tests.e2e.talk import DEADLINE_SECONDS, VISBY, Talk, log_of, of_kind, recorded, refusal, talk
from turngate.v1 import broker_pb2 as pb
from turngate.v1 import run_pb2
from turngate.v1.event_pb2 import SessionEvent
from turngate.v1.session_pb2 import SessionConfig
from turngate_client import SessionClient, TurngateClient, TurngateError
from turngate_client.errors import error_from_rpc

SECRET = "the-treasure-is-under-the-oak"


async def deleted_session(client: TurngateClient) -> SessionClient:
    session = await client.create_session(agent="echo")
    await session.delete()
    return session


# --- deletion ---


async def test_delete_cancels_what_is_open_and_the_watch_ends_with_it(
    client: TurngateClient, pair: Pair
) -> None:
    """W2, C1: a parked run, its question and a held message; watchers see how it ends."""
    async with talk(client, "form") as trip:
        run_id, (form,) = await trip.start_parked()
        await trip.session.send("And then?")
        log: list[SessionEvent] = []
        deleting: asyncio.Task[None] | None = None
        async with asyncio.timeout(DEADLINE_SECONDS), trip.session.watch() as watching:
            async for frame in watching.frames():  # ends by itself
                log.extend(frame.events)
                if frame.live and deleting is None:
                    deleting = asyncio.create_task(trip.session.delete())
        assert deleting is not None
        await deleting
    kinds = [event.WhichOneof("event") for event in log]
    assert kinds[-1] == "session_deleted"
    assert log[-1].actor == "ann"
    assert {"held_message_removed", "interaction_closed"} <= set(kinds[-5:])
    [cancelled] = [
        event.run_state_changed
        for event in of_kind(log, "run_state_changed")
        if event.run_state_changed.state == run_pb2.RUN_STATE_CANCELLED
    ]
    assert (cancelled.run_id, cancelled.cause) == (
        run_id,
        run_pb2.RUN_CHANGE_CAUSE_SESSION_DELETED,
    )
    inbox = [one.id async for one in client.interactions()]
    assert form.id not in inbox


async def test_every_call_on_a_deleted_session_says_so(client: TurngateClient) -> None:
    """E2: by name, over the whole contract; a second delete finds it done (C5)."""
    async with talk(client, "form") as trip:
        run_id, (form,) = await trip.start_parked()
        await trip.session.delete()
        gone = trip.session
        ref = pb.InteractionRef(interaction_id=form.id)
        requests: list[Any] = [
            pb.GetSessionRequest(),
            pb.SendMessageRequest(text="hello"),
            pb.ListHeldMessagesRequest(),
            pb.UpdateHeldMessageRequest(message_id="m", text="x"),
            pb.RemoveHeldMessageRequest(message_id="m"),
            pb.ResumeQueueRequest(),
            pb.GetRunRequest(run_id=run_id),
            pb.GetTreeRequest(),
            pb.GetTranscriptRequest(),
            pb.SelectBranchRequest(node_id=run_id),
            pb.SettleToolCallRequest(interaction=ref, output_json="{}"),
            pb.DecideApprovalRequest(interaction=ref, decision=pb.DECISION_APPROVE),
            pb.ReportUnhandledRequest(interaction=ref),
            pb.CancelInteractionRequest(interaction=ref),
            pb.ListGrantsRequest(),
            pb.RevokeGrantRequest(grant_id=form.id),
            pb.GetInteractionRequest(interaction_id=form.id),
            pb.CancelRunRequest(run_id=run_id),
            pb.RegenerateRunRequest(run_id=run_id),
            pb.RetryRunRequest(run_id=run_id),
        ]
        for request in requests:
            request.session_id = gone.id
            method = type(request).__name__.removesuffix("Request")
            with pytest.raises(AioRpcError) as caught:
                await getattr(client.stub, method)(request)
            error = error_from_rpc(caught.value)
            assert error.reason == "SESSION_DELETED", method
            assert error.metadata == {"session_id": gone.id}, method
        await gone.delete()
        await gone.delete(request_id="again")


async def test_the_id_of_a_deleted_session_is_taken_for_ever(client: TurngateClient) -> None:
    gone = await deleted_session(client)
    await refusal(client.create_session(gone.id, agent="echo"), "SESSION_ID_TAKEN")
    await refusal(client.session("never-was").delete(), "SESSION_NOT_FOUND")


async def test_a_repeated_create_of_a_deleted_session_does_not_bring_it_back(
    client: TurngateClient,
) -> None:
    """E1: what is remembered of the request holds nothing of the session."""
    config = SessionConfig(agent="echo", title="A title")
    request = pb.CreateSessionRequest(config=config, request_id="create-1")
    first = await client.stub.CreateSession(request)
    again = await client.stub.CreateSession(request)
    assert first == again
    assert again.session.config.title == "A title"
    await client.session(first.session.id).delete()
    with pytest.raises(AioRpcError) as caught:
        await client.stub.CreateSession(request)
    assert error_from_rpc(caught.value).reason == "SESSION_DELETED"


async def test_a_watch_that_resumes_later_sees_the_end_and_no_more(client: TurngateClient) -> None:
    """W1, W2: from any cursor there is only the tombstone left; behind it, nothing."""
    async with talk(client, "echo") as trip:
        await trip.completed(await trip.start("Hello"))
        cursor = (await client.stub.GetSession(pb.GetSessionRequest(session_id=trip.id))).cursor
        await trip.session.delete()
        end = ""
        end = ""
        for after in ("", cursor):
            async with asyncio.timeout(DEADLINE_SECONDS), trip.session.watch(after=after) as watch:
                left = [event async for event in watch]
            assert [event.WhichOneof("event") for event in left] == ["session_deleted"]
            assert left[0].HasField("create_time")
            end = watch.cursor
        with pytest.raises(TurngateError) as caught:
            async with asyncio.timeout(DEADLINE_SECONDS), trip.session.watch(after=end) as watch:
                _ = [event async for event in watch]
        assert caught.value.reason == "SESSION_DELETED"


async def test_a_running_attempt_is_told_and_what_it_still_sends_changes_nothing(
    client: TurngateClient, pair: Pair
) -> None:
    """C1, R3: the runner goes on with other work; the session's log has ended."""
    async with talk(client, "gated") as trip:
        run_id = await trip.start()
        await trip.text_came(run_id, "now a wo")
        async with recorded(client, trip.id) as record:
            await trip.session.delete()
            pair.open_gate(f"go-{trip.id}")
            async with talk(client, "echo") as other:
                assert await other.completed(await other.start("Still there?"))
        assert [e.WhichOneof("event") for e in await log_of(trip.session)] == ["session_deleted"]
    assert of_kind(record.events, "message_completed") == []


@asynccontextmanager
async def secret_talk(client: TurngateClient) -> AsyncIterator[Talk]:
    """A session in which everything that was said, asked, answered or named is the secret."""
    config = SessionConfig(title=SECRET, labels={"about": SECRET}, interaction_link=SECRET)
    async with talk(client, "form", config=config) as trip:
        _, (form,) = await trip.start_parked(SECRET)
        settled = await trip.session.settle(
            form,
            {"action": "accept", "content": {"city": SECRET, "nights": 1}},
            request_id="settle",
        )
        await trip.completed(settled.run_id)
        await trip.start_parked(SECRET + "again")
        await trip.session.send(SECRET, message_id="held-1")
        yield trip


@pytest.mark.store("sqlite")
async def test_its_content_is_gone_from_the_file(start_pair: StartPair, tmp_path: Path) -> None:
    """Once the log of the file is written over; also after a kill -9 of the broker."""
    pair = start_pair()
    async with pair.client() as client, secret_talk(client) as trip:
        assert found_in(tmp_path), "it is there before"
        await trip.session.delete()
        async with asyncio.timeout(DEADLINE_SECONDS):
            other = await client.create_session(agent="echo")
            while found_in(tmp_path):  # each of these is a commit
                await other.send("noise")
        pair.broker.kill()
        assert found_in(tmp_path) == []
        await pair.broker.restart()
        await refusal(trip.session.get(), "SESSION_DELETED")
        assert found_in(tmp_path) == []


def found_in(folder: Path) -> list[str]:
    """The files of the store that hold the secret."""
    files = folder.glob("sessions.db*")
    return [file.name for file in files if SECRET.encode() in file.read_bytes()]


@pytest.mark.store("postgres")
async def test_its_content_is_gone_from_all_tables(
    tmp_path: Path, store_url: Callable[[Path], str]
) -> None:
    """At once with the answer; also after a kill -9 of the broker."""
    store = store_url(tmp_path)
    with new_pair(tmp_path, store, all_scripts()) as pair:
        async with pair.client() as client, secret_talk(client) as trip:
            assert "entries" in tables_with_the_secret(store), "it is there before"
            await trip.session.delete()
            assert tables_with_the_secret(store) == []
            pair.broker.kill()
            await pair.broker.restart()
            await refusal(trip.session.get(), "SESSION_DELETED")
            assert tables_with_the_secret(store) == []


def tables_with_the_secret(store: str) -> list[str]:
    """The tables of a schema that hold it, as text or as bytes (which read as hex)."""
    found = ask(
        store, "SELECT relname FROM pg_stat_user_tables WHERE schemaname = current_schema()"
    )
    return [
        table
        for (table,) in found
        if ask(
            store,
            f"SELECT 1 FROM {table} AS t WHERE t::text LIKE $1 OR t::text LIKE $2 LIMIT 1",
            f"%{SECRET}%",
            f"%{SECRET.encode().hex()}%",
        )
    ]


# --- lists ---


async def listed(client: TurngateClient, size: int, request: pb.ListSessionsRequest) -> list[str]:
    """All pages of this size, one after the other."""
    found: list[str] = []
    request.page_size = size
    request.page_token = ""
    while True:
        page = await client.stub.ListSessions(request)
        assert len(page.sessions) <= size
        found += [session.id for session in page.sessions]
        if not page.next_page_token:
            return found
        request.page_token = page.next_page_token


async def test_sessions_are_listed_by_owner_labels_and_whether_they_wait(
    pair: Pair, client: TurngateClient
) -> None:
    """I5, P1: alone and together, newest first, whatever the size of a page."""
    async with pair.client("bob") as bob:
        created: dict[str, SessionClient] = {}
        for number in range(9):
            who = bob if number % 3 == 0 else client
            created[f"s{number}"] = await who.create_session(
                config=SessionConfig(
                    agent="form", labels={"trip": "list-test", "odd": str(number % 2)}
                ),
                participants=["ann", "bob"],
            )
        for number in (1, 3, 4, 6):
            session = created[f"s{number}"]
            async with session.follow() as followed:
                await session.send("Go")
                await followed.until(lambda v: v.open_interactions() or None, 20, "a form")
    ids = {name: session.id for name, session in created.items()}

    def expected(*numbers: int) -> list[str]:
        return [ids[f"s{number}"] for number in numbers]

    label = {"trip": "list-test"}
    cases = [
        (pb.ListSessionsRequest(labels=label), expected(8, 7, 6, 5, 4, 3, 2, 1, 0)),
        (pb.ListSessionsRequest(labels=label, owner="bob"), expected(6, 3, 0)),
        (pb.ListSessionsRequest(labels=label, only_waiting=True), expected(6, 4, 3, 1)),
        (pb.ListSessionsRequest(labels=label, owner="ann", only_waiting=True), expected(4, 1)),
        (pb.ListSessionsRequest(labels=label | {"odd": "1"}, owner="bob"), expected(3)),
        (pb.ListSessionsRequest(labels=label, owner="nobody"), []),
    ]
    for request, wanted in cases:
        for size in (1, 2, 4, 100):
            assert await listed(client, size, request) == wanted, (request, size)

    form = (
        await client.stub.ListInteractions(pb.ListInteractionsRequest(page_size=1000))
    ).interactions
    [question] = [one for one in form if one.session_id == ids["s4"]]
    await client.session(ids["s4"]).settle(question, VISBY)
    await client.session(ids["s3"]).delete()
    assert await listed(client, 2, cases[2][0]) == expected(6, 1), "no longer waiting, and deleted"


async def test_pages_of_sessions_are_stable_while_others_come_and_go(
    client: TurngateClient,
) -> None:
    config = SessionConfig(agent="echo", labels={"trip": "stable-pages"})
    old = [await client.create_session(config=config) for _ in range(6)]
    request = pb.ListSessionsRequest(labels=config.labels, page_size=2, owner="ann")
    first = await client.stub.ListSessions(request)
    await client.create_session(config=config)
    await old[4].delete()  # one that was shown: its place is the token's
    await old[2].delete()
    request.page_token = first.next_page_token
    second = await client.stub.ListSessions(request)
    request.page_token = second.next_page_token
    third = await client.stub.ListSessions(request)
    shown = [session.id for page in (first, second, third) for session in page.sessions]
    assert shown == [old[number].id for number in (5, 4, 3, 1, 0)]
    assert not third.next_page_token
    await refusal_of_token(client)


async def refusal_of_token(client: TurngateClient) -> None:
    with pytest.raises(AioRpcError) as caught:
        await client.stub.ListSessions(pb.ListSessionsRequest(page_token="x"))
    assert error_from_rpc(caught.value).reason == "PAGE_TOKEN_INVALID"


# --- retention ---


def kept(milliseconds: int, *, while_open: bool = False) -> SessionConfig:
    retention = Duration()
    retention.FromMilliseconds(milliseconds)
    return SessionConfig(retention=retention, expire_while_open=while_open)


async def test_a_session_is_removed_when_its_retention_has_run_out(client: TurngateClient) -> None:
    """By the broker itself, after the last event, as if it had been deleted."""
    async with talk(client, "echo", config=kept(700)) as trip:
        await trip.completed(await trip.start("Hello"))
        last = trip.view.position
        async with trip.session.watch() as watching, asyncio.timeout(DEADLINE_SECONDS):
            log = [event async for event in watching]
    assert log[-1].WhichOneof("event") == "session_deleted"
    assert log[-1].actor == ""
    before, end = log[-2], log[-1]
    assert before.position == last
    kept_ms = end.create_time.ToMilliseconds() - before.create_time.ToMilliseconds()
    assert kept_ms >= 700
    await refusal(trip.session.get(), "SESSION_DELETED")


async def test_retention_waits_for_what_is_open_unless_it_is_set_not_to(
    client: TurngateClient,
) -> None:
    async with (
        talk(client, "form", config=kept(300)) as waiting,
        talk(client, "form", config=kept(300, while_open=True)) as impatient,
    ):
        _, (form,) = await waiting.start_parked()
        await impatient.start_parked()
        async with impatient.session.watch() as watching, asyncio.timeout(DEADLINE_SECONDS):
            log = [event async for event in watching]
        assert log[-1].WhichOneof("event") == "session_deleted"
        # The other one had its time, too, and is there: it is only its answer that ends it.
        assert (await waiting.session.get()).open_interaction_count == 1
        settled = await waiting.session.settle(form, VISBY)
        async with waiting.session.watch() as watching, asyncio.timeout(DEADLINE_SECONDS):
            log = [event async for event in watching]
        assert log[-1].WhichOneof("event") == "session_deleted"
        ended = [
            event.run_state_changed.state
            for event in of_kind(log, "run_state_changed")
            if event.run_state_changed.run_id == settled.run_id
        ]
        assert ended[-1] == run_pb2.RUN_STATE_COMPLETED
