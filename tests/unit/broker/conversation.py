"""A conversation on the pure core: every command as the shell gives it, with a clock and ids that
count, and all invariants checked after each one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import pytest

from broker_service.domain import branches, fold, gate, retries, runs
from broker_service.domain.approvals import DecideApproval, Decided, decide_approval
from broker_service.domain.cancel import CancelRun, cancel_run, end_of_grace
from broker_service.domain.closing import Closed, cancel_interaction
from broker_service.domain.deadlines import act_on_deadlines, next_deadline
from broker_service.domain.decision import BROKER, RUNNER, Actor, Decision, principal
from broker_service.domain.degradation import report_unhandled
from broker_service.domain.events import Event, SessionEvent
from broker_service.domain.grants import grants_of_branch, revoke_grant
from broker_service.domain.interactions import InteractionRef
from broker_service.domain.limits import Limits
from broker_service.domain.model import (
    Grant,
    GrantScope,
    HeldMessage,
    Interaction,
    InteractionState,
    Message,
    OnBusy,
    OperatorPolicy,
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
    Cancelled,
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
        operator_policy: OperatorPolicy | None = None,
    ) -> None:
        # The operator's policy of today: a test sets another one (R7).
        self.operator_policy = operator_policy
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
            CreateSession(session, messages),
            self.now,
            principal(ANN),
            self.mint,
            self.limits,
            operator_policy,
        )
        self.state: SessionState = decision.state
        self.log: list[SessionEvent] = list(decision.events)
        check(self.state, self.log, new=len(self.log))

    def mint(self, prefix: str) -> str:
        self._minted += 1
        return f"{prefix}_{self._minted}"

    def act(self, act: Callable[[Decision], T], actor: Actor = BROKER, client: str = "") -> T:
        """Give a command as the shell does: what is due first, and the queue gate after each."""
        self.now += 1_000
        self.let_fall_due()
        decision = Decision(
            self.state, self.now, actor, self.mint, self.limits, client, self.operator_policy
        )
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

    def let_fall_due(self) -> None:
        """Deadlines that have passed are acted on in a commit of their own, before a command."""
        deadline = next_deadline(self.state, self.limits.unclaimed_after_ms)
        if deadline is None or deadline > self.now:
            return
        decision = Decision(self.state, self.now, BROKER, self.mint, self.limits)
        act_on_deadlines(decision)
        gate.release(decision)
        self.log += decision.events
        check(self.state, self.log, new=len(decision.events))
        after = next_deadline(self.state, self.limits.unclaimed_after_ms)
        assert after is None or after > self.now, "what was due is done (I4)"

    def due_within(self, ms: int) -> bool:
        """Whether something falls due by itself that soon."""
        deadline = next_deadline(self.state, self.limits.unclaimed_after_ms)
        return deadline is not None and deadline <= self.now + ms

    def wait(self, ms: int) -> None:
        """Time passes, and a sweep comes by."""
        self.now += ms
        self.let_fall_due()

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

    def edit(
        self,
        prompt_id: str,
        text: str = "instead",
        message_id: str = "",
        *,
        by: str = ANN,
        keep_running: bool = False,
        on_busy: OnBusy | None = None,
    ) -> gate.Sent:
        message = user(message_id or self.mint("m"), text, by)
        command = gate.EditMessage(message, prompt_id, on_busy, keep_running)
        return self.act(lambda d: gate.edit_message(d, command), principal(by))

    def cancel(self, run_id: str, *, keep_held: bool = False, by: str = ANN) -> str:
        command = CancelRun(run_id, keep_held)
        return self.act(lambda d: cancel_run(d, command), principal(by))

    def cancel_interaction(
        self, interaction_id: str = "", *, run: str = "", call: str = "", by: str = ANN
    ) -> Closed:
        ref = InteractionRef(interaction_id, run, call)
        return self.act(lambda d: cancel_interaction(d, ref), principal(by))

    def report_unhandled(
        self, interaction_id: str = "", *, run: str = "", call: str = "", by: str = ANN
    ) -> Closed:
        ref = InteractionRef(interaction_id, run, call)
        return self.act(lambda d: report_unhandled(d, ref), principal(by))

    def regenerate(
        self, run_or_message_id: str, *, keep_running: bool = False, by: str = ANN
    ) -> tuple[str, str]:
        """Answers the new run, and the run that was acted on."""

        def command(decision: Decision) -> tuple[str, str]:
            return branches.regenerate_run(
                decision, run_or_message_id, keep_running=keep_running, trace_context=None
            )

        return self.act(command, principal(by))

    def retry(self, run_id: str, *, by: str = ANN) -> tuple[str, str]:
        """Answers the run that tries again, and the run that was acted on."""
        return self.act(lambda d: retries.retry_run(d, run_id), principal(by))

    def select(self, node_id: str, *, by: str = ANN) -> str:
        return self.act(lambda d: branches.select_branch(d, node_id), principal(by))

    def revoke(self, grant_id: str, *, by: str = ANN) -> None:
        self.act(lambda d: revoke_grant(d, grant_id), principal(by))

    # --- the runner ---

    def report(self, run_id: str, *events: RunnerEvent, attempt: int | None = None) -> Reported:
        run = self.state.runs[run_id]
        if attempt is None:
            at_work = run.state in (RunState.RUNNING, RunState.CANCELLING)
            attempt = run.attempt if at_work else run.attempt + 1
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

    def stopped(self, run_id: str) -> None:
        """The attempt reports that it has stopped, as it was told (C1)."""
        self.report(run_id, Cancelled())

    # --- the broker ---

    def lose(self, run_id: str, attempt: int | None = None) -> None:
        number = self.run(run_id).attempt if attempt is None else attempt
        self.act(lambda d: runs.lose_attempt(d, run_id, number, "the runner is gone"))

    def hand_over(self, run_id: str) -> None:
        number = self.run(run_id).attempt
        self.act(lambda d: runs.hand_over(d, run_id, number))

    def unplaced(self, run_id: str) -> None:
        """No runner has taken the run for too long (S2)."""
        failure = RunFailure(RunFailureReason.UNPLACED, "no runner offers its agent")
        self.act(lambda d: runs.fail_unplaced(d, run_id, failure))

    def end_of_grace(self, run_id: str) -> None:
        self.act(lambda d: end_of_grace(d, run_id))

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

    def grants(self, node_id: str = "") -> list[Grant]:
        """The grants of the branch that ends there, of the selected one by default."""
        return grants_of_branch(self.state, node_id or self.state.selected)

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
