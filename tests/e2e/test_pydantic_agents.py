"""Agents of Pydantic AI through both services, with the strict provider as their model."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import ROOT
from tests.e2e.conftest import StartPair
from tests.e2e.pair import Pair
from tests.e2e.talk import log_of, of_kind, talk, the
from tests.providers.script import Request, Silence, Step, ToolCall, answer, in_turn
from tests.providers.server import ProviderServer, serving
from turngate.v1 import interaction_pb2, message_pb2, session_pb2

# What is tried here is the runner, which has no store; each start of it takes seconds of imports.
pytestmark = pytest.mark.store("sqlite")

AGENTS = Path(__file__).parent / "served_agents.py"
SEAT = '{"seat":"4A"}'


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[ProviderServer]:
    """The model of the runner's process. No request of a test may be refused."""
    with serving(in_turn()) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
        monkeypatch.setenv("OPENAI_API_KEY", server.api_key)
        yield server
    assert server.refused == []


@pytest.fixture
def travel(provider: ProviderServer, start_pair: StartPair, tmp_path: Path) -> Pair:
    """The agent of docs/agents.md, from the folder that its module lies in."""
    shutil.copy(ROOT / "examples" / "travel_agent.py", tmp_path)
    return start_pair(runner_flags=("--agent=travel_agent:agent",))


@pytest.fixture
def counting(provider: ProviderServer, start_pair: StartPair, tmp_path: Path) -> Pair:
    shutil.copy(AGENTS, tmp_path)
    return start_pair(runner_flags=("--agent=served_agents:counting",))


def results(request: Request) -> Step:
    """Says what the tools returned."""
    return answer("; ".join(f"{name}: {out}" for name, out in request.results.items()))


async def test_the_ten_lines_of_the_guide_find_ask_and_book(
    travel: Pair, provider: ProviderServer
) -> None:
    """A server tool runs, a client tool parks and forks, an approval goes on in place (A1, F2)."""
    provider.script = in_turn(
        answer("Looking. ", ToolCall("find_trains", '{"city":"Bern"}'), ToolCall("pick_seat")),
        answer(ToolCall("book", '{"train":"07:02","seat":"4A"}')),
        results,
    )
    async with travel.client() as client, talk(client, "travel") as trip:
        run_id, (seat,) = await trip.start_parked("To Bern!")
        assert seat.kind == interaction_pb2.INTERACTION_KIND_CLIENT_TOOL
        settled = await trip.session.settle_json(seat, SEAT)
        assert settled.superseded_run_id == run_id
        (approval,) = await trip.parked(settled.run_id)
        assert approval.kind == interaction_pb2.INTERACTION_KIND_APPROVAL
        await trip.session.approve(approval)
        text = await trip.completed(settled.run_id)
        assert "book: booked 4A on 07:02" in text
        assert text.startswith("Looking. ")


async def test_F5_a_second_answer_is_a_branch_of_its_own_with_its_own_model_call(
    travel: Pair, provider: ProviderServer
) -> None:
    """F5: each branch goes on from the same call, and both histories are accepted."""
    provider.script = in_turn(answer(ToolCall("pick_seat")), results, results)
    async with (
        travel.client() as client,
        travel.client("bob") as bob,
        talk(client, "travel") as trip,
    ):
        run_id, (seat,) = await trip.start_parked()
        first = await trip.session.settle_json(seat, SEAT)
        assert await trip.completed(first.run_id) == f"pick_seat: {SEAT}"
        other = await bob.session(trip.id).settle_json(seat, '{"seat":"9F"}')
        assert other.run_id not in (run_id, first.run_id)
        assert await trip.completed(other.run_id) == 'pick_seat: {"seat":"9F"}'


async def test_A2_a_denial_is_told_to_the_model(travel: Pair, provider: ProviderServer) -> None:
    """T4: the denied call has its result, and the request is accepted."""
    provider.script = in_turn(answer(ToolCall("book", '{"train":"1","seat":"2"}')), results)
    async with travel.client() as client, talk(client, "travel") as trip:
        run_id, (approval,) = await trip.start_parked()
        await trip.session.deny(approval, reason="too dear")
        assert "too dear" in await trip.completed(run_id)


