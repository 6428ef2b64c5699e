"""Commands of three clients at once, drawn by chance: whatever they do, the rules hold."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from functools import partial

import pytest

from tests.e2e.pair import Pair
from tests.e2e.talk import FINAL, Talk, of_kind, state_of, talk
from tests.e2e.variants import call_in, check, city
from turngate.v1 import broker_pb2, run_pb2, session_pb2
from turngate.v1.interaction_pb2 import (
    INTERACTION_KIND_APPROVAL,
    INTERACTION_KIND_CLIENT_TOOL,
    INTERACTION_STATE_OPEN,
    Interaction,
)
from turngate_client import SessionClient, SessionView, TurngateClient, TurngateError
from turngate_client.interactions import InteractionLike

ROUNDS = 25
# Many commands one after the other, on a machine that may be busy.
END_SECONDS = 60.0
MOST_RUNS = 30
WORDS = ("forms", "pay", "fail", "slow", "scan", "plain")
# What a command may be refused with here; anything else is a failure of the service.
REFUSALS = {
    "ALREADY_DECIDED",
    "ALREADY_SETTLED",
    "CALL_NOT_OPEN",
    "GRANT_NOT_FOUND",
    "HELD_MESSAGE_NOT_FOUND",
    "INTERACTION_CANCELLED",
    "INTERACTION_NOT_HANDLED",
    "NOT_THE_AUTHOR",
    "RUN_CANCELLED",
    "RUN_STATE",
    "TOOL_CALL_NOT_IN_RUN",
    "WRONG_INTERACTION_KIND",
}
Command = Callable[[], Awaitable[object]]


class Chance:
    """Draws commands from what a client sees of a session."""

    def __init__(self, seed: int, trip: Talk, sessions: list[SessionClient]) -> None:
        self.random = random.Random(seed)
        self._trip = trip
        self._sessions = sessions
        self._sent = 0

    def command(self) -> Command:
        """One of those that make sense now, or nearly: names may be stale."""
        view = self._trip.view
        session = self.random.choice(self._sessions)
        commands: list[Command] = [lambda: session.send(self._text())] * 2
        commands.append(session.resume_queue)
        if view.runs:
            commands += [self._about_run(session) for _ in range(3)]
        if view.interactions:
            commands += [self._about_question(session) for _ in range(7)]
        if view.held_messages:
            held = self.random.choice(view.held_messages).message.id
            commands.append(lambda: session.remove_held(held))
            commands.append(lambda: session.update_held(held, "updated"))
        return self.random.choice(commands)

    def _text(self) -> str:
        self._sent += 1
        return f"{self.random.choice(WORDS)} {self._sent}"

    def _about_run(self, session: SessionClient) -> Command:
        draw, view = self.random.choice, self._trip.view
        run_id, node_id = draw(list(view.runs)), draw(view.node_ids)
        prompt_id = draw(list(view.prompts))
        failed = [r for r in view.runs if state_of(view, r) == run_pb2.RUN_STATE_FAILED]
        keep_running = draw([True, False, False])
        held = draw([broker_pb2.HELD_MESSAGES_RELEASE, broker_pb2.HELD_MESSAGES_KEEP])
        on_busy = draw([session_pb2.ON_BUSY_HOLD, session_pb2.ON_BUSY_INTERRUPT])
        text = self._text()
        return draw(
            [
                lambda: session.cancel_run(run_id, held=held),
                lambda: session.regenerate(run_id, keep_running=keep_running),
                lambda: session.retry(draw(failed) if failed else run_id),
                lambda: session.select_branch(node_id),
                lambda: session.send(text, branch_node_id=node_id, on_busy=on_busy),
                lambda: session.send(text, on_busy=on_busy),
                lambda: session.send(
                    text, edits_message_id=prompt_id, on_busy=on_busy, keep_running=keep_running
                ),
            ]
        )

    def _about_question(self, session: SessionClient) -> Command:
        draw, view = self.random.choice, self._trip.view
        questions = list(view.interactions.values())
        question = draw(
            [one for one in questions if one.state == INTERACTION_STATE_OPEN] or questions
        )
        if draw([True, False, False]):
            question = draw(questions)  # also one that is closed
        ref = self._named(question)
        if question.kind == INTERACTION_KIND_APPROVAL:
            return draw(
                [
                    lambda: session.approve(ref),
                    lambda: session.approve(ref),
                    lambda: session.deny(ref),
                    lambda: session.revoke_grant(question.id),
                ]
            )
        answer = city(draw(["Visby", "Klinte", "Hoburg"]))
        return draw(
            [
                lambda: session.settle(ref, answer),
                lambda: session.settle(ref, answer),
                lambda: session.settle(ref, answer),
                lambda: session.report_unhandled(ref),
                lambda: session.cancel_interaction(ref),
            ]
        )

    def _named(self, question: Interaction) -> InteractionLike:
        """By its id, or by any run that has its call."""
        view = self._trip.view
        having = [
            run_id
            for run_id in view.runs
            if any(call.call.call_id == question.call_id for call in view.calls(run_id))
        ]
        by_run = self.random.random() < 0.4
        return call_in(self.random.choice(having), question) if by_run else question


async def attempt(command: Awaitable[object]) -> None:
    """Give a command; it may be refused by name."""
    try:
        await command
    except TurngateError as error:
        if error.reason not in REFUSALS:
            raise


async def bring_to_an_end(trip: Talk, chance: Chance) -> None:
    """Answer and close all that is open, until nothing is live and nothing is held."""
    session = trip.session
    async with asyncio.timeout(END_SECONDS):
        while True:
            view, moved = trip.view, trip.view.position
            for question in view.open_interactions():
                if question.kind == INTERACTION_KIND_CLIENT_TOOL and chance.random.random() < 0.5:
                    await attempt(session.settle(question, city("end")))
                elif question.kind == INTERACTION_KIND_APPROVAL:
                    await attempt(session.deny(question))
                else:
                    await attempt(session.cancel_interaction(question))
            await session.resume_queue()
            live = [
                run_id
                for run_id in view.runs
                if state_of(view, run_id) not in FINAL and not view.is_superseded(run_id)
            ]
            if not live and not view.held_messages:
                return
            if not live:
                await session.select_branch(view.held_messages[0].branch_node_id)
            await trip.until(partial(_moved_on, moved), "something to happen")


def _moved_on(position: int, view: SessionView) -> bool:
    return view.position > position


async def play(seed: int, pair: Pair, clients: list[TurngateClient]) -> None:
    """One session: commands by chance, up to three at once; then everything ends."""
    async with talk(clients[0], "anything", participants=("bob", "eve")) as trip:
        chance = Chance(seed, trip, [client.session(trip.id) for client in clients])
        for _ in range(ROUNDS):
            if len(trip.view.runs) > MOST_RUNS:
                break
            together = chance.random.choice([1, 1, 2, 3])
            await asyncio.gather(*(attempt(chance.command()()) for _ in range(together)))
        pair.open_gate(f"up-{trip.id}")
        await bring_to_an_end(trip, chance)
        log = await check(trip)
        file = pair.file(f"charges-{trip.id}")
        charged = file.read_text().split() if file.exists() else []
        started = {event.tool_started.call_id for event in of_kind(log, "tool_started")}
        assert len(set(charged)) == len(charged), "S1: a tool ran twice"
        assert set(charged) <= started, "A1: a tool ran that was not granted"


@pytest.mark.parametrize("seed", [1, 5])
async def test_the_rules_hold_whatever_three_clients_do(pair: Pair, seed: int) -> None:
    """R1, R2, T4, F8, G2, S1; and every read says what the folded log says."""
    async with (
        pair.client() as laptop,
        pair.client("bob", "phone") as phone,
        pair.client("eve", "tab") as tab,
    ):
        clients = [laptop, phone, tab]
        await asyncio.gather(*(play(seed + more, pair, clients) for more in range(3)))
