"""Snapshots: taken anywhere in a log, the events after them lead to the same view (W1, W2, W3)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path

import pytest

from broker_service.api import pages, reads
from broker_service.domain import branches, gate
from broker_service.domain.cancel import CancelRun, cancel_run
from broker_service.domain.decision import principal
from broker_service.domain.events import MessageCompleted, MessageStarted, SessionEvent
from broker_service.domain.model import Permission, ProposedTool, TextPart
from broker_service.domain.reports import Began, Finished
from broker_service.effects import place_of, session_key
from broker_service.encoding import encode_event
from broker_service.storage.port import (
    Append,
    Entry,
    EntryKind,
    Fence,
    PutWork,
    SessionKey,
    Store,
    StoredEntry,
    WorkKey,
    WorkKind,
    Write,
)
from broker_service.storage.sqlite import open_sqlite
from broker_service.watch.snapshot import message_so_far, take_snapshot
from tests.unit.broker.conversation import (
    ANN,
    BEN,
    CONNECTED,
    LUND,
    VISBY,
    Conversation,
    connection,
    fold_log,
    form,
    said,
    server_call,
    tool_result,
    user,
)
from turngate.v1 import broker_pb2, event_pb2, message_pb2
from turngate_client import SessionView, apply_snapshot, fold
from turngate_client.snapshots import SnapshotPieces

ASK = ProposedTool("c-pay", tool_permission=Permission.ASK)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    opened = open_sqlite(tmp_path / "store.db")
    yield opened
    await opened.close()


def everything_in_one_step() -> Conversation:
    """A server tool, a form, a connection and an approval in one step; messages held meanwhile."""
    chat = Conversation(messages=(user("m-first", "hello"),))
    run_id = chat.first_run
    chat.step(run_id, server_call("c-look"))
    chat.propose(run_id, ProposedTool("c-look"))
    chat.report(run_id, tool_result("c-look"))
    calls = (server_call("c-a"), form("c-form"), connection("c-bank"), server_call("c-pay"))
    chat.step(run_id, *calls)
    chat.propose(run_id, ProposedTool("c-a"), ASK)
    chat.report(run_id, tool_result("c-a"))
    chat.park(run_id, ASK)
    chat.send("one more thing", "m-held")
    chat.send("and another", by=BEN)
    chat.edit_held("m-held", "one more thing, please")
    fork = chat.settle(chat.interaction("c-form").id, VISBY).run_id
    chat.settle(chat.interaction("c-bank").id, CONNECTED)
    chat.decide(chat.interaction("c-pay").id)
    chat.propose(fork, ASK)
    chat.report(fork, tool_result("c-pay", '"paid"'))
    chat.complete(fork, "Paid and done.")
    chat.complete(chat.state.selected, "You are welcome.")
    return chat


def second_answers() -> Conversation:
    """F5: two answers to one form, a chain of two forms, and another branch selected."""
    chat = Conversation()
    run_id = chat.start()
    chat.step(run_id, server_call("c-a"), form("c-1"))
    chat.propose(run_id, ProposedTool("c-a"))
    chat.report(run_id, tool_result("c-a"))
    chat.park(run_id)
    first = chat.settle(chat.interaction("c-1").id, VISBY).run_id
    second = chat.settle(chat.interaction("c-1").id, LUND, by=BEN).run_id
    chat.ask(first, form("c-2"))
    third = chat.settle(chat.interaction("c-2").id, VISBY).run_id
    chat.complete(third, "Off to Visby, both times.")
    chat.complete(second, "Off to Lund.")
    chat.act(lambda d: branches.select_branch(d, second), principal(ANN))
    chat.act(lambda d: branches.select_branch(d, third), principal(ANN))
    return chat


def a_late_second_answer() -> Conversation:
    """F5 after the first fork has ended: it inherits from a run that only shows in copies."""
    chat = Conversation()
    run_id = chat.start()
    chat.step(run_id, server_call("c-a"), form("c-1"))
    chat.propose(run_id, ProposedTool("c-a"))
    chat.report(run_id, tool_result("c-a"))
    chat.park(run_id)
    first = chat.settle(chat.interaction("c-1").id, VISBY).run_id
    chat.complete(first)
    second = chat.settle(chat.interaction("c-1").id, LUND, by=BEN).run_id
    chat.complete(second)
    chat.act(lambda d: branches.select_branch(d, second), principal(ANN))
    return chat


def edits_and_ends() -> Conversation:
    """C1, C2, G2: an edit, a regeneration, a cancel, a denial, failures until the queue pauses."""
    chat = Conversation()
    run_id = chat.start("first")
    chat.complete(run_id)
    prompt_id = chat.run(run_id).prompt_id
    edit = gate.EditMessage(user("m-edit", "first, better"), prompt_id)
    edited = chat.act(lambda d: gate.edit_message(d, edit), principal(ANN)).run_id
    chat.step(edited, server_call("c-pay"))
    chat.propose(edited, ASK)
    chat.park(edited, ASK)
    chat.decide(chat.interaction("c-pay").id, approve=False, reason="too much")
    chat.complete(edited)
    again, _ = chat.act(
        lambda d: branches.regenerate_run(d, edited, keep_running=False, trace_context=None),
        principal(ANN),
    )
    chat.report(again, Began("msg-cut"))
    chat.act(lambda d: cancel_run(d, CancelRun(again)), principal(ANN))
    chat.lose(again)
    for text in ("second", "third"):
        failing = chat.start(text)
        chat.report(failing, Began(f"msg-{text}"))
        chat.fail(failing)
    return chat


CONVERSATIONS: list[Callable[[], Conversation]] = [
    everything_in_one_step,
    second_answers,
    a_late_second_answer,
    edits_and_ends,
]


async def stored(store: Store, chat: Conversation) -> list[event_pb2.SessionEvent]:
    """The log in the store, with two deltas for each message; as watchers get it."""
    key = session_key(chat.state)
    work = WorkKey(WorkKind.RUN, key, "any")
    fence = Fence(work, "b1", 1)
    texts = {
        event.event.message.id: "".join(
            part.content.text
            for part in event.event.message.parts
            if isinstance(part.content, TextPart)
        )
        for event in chat.log
        if isinstance(event.event, MessageCompleted)
    }
    for version, event in enumerate(chat.log):
        node_id, subject_id = place_of(chat.state, event.event)
        entry = Entry(EntryKind.EVENT, encode_event(event), node_id, subject_id)
        effects = (PutWork(work, 0, 1, "b1", 1),) if version == 0 else ()
        await store.commit(Write((Append(key, (entry,), version),), effects))
        if isinstance(event.event, MessageStarted):
            started = event.event
            text = texts.get(started.message_id, "It was cut ")
            for offset in (0, 3):
                delta = event_pb2.SessionEvent(
                    actor_kind=event_pb2.ACTOR_KIND_RUNNER,
                    text_delta=event_pb2.TextDelta(
                        message_id=started.message_id,
                        run_id=started.run_id,
                        kind=event_pb2.TEXT_KIND_TEXT,
                        offset=offset,
                        text=text[offset:][:3] if offset == 0 else text[offset:],
                    ),
                )
                entry = Entry(
                    EntryKind.DELTA,
                    delta.SerializeToString(),
                    started.run_id,
                    started.message_id,
                )
                await store.commit(Write((Append(key, (entry,), None, fence),)))
    log = []
    for kept in await store.read(key, 0, 100_000, 100_000_000):
        decoded = event_pb2.SessionEvent.FromString(kept.payload)
        decoded.position = kept.position
        log.append(decoded)
    return log


async def snapshot_at(
    store: Store, log: list[SessionEvent]
) -> tuple[int, list[broker_pb2.SessionSnapshot]]:
    """Position and pieces of a snapshot of the state that these events fold to."""
    snapshot = await take_snapshot(store, fold_log(log))
    return snapshot.position, [piece async for piece in snapshot.pieces]


def view_of(pieces: list[broker_pb2.SessionSnapshot]) -> SessionView:
    joined = SnapshotPieces()
    wholes = [joined.add(piece) for piece in pieces]
    assert wholes[-1] is not None
    assert not any(wholes[:-1])
    view = SessionView()
    apply_snapshot(view, wholes[-1])
    return view


def shown(view: SessionView) -> dict[str, object]:
    """What a user sees of a session."""
    questions = view.open_interactions()
    return {
        "transcript": view.transcript(),
        "calls": [
            (call.call.call_id, call.state, call.hint)
            for node_id in view.branch()
            if node_id in view.runs
            for call in view.calls(node_id)
        ],
        "held": view.held_messages,
        "pause": view.queue_pause,
        "open": [(one.id, one.state, one.arguments_json, one.render_hint) for one in questions],
        "runs": {
            run_id: (
                one.run.state,
                one.run.attempt,
                list(one.run.waits_for_interaction_ids),
                one.run.superseded_by_run_id,
                one.run.failure,
            )
            for run_id, one in view.runs.items()
        },
        "nodes": view.nodes(include_superseded=True),
    }


def of_same_nodes(full: dict[str, object], part: dict[str, object]) -> dict[str, object]:
    """A whole view as far as it is about nodes that a part of it has, too."""
    runs, nodes = full["runs"], full["nodes"]
    known_runs, known_nodes = part["runs"], part["nodes"]
    assert isinstance(runs, dict)
    assert isinstance(nodes, list)
    assert isinstance(known_runs, dict)
    assert isinstance(known_nodes, list)
    ids = {node.id for node in known_nodes}
    return full | {
        "runs": {run_id: one for run_id, one in runs.items() if run_id in known_runs},
        "nodes": [node for node in nodes if node.id in ids],
    }


@pytest.mark.parametrize("talk", CONVERSATIONS, ids=lambda talk: talk.__name__)
async def test_W1_from_a_snapshot_at_any_event_the_view_is_the_one_of_the_whole_log(
    talk: Callable[[], Conversation], store: Store
) -> None:
    """The store is ahead of most of the states, as where another replica writes on."""
    chat = talk()
    log = await stored(store, chat)
    versions = [e.position for e in log if not e.HasField("text_delta")]
    assert len(versions) == len(chat.log)
    whole = shown(fold(log))
    compared = 0
    for version in range(1, len(chat.log) + 1):
        position, pieces = await snapshot_at(store, chat.log[:version])
        end = versions[version] - 1 if version < len(versions) else log[-1].position
        assert position == end, "deltas after the event are in, the next event is not"
        view = view_of(pieces)
        before = fold(log[:position])
        seen = shown(view)
        assert seen == of_same_nodes(shown(before), seen), f"at event {version}"
        after = shown(fold(log[position:], view))
        # What was on another branch then is not in the snapshot: it is read when it is selected.
        left_out = {*before.runs, *before.prompts} - {*before.branch()}
        if left_out.isdisjoint(fold(log).branch()):
            compared += 1
            assert after == of_same_nodes(whole, after), f"events after event {version}"
    assert compared > len(chat.log) / 2


async def test_W1_pieces_have_at_most_a_mebibyte_and_come_whole_again(store: Store) -> None:
    chat = Conversation()
    for number in range(4):
        run_id = chat.start(f"{number}" * 250_000)
        chat.report(
            run_id,
            Began(f"msg-{number}"),
            Finished(said(f"msg-{number}", TextPart("a" * 250_000))),
        )
        chat.complete(run_id)
    run_id = chat.start()
    chat.ask(run_id, form("c-1"))
    for _ in range(6):
        chat.send("h" * 250_000)
    log = await stored(store, chat)
    _, pieces = await snapshot_at(store, chat.log)
    assert len(pieces) > 3
    assert max(piece.ByteSize() for piece in pieces) <= 1024 * 1024
    assert [piece.complete for piece in pieces] == [*[False] * (len(pieces) - 1), True]
    assert [piece.HasField("session") for piece in pieces] == [True, *[False] * (len(pieces) - 1)]
    view = view_of(pieces)
    whole = fold(log)
    assert view.held_messages == whole.held_messages
    assert view.nodes() == whole.nodes()


async def test_W1_the_tokens_of_a_snapshot_page_through_all_that_it_leaves_out(
    store: Store,
) -> None:
    chat = Conversation()
    for number in range(60):
        run_id = chat.start(f"question {number}")
        chat.step(run_id, text="Let me see.")  # so that the page begins in the middle of a run
        chat.complete(run_id, f"answer {number}")
        if number % 10 == 0:  # branches that are not selected
            edit = gate.EditMessage(
                user(f"m-{number}", "again"), chat.run(chat.state.selected).prompt_id
            )
            edited = chat.act(partial(gate.edit_message, command=edit), principal(ANN))
            chat.complete(edited.run_id)
    run_id = chat.start()
    chat.ask(run_id, form("c-1"))
    await stored(store, chat)
    _, pieces = await snapshot_at(store, chat.log)
    assert pieces[-1].older_nodes_page_token
    assert pieces[-1].older_messages_page_token

    newest = [message.id for piece in pieces for message in piece.messages]
    transcript = await reads.get_transcript(
        store, chat.state, broker_pb2.GetTranscriptRequest(page_size=1000), 1000
    )
    request = broker_pb2.GetTranscriptRequest(
        newest_first=True, page_size=1000, page_token=pieces[-1].older_messages_page_token
    )
    older = await reads.get_transcript(store, chat.state, request, 1000)
    assert len(newest) == pages.DEFAULT_PAGE
    read = [message.id for message in older.messages][::-1]
    assert read + newest == [message.id for message in transcript.messages]

    nodes = {node.id for piece in pieces for node in piece.nodes}
    tree_request = broker_pb2.GetTreeRequest(
        newest_first=True, page_size=1000, page_token=pieces[-1].older_nodes_page_token
    )
    rest = await reads.get_tree(store, chat.state, tree_request, 1000)
    assert {node.id for node in rest.nodes} | nodes == set(chat.state.nodes)
    assert len(nodes) >= pages.DEFAULT_PAGE
    assert len(rest.nodes) < len(chat.state.nodes), "what came is not read again"


async def test_W1_a_snapshot_says_what_is_being_written(store: Store) -> None:
    """W3: later deltas go on where it ends, in code points and part by part."""
    chat = Conversation()
    run_id = chat.start()
    chat.report(run_id, Began("msg-1"))
    log = await stored(store, chat)
    _, pieces = await snapshot_at(store, chat.log)
    [writing] = [message for piece in pieces for message in piece.open_messages]
    assert writing.parts[0].text.text == "It was cut "
    view = view_of(pieces)
    assert view.text(run_id) == "It was cut "
    more = event_pb2.TextDelta(
        message_id="msg-1", run_id=run_id, kind=event_pb2.TEXT_KIND_TEXT, offset=11, text="off."
    )
    fold([event_pb2.SessionEvent(position=len(log) + 1, text_delta=more)], view)
    assert view.text(run_id) == "It was cut off."


async def test_W1_text_that_comes_while_a_snapshot_is_taken_follows_it(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Deltas wait for nobody: one that is stored after the position was read is not in it."""
    chat = Conversation()
    run_id = chat.start()
    chat.report(run_id, Began("msg-1"))
    log = await stored(store, chat)
    key = session_key(chat.state)
    read_subject = store.read_subject

    async def read_late(session: SessionKey, subject_id: str) -> tuple[StoredEntry, ...]:
        late = event_pb2.TextDelta(
            message_id=subject_id, kind=event_pb2.TEXT_KIND_TEXT, offset=11, text="off."
        )
        payload = event_pb2.SessionEvent(text_delta=late).SerializeToString()
        entry = Entry(EntryKind.DELTA, payload, run_id, subject_id)
        fence = Fence(WorkKey(WorkKind.RUN, key, "any"), "b1", 1)
        await store.commit(Write((Append(key, (entry,), None, fence),)))
        return await read_subject(session, subject_id)

    monkeypatch.setattr(store, "read_subject", read_late)
    position, pieces = await snapshot_at(store, chat.log)
    assert position == log[-1].position
    assert await store.last_position(key) == position + 1
    [writing] = [message for piece in pieces for message in piece.open_messages]
    assert writing.parts[0].text.text == "It was cut "


