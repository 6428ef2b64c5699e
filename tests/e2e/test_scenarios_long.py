"""Scenario 12: what a turn, a fork and a look cost does not depend on what was said before.

No clock decides here: bytes do, of responses, of events, of what a runner is sent and of the store.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path

import pytest

from tests.contract.postgres_server import ask
from tests.e2e.conftest import all_scripts
from tests.e2e.pair import Pair, new_pair
from tests.e2e.talk import DEADLINE_SECONDS, Talk, log_of, of_kind, talk
from tests.e2e.variants import city
from turngate.v1.event_pb2 import SessionEvent
from turngate_client import SessionClient, TurngateClient

TURNS = 10_000
LEFT_OUT = ('"messageStarted"', '"RUN_STATE_RUNNING"')
# An agent is sent its turn and 100 messages before it: that many are there in both sessions.
WINDOW = 100
FEW_TURNS = 60
# A cursor, a number or a time may take a few bytes more.
ALLOWED = 1.05
SAID = "What was said. " * 100  # 1.5 KB
# A file of 20 MB is read and folded while others may be at work on the machine.
IMPORT_SECONDS = 200.0


def size(messages: Iterable[SessionEvent]) -> int:
    """Bytes of events."""
    return sum(message.ByteSize() for message in messages)


# --- a session of ten thousand turns, by import ---


async def template(client: TurngateClient) -> tuple[list[str], list[str]]:
    """The lines of an export: the head and the session, and the second turn of two."""
    async with talk(client, "long_talk") as trip:
        first = await trip.start("plain")
        await trip.completed(first)
        second = await trip.start("plain")
        await trip.completed(second)
        data = b"".join([piece async for piece in trip.session.export()]).decode()
    lines = data.splitlines()
    begin = next(n for n, line in enumerate(lines) if f'"parentNodeId": "{first}"' in line)
    ids = [first, second, trip.view.parent_of(second), trip.view.run_messages(second)[0].id]
    # Without what came before the message was whole: it is told again by the message itself.
    whole = [line for line in lines[begin:] if not any(kind in line for kind in LEFT_OUT)]
    turn = "\n".join(whole).replace("{", "{{").replace("}", "}}")
    for name, one in zip(("before", "run", "prompt", "reply"), ids, strict=True):
        turn = turn.replace(one, "{" + name + "}")
    return lines[:2], turn.splitlines()


def file_of(head: list[str], turn: list[str], turns: int) -> bytes:
    """An export of so many turns."""
    form = "\n".join(turn)
    lines = [
        form.format(
            before=f"run_{number - 1:016}",
            run=f"run_{number:016}",
            prompt=f"msg_{number:016}",
            reply=f"msg_reply{number:016}",
        )
        for number in range(1, turns + 1)
    ]
    lines[0] = lines[0].replace(f'"parentNodeId": "run_{0:016}", ', "")
    first = json.loads(head[0])
    first["events"] = 1 + len(turn) * turns
    return "\n".join([json.dumps(first), head[1], *lines, ""]).encode()


async def imported(pair: Pair, data: bytes) -> str:
    """A session with this history; its id."""
    pieces = [data[at : at + 500_000] for at in range(0, len(data), 500_000)]
    async with asyncio.timeout(IMPORT_SECONDS), TurngateClient(pair.broker.address) as operator:
        return (await operator.import_session(pieces, session_id=secrets.token_hex(8))).id


async def costs(session: SessionClient, pair: Pair) -> dict[str, int]:
    """Bytes of a turn with a form and of a fork: of each response, of all their events, of the
    first frames of a watch at the tail; and how many messages the runner was sent (X6)."""
    cost: dict[str, int] = {}
    async with session.follow(snapshot=True) as followed:
        trip = Talk(session, followed)
        await trip.until(lambda view: bool(view.session.id), "the snapshot")
        sent = await session.send("form")
        cost["SendMessage"] = sent.ByteSize()
        (one,) = await trip.parked(sent.run_id)
        turn = await log_of(session, after=sent.cursor)
        cost["events of a turn"] = size(turn)
        settled = await session.settle(one, city("Visby"))
        cost["SettleToolCall"] = settled.ByteSize()
        (two,) = await trip.parked(settled.run_id)
        cost["events of a fork"] = size((await log_of(session, after=sent.cursor))[len(turn) :])
        last = await session.settle(two, city("Klinte"))
        await trip.completed(last.run_id)
        cost["GetRun"] = (await session.run(last.run_id)).ByteSize()
        cost["the tail"] = await opening(session, sent.cursor, snapshot=False)
        cost["a snapshot"] = await opening(session, "", snapshot=True)
        seen = await trip.start("what do you see?")
        shown = json.loads(await trip.completed(seen))
        cost["messages sent to the runner"] = len(shown)
        cost["bytes sent to the runner"] = len(trip.view.text(seen))
    return cost


async def opening(session: SessionClient, after: str, *, snapshot: bool) -> int:
    """Bytes of the frames of a watch until it is live."""
    total = 0
    async with asyncio.timeout(DEADLINE_SECONDS):
        async with session.watch(after=after, snapshot=snapshot) as watch:
            async for frame in watch.frames():
                total += frame.ByteSize()
                if frame.live:
                    return total
    raise AssertionError("the watch ended")


@pytest.mark.timeout(300)
async def test_scenario_12_ten_thousand_turns(pair: Pair, client: TurngateClient) -> None:
    """Scenario 12, F3, X6, W1: after ten thousand turns each costs what it did before."""
    head, turn = await template(client)
    few = client.session(await imported(pair, file_of(head, turn, FEW_TURNS)))
    many = client.session(await imported(pair, file_of(head, turn, TURNS)))
    before, after = await costs(few, pair), await costs(many, pair)
    for what, least in before.items():
        assert after[what] <= least * ALLOWED + 16, (what, before, after)
    assert before["messages sent to the runner"] > WINDOW, "the window is full in both"


# --- what is stored of real turns ---


def stored_bytes(store: str) -> int:
    """Bytes of the store: of all tables with their indexes, or of the file and its log."""
    if store.startswith("sqlite:"):
        file = Path(store.removeprefix("sqlite:"))
        return sum(one.stat().st_size for one in file.parent.glob(f"{file.name}*"))
    (found,) = ask(
        store,
        "SELECT coalesce(sum(pg_total_relation_size(relid)), 0)::bigint FROM pg_stat_user_tables "
        "WHERE schemaname = current_schema()",
    )
    return int(found[0])


async def turns(trip: Talk, count: int) -> None:
    """Turns with a question, an answer and a fork each."""
    for _ in range(count):
        _, (form,) = await trip.start_parked(SAID)
        await trip.completed((await trip.session.settle(form, city("Visby"))).run_id)


async def test_scenario_12_storage_grows_with_what_was_said(
    store_url: Callable[[Path], str], tmp_path: Path
) -> None:
    """Scenario 12, F3: the second twenty turns take as much as the first, and a few times what was
    said in them; if each turn or fork stored the conversation, they would take twice as much."""
    store, count = store_url(tmp_path), 20
    with new_pair(tmp_path, store, all_scripts()) as pair:
        async with pair.client() as client, talk(client, "same_call") as trip:
            await turns(trip, 3)
            sizes = [await rested(pair, store)]
            for _ in range(2):
                await turns(trip, count)
                sizes.append(await rested(pair, store))
    first, second = (after - before for before, after in pairwise(sizes))
    assert second <= 1.5 * first, sizes
    assert second <= 8 * count * len(SAID), sizes


async def rested(pair: Pair, store: str) -> int:
    """The bytes of the store once its broker has stopped: a file's log is written back then."""
    assert await pair.broker.stop() == 0
    size = stored_bytes(store)
    await pair.broker.restart()
    return size


