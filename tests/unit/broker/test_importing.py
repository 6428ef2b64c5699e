"""Import (P3): the same history in another place, which grants and fulfils nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import pytest

from broker_service.dispatch.history import opening
from broker_service.domain.cancel import CancelRun, cancel_run
from broker_service.domain.decision import principal
from broker_service.domain.events import (
    MessageWithdrawn,
    QueuePaused,
    RunCreated,
    RunStateChanged,
    SessionEvent,
    SessionImported,
)
from broker_service.domain.grants import revoke_grant
from broker_service.domain.importing import ImportSession, import_session
from broker_service.domain.model import (
    ApprovalDecision,
    ApprovalPolicy,
    HoldReason,
    InteractionState,
    Message,
    Part,
    Permission,
    ProposedTool,
    QueuePauseReason,
    RunFailureReason,
    RunState,
    SessionConfig,
    ToolResult,
)
from broker_service.domain.reports import Began
from broker_service.domain.retries import retry_run
from broker_service.domain.starts import Verdict
from broker_service.effects import place_of
from broker_service.encoding import encode_event
from broker_service.export import first_line, lines, read_file
from broker_service.storage.port import EntryKind, SessionKey, Store, StoredEntry
from tests.unit.broker.conversation import (
    LUND,
    VISBY,
    Conversation,
    connection,
    form,
    server_call,
)
from tests.unit.broker.invariants import check
from turngate_core.errors import Reason, Refusal

PAY = ProposedTool("pay")
ASKS = SessionConfig(agent="travel", approval_policy=ApprovalPolicy(Permission.ASK))


class Imported(Conversation):
    """A session as it goes on elsewhere, under another id and tenant."""

    def __init__(self, source: Conversation, session_id: str = "s-2") -> None:
        super().__init__(limits=source.limits)
        self._minted, self.now = 1_000, source.now + 5_000
        command = ImportSession(tuple(source.log), "t-2", session_id)
        decision = import_session(command, self.now, principal("root"), self.mint, self.limits)
        self.state, self.log = decision.state, decision.events
        self.new = self.log[len(source.log) :]
        check(self.state, self.log, new=len(self.new))


def marked(messages: list[Message], *, imported: bool) -> list[Message]:
    """The messages with all results and decisions marked so."""

    def part(given: Part) -> Part:
        if isinstance(given.content, ToolResult | ApprovalDecision):
            return Part(replace(given.content, imported=imported))
        return given

    return [replace(message, parts=tuple(map(part, message.parts))) for message in messages]


def test_tree_and_transcript_are_the_same_under_the_same_ids() -> None:
    chat = Conversation(ASKS)
    [question] = chat.ask(chat.start("first"), form("c-1"))
    fork = chat.settle(question, VISBY).run_id
    second = chat.settle(question, LUND, by="ben").run_id
    chat.complete(fork)
    chat.step(second, server_call("pay"))
    chat.propose(second, PAY)
    chat.park(second, PAY)
    chat.decide(chat.interaction("pay").id)
    chat.propose(second, PAY)
    chat.fail(second)
    chat.ask(chat.start("and now?"), connection("c-2"))
    copy = Imported(chat)
    assert copy.state.nodes == chat.state.nodes
    assert copy.state.children == chat.state.children
    assert copy.state.selected == chat.state.selected
    for node_id in chat.state.nodes:
        ours = chat.transcript(node_id, with_hints=True)
        theirs = copy.transcript(node_id, with_hints=True)
        assert marked(theirs, imported=False) == ours
    assert copy.state.session.id == "s-2"
    assert {entry.tenant_id for entry in copy.log} == {"t-2"}
    assert {event.run.session_id for event in copy.events_of(RunCreated)} == {"s-2"}


def test_the_last_event_says_so_and_who_did_it() -> None:
    chat = Conversation()
    chat.complete(chat.start())
    [entry] = Imported(chat).new
    assert entry.event == SessionImported("s-1", "t-1")
    assert (entry.actor, entry.create_time) == ("root", chat.now + 5_000)


def test_a_parked_run_stays_parked_and_its_question_can_be_answered() -> None:
    """I3: as if nothing had happened; a live answer does all that one does."""
    chat = Conversation()
    run_id = chat.start()
    [question] = chat.ask(run_id, form("c-1"))
    copy = Imported(chat)
    assert copy.run(run_id).state is RunState.PARKED
    assert list(copy.state.open_interactions) == [question]
    settled = copy.settle(question, VISBY)
    assert settled.fork_opened
    assert copy.run(settled.run_id).state is RunState.PENDING
    [result] = copy.results().values()
    assert not result.imported


def approved_but_not_started(chat: Conversation) -> str:
    """A run that waits for a form, with an approval that has not taken effect; answers the run."""
    run_id = chat.start()
    chat.step(run_id, form("c-1"), server_call("pay"))
    chat.propose(run_id, PAY)
    chat.park(run_id, PAY)
    chat.decide(chat.interaction("pay").id)
    return run_id


def test_an_imported_approval_lets_nothing_start() -> None:
    """P3, A1: asked again, under a fresh id, where an approval of one's own would do (A2)."""
    for conversation, expected in ((Conversation(ASKS), Verdict.GRANTED), (None, Verdict.ASK)):
        chat = conversation or Conversation(ASKS)
        approved_but_not_started(chat)
        copy = chat if conversation else Imported(chat)
        before = copy.interaction("pay")
        assert before.state is InteractionState.APPROVED
        fork = copy.settle(copy.interaction("c-1").id, VISBY).run_id
        assert copy.propose(fork, PAY) == [expected]
        if expected is Verdict.ASK:
            copy.park(fork, PAY)
            assert copy.interaction("pay").id != before.id
            copy.decide(copy.interaction("pay").id)
            assert copy.propose(fork, PAY) == [Verdict.GRANTED]


