"""The operator's policy over the wire (A1, R7), and client tools that an agent declares (D1)."""

from __future__ import annotations

import asyncio
import signal
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.e2e.conftest import StartPair
from tests.e2e.pair import Pair, start_error
from tests.e2e.talk import DEADLINE_SECONDS, Talk, log_of, of_kind, refusal, talk, the
from tests.e2e.variants import check, city
from turngate.v1 import interaction_pb2, message_pb2
from turngate.v1.interaction_pb2 import Interaction
from turngate.v1.session_pb2 import (
    PERMISSION_ALLOW,
    ApprovalPolicy,
    PolicyRule,
    SessionConfig,
)
from turngate_client import TurngateClient

ASKS_FIRST = '[[rules]]\npattern = "order"\npermission = "ask"\n'
DENIES_PAY = '[[rules]]\npattern = "pa*"\npermission = "deny"\n'
PARKED_RUNS = 100


class Operator:
    """Who runs the broker of a pair, and writes its policy."""

    def __init__(self, start_pair: StartPair, folder: Path, policy: str = "") -> None:
        self.file = folder / "policy.toml"
        self.file.write_text(policy)
        self.pair: Pair = start_pair(broker_flags=(f"--policy={self.file}",))

    async def sets(self, policy: str, client: TurngateClient, by: str = "hangup") -> None:
        """Another policy, which is in force when this returns."""
        before = (await client.server_info()).operator_policy_id
        self.file.write_text(policy)
        if by == "restart":
            self.pair.broker.kill()
            await self.pair.broker.restart()
            assert (await client.server_info()).operator_policy_id != before
            return
        self.pair.broker.signal(signal.SIGHUP)
        try:
            async with asyncio.timeout(DEADLINE_SECONDS):
                while (await client.server_info()).operator_policy_id == before:
                    continue
        except TimeoutError:
            pytest.fail("the broker has not read its policy again")


@pytest.mark.parametrize("by", ["hangup", "restart"])
async def test_scenario_17_the_operator_adds_a_deny_while_a_hundred_runs_are_parked(
    start_pair: StartPair, tmp_path: Path, by: str
) -> None:
    """A1, R7: all are approved after it; none starts, and each goes on with `denied`."""
    operator = Operator(start_pair, tmp_path)
    pair = operator.pair
    async with pair.client() as client, AsyncExitStack() as stack:
        trips = [await stack.enter_async_context(talk(client, "pay")) for _ in range(PARKED_RUNS)]
        parked = await asyncio.gather(*(trip.start_parked() for trip in trips))
        await operator.sets(DENIES_PAY, client, by)

        async def approve(trip: Talk, run_id: str, approval: Interaction) -> None:
            decided = await trip.session.approve(approval)
            assert decided.state == interaction_pb2.INTERACTION_STATE_APPROVED
            assert decided.acted_on_run_id == run_id
            text = await trip.completed(run_id)
            assert text.startswith("Not paid: ")
            assert "policy" in text, "the model is told why"
            (call,) = trip.view.calls(run_id)
            assert call.result is not None
            assert call.result.kind == message_pb2.RESULT_KIND_DENIED

        await asyncio.gather(
            *(
                approve(trip, run_id, approval)
                for trip, (run_id, (approval,)) in zip(trips, parked, strict=True)
            )
        )
        for trip in trips:
            assert pair.count(f"pay-{trip.id}") == 0
        trip = trips[0]
        log = await check(trip)
        assert not of_kind(log, "tool_started")
        assert not [one for one in await trip.session.grants() if one.effective]
        # Taken back, the same call asks again: no approval has outlived its call (A3).
        await operator.sets("", client)
        again, (approval,) = await trip.start_parked()
        await trip.session.approve(approval)
        assert await trip.completed(again) == "Paid, number 1."


async def test_R7_a_parked_run_goes_on_with_the_policy_of_its_start(
    start_pair: StartPair, tmp_path: Path
) -> None:
    """It asks as it was started to, though the operator asks no more; the next turn does not."""
    operator = Operator(start_pair, tmp_path, ASKS_FIRST)
    async with operator.pair.client() as client, talk(client, "orders") as trip:
        _, (form,) = await trip.start_parked("form")
        await operator.sets("", client)
        fork = (await trip.session.settle(form, city("Visby"))).run_id
        (approval,) = await trip.parked(fork)
        assert approval.tool_name == "order"
        operator.pair.broker.kill()
        await operator.pair.broker.restart()
        await trip.session.approve(approval)
        assert await trip.completed(fork) == "done"
        assert await trip.completed(await trip.start()) == "done"
        assert operator.pair.count(f"order-{trip.id}") == 2
        log = await check(trip)
        recorded = of_kind(log, "operator_policy_recorded")
        policies = [one.operator_policy_recorded.operator_policy for one in recorded]
        assert len(policies) == 2, "that of the first run, and of the later one"
        policy = policies[0]
        assert [rule.pattern for rule in policy.policy.rules] == ["order"]
        assert (await trip.session.run(fork)).run.operator_policy_id == policy.id


