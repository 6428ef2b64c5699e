"""By hand (scenario 14): a person with nothing but grpcurl and the reflection service."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from tests.e2e.pair import Pair

SECONDS = 20
BROKER = "turngate.v1.BrokerService"

Json = dict[str, Any]


class Hand:
    """grpcurl on one service."""

    def __init__(self, grpcurl: str, address: str) -> None:
        self._command = [grpcurl, "-plaintext", "-max-time", str(SECONDS)]
        self._address = address

    def run(self, *words: str, flags: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        """`grpcurl flags address words`, as it was typed."""
        return subprocess.run(
            [*self._command, *flags, self._address, *words],
            capture_output=True,
            text=True,
            timeout=SECONDS + 5,
            check=False,
        )

    def call(self, method: str, request: Json | None = None) -> Json:
        """A call that succeeds; its answer."""
        done = self.run(f"{BROKER}/{method}", flags=("-d", json.dumps(request or {})))
        assert done.returncode == 0, done.stderr
        answer: Json = json.loads(done.stdout)
        return answer

    def refused(self, method: str, request: Json) -> str:
        """A call that is refused; what a person sees of it."""
        done = self.run(f"{BROKER}/{method}", flags=("-d", json.dumps(request)))
        assert done.returncode != 0, f"not refused: {done.stdout}"
        return done.stderr

    def watch(self, session_id: str, until: Callable[[str], bool]) -> str:
        """Watch a session until a line that shows what one waits for; all that came."""
        command = [
            *self._command,
            "-d",
            json.dumps({"session_id": session_id}),
            self._address,
            f"{BROKER}/WatchSession",
        ]
        came: list[str] = []
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as watching:
            try:
                assert watching.stdout is not None
                for line in watching.stdout:
                    came.append(line)
                    if until(line):
                        return "".join(came)
            finally:
                watching.kill()
        pytest.fail(f"did not come within {SECONDS} s; the watch showed:\n{''.join(came)}")


@pytest.fixture
def broker(grpcurl: str, pair: Pair) -> Hand:
    return Hand(grpcurl, pair.broker.address)


@pytest.fixture
def runner(grpcurl: str, pair: Pair) -> Hand:
    return Hand(grpcurl, pair.runner.address)


def test_scenario_14_the_services_list_and_describe_themselves(broker: Hand, runner: Hand) -> None:
    listed = broker.run("list").stdout.split()
    assert BROKER in listed
    assert "grpc.health.v1.Health" in listed
    assert "grpc.reflection.v1.ServerReflection" in listed
    assert f"{BROKER}.SettleToolCall" in broker.run("list", BROKER).stdout.split()
    described = broker.run("describe", "turngate.v1.SettleToolCallRequest").stdout
    assert "string output_json = 3" in described
    assert ".google.protobuf.Value output = 4" in described
    assert "turngate.v1.RunnerService" in runner.run("list").stdout.split()
    assert "rpc Execute" in runner.run("describe", "turngate.v1.RunnerService").stdout
    healthy = broker.run(
        "grpc.health.v1.Health/Check", flags=("-d", json.dumps({"service": BROKER}))
    )
    assert json.loads(healthy.stdout) == {"status": "SERVING"}


def test_scenario_14_a_conversation_by_hand(broker: Hand) -> None:
    """Create, send, watch, inbox, answer with plain JSON, approve, tree, transcript."""
    created = broker.call("CreateSession", {"config": {"agent": "demo"}})
    session = {"session_id": created["session"]["id"]}
    sent = broker.call("SendMessage", {**session, "text": "Plan a trip"})
    assert sent["outcome"] == "SEND_OUTCOME_STARTED"

    shown = broker.watch(session["session_id"], lambda line: "RUN_STATE_PARKED" in line)
    assert '"render_hint_added"' in shown
    assert '"kind": "elicitation"' in shown
    assert '"interaction_opened"' in shown

    (form,) = broker.call("ListInteractions", {"filter": session})["interactions"]
    assert form["render_hint"]["kind"] == "elicitation"
    assert "Where would you like to go?" in form["arguments_json"]
    ref = {"interaction": {"interaction_id": form["id"]}}
    wrong = {"action": "accept", "content": {"city": "", "nights": 99}}
    said = broker.refused("SettleToolCall", {**session, **ref, "output": wrong})
    assert "INVALID_ANSWER" in said
    assert "city" in said
    assert "nights" in said
    right = {"action": "accept", "content": {"city": "Visby", "nights": 3, "room": "double"}}
    settled = broker.call("SettleToolCall", {**session, **ref, "output": right})
    assert settled["fork_opened"] is True
    assert settled["superseded_run_id"] == sent["run_id"]

    def approval_opened(line: str) -> bool:
        return "INTERACTION_KIND_APPROVAL" in line

    broker.watch(session["session_id"], approval_opened)
    (approval,) = broker.call("ListInteractions", {"filter": session})["interactions"]
    assert approval["tool_name"] == "book_hotel"
    assert json.loads(approval["arguments_json"])["nights"] == 3, "3 is not 3.0"
    ref = {"interaction": {"interaction_id": approval["id"]}}
    said = broker.refused("DecideApproval", {**session, **ref})
    assert "INVALID_FIELD" in said, "nothing is approved by default"
    broker.call("DecideApproval", {**session, **ref, "decision": "DECISION_APPROVE"})
    broker.watch(session["session_id"], lambda line: "RUN_STATE_COMPLETED" in line)

    tree = broker.call("GetTree", session)
    assert [node["kind"] for node in tree["nodes"]] == ["NODE_KIND_PROMPT", "NODE_KIND_RUN"]
    assert tree["selected_node_id"] == settled["run_id"]
    transcript = broker.call("GetTranscript", session)["messages"]
    texts = [part.get("text", {}).get("text", "") for m in transcript for part in m["parts"]]
    assert any("It is booked: 3 nights in Visby" in text for text in texts)
    listed = broker.call("ListSessions", {"page_size": 1000})["sessions"]
    assert session["session_id"] in [one["id"] for one in listed]
    assert broker.call("GetServerInfo")["authentication"] == "none"


def test_errors_say_their_reason_to_a_person(broker: Hand) -> None:
    said = broker.refused("SendMessage", {"session_id": "ses_unknown", "text": "hello"})
    assert "SESSION_NOT_FOUND" in said
    assert "NotFound" in said