def test_W3_deltas_fold_by_offset_and_keep_the_places_of_parts() -> None:
    def text(index: int, offset: int, piece: str, kind: int) -> event_pb2.SessionEvent:
        return event_pb2.SessionEvent(
            text_delta=event_pb2.TextDelta(
                message_id="m",
                part_index=index,
                offset=offset,
                text=piece,
                kind=event_pb2.TextKind.ValueType(kind),
            )
        )

    def arguments(offset: int, piece: str) -> event_pb2.SessionEvent:
        return event_pb2.SessionEvent(
            tool_call_delta=event_pb2.ToolCallDelta(
                message_id="m",
                part_index=3,
                call_id="c",
                name="f" if not offset else "",
                offset=offset,
                arguments_delta=piece,
            )
        )

    message = message_so_far(
        [
            event_pb2.SessionEvent(
                message_started=event_pb2.MessageStarted(message_id="m", run_id="r", step=2)
            ),
            text(0, 0, "Hmm, ", event_pb2.TEXT_KIND_REASONING),
            text(0, 5, "yes", event_pb2.TEXT_KIND_REASONING),
            text(1, 0, "a\U0001f600", event_pb2.TEXT_KIND_TEXT),
            text(1, 2, "b", event_pb2.TEXT_KIND_TEXT),
            text(1, 1, "\U0001f600b", event_pb2.TEXT_KIND_TEXT),
            arguments(0, '{"a"'),
            arguments(4, ":1}"),
        ]
    )
    assert (message.id, message.run_id, message.step) == ("m", "r", 2)
    assert message.parts[0].reasoning.text == "Hmm, yes"
    assert message.parts[1].text.text == "a\U0001f600b"
    assert message.parts[2].WhichOneof("content") is None
    assert message.parts[3].tool_call == message_pb2.ToolCall(
        call_id="c", name="f", arguments_json='{"a":1}'
    )