# --- long replies ---


async def fork_of(trip: Talk, text: str) -> tuple[int, int]:
    """Bytes of the answer's response and of the fork's events, up to its end."""
    run_id, (form,) = await trip.start_parked(text)
    before = len(await log_of(trip.session))
    settled = await trip.session.settle(form, city("Visby"))
    await trip.completed(settled.run_id)
    assert settled.superseded_run_id == run_id
    return settled.ByteSize(), size((await log_of(trip.session))[before:])


async def test_scenario_12_a_fork_of_a_long_reply(client: TurngateClient) -> None:
    """Scenario 12, F3: of sixty steps it costs what it does of one; a second answer, too."""
    async with talk(client, "long_reply") as trip:
        short = await fork_of(trip, "short")
        long = await fork_of(trip, "long")
        assert len(trip.view.calls(trip.view.selected_node_id)) == 61, "the copy has all of it"
        for one, other in zip(long, short, strict=True):
            assert one <= other * ALLOWED + 16, (short, long)
        opened = of_kind(await log_of(trip.session), "interaction_opened")[-1]
        form = opened.interaction_opened.interaction
        settled = await trip.session.settle(form, city("Klinte"))
        assert settled.ByteSize() <= short[0] * ALLOWED + 16
        await trip.completed(settled.run_id)


async def test_scenario_12_a_chain_of_thirty_forks(client: TurngateClient) -> None:
    """Scenario 12, F2, F3: the thirtieth answer of a reply costs what the second did, though its
    fork begins with a copy of all steps before it."""
    async with talk(client, "long_reply") as trip:
        _, (form,) = await trip.start_parked("chain")
        costs: list[tuple[int, int]] = []
        known = len(await log_of(trip.session))
        for number in range(1, 31):
            settled = await trip.session.settle(form, city(f"c{number:02}"))
            if number < 30:
                (form,) = await trip.parked(settled.run_id)
            else:
                await trip.completed(settled.run_id)
            log = await log_of(trip.session)
            costs.append((settled.ByteSize(), size(log[known:])))
            known = len(log)
        (early_response, early_events), (late_response, late_events) = costs[1], costs[28]
        assert late_response <= early_response * ALLOWED + 16, costs
        assert late_events <= early_events * ALLOWED + 16, costs
        assert len(trip.view.calls(trip.view.selected_node_id)) == 30