async def test_A1_the_operators_and_the_sessions_rules_are_judged_as_one(
    start_pair: StartPair, tmp_path: Path
) -> None:
    """The strictest rule that matches counts, whosever it is; a rule goes before any default."""
    operator = Operator(start_pair, tmp_path, 'default = "ask"')
    allows = SessionConfig(
        approval_policy=ApprovalPolicy(
            rules=[PolicyRule(pattern="order", permission=PERMISSION_ALLOW)]
        )
    )
    async with (
        operator.pair.client() as client,
        talk(client, "orders", config=allows) as bold,
        talk(client, "orders") as plain,
    ):
        assert await bold.completed(await bold.start()) == "done"
        run_id, (approval,) = await plain.start_parked()
        await plain.session.deny(approval)
        assert await plain.completed(run_id) == "denied"
        await operator.sets(ASKS_FIRST, client)
        _, (approval,) = await bold.start_parked()
        assert approval.tool_name == "order"


async def test_A1_of_client_tools_a_deny_of_today_keeps_later_calls_from_parking(
    start_pair: StartPair, tmp_path: Path
) -> None:
    """What is open stays so: it was asked before."""
    operator = Operator(start_pair, tmp_path)
    async with operator.pair.client() as client, talk(client, "orders") as trip:
        run_id, (form,) = await trip.start_parked("form")
        await operator.sets('[[rules]]\npattern = "request_*"\npermission = "deny"', client)
        assert [one.id for one in await trip.session.open_interactions()] == [form.id]
        fork = (await trip.session.settle(form, city("Visby"))).run_id
        assert await trip.completed(fork) == "done"
        second = await trip.start("form")
        assert await trip.completed(second) == "done"
        assert trip.view.calls(second)[0].result is not None
        log = await log_of(trip.session)
        assert len(of_kind(log, "interaction_opened")) == 1
        assert run_id != fork


@pytest.mark.store("sqlite")
def test_A1_a_broken_policy_keeps_the_broker_from_starting(
    tmp_path: Path, store_url: object
) -> None:
    """One line, with the place: a typing error takes back no deny."""
    file = tmp_path / "policy.toml"
    file.write_text(DENIES_PAY.replace("deny", "denied"))
    code, lines = start_error("broker", tmp_path, "--listen=127.0.0.1:0", f"--policy={file}")
    assert code == 2
    (line,) = lines
    assert f"{file}:3: rules[0].permission" in line


DECLARING = """
agents:
  photographer:
    tools:
      choose: {executor: client, kind: chooser, declared: true, output_schema: {required: [file]}}
      scan: {executor: client, kind: scanner}
    otherwise:
      steps:
        - parts: [{call: choose, id: c}, {call: scan, id: s}]
        - parts: [{text: "${outcomes.c} ${results.c.file|none}, ${outcomes.s}"}]
"""
UNDECLARING = DECLARING.replace(
    "kind: chooser, declared: true, output_schema: {required: [file]}", "kind: other"
)


async def test_D1_a_tool_that_the_agent_declares_waits_for_the_client_that_can_do_it(
    start_pair: StartPair, tmp_path: Path
) -> None:
    """Scenario 10, R7: the laptop cannot show either tool; the undeclared one is settled, the
    declared one waits for the phone, also when the agent has been replaced by one that declares
    nothing, and is answered as it was declared."""
    script = tmp_path / "photographer.yaml"
    script.write_text(DECLARING)
    pair = start_pair(scripts=(script,))
    async with pair.client() as laptop, talk(laptop, "photographer") as trip:
        run_id, waiting = await trip.start_parked()
        choose, scan = the(waiting, "choose"), the(waiting, "scan")
        assert (choose.declared, scan.declared) == (True, False)
        for one in (choose, scan):
            await trip.session.report_unhandled(one)
        assert [one.id for one in await trip.session.open_interactions()] == [choose.id]
        pair.runner.kill()
        script.write_text(UNDECLARING)
        await pair.runner.restart()
        async with pair.client("bob", "phone") as phone:
            session = phone.session(trip.id)
            await refusal(session.settle(choose, {"picture": "x"}), "INVALID_ANSWER")
            fork = (await session.settle(choose, {"file": "sea.jpg"})).run_id
        assert await trip.completed(fork) == "answered sea.jpg, not_handled"
        assert run_id != fork
        await check(trip)
