"""A conversation on the pure core: every command as the shell gives it, with a clock and ids that
count, and all invariants checked after each one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import pytest

from broker_service.domain import fold, gate, runs
from broker_service.domain.approvals import DecideApproval, Decided, decide_approval
from broker_service.domain.decision import BROKER, RUNNER, Actor, Decision, principal
from broker_service.domain.events import Event, SessionEvent
from broker_service.domain.interactions import InteractionRef
from broker_service.domain.limits import Limits
from broker_service.domain.model import (
    GrantScope,
    HeldMessage,
    Interaction,
    InteractionState,
    Message,
    OnBusy,
    Part,
    ProposedTool,
    ResultKind,
    Role,
    RunFailure,
    RunFailureReason,
    RunState,
    Session,
    SessionConfig,
    TextPart,
    ToolCall,
    ToolExecutor,
    ToolResult,
)
from broker_service.domain.reports import (
    Began,
    Completed,
    Failed,
    Finished,
    Parked,
    Proposed,
    Reported,
    Resulted,
    RunnerEvent,
    report,
)
from broker_service.domain.sessions import CreateSession, create_session
from broker_service.domain.settlement import Settled, SettleToolCall, settle_tool_call
from broker_service.domain.starts import ToolVerdict, Verdict
from broker_service.domain.state import RunNode, SessionState
from broker_service.domain.transcript import Transcript, nodes_needed
from broker_service.effects import place_of
from tests.unit.broker.invariants import check, check_unchanged
from turngate_core.errors import Reason, Refusal

T = TypeVar("T")
E = TypeVar("E")

FORM = (
    '{"message":"Where to?","requestedSchema":{"type":"object",'
    '"properties":{"city":{"type":"string"}},"required":["city"]}}'
)
NESTED_FORM = (
    '{"message":"Where to?","requestedSchema":{"type":"object",'
    '"properties":{"city":{"type":"object"}}}}'
)
VISBY = '{"action":"accept","content":{"city":"Visby"}}'
LUND = '{"action":"accept","content":{"city":"Lund"}}'
DECLINED = '{"action":"decline"}'
CONNECTED = '{"connected":true,"integration":"bank","reference":"r-1"}'

ANN = "ann"
BEN = "ben"


def user(message_id: str, text: str, author: str = ANN) -> Message:
    return Message(id=message_id, role=Role.USER, parts=(Part(TextPart(text)),), author=author)


def form(call_id: str, arguments: str = FORM) -> ToolCall:
    return ToolCall(call_id, "request_input", arguments, executor=ToolExecutor.CLIENT)


def connection(call_id: str) -> ToolCall:
    arguments = '{"integration":"bank"}'
    return ToolCall(call_id, "request_connection", arguments, executor=ToolExecutor.CLIENT)


def client_call(call_id: str, name: str = "pick_colour", arguments: str = "{}") -> ToolCall:
    return ToolCall(call_id, name, arguments, executor=ToolExecutor.CLIENT)


def server_call(call_id: str, name: str = "look_up", arguments: str = "{}") -> ToolCall:
    return ToolCall(call_id, name, arguments, executor=ToolExecutor.SERVER)


def said(message_id: str, *contents: TextPart | ToolCall | ToolResult) -> Message:
    """An assistant's message, as a runner reports it."""
    return Message(id=message_id, role=Role.ASSISTANT, parts=tuple(map(Part, contents)))


def tool_result(call_id: str, output: str = '"done"') -> Resulted:
    return Resulted(ToolResult(call_id, output_json=output, kind=ResultKind.TOOL))


FAILED = Failed(RunFailure(RunFailureReason.MODEL_UNAVAILABLE, "the provider is down"))


