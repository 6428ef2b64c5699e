"""docs/events.md has every event of the contract, and its log is the one of a real session."""

import re
from typing import NamedTuple

from tests.docs.pages import ROOT, blocks, page, rows
from tests.e2e.pair import Pair
from turngate.v1.event_pb2 import ActorKind, SessionEvent
from turngate.v1.interaction_pb2 import Interaction
from turngate.v1.run_pb2 import RUN_STATE_COMPLETED, RunState
from turngate_client import SessionView, TurngateClient

KINDS = [field.name for field in SessionEvent.DESCRIPTOR.oneofs_by_name["event"].fields]
DELTAS = {"text_delta", "tool_call_delta"}
SECONDS = 20.0


class Entry(NamedTuple):
    """A line of the log on the page; `actor` and `state` are empty where it does not say."""

    position: int
    actor: str
    kind: str
    state: str


def documented() -> list[Entry]:
    [log] = [block for block in blocks(ROOT / "docs" / "events.md") if block.info == "text log"]
    entries = []
    for line in log.body.splitlines():
        found = re.match(r" *(\d+) ([A-Z]+| +) +([a-z_]+) +(.*)", line)
        assert found is not None, line
        state = re.match(r"R\d ([A-Z]+)", found[4])
        entries.append(
            Entry(
                position=int(found[1]),
                actor=found[2].strip(),
                kind=found[3],
                state=state[1] if state and found[3] == "run_state_changed" else "",
            )
        )
    return entries


def test_every_kind_stands_in_the_table_once_and_no_other() -> None:
    listed = [
        cells[0].strip("`")
        for cells in rows(page("docs/events.md"))
        if re.fullmatch(r"`[a-z_]+`", cells[0])
    ]
    assert sorted(listed) == sorted(KINDS)


async def test_the_log_is_the_one_of_a_real_session(pair: Pair) -> None:
    """The conversation of the page, held again: the same events in the same order."""
    async with TurngateClient(pair.broker.address) as client:
        session = await client.create_session(agent="demo")
        await session.send("I would like to go on a trip.")
        form = await session.until(open_question, SECONDS, "a form is open")
        await session.send("Is breakfast included?")
        await session.settle(form, {"action": "accept", "content": {"city": "Visby", "nights": 3}})
        approval = await session.until(open_question, SECONDS, "an approval is asked for")
        await session.approve(approval)
        await session.until(two_replies, SECONDS, "the held message has its reply")
        log: list[SessionEvent] = []
        async with session.watch() as watching:
            async for frame in watching.frames():
                log.extend(frame.events)
                if frame.live:
                    break
    kept = [event for event in log if event.WhichOneof("event") not in DELTAS]
    for entry, event in zip(documented(), kept, strict=False):
        assert event.WhichOneof("event") == entry.kind
        if entry.actor:
            assert ActorKind.Name(event.actor_kind) == f"ACTOR_KIND_{entry.actor}"
        if entry.state:
            assert RunState.Name(event.run_state_changed.state) == f"RUN_STATE_{entry.state}"
    positions = [entry.position for entry in documented()]
    assert positions == sorted(set(positions))
    assert len(kept) > len(positions)


def open_question(view: SessionView) -> Interaction | None:
    return next(iter(view.open_interactions()), None)


def two_replies(view: SessionView) -> bool | None:
    ended = [run for run in view.runs.values() if run.run.state == RUN_STATE_COMPLETED]
    return len(ended) == 2 or None
