"""What must hold of every session, seen from a client; and what tests of variants share."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from tests.e2e.pair import Pair, Service
from tests.e2e.talk import FINAL, Talk, log_of, of_kind, state_of
from turngate.v1 import broker_pb2, message_pb2, run_pb2
from turngate.v1.broker_pb2 import InteractionRef
from turngate.v1.event_pb2 import SessionEvent
from turngate.v1.interaction_pb2 import Interaction
from turngate.v1.message_pb2 import Message
from turngate_client import SessionView, fold
from turngate_client.folding import apply_event
from turngate_client.interactions import PlainJson

ACTIVE = (
    run_pb2.RUN_STATE_PENDING,
    run_pb2.RUN_STATE_RUNNING,
    run_pb2.RUN_STATE_CANCELLING,
)
LOOKS = 50
"""How often a session is read again that moves while it is read."""


def city(name: str) -> PlainJson:
    """An answer to the forms of the script `variants`."""
    return {"action": "accept", "content": {"city": name}}


def call_in(run_id: str, interaction: Interaction) -> InteractionRef:
    """The question by a run and its call, instead of its id."""
    return InteractionRef(run_id=run_id, call_id=interaction.call_id)


async def answer_twice(
    trip: Talk, pair: Pair, form: Interaction
) -> tuple[broker_pb2.SettleToolCallResponse, broker_pb2.SettleToolCallResponse]:
    """Two people answer the same form: F, and its sibling F'."""
    async with pair.client("bob", "phone") as phone:
        first = await trip.session.settle(form, city("Visby"))
        second = await phone.session(trip.id).settle(form, city("Klinte"))
    return first, second


async def run_of(trip: Talk, message_id: str) -> str:
    """The run of a message, once it has entered."""

    def found(view: SessionView) -> str | None:
        runs = view.children(message_id) if message_id in view.prompts else []
        return runs[0] if runs else None

    return await trip.until(found, f"message {message_id} to enter")


async def all_over(trip: Talk) -> None:
    """Until no run is live and no message is held."""

    def found(view: SessionView) -> bool:
        live = [r for r in view.runs if state_of(view, r) not in FINAL]
        return not view.held_by_id and all(view.is_superseded(run_id) for run_id in live)

    await trip.until(found, "everything to end")


@contextmanager
def frozen(service: Service) -> Iterator[None]:
    """The service does nothing meanwhile, and goes on afterwards."""
    service.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        service.signal(signal.SIGCONT)


def result_kinds(messages: list[Message]) -> list[str]:
    """The kinds of the results that stand in a transcript, in order."""
    return [
        message_pb2.ResultKind.Name(part.tool_result.kind).removeprefix("RESULT_KIND_")
        for message in messages
        for part in message.parts
        if part.HasField("tool_result")
    ]


def entered(log: list[SessionEvent]) -> list[str]:
    """The texts of all messages that entered, in order."""
    return [e.prompt_added.message.parts[0].text.text for e in of_kind(log, "prompt_added")]


async def check(trip: Talk) -> list[SessionEvent]:
    """Reads and the folded log agree, and the log keeps R1, R2, T4, F8 and G2. Answers the log."""
    session = trip.session
    for _ in range(LOOKS):
        log = await log_of(session)
        tree = await session.tree(include_superseded=True)
        listed = await session.tree()
        runs = [node.id for node in tree if node.HasField("run")]
        transcripts = {run_id: await session.transcript(run_id) for run_id in runs}
        held = [one.message.id for one in (await session.held_messages()).messages]
        waiting = {one.id for one in await session.open_interactions()}
        selected = (await session.get()).selected_node_id
        if await log_of(session) == log:
            break
    else:
        raise AssertionError(f"session {trip.id} moves on and on: {trip.view.describe()}")
    check_history(log)
    view = fold(log)
    assert [node.id for node in tree] == view.node_ids
    assert [node.id for node in listed] == [node.id for node in view.nodes()]
    assert selected == view.selected_node_id
    assert held == [one.message.id for one in view.held_messages]
    assert waiting == {one.id for one in view.open_interactions()}
    for node in tree:
        if node.HasField("run"):
            _check_run(node, view)
    for run_id, shown in transcripts.items():
        check_paired(shown, final=state_of(view, run_id) in FINAL)
        if not view.drafts:
            assert shown == view.transcript(run_id), f"the transcript of {run_id}"
    return log


def _check_run(node: broker_pb2.TreeNode, view: SessionView) -> None:
    read, folded = node.run, view.runs[node.id].run
    assert read.state == folded.state
    assert read.origin_run_id == folded.origin_run_id
    assert read.supersedes_run_id == folded.supersedes_run_id
    assert read.superseded_by_run_id == folded.superseded_by_run_id
    assert read.waits_for_interaction_ids == folded.waits_for_interaction_ids
    if read.superseded_by_run_id:
        assert not node.selected, "F8: a superseded run is never selected"
        assert not read.waits_for_interaction_ids, "R1: it waits for nothing"


def check_paired(messages: list[Message], *, final: bool) -> None:
    """T4: a result stands right after its call, once; in a run that is over each call has one."""
    for message in messages:
        calls = [p.tool_call.call_id for p in message.parts if p.HasField("tool_call")]
        results: list[str] = []
        at = ""
        for part in message.parts:
            if part.HasField("tool_call"):
                at = part.tool_call.call_id
            if part.HasField("tool_result"):
                assert part.tool_result.call_id == at
                results.append(at)
        assert len(set(results)) == len(results)
        assert not final or results == calls, message.id


def check_history(log: list[SessionEvent]) -> None:
    """What holds at every point: final states are final (R1), one active run a branch (R2), one
    result a call and run (T4), every message enters once (G2).
    """
    view = SessionView()
    for event in log:
        before = {run_id: run.run.state for run_id, run in view.runs.items()}
        apply_event(view, event)
        for run_id, state in before.items():
            now = view.runs[run_id].run.state
            assert state not in FINAL or now == state, f"R1: {run_id} left its final state"
        active = [
            run_id
            for run_id, run in view.runs.items()
            if run.run.state in ACTIVE and not view.is_superseded(run_id)
        ]
        for run_id in active:
            above = set(view.branch(run_id)) - {run_id}
            assert not above & set(active), f"R2: two active runs above {run_id}"
    added = [e.tool_result_added for e in of_kind(log, "tool_result_added")]
    for (run_id, call_id), times in Counter(
        (one.run_id, one.result.call_id) for one in added
    ).items():
        assert times == 1, f"T4: call {call_id} has {times} results in {run_id}"
    prompts = Counter(e.prompt_added.message.id for e in of_kind(log, "prompt_added"))
    assert all(times == 1 for times in prompts.values()), "G2: a message entered twice"