class Conversation:
    """One session, and everything that clients, runner and broker may do to it."""

    def __init__(
        self,
        config: SessionConfig | None = None,
        *,
        limits: Limits | None = None,
        messages: tuple[Message, ...] = (),
    ) -> None:
        self.limits = limits or Limits()
        self.now = 1_800_000_000_000
        self._minted = 0
        session = Session(
            id="s-1",
            tenant_id="t-1",
            owner=ANN,
            config=config or SessionConfig(agent="travel"),
        )
        decision, self.first_run = create_session(
            CreateSession(session, messages), self.now, principal(ANN), self.mint, self.limits
        )
        self.state: SessionState = decision.state
        self.log: list[SessionEvent] = list(decision.events)
        check(self.state, self.log, new=len(self.log))

    def mint(self, prefix: str) -> str:
        self._minted += 1
        return f"{prefix}_{self._minted}"

    def act(self, act: Callable[[Decision], T], actor: Actor = BROKER, client: str = "") -> T:
        """Give a command as the shell does: the queue gate is asked after each."""
        self.now += 1_000
        decision = Decision(self.state, self.now, actor, self.mint, self.limits, client)
        try:
            reply = act(decision)
            gate.release(decision)
        except Refusal:
            if decision.events:  # half a decision is none
                self.state = fold_log(self.log)
            check_unchanged(self.state, self.log)
            raise
        self.log += decision.events
        check(self.state, self.log, new=len(decision.events))
        return reply

    # --- clients ---

    def send(
        self,
        text: str = "hello",
        message_id: str = "",
        *,
        by: str = ANN,
        branch: str = "",
        on_busy: OnBusy | None = None,
    ) -> gate.Sent:
        message = user(message_id or self.mint("m"), text, by)
        command = gate.SendMessage(message, branch, on_busy)
        return self.act(lambda d: gate.send_message(d, command), principal(by))

    def start(self, text: str = "hello") -> str:
        """Send a message that enters at once; answers its run."""
        sent = self.send(text)
        assert sent.run_id, f"held: {sent.held}"
        return sent.run_id

    def edit_held(self, message_id: str, text: str, *, by: str = ANN) -> HeldMessage:
        parts = (Part(TextPart(text)),)
        return self.act(lambda d: gate.update_held(d, message_id, parts), principal(by))

    def remove_held(self, message_id: str, *, by: str = ANN) -> None:
        self.act(lambda d: gate.remove_held(d, message_id), principal(by))

    def resume_queue(self, *, by: str = ANN) -> str:
        return self.act(gate.resume_queue, principal(by))

    def settle(
        self,
        interaction_id: str = "",
        output: str | None = None,
        *,
        error: str | None = None,
        run: str = "",
        call: str = "",
        by: str = ANN,
        client: str = "",
        tool: str = "",
        client_ref: str = "",
    ) -> Settled:
        ref = InteractionRef(interaction_id, run, call)
        command = SettleToolCall(ref, output, error, tool, client_ref)
        return self.act(lambda d: settle_tool_call(d, command), principal(by), client)

    def decide(
        self,
        interaction_id: str = "",
        approve: bool = True,
        *,
        run: str = "",
        call: str = "",
        by: str = ANN,
        reason: str = "",
        scope: GrantScope | None = None,
    ) -> Decided:
        ref = InteractionRef(interaction_id, run, call)
        command = DecideApproval(ref, approve, reason, scope)
        return self.act(lambda d: decide_approval(d, command), principal(by))

    # --- the runner ---

    def report(self, run_id: str, *events: RunnerEvent, attempt: int | None = None) -> Reported:
        run = self.state.runs[run_id]
        if attempt is None:
            attempt = run.attempt if run.state is RunState.RUNNING else run.attempt + 1
        number = attempt
        return self.act(lambda d: report(d, run_id, number, events), RUNNER)

    def step(self, run_id: str, *calls: ToolCall, text: str = "Hm.") -> str:
        """The model writes one message; answers its id."""
        message_id = self.mint("msg")
        message = said(message_id, TextPart(text), *calls)
        self.report(run_id, Began(message_id), Finished(message))
        return message_id

    def propose(self, run_id: str, *tools: ProposedTool) -> list[Verdict]:
        return [verdict.verdict for verdict in self.verdicts(run_id, *tools)]

    def verdicts(self, run_id: str, *tools: ProposedTool) -> list[ToolVerdict]:
        return self.report(run_id, Proposed(tools)).verdicts

    def park(self, run_id: str, *waiting: ProposedTool) -> None:
        self.report(run_id, Parked(waiting))

    def ask(self, run_id: str, *calls: ToolCall) -> list[str]:
        """A step with these client calls that parks the run; answers the open interactions."""
        self.step(run_id, *calls)
        self.park(run_id)
        return list(self.state.runs[run_id].waits)

    def complete(self, run_id: str, text: str = "Done.") -> None:
        self.step(run_id, text=text)
        self.report(run_id, Completed())

    def fail(self, run_id: str) -> None:
        self.report(run_id, FAILED)

    # --- the broker ---

    def lose(self, run_id: str, attempt: int | None = None) -> None:
        number = self.run(run_id).attempt if attempt is None else attempt
        self.act(lambda d: runs.lose_attempt(d, run_id, number, "the runner is gone"))

    def hand_over(self, run_id: str) -> None:
        number = self.run(run_id).attempt
        self.act(lambda d: runs.hand_over(d, run_id, number))

    # --- what there is to see ---

    def run(self, run_id: str) -> RunNode:
        return self.state.runs[run_id]

    def interaction(self, call_id: str) -> Interaction:
        return self.state.interactions[self.state.calls[call_id].interaction_id]

    def open_calls(self) -> list[str]:
        """The calls of the inbox, in its order."""
        return [self.state.interactions[i].call_id for i in self.state.open_interactions]

    def state_of(self, call_id: str) -> InteractionState | None:
        return self.interaction(call_id).state

    def held_texts(self) -> list[str]:
        return [text_of(held.message) for held in self.state.held]

    def events_of(self, kind: type[E]) -> list[E]:
        return [entry.event for entry in self.log if isinstance(entry.event, kind)]

    def last(self, count: int) -> list[Event]:
        return [entry.event for entry in self.log[-count:]]

    def transcript(self, node_id: str = "", *, with_hints: bool = False) -> list[Message]:
        """The messages of the branch that ends there, of the selected one by default."""
        path = self.state.path_to(node_id or self.state.selected)
        return transcript_of(self.state, self.log, path, with_hints=with_hints)

    def results(self, node_id: str = "") -> dict[str, ToolResult]:
        """The results that the branch shows, by call."""
        return {
            part.content.call_id: part.content
            for message in self.transcript(node_id)
            for part in message.parts
            if isinstance(part.content, ToolResult)
        }

    @contextmanager
    def refused(self, reason: Reason) -> Iterator[pytest.ExceptionInfo[Refusal]]:
        """What happens inside is refused with this reason and changes nothing."""
        length = len(self.log)
        with pytest.raises(Refusal) as caught:
            yield caught
        assert caught.value.reason is reason, caught.value
        assert len(self.log) == length


def text_of(message: Message) -> str:
    return "".join(
        part.content.text for part in message.parts if isinstance(part.content, TextPart)
    )


def fold_log(log: list[SessionEvent]) -> SessionState:
    state = fold.begin(log[0])
    for entry in log[1:]:
        fold.apply(state, entry)
    return state


def transcript_of(
    state: SessionState, log: list[SessionEvent], path: list[str], *, with_hints: bool = False
) -> list[Message]:
    """As the shell reads it: the events of the nodes that are needed, by index."""
    needed = set(nodes_needed(state, path))
    events = [(place_of(state, entry.event)[0], entry.event) for entry in log]
    found = [(node_id, event) for node_id, event in events if node_id in needed]
    return Transcript(state, found).messages(path, with_hints=with_hints)