async def test_a_restart_while_parked_changes_nothing(
    travel: Pair, provider: ProviderServer
) -> None:
    """I3: ids, reasoning and calls of the provider come out of the log."""
    provider.script = in_turn(answer(ToolCall("pick_seat")), results, answer("Bye."))
    async with travel.client() as client, talk(client, "travel") as trip:
        _, (seat,) = await trip.start_parked()
        travel.runner.kill()
        await travel.runner.restart()
        settled = await trip.session.settle_json(seat, SEAT)
        assert await trip.completed(settled.run_id) == f"pick_seat: {SEAT}"
        assert await trip.completed(await trip.start("Thanks")) == "Bye."


@pytest.mark.parametrize(("dies", "effects"), [("before", 0), ("after", 1)])
async def test_S1_a_runner_that_dies_in_a_tool_starts_it_once(
    counting: Pair, provider: ProviderServer, tmp_path: Path, dies: str, effects: int
) -> None:
    """S1: the model is told that nobody knows, and the tool's own count is never two."""
    arguments = f'{{"key":"{tmp_path / "effect"}","dies":"{dies}"}}'
    provider.script = in_turn(answer(ToolCall("count", arguments)), results)
    async with counting.client() as client, talk(client, "counting") as trip:
        run_id = await trip.start()
        await asyncio.to_thread(counting.runner.end)
        await counting.runner.restart()
        assert "may or may not have had its effect" in await trip.completed(run_id)
        (call,) = trip.view.calls(run_id)
        assert call.result is not None
        assert call.result.kind == message_pb2.RESULT_KIND_OUTCOME_UNKNOWN
        assert len(of_kind(await log_of(trip.session), "tool_started")) == 1
    counted = tmp_path / "effect"
    assert (int(counted.read_text()) if counted.exists() else 0) == effects


async def test_S1_a_runner_that_dies_behind_a_tool_uses_its_result(
    counting: Pair, provider: ProviderServer, tmp_path: Path
) -> None:
    """R3: the recorded result is shown to the model, and nothing runs again."""
    silence = Silence()
    arguments = f'{{"key":"{tmp_path / "effect"}"}}'
    provider.script = in_turn(
        answer(ToolCall("count", arguments)), answer("so ", silence, "on"), results
    )
    async with counting.client() as client, talk(client, "counting") as trip:
        run_id = await trip.start()
        await asyncio.wait_for(asyncio.wrap_future(silence.begun), 20)
        counting.runner.kill()
        await counting.runner.restart()
        assert await trip.completed(run_id) == "count: 1"
        (call,) = trip.view.calls(run_id)
    assert (tmp_path / "effect").read_text() == "1"
    assert (tmp_path / "effect.key").read_text().endswith(call.call.call_id)


async def test_a_cancel_reaches_the_model_call(counting: Pair, provider: ProviderServer) -> None:
    """C1: the provider sees that its client went away."""
    silence = Silence()
    provider.script = in_turn(answer("so ", silence, "on"))
    async with counting.client() as client, talk(client, "counting") as trip:
        run_id = await trip.start()
        await asyncio.wait_for(asyncio.wrap_future(silence.begun), 20)
        await trip.session.cancel_run(run_id)
        await trip.ended(run_id)
        await asyncio.wait_for(asyncio.wrap_future(silence.abandoned), 20)


async def test_a_plain_assistant_has_the_tools_of_the_session(
    provider: ProviderServer, start_pair: StartPair
) -> None:
    """D1: a tool that only the session declares parks, too."""
    provider.script = in_turn(answer(ToolCall("show_map")), results)
    pair = start_pair(runner_flags=("--model=openai:gpt-5",))
    tools = [session_pb2.ClientTool(name="show_map", description="Shows a map")]
    config = session_pb2.SessionConfig(client_tools=tools)
    async with pair.client() as client, talk(client, "assistant", config=config) as trip:
        _, open_ones = await trip.start_parked()
        settled = await trip.session.settle_json(the(open_ones, "show_map"), "[1.0]")
        assert await trip.completed(settled.run_id) == "show_map: [1.0]"