def test_imported_approvals_grant_no_later_call() -> None:
    """P3, A3: the identical call passes in the session itself, and is asked for in its import."""
    chat = Conversation(ASKS)
    run_id = chat.start()
    chat.step(run_id, server_call("pay"))
    chat.propose(run_id, PAY)
    chat.park(run_id, PAY)
    chat.decide(chat.interaction("pay").id)
    chat.propose(run_id, PAY)
    chat.fail(run_id)
    copy = Imported(chat)
    for at, expected in ((chat, Verdict.GRANTED), (copy, Verdict.ASK)):
        next_run = at.start("again")
        at.step(next_run, server_call("pay-2", "look_up"))
        assert at.propose(next_run, ProposedTool("pay-2")) == [expected]
    assert not copy.state.grants


def test_a_grant_that_was_revoked_before_is_no_obstacle() -> None:
    chat = Conversation(ASKS)
    approved_but_not_started(chat)
    [grant] = chat.state.grants
    chat.act(lambda d: revoke_grant(d, grant))
    assert Imported(chat).state.grants == {}


class LogOf:
    """What `opening` reads of a store."""

    def __init__(self, chat: Conversation) -> None:
        self._chat = chat

    async def read_nodes(
        self, session: SessionKey, node_ids: Sequence[str]
    ) -> tuple[StoredEntry, ...]:
        return tuple(stored for stored in stored_log(self._chat) if stored.node_id in set(node_ids))


def stored_log(chat: Conversation) -> list[StoredEntry]:
    return [
        StoredEntry(
            number, number, EntryKind.EVENT, encode_event(entry), *place_of(chat.state, entry.event)
        )
        for number, entry in enumerate(chat.log, 1)
    ]


async def test_a_runner_gets_imported_answers_as_history_only() -> None:
    """P3, X1: the turn's answers are those that were given here."""
    chat = Conversation()
    [first] = chat.ask(chat.start(), form("c-1"))
    fork = chat.settle(first, VISBY).run_id
    [second] = chat.ask(fork, form("c-2"))
    for at, expected in ((Imported(chat), ["c-2"]), (chat, ["c-1", "c-2"])):
        run = at.run(at.settle(second, LUND).run_id)
        events = await opening(cast(Store, LogOf(at)), at.state, run, 1, 100, 1000)
        start = events[0].start
        assert [result.call_id for result in start.turn_results] == expected
        assert list(start.used_call_ids) == ["c-1", "c-2"]
        shown = [
            part.tool_result.imported
            for event in events[1:]
            for message in event.history.messages
            for part in message.parts
            if part.HasField("tool_result")
        ]
        assert shown == [isinstance(at, Imported), False]


@pytest.mark.parametrize("running", [False, True])
def test_a_run_that_was_under_way_fails_by_name_and_starts_nothing(running: bool) -> None:
    """S1, R3: it may go on where it came from."""
    chat = Conversation()
    run_id = chat.start()
    if running:
        chat.report(run_id, Began("m-1"))
    copy = Imported(chat)
    run = copy.run(run_id)
    assert run.state is RunState.FAILED
    assert run.failure is not None
    assert run.failure.reason is RunFailureReason.IMPORTED
    withdrawn = [e for e in copy.events_of(MessageWithdrawn) if e.message_id == "m-1"]
    assert len(withdrawn) == running
    assert not copy.state.live_runs


def test_an_answer_that_was_under_way_is_not_lost() -> None:
    """R6: `RetryRun` goes on with it."""
    chat = Conversation()
    [question] = chat.ask(chat.start(), form("c-1"))
    fork = chat.settle(question, VISBY).run_id
    copy = Imported(chat)
    assert copy.run(fork).state is RunState.FAILED
    retry, _ = copy.act(lambda d: retry_run(d, fork), principal("ann"))
    assert copy.results(retry)["c-1"].output_json == VISBY


def test_a_run_that_was_being_cancelled_is_cancelled() -> None:
    """R1"""
    chat = Conversation()
    run_id = chat.start()
    chat.report(run_id)
    chat.act(lambda d: cancel_run(d, CancelRun(run_id)), principal("ann"))
    assert Imported(chat).run(run_id).state is RunState.CANCELLED


