"""Webhooks end to end: targets are told what waits, whatever fails meanwhile (P3)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.e2e.conftest import StartPair
from tests.e2e.pair import Pair, start_error
from tests.e2e.receiver import SECRET, Receiver, receiving, targets_file
from tests.e2e.talk import VISBY, Talk, talk
from turngate.v1.session_pb2 import SessionConfig

# Later pauses are 60 and 360 times this one.
RETRY = "--webhook-retry=0.02"


@pytest_asyncio.fixture
async def receiver() -> AsyncIterator[Receiver]:
    """A receiver that is up."""
    async with receiving() as up:
        yield up


@pytest.fixture
def start(start_pair: StartPair, receiver: Receiver, tmp_path: Path) -> Any:
    """Starts a pair that tells these paths of the receiver."""

    def started(*paths: str, flags: tuple[str, ...] = (RETRY,), more: str = "") -> Pair:
        file = targets_file(tmp_path, receiver, *paths, more=more)
        return start_pair(broker_flags=(f"--webhooks={file}", *flags))

    return started


async def ask_and_answer(trip: Talk) -> str:
    """A turn with a form, answered; the id of its question."""
    _, (form,) = await trip.start_parked()
    settled = await trip.session.settle(form, VISBY)
    assert await trip.completed(settled.run_id) == "Where to? Off to Visby."
    return form.id


async def test_P3_targets_are_told_what_waits_by_ids_with_a_link(
    start: Any, receiver: Receiver
) -> None:
    """P3: signed as a consumer verifies it, and nothing of what was asked or answered."""
    pair = start("/ops")
    config = SessionConfig(
        agent="form", interaction_link="https://app.example/{session_id}/{interaction_id}"
    )
    async with pair.client() as client, talk(client, "", config=config) as trip:
        question = await ask_and_answer(trip)
        said = {one["type"]: one for one in await receiver.received("/ops", 2)}
        opened, closed = said["interaction.opened"], said["interaction.closed"]
        assert opened["timestamp"] < closed["timestamp"]
        run_id = next(iter(trip.view.runs))
        for one, state in ((opened, "open"), (closed, "answered")):
            assert one["data"].pop("tenant_id")
            assert one["data"] == {
                "session_id": trip.id,
                "interaction_id": question,
                "run_id": run_id,
                "kind": "client_tool",
                "state": state,
                "owner": "ann",
                "opened_for": "ann",
                "link": f"https://app.example/{trip.id}/{question}",
            }
    for call in receiver.calls:
        assert call.headers["content-type"] == "application/json"
        for word in ("Where", "City", "Visby", "nights", "request_input", "Go"):
            assert word not in call.body + str(call.headers)


async def test_P3_approvals_are_told_too_and_not_what_is_to_be_approved(
    start: Any, receiver: Receiver
) -> None:
    pair = start("/ops")
    async with pair.client() as client, talk(client, "pay") as trip:
        run_id, (approval,) = await trip.start_parked()
        await trip.session.deny(approval, reason="too dear")
        await trip.completed(run_id)
        said = await receiver.received("/ops", 2)
        assert [one["data"]["kind"] for one in said] == ["approval", "approval"]
        # In whatever order: what is told soon after each other may overtake.
        assert {one["data"]["state"] for one in said} == {"open", "denied"}
    assert not [call for call in receiver.calls if "dear" in call.body or "euro" in call.body]


async def test_a_receiver_that_was_down_gets_what_it_missed(start: Any, receiver: Receiver) -> None:
    """At least once, with the same id each time; the run has long gone on."""
    pair = start("/ops")
    receiver.answers["/ops"] = 0
    async with pair.client() as client, talk(client, "form") as trip:
        await ask_and_answer(trip)
        await receiver.until(lambda: len(receiver.at("/ops")) >= 2, "attempt on each webhook")
        await receiver.down()
        tried = {call.id for call in receiver.calls}
        del receiver.answers["/ops"]
        await receiver.up()
        said = await receiver.received("/ops", 2)
        assert {one["type"] for one in said} == {"interaction.opened", "interaction.closed"}
        assert {call.id for call in receiver.at("/ops", 204)} == tried


async def test_a_target_that_hangs_delays_neither_runs_nor_other_targets(
    start: Any, receiver: Receiver
) -> None:
    pair = start("/hangs", "/ops", flags=("--webhook-timeout=120",))
    receiver.answers["/hangs"] = None
    async with pair.client() as client:
        for turn in range(6):
            async with talk(client, "form") as trip:
                await ask_and_answer(trip)
                await receiver.received("/ops", 2 * (turn + 1))
    assert len(receiver.at("/hangs")) == 8, "so many requests at once, and no more"


async def test_S2_a_webhook_survives_the_death_of_its_broker(
    start: Any, receiver: Receiver
) -> None:
    """Killed between a failed attempt and the next one: it comes after the restart, as it was."""
    pair = start("/ops", flags=("--webhook-retry=1",))
    receiver.answers["/ops"] = 500
    async with pair.client() as client, talk(client, "form") as trip:
        await trip.start_parked()
        await receiver.until(lambda: len(receiver.at("/ops")) == 1, "first attempt")
        pair.broker.kill()
        receiver.answers["/ops"] = 204
        await pair.broker.restart()
        (said,) = await receiver.received("/ops", 1)
        assert said["data"]["session_id"] == trip.id
    first, *later = receiver.at("/ops")
    assert {call.id for call in later} == {first.id}
    assert {call.body for call in later} == {first.body}


async def test_a_target_that_is_gone_is_told_nothing_until_a_restart(
    start: Any, receiver: Receiver
) -> None:
    pair = start("/gone", "/ops")
    receiver.answers["/gone"] = 410
    async with pair.client() as client, talk(client, "form") as trip:
        await trip.start_parked()
        await receiver.until(lambda: bool(receiver.at("/gone")), "webhook on /gone")
        await receiver.received("/ops", 1)
        async with talk(client, "form") as other:
            await ask_and_answer(other)
            await receiver.received("/ops", 3)
    assert len(receiver.at("/gone")) == 1
    assert "webhook target is gone" in pair.broker.log_tail()
    assert await pair.broker.stop() == 0
    receiver.answers["/gone"] = 204
    await pair.broker.restart()
    async with pair.client() as client, talk(client, "form") as trip:
        await trip.start_parked()
        await receiver.received("/gone", 1)


async def test_a_stop_waits_for_no_target_and_loses_nothing(start: Any, receiver: Receiver) -> None:
    pair = start("/ops", flags=(RETRY, "--webhook-timeout=120", "--drain-timeout=4"))
    receiver.answers["/ops"] = None
    async with pair.client() as client, talk(client, "form") as trip:
        await trip.start_parked()
        await receiver.until(lambda: bool(receiver.at("/ops")), "request under way")
        assert await pair.broker.stop() == 0
        assert "drain hook failed" not in pair.broker.log_tail()
        del receiver.answers["/ops"]
        await pair.broker.restart()
        await receiver.received("/ops", 1)
    assert len({call.id for call in receiver.calls}) == 1


async def test_nothing_secret_is_logged(start: Any, receiver: Receiver) -> None:
    """Neither secrets, nor addresses, which may be secrets, at the most talkative level."""
    pair = start("/ops", "/t0k3n", flags=(RETRY, "--log-level=debug"))
    receiver.answers["/t0k3n"] = 500
    async with pair.client() as client, talk(client, "form") as trip:
        await ask_and_answer(trip)
        await receiver.received("/ops", 2)
        await receiver.until(lambda: len(receiver.at("/t0k3n")) >= 4, "second attempts")
    log = pair.broker.log.read_text()
    assert "webhook not delivered" in log
    assert SECRET.removeprefix("whsec_") not in log
    assert receiver.url("") not in log


def test_a_file_of_targets_that_does_not_fit_is_one_line_with_its_place(tmp_path: Path) -> None:
    file = targets_file(tmp_path, Receiver(), "/ops", more='uri = "x"\nlink = "{secret}"')
    code, lines = start_error("broker", tmp_path, "--listen=127.0.0.1:0", f"--webhooks={file}")
    assert code == 2
    (line,) = lines
    assert f"{file}:5: target[0].uri" in line
    assert f"{file}:6: target[0].link" in line
    assert SECRET not in line
