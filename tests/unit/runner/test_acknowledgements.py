"""The broker's word in an attempt, and ids that are never used twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from runner_service.acknowledgements import Acknowledgements
from runner_service.api.execute import Executions
from runner_service.limits import AttemptLimits
from runner_service.minting import IdMint
from runner_service.outbox import Outbox, RunnerEvent
from turngate.v1 import runner_pb2
from turngate_core.errors import Reason, Refusal

GRANTED = runner_pb2.VERDICT_GRANTED


def outbox() -> Outbox:
    """One event was put in."""
    one = Outbox(60)
    one.put(RunnerEvent(completed=runner_pb2.RunCompleted()))
    return one


def grant_all(tools: Sequence[runner_pb2.ProposedTool]) -> list[runner_pb2.ToolVerdict]:
    return [runner_pb2.ToolVerdict(call_id=tool.call_id, verdict=GRANTED) for tool in tools]


def acknowledge(*call_ids: str, through: int = 1) -> runner_pb2.Acknowledgement:
    verdicts = [runner_pb2.ToolVerdict(call_id=one, verdict=GRANTED) for one in call_ids]
    return runner_pb2.Acknowledgement(through=through, verdicts=verdicts)


async def test_a_caller_that_closes_its_side_decides_what_is_proposed_then_or_later() -> None:
    """A1, grpcurl: whichever comes first, the close or the proposal."""
    for closes_first in (True, False):
        said = Acknowledgements(outbox(), by_hand=True)
        if closes_first:
            said.half_closed()
        said.propose([runner_pb2.ProposedTool(call_id="c")], grant_all)
        if not closes_first:
            assert said.verdicts.empty()
            said.half_closed()
        verdict = said.verdicts.get_nowait()
        assert verdict is not None
        assert verdict.call_id == "c"
        await asyncio.wait_for(said.durable(1), 5)


async def test_a_broker_that_goes_away_decides_nothing() -> None:
    said = Acknowledgements(outbox(), by_hand=True)
    said.propose([runner_pb2.ProposedTool(call_id="c")], grant_all)
    said.receive(acknowledge(through=0))
    with pytest.raises(Refusal) as refused:
        said.half_closed()
    assert refused.value.reason is Reason.PROTOCOL_VIOLATION
    assert said.verdicts.empty()


async def test_after_the_acknowledged_end_a_close_is_fine() -> None:
    out = outbox()
    said = Acknowledgements(out, by_hand=True)
    out.end()
    said.receive(acknowledge())
    said.half_closed()


async def test_an_unacknowledged_end_and_a_close_are_not() -> None:
    out = outbox()
    said = Acknowledgements(out, by_hand=True)
    out.end()
    said.receive(acknowledge(through=0))
    with pytest.raises(Refusal):
        said.half_closed()


@pytest.mark.parametrize("nonsense", [acknowledge("unknown"), acknowledge(through=2)])
async def test_an_acknowledgement_of_what_never_was_is_refused(
    nonsense: runner_pb2.Acknowledgement,
) -> None:
    said = Acknowledgements(outbox(), by_hand=True)
    with pytest.raises(Refusal) as refused:
        said.receive(nonsense)
    assert refused.value.reason is Reason.PROTOCOL_VIOLATION


async def test_durable_waits_for_its_number() -> None:
    """E4."""
    out = outbox()
    number = out.put(RunnerEvent(parked=runner_pb2.RunParked()))
    said = Acknowledgements(out, by_hand=True)
    waiting = asyncio.ensure_future(said.durable(number))
    said.receive(acknowledge(through=1))
    done, _ = await asyncio.wait({waiting}, timeout=0.02)
    assert not done
    said.receive(acknowledge(through=2))
    await asyncio.wait_for(waiting, 5)


def test_a_used_call_id_is_never_minted(monkeypatch: pytest.MonkeyPatch) -> None:
    """T3."""
    tokens = iter(["one", "one", "two", "three"])
    monkeypatch.setattr("runner_service.minting.secrets.token_hex", lambda _: next(tokens))
    mint = IdMint(["call_two"])
    assert [mint.call_id(), mint.call_id()] == ["call_one", "call_three"]


async def test_a_drained_runner_takes_nothing() -> None:
    executions = Executions({}, AttemptLimits(), 0)
    await executions.drain(0.01)

    async def nothing() -> AsyncIterator[runner_pb2.ExecuteRequest]:
        return
        yield runner_pb2.ExecuteRequest()

    with pytest.raises(Refusal) as refused:
        await anext(executions.execute(nothing()))
    assert refused.value.reason is Reason.SHUTTING_DOWN


async def test_a_broker_that_goes_away_grants_nothing_from_the_first_moment() -> None:
    """A1, S1: a connection that breaks looks just like a caller that closes its side."""
    said = Acknowledgements(outbox(), by_hand=False)
    said.propose([runner_pb2.ProposedTool(call_id="c")], grant_all)
    with pytest.raises(Refusal) as refused:
        said.half_closed()
    assert refused.value.reason is Reason.PROTOCOL_VIOLATION
    assert said.verdicts.empty()