def test_messages_that_were_held_stay_held_until_the_queue_is_let_go_on() -> None:
    """G2, G3: nothing starts by itself; order is kept."""
    chat = Conversation()
    chat.start("first")
    chat.send("second")
    chat.send("third")
    copy = Imported(chat)
    assert copy.held_texts() == ["second", "third"]
    assert copy.state.held[0].reason is HoldReason.QUEUE_PAUSED
    assert copy.state.queue_pause is not None
    assert copy.state.queue_pause.reason is QueuePauseReason.IMPORTED
    assert copy.resume_queue()
    assert copy.held_texts() == ["third"]


def test_messages_that_a_parked_run_holds_need_no_pause() -> None:
    chat = Conversation()
    [question] = chat.ask(chat.start("first"), form("c-1"))
    chat.send("second")
    copy = Imported(chat)
    assert copy.events_of(QueuePaused) == []
    assert [type(e.event) for e in copy.new] == [SessionImported]
    copy.complete(copy.settle(question, VISBY).run_id)
    assert copy.held_texts() == []


def test_an_import_can_be_exported_and_imported_again() -> None:
    chat = Conversation()
    chat.ask(chat.start(), form("c-1"))
    once = Imported(chat)
    twice = Imported(once, "s-3")
    assert twice.state.session.id == "s-3"
    assert twice.new[-1].event == SessionImported("s-2", "t-2")


# --- the file ---


def file_of(chat: Conversation) -> bytes:
    stored = stored_log(chat)
    return (first_line(SessionKey("t-1", "s-1"), len(stored)) + lines(stored)).encode()


def test_a_file_holds_every_event_as_it_is() -> None:
    """T2, E4: digits, order of keys, and every kind of line end within a text."""
    chat = Conversation()
    arguments = '{"b": 12345678901234567890.10, "a": "\\u2028 \\n"}'
    run_id = chat.start("one\ntwo\r\u2028three\u0085 \U0001f600 \x1f")
    chat.step(run_id, server_call("c-1", arguments=arguments))
    data = file_of(chat)
    assert read_file(data) == tuple(chat.log)
    assert data.count(b"\n") == len(chat.log) + 1
    for line in data.decode().removesuffix("\n").split("\n"):
        json.loads(line)


def take(data: bytes) -> None:
    chat = Conversation()
    import_session(
        ImportSession(read_file(data), "t-2"), 1, principal("root"), chat.mint, chat.limits
    )


def refused(data: bytes) -> str:
    with pytest.raises(Refusal) as caught:
        take(data)
    assert caught.value.reason is Reason.INVALID_FIELD
    [(field, problem)] = caught.value.violations
    assert field == "data"
    return problem


def test_a_file_that_is_none_or_does_not_fit_is_refused_with_the_line() -> None:
    chat = Conversation()
    chat.ask(chat.start(), form("c-1"))
    good = file_of(chat).decode().split("\n")
    assert refused(b"").startswith("line 1: is no JSON")
    assert refused(b"{}").startswith("line 1: does not say that")
    assert refused(b"[" * 100_000).startswith("line 1: is no JSON")
    assert refused("\n".join(good[:-3]).encode()).startswith("line 1: says that 9 lines follow")
    assert refused(b"\n".join([good[0].encode(), b"\xff"])).startswith("line 2: is no UTF-8")

    def changed(number: int, line: str) -> bytes:
        return "\n".join([*good[: number - 1], line, *good[number:]]).encode()

    assert refused(changed(1, good[0].replace('"version": 1', '"version": 2'))).startswith("line 1")
    for number, line in ((4, "{}"), (4, '{"textDelta": {}}'), (4, '{"later": {}}'), (3, "no")):
        assert refused(changed(number, line)).startswith(f"line {number}: is no event")
    assert refused(changed(2, good[2])).startswith("line 2: is not the event session_created")
    assert refused(changed(5, good[1])).startswith("line 5: does not fit")
    assert refused(changed(3, good[3])).startswith("line 3: does not fit")
    timeless = json.loads(good[2])
    del timeless["createTime"]
    assert refused(changed(3, json.dumps(timeless))).startswith("line 3: does not fit")


def test_events_of_another_session_do_not_fit() -> None:
    one, other = Conversation(), Conversation()
    other.ask(other.start(), form("c-9"))
    mixed: list[SessionEvent] = [one.log[0], *other.log[3:]]
    command = ImportSession(tuple(mixed), "t-2")
    with pytest.raises(Refusal):
        import_session(command, 1, principal("root"), one.mint, one.limits)


def test_a_run_state_is_what_it_was_for_every_ended_run() -> None:
    chat = Conversation()
    chat.complete(chat.start())
    chat.fail(chat.start())
    copy = Imported(chat)
    for run_id, run in chat.state.runs.items():
        assert copy.run(run_id).state is run.state
    assert len(copy.events_of(RunStateChanged)) == len(chat.events_of(RunStateChanged))
