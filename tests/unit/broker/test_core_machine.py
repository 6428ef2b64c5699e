"""Every command of the core in random order, from several clients and runners, over many branches.

After each command all invariants hold (the conversation checks them), and the core agrees with a
second, naive model of the rules. At the end everything that is open is answered and every run is
brought to its end: nothing may be left that waits for nobody.

`make fuzz` runs it for long: `TURNGATE_MACHINE_EXAMPLES` conversations of
`TURNGATE_MACHINE_STEPS` commands.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from broker_service.domain.limits import Limits
from broker_service.domain.model import (
    ApprovalPolicy,
    ClientTool,
    ConflictPolicy,
    ExpiryPolicy,
    GrantScope,
    HoldReason,
    Interaction,
    InteractionKind,
    InteractionState,
    OnBusy,
    Permission,
    PolicyRule,
    ProposedTool,
    RenderHint,
    ResultKind,
    RunState,
    SessionConfig,
    ToolCall,
    ToolExecutor,
    ToolResult,
)
from broker_service.domain.reports import (
    Began,
    Cancelled,
    Completed,
    Finished,
    Hinted,
    Parked,
    Proposed,
    Resulted,
    RunnerEvent,
    Withdrew,
)
from broker_service.domain.starts import Verdict
from broker_service.domain.state import RunNode
from broker_service.encoding import decode_event, encode_event
from tests.unit.broker import naive_model
from tests.unit.broker.client_views import Client
from tests.unit.broker.conversation import (
    CONNECTED,
    DECLINED,
    FAILED,
    FORM,
    LUND,
    NESTED_FORM,
    VISBY,
    Conversation,
    fold_log,
    said,
    tool_result,
)
from tests.unit.broker.invariants import leaves
from turngate_core.errors import Reason, Refusal

T = TypeVar("T")

PEOPLE = st.sampled_from(["ann", "ben", "cai"])
OUTPUTS = {
    "request_input": [VISBY, LUND, DECLINED],
    "request_connection": [CONNECTED, '{"connected":false,"integration":"bank"}'],
}
CLIENT_CALLS = [
    ("request_input", FORM),
    ("request_input", FORM),
    ("request_input", NESTED_FORM),
    ("request_connection", '{"integration":"bank"}'),
    ("pick_colour", "{}"),
    ("pick_colour", "{}"),
    ("scan", "{}"),
    ("sign", "{}"),
    ("once_only", "{}"),
    ("forbidden", "{}"),
]
TOOLS = st.builds(
    ProposedTool,
    call_id=st.just(""),
    tool_permission=st.sampled_from([None, Permission.ASK, Permission.ALLOW, Permission.DENY]),
    destructive=st.booleans(),
    idempotent=st.booleans(),
    after_answers=st.sampled_from([None, True, False]),
    grant_scope=st.sampled_from([None, GrantScope.ONCE]),
)
ON_BUSY = st.sampled_from([None, OnBusy.HOLD, OnBusy.REJECT, OnBusy.INTERRUPT])
MINUTE = 60_000
CONFIG = SessionConfig(
    agent="travel",
    approval_policy=ApprovalPolicy(rules=(PolicyRule("forbidden", Permission.DENY),)),
    client_tools=(
        ClientTool("scan", expires_after=MINUTE, on_expiry=ExpiryPolicy.CANCEL_RUN),
        ClientTool("sign", expires_after=2 * MINUTE, on_expiry=ExpiryPolicy.DENY),
        ClientTool("once_only", conflict_policy=ConflictPolicy.FIRST_WINS),
    ),
    interaction_expires_after=30 * MINUTE,
)
LIMITS = Limits(
    max_forks_per_call=naive_model.MAX_FORKS,
    attempts=naive_model.LOST_IN_A_ROW,
    questions_a_step=3,
    questions_a_turn=8,
)
SEEN: dict[str, set[object]] = {"commands": set(), "states": set()}
"""For `make fuzz`: shapes of states that were reached, and commands by their outcome."""
COUNTS = {"conversations": 0, "commands": 0, "refused": 0}


def outcome(command: Callable[[], T]) -> T | Refusal:
    try:
        return command()
    except Refusal as refusal:
        return refusal


def expectation(command: Callable[[], object]) -> object:
    try:
        return command()
    except naive_model.Refused as refused:
        return refused


class Clients(RuleBasedStateMachine):
    """Clients, runners and broker that do whatever comes to their mind."""

    def __init__(self) -> None:
        super().__init__()
        self.chat = Conversation(CONFIG, limits=LIMITS)
        self.model = naive_model.Model(first_wins={"once_only"})
        self.client = Client(frozenset({"pick_colour", "scan", "sign", "once_only"}))
        self.traits: dict[str, ProposedTool] = {}
        self.calls: dict[str, naive_model.Call] = {}
        self.sent: dict[str, tuple[str, str]] = {}
        self.removed: set[str] = set()
        COUNTS["conversations"] += 1

    # --- both ---

    def both(
        self,
        command: Callable[[], T],
        model: Callable[[], object],
        *,
        answers: Callable[[T], object] | None = None,
    ) -> T | Refusal:
        """Give a command to the core and to the model; they agree on the answer and the state."""
        before = set(self.chat.state.runs)
        done = outcome(command)
        self.model.names = [run_id for run_id in self.chat.state.runs if run_id not in before]
        self.model.due(self.chat.now)
        self.model.release()
        expected = expectation(model)
        if isinstance(done, Refusal) or isinstance(expected, naive_model.Refused):
            reason = done.reason.name if isinstance(done, Refusal) else f"accepted: {done}"
            assert reason == str(expected)
        elif answers:
            assert answers(done) == expected
        self.model.release()
        self.compare()
        COUNTS["commands"] += 1
        COUNTS["refused"] += isinstance(done, Refusal)
        return done

    def compare(self) -> None:
        state, model = self.chat.state, self.model
        assert not model.names, "the core has created more runs than the rules ask for"
        assert state.selected == model.selected
        assert set(state.runs) == set(model.runs)
        for run in state.runs.values():
            other = model.runs[run.id]
            assert run.state.name == other.state, run.id
            assert run.superseded_by == other.successor, run.id
            assert set(run.waits) == {question.id for question in other.waits}, run.id
            assert list(run.step_calls) == [call.id for call in other.step], run.id
            kinds = {call: result.kind.name for call, result in run.results.items() if result.kind}
            assert kinds == other.results, run.id
        for interaction in state.interactions.values():
            question = model.questions[interaction.id]
            assert interaction.state
            assert interaction.state.name == question.state, interaction.id
            if interaction.kind is InteractionKind.CLIENT_TOOL:
                runs = [answer.run_id for answer in interaction.answers]
                assert runs == [run_id for _, _, run_id in question.answers], interaction.id
        held = [(held.message.id, held.branch_node_id) for held in state.held]
        assert held == [(other.message, other.branch) for other in model.queue]
        assert bool(state.queue_pause) == model.paused
        self.client.check(self.chat.state, self.chat.log)
        SEEN["states"].add(self.shape())

    def shape(self) -> object:
        """The state without its ids and contents, to count different ones."""
        state = self.chat.state
        place = {node: number for number, node in enumerate(state.nodes)}
        runs = tuple(
            (
                run.state,
                place[run.prompt_id],
                place.get(run.origin_id),
                place.get(run.superseded_by),
                len(run.waits),
                tuple(sorted(r.kind.name for r in run.results.values() if r.kind)),
            )
            for run in state.runs.values()
        )
        parents = tuple(place.get(prompt.parent_id) for prompt in state.prompts.values())
        held = tuple((h.reason, place.get(h.branch_node_id)) for h in state.held)
        return runs, parents, held, place.get(state.selected), bool(state.queue_pause)

    # --- what there is to act on ---

    def active(self) -> list[RunNode]:
        return [run for run in self.chat.state.runs.values() if run.active]

    def at_work(self) -> list[RunNode]:
        """Runs that a runner may report about."""
        return self.active()

    def unresolved(self, run: RunNode, executor: ToolExecutor) -> list[str]:
        calls = self.chat.state.calls
        return [
            call_id
            for call_id in run.step_calls
            if call_id not in run.results and calls[call_id].call.executor is executor
        ]

    def under_way(self, run: RunNode) -> list[str]:
        """Calls that this attempt was granted and has not reported."""
        calls = self.chat.state.calls
        return [
            call_id
            for call_id in self.unresolved(run, ToolExecutor.SERVER)
            if (calls[call_id].started_by, calls[call_id].started_in) == (run.id, run.attempt)
        ]

    def to_propose(self, run: RunNode) -> tuple[ProposedTool, ...]:
        under_way = self.under_way(run)
        unresolved = self.unresolved(run, ToolExecutor.SERVER)
        return tuple(self.traits[call_id] for call_id in unresolved if call_id not in under_way)

    def pick_node(self, data: st.DataObject) -> str:
        return data.draw(st.sampled_from(self.chat.state.nodes))

    def pick_owner(self, data: st.DataObject, question: Interaction) -> str:
        """ "", or a run that has the call."""
        state = self.chat.state
        owners = [r.id for r in state.runs.values() if state.owns_call(r, question.call_id)]
        return data.draw(st.just("") | st.sampled_from(owners))

    def questions(self, kind: InteractionKind) -> list[Interaction]:
        """Those of this kind, open ones several times."""
        every = [i for i in self.chat.state.interactions.values() if i.kind is kind]
        return [i for i in every if i.state is InteractionState.OPEN] * 4 + every

    def asked(self, kind: InteractionKind) -> bool:
        return any(i.kind is kind for i in self.chat.state.interactions.values())

    @initialize(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        """Somebody has said something, and the first step has been made."""
        self.sent["m-0"] = ("hello", "ann")
        run_id = self.chat.send("hello", "m-0").run_id
        self.model.names = [run_id]
        self.model.enter("m-0", "", select=True)
        self.whole_step(run_id, data)

    # --- clients ---

    @rule(by=PEOPLE, text=st.sampled_from("abc"), on_busy=ON_BUSY, data=st.data())
    def send(self, by: str, text: str, on_busy: OnBusy | None, data: st.DataObject) -> None:
        branch = data.draw(st.just("") | st.sampled_from(self.chat.state.nodes))
        message_id = self.chat.mint("m")
        self.sent[message_id] = (text, by)
        sent = self.both(
            lambda: self.chat.send(text, message_id, by=by, branch=branch, on_busy=on_busy),
            lambda: self.model.send(message_id, branch, on_busy.name if on_busy else ""),
            answers=lambda sent: sent.run_id,
        )
        if isinstance(sent, Refusal):
            del self.sent[message_id]
        else:
            assert bool(sent.run_id) != bool(sent.held)

    @rule(by=PEOPLE, keep=st.booleans(), on_busy=ON_BUSY, data=st.data())
    def edit(self, by: str, keep: bool, on_busy: OnBusy | None, data: st.DataObject) -> None:
        if len(self.chat.state.prompts) > 8:
            return
        prompt = data.draw(st.sampled_from(list(self.chat.state.prompts)))
        message_id = self.chat.mint("m")
        self.sent[message_id] = ("instead", by)
        self.both(
            lambda: self.chat.edit(
                prompt, "instead", message_id, by=by, keep_running=keep, on_busy=on_busy
            ),
            lambda: self.model.edit(prompt, message_id, keep, on_busy.name if on_busy else ""),
            answers=lambda sent: sent.run_id,
        )

    @precondition(lambda self: self.chat.state.held)
    @rule(data=st.data(), text=st.sampled_from("xyz"))
    def edit_held(self, data: st.DataObject, text: str) -> None:
        held = data.draw(st.sampled_from(self.chat.state.held))
        author = held.message.author
        edited = self.both(
            lambda: self.chat.edit_held(held.message.id, text, by=author),
            lambda: self.in_queue(held.message.id),
        )
        if not isinstance(edited, Refusal):
            self.sent[held.message.id] = (text, author)

    @precondition(lambda self: self.chat.state.held)
    @rule(data=st.data(), by=PEOPLE)
    def remove_held(self, data: st.DataObject, by: str) -> None:
        message_id = data.draw(st.sampled_from(self.chat.state.held)).message.id

        def remove() -> None:
            self.in_queue(message_id)
            self.model.queue = [held for held in self.model.queue if held.message != message_id]

        removed = self.both(lambda: self.chat.remove_held(message_id, by=by), remove)
        if not isinstance(removed, Refusal):
            self.removed.add(message_id)

    def in_queue(self, message_id: str) -> None:
        """It may have entered by what has fallen due meanwhile."""
        if message_id not in [held.message for held in self.model.queue]:
            raise naive_model.Refused("HELD_MESSAGE_NOT_FOUND")

    @precondition(lambda self: self.chat.state.queue_pause)
    @rule(by=PEOPLE)
    def resume_queue(self, by: str) -> None:
        self.both(lambda: self.chat.resume_queue(by=by), self.model.resume_queue)

    @precondition(lambda self: self.asked(InteractionKind.CLIENT_TOOL))
    @rule(data=st.data(), by=PEOPLE, by_call=st.booleans(), as_error=st.booleans())
    def settle(self, data: st.DataObject, by: str, by_call: bool, as_error: bool) -> None:
        question = data.draw(st.sampled_from(self.questions(InteractionKind.CLIENT_TOOL)))
        outputs = OUTPUTS.get(question.tool_name, ['"red"', "7", '{"approved":true}'])
        output = None if as_error else data.draw(st.sampled_from(outputs))
        error = "it broke" if as_error else None
        run = self.pick_owner(data, question)
        call, interaction_id = (question.call_id, "") if by_call and run else ("", question.id)
        if call:
            question = self.chat.interaction(call)
        by = question.closers[0] if question.closers else by  # B2
        settled = self.both(
            lambda: self.chat.settle(
                interaction_id, output, error=error, run=run, call=call, by=by
            ),
            lambda: self.model.settle(
                self.model.questions[question.id], run, by, output or "error"
            ),
            answers=lambda settled: settled.run_id,
        )
        if not isinstance(settled, Refusal):
            assert self.chat.interaction(question.call_id).state is InteractionState.ANSWERED

    @precondition(lambda self: self.asked(InteractionKind.APPROVAL))
    @rule(
        data=st.data(),
        by=PEOPLE,
        approve=st.booleans(),
        scope=st.sampled_from([None, GrantScope.ONCE, GrantScope.SESSION]),
    )
    def decide(self, data: st.DataObject, by: str, approve: bool, scope: GrantScope | None) -> None:
        question = data.draw(st.sampled_from(self.questions(InteractionKind.APPROVAL)))
        run = self.pick_owner(data, question)
        runs = len(self.chat.state.runs)
        decided = self.both(
            lambda: self.chat.decide(question.id, approve, run=run, by=by, scope=scope),
            lambda: self.model.decide(self.model.questions[question.id], run, approve),
        )
        if not isinstance(decided, Refusal) and not self.chat.state.held:
            assert len(self.chat.state.runs) - runs <= 1, "A2: decisions never fork"

    @precondition(lambda self: self.chat.state.interactions)
    @rule(data=st.data(), by=PEOPLE)
    def cancel_interaction(self, data: st.DataObject, by: str) -> None:
        question = data.draw(st.sampled_from(list(self.chat.state.interactions.values())))
        run = self.pick_owner(data, question)
        self.both(
            lambda: self.chat.cancel_interaction(question.id, run=run, by=by),
            lambda: self.model.cancel_question(self.model.questions[question.id], run),
        )

    @precondition(lambda self: self.asked(InteractionKind.CLIENT_TOOL))
    @rule(data=st.data(), by=PEOPLE)
    def report_unhandled(self, data: st.DataObject, by: str) -> None:
        question = data.draw(st.sampled_from(self.questions(InteractionKind.CLIENT_TOOL)))
        run = self.pick_owner(data, question)
        self.both(
            lambda: self.chat.report_unhandled(question.id, run=run, by=by),
            lambda: self.model.unhandled(self.model.questions[question.id], run),
        )

    @rule(data=st.data(), by=PEOPLE, keep=st.booleans())
    def cancel_run(self, data: st.DataObject, by: str, keep: bool) -> None:
        run_id = data.draw(st.sampled_from(list(self.chat.state.runs)))
        self.both(
            lambda: self.chat.cancel(run_id, keep_held=keep, by=by),
            lambda: self.model.cancel(run_id, keep),
            answers=lambda acted_on: acted_on,
        )

    @rule(data=st.data(), by=PEOPLE, keep=st.booleans(), by_message=st.booleans())
    def regenerate(self, data: st.DataObject, by: str, keep: bool, by_message: bool) -> None:
        if len(self.chat.state.runs) > 20:
            return
        run_id = data.draw(st.sampled_from(list(self.chat.state.runs)))
        run = self.chat.run(run_id)
        name = f"{run.step_message_id}@{run_id}" if by_message and run.step_message_id else run_id
        self.both(
            lambda: self.chat.regenerate(name, keep_running=keep, by=by),
            lambda: self.model.regenerate(run_id, keep),
            answers=lambda created: created[0],
        )

    @rule(data=st.data(), by=PEOPLE, failed=st.sampled_from([True, True, True, False]))
    def retry(self, data: st.DataObject, by: str, failed: bool) -> None:
        runs = [
            run.id
            for run in self.chat.state.runs.values()
            if not failed or run.state is RunState.FAILED
        ]
        if not runs:
            return
        run_id = data.draw(st.sampled_from(runs))
        self.both(
            lambda: self.chat.retry(run_id, by=by),
            lambda: self.model.retry(run_id),
            answers=lambda retried: retried[0],
        )

    @rule(data=st.data(), by=PEOPLE)
    def select(self, data: st.DataObject, by: str) -> None:
        self.select_node(self.pick_node(data), by)

    def select_node(self, node_id: str, by: str = "ann") -> None:
        def select() -> str:
            self.model.selected = self.model.end_of(node_id)
            return self.model.selected

        self.both(lambda: self.chat.select(node_id, by=by), select, answers=lambda tip: tip)

    @precondition(lambda self: self.chat.state.grants)
    @rule(data=st.data(), by=PEOPLE)
    def revoke(self, data: st.DataObject, by: str) -> None:
        grant = data.draw(st.sampled_from(sorted(self.chat.state.grants)))
        self.both(lambda: self.chat.revoke(grant, by=by), lambda: None)
        assert grant not in [other.id for other in self.chat.grants()]

    @precondition(lambda self: self.chat.state.open_interactions)
    @rule(ms=st.sampled_from([30_000, MINUTE, 10 * MINUTE, 30 * MINUTE]))
    def time_passes(self, ms: int) -> None:
        self.both(lambda: self.chat.wait(ms), lambda: None)

    # --- the runner ---

    def report(self, run: RunNode, *events: RunnerEvent) -> list[Verdict]:
        """Report to the core; the model is told what the runner was granted and has said."""
        asked_before = set(self.chat.state.interactions)
        reported = self.both(
            lambda: self.chat.report(run.id, *events).verdicts,
            lambda: self.take_in(run, events, asked_before),
        )
        assert not isinstance(reported, Refusal)
        return [verdict.verdict for verdict in reported]

    def take_in(
        self, run: RunNode, events: tuple[RunnerEvent, ...], asked_before: set[str]
    ) -> None:
        other = self.model.runs[run.id]
        cancelling = other.state == "CANCELLING"
        self.model.take(other)
        state = self.chat.state
        for event in events:
            match event:
                case Finished():
                    calls = [self.told(call) for call in event.message.calls()]
                    self.model.wrote(other, calls)
                case Parked() if not cancelling and run.state is not RunState.FAILED:
                    # What a policy, a limit or a shape has settled is told.
                    for call in other.step:
                        if result := run.results.get(call.id):
                            assert result.kind
                            other.results.setdefault(call.id, result.kind.name)
                    new = [state.interactions[i] for i in state.interactions if i in run.waits]
                    self.model.park(other, [self.question(i, asked_before) for i in new])
                case Parked():
                    for call in other.step:
                        if (result := run.results.get(call.id)) and result.kind:
                            other.results.setdefault(call.id, result.kind.name)
                    self.model.finish(other, "FAILED")
                case Completed():
                    self.model.finish(other, "COMPLETED")
                case Cancelled():
                    self.model.finish(other, "CANCELLED")
                case _ if event is FAILED:
                    self.model.finish(other, "FAILED")
                case _:
                    for call in other.step:
                        record = state.calls[call.id]
                        call.starter, call.idempotent = record.started_by, record.idempotent
                        if (result := run.results.get(call.id)) and result.kind:
                            other.results.setdefault(call.id, result.kind.name)

    def told(self, call: ToolCall) -> naive_model.Call:
        self.calls[call.call_id] = naive_model.Call(call.call_id, call.name)
        return self.calls[call.call_id]

    def question(self, interaction: Interaction, asked_before: set[str]) -> naive_model.Question:
        if interaction.id in asked_before:
            return self.model.questions[interaction.id]
        is_approval = interaction.kind is InteractionKind.APPROVAL
        policies = {"scan": "CANCEL_RUN", "sign": "DENIED"}
        default = "DENIED" if is_approval else "EXPIRED"
        after = {"scan": MINUTE, "sign": 2 * MINUTE}.get(interaction.tool_name, 30 * MINUTE)
        undeclared = interaction.tool_name == "pick_colour"
        now = interaction.create_time or 0
        return naive_model.Question(
            interaction.id,
            self.calls[interaction.call_id],
            interaction.run_id,
            is_approval,
            now + after,
            policies.get(interaction.tool_name, default),
            now + naive_model.UNCLAIMED_AFTER if undeclared else None,
        )

    @precondition(lambda self: self.steps_over())
    @rule(data=st.data(), calls=st.integers(0, 4), finished=st.sampled_from([True, True, False]))
    def write(self, data: st.DataObject, calls: int, finished: bool) -> None:
        """The next model call."""
        run = data.draw(st.sampled_from(self.steps_over()))
        message_id = self.chat.mint("msg")
        made = [self.draw_call(data) for _ in range(calls)]
        self.report(run, Began(message_id))
        if finished:
            self.report(run, Finished(said(message_id, *made)))

    def draw_call(self, data: st.DataObject) -> ToolCall:
        call_id = self.chat.mint("c")
        if data.draw(st.booleans()):
            name, arguments = data.draw(st.sampled_from(CLIENT_CALLS))
            return ToolCall(call_id, name, arguments, executor=ToolExecutor.CLIENT)
        tool = data.draw(TOOLS)
        self.traits[call_id] = ProposedTool(
            call_id,
            tool_permission=tool.tool_permission,
            destructive=tool.destructive,
            idempotent=tool.idempotent,
            after_answers=tool.after_answers,
            grant_scope=tool.grant_scope,
        )
        name = data.draw(st.sampled_from(["pay", "look_up"]))
        return ToolCall(call_id, name, "{}", executor=ToolExecutor.SERVER)

    @precondition(lambda self: self.steps_over())
    @rule(data=st.data())
    def write_and_go_on(self, data: st.DataObject) -> None:
        """A whole step, up to its questions."""
        self.whole_step(data.draw(st.sampled_from(self.steps_over())).id, data)

    def steps_over(self) -> list[RunNode]:
        return [
            run
            for run in self.active()
            if not run.open_message_id and all(call in run.results for call in run.step_calls)
        ]

    def whole_step(self, run_id: str, data: st.DataObject) -> None:
        message_id = self.chat.mint("msg")
        made = [self.draw_call(data) for _ in range(data.draw(st.integers(1, 4)))]
        run = self.chat.run(run_id)
        self.report(run, Began(message_id), Finished(said(message_id, *made)))
        self.next_move(run)

    @precondition(lambda self: any(run.open_message_id for run in self.active()))
    @rule(data=st.data())
    def withdraw(self, data: st.DataObject) -> None:
        run = data.draw(st.sampled_from([run for run in self.active() if run.open_message_id]))
        self.report(run, Withdrew(run.open_message_id))

    @precondition(lambda self: any(self.to_propose(r) for r in self.active()))
    @rule(data=st.data())
    def propose(self, data: st.DataObject) -> None:
        runs = [run for run in self.active() if self.to_propose(run) and not run.open_message_id]
        run = data.draw(st.sampled_from(runs))
        self.propose_all(run)

    def propose_all(self, run: RunNode) -> list[Verdict]:
        tools = self.to_propose(run)
        verdicts = self.report(run, Proposed(tools))
        for tool, verdict in zip(tools, verdicts, strict=True):
            record = self.chat.state.calls[tool.call_id]
            cancelling = run.state is RunState.CANCELLING
            assert verdict is not Verdict.GRANTED or not cancelling, "C1"
            assert (verdict is Verdict.CANCELLED) <= cancelling
            if verdict is Verdict.WAIT:
                assert record.started_by != run.id, "S1"
                assert record.result is None, "S1: what is recorded is reused"
                assert self.chat.run(record.started_by).active, "S2: somebody is at it"
        return verdicts

    @precondition(lambda self: any(self.under_way(run) for run in self.active()))
    @rule(data=st.data(), output=st.sampled_from(["1", '{"approved":true}']))
    def result(self, data: st.DataObject, output: str) -> None:
        run = data.draw(st.sampled_from([r for r in self.active() if self.under_way(r)]))
        call_id = data.draw(st.sampled_from(self.under_way(run)))
        state, runs = run.state, len(self.chat.state.runs)
        self.report(run, tool_result(call_id, output))
        assert len(self.chat.state.runs) - runs <= len(self.chat.state.held) + 1, "A4"
        assert run.state is state, "A4"

    @precondition(lambda self: self.active())
    @rule(data=st.data(), hinted=st.booleans())
    def refuse_or_hint(self, data: st.DataObject, hinted: bool) -> None:
        run = data.draw(st.sampled_from(self.active()))
        calls = [
            call_id
            for kind in (ToolExecutor.CLIENT, ToolExecutor.SERVER)
            for call_id in self.unresolved(run, kind)
            if call_id not in self.under_way(run)
        ]
        if not calls:
            return
        call_id = data.draw(st.sampled_from(calls))
        if hinted:
            self.report(run, Hinted("", RenderHint(call_id, "colour")))
        else:
            refused = ToolResult(call_id, error_text="no", kind=ResultKind.CALL_REFUSED)
            self.report(run, Resulted(refused))

    @precondition(lambda self: self.active())
    @rule(data=st.data())
    def go_on(self, data: st.DataObject) -> None:
        """What a runner that keeps the protocol does next."""
        self.next_move(data.draw(st.sampled_from(self.active())))

    def next_move(self, run: RunNode) -> None:
        if not run.active:
            return  # something has fallen due meanwhile
        if run.state is RunState.CANCELLING:
            self.report(run, Cancelled())
            return
        if run.open_message_id:
            self.report(run, Finished(said(run.open_message_id)))
            return
        if self.to_propose(run) and Verdict.WAIT in self.propose_all(run):
            return  # another fork runs a call of this step (S1)
        for call_id in self.under_way(run):
            self.report(run, tool_result(call_id))
        waiting = self.to_propose(run)
        if waiting or self.unresolved(run, ToolExecutor.CLIENT):
            self.report(run, Parked(waiting))
        else:
            self.report(run, Completed())

    @precondition(lambda self: self.active())
    @rule(data=st.data())
    def fail(self, data: st.DataObject) -> None:
        self.report(data.draw(st.sampled_from(self.active())), FAILED)

    @precondition(lambda self: any(r.state is not RunState.PENDING for r in self.active()))
    @rule(data=st.data(), how=st.sampled_from(["lost", "handed over", "grace"]))
    def lose(self, data: st.DataObject, how: str) -> None:
        runs = [r for r in self.active() if r.state is not RunState.PENDING]
        run = data.draw(st.sampled_from(runs))
        other = self.model.runs[run.id]
        if how == "handed over":
            self.both(
                lambda: self.chat.hand_over(run.id), lambda: self.model.lose(other, on_purpose=True)
            )
        elif how == "lost":
            self.both(
                lambda: self.chat.lose(run.id), lambda: self.model.lose(other, on_purpose=False)
            )
        elif run.state is RunState.CANCELLING:
            self.both(
                lambda: self.chat.end_of_grace(run.id),
                lambda: self.model.finish(other, "CANCELLED"),
            )

    @precondition(lambda self: any(r.state is RunState.PENDING for r in self.active()))
    @rule(data=st.data())
    def unplaced(self, data: st.DataObject) -> None:
        run = data.draw(st.sampled_from([r for r in self.active() if r.state is RunState.PENDING]))
        other = self.model.runs[run.id]
        self.both(lambda: self.chat.unplaced(run.id), lambda: self.model.finish(other, "FAILED"))

    # --- what changes nothing ---

    @rule(data=st.data(), what=st.sampled_from(["send again", "late", "restart"]))
    def nothing_happens(self, data: st.DataObject, what: str) -> None:
        self.both(lambda: self.chat.wait(1_000), lambda: None)
        length = len(self.chat.log)
        if what == "send again":
            self.send_again(data)
        elif what == "late":
            self.late(data)
        else:
            # I3: a restart of everything in between changes nothing.
            stored = [encode_event(entry) for entry in self.chat.log]
            self.chat.state = fold_log([decode_event(payload) for payload in stored])
        assert len(self.chat.log) == length

    def send_again(self, data: st.DataObject) -> None:
        """C5: the present state, whatever it is."""
        message_id = data.draw(st.sampled_from(sorted(set(self.sent) - self.removed) or [""]))
        if message_id:
            text, by = self.sent[message_id]
            sent = self.chat.send(text, message_id, by=by, on_busy=OnBusy.INTERRUPT)
            assert bool(sent.held) == any(h.message.id == message_id for h in self.chat.state.held)

    def late(self, data: st.DataObject) -> None:
        """R3: what an attempt sends after its end is refused."""
        run = data.draw(st.sampled_from(list(self.chat.state.runs.values())))
        at_work = run.state in (RunState.RUNNING, RunState.CANCELLING)
        with self.chat.refused(Reason.STALE_ATTEMPT):
            self.chat.report(run.id, Began(self.chat.mint("msg")), attempt=run.attempt - at_work)

    def close(self, question: Interaction) -> None:
        other = self.model.questions[question.id]
        if question.kind is InteractionKind.APPROVAL:
            self.both(
                lambda: self.chat.decide(question.id), lambda: self.model.decide(other, "", True)
            )
        else:
            by = question.closers[0] if question.closers else "ann"
            self.both(
                lambda: self.chat.settle(question.id, error="never mind", by=by),
                lambda: self.model.settle(other, "", by, "error"),
            )

    def teardown(self) -> None:
        """Nothing is left that waits for nobody, and no message is lost (G2, S2)."""
        for turn in range(400):
            state = self.chat.state
            if state.open_interactions:
                self.close(state.interactions[next(iter(state.open_interactions))])
            elif self.active():
                self.next_move(self.active()[turn % len(self.active())])
            elif state.held:
                first = state.held[0]
                if first.reason is HoldReason.QUEUE_PAUSED:
                    self.both(self.chat.resume_queue, self.model.resume_queue)
                else:
                    assert first.reason is HoldReason.BRANCH_NOT_SELECTED
                    self.select_node(first.branch_node_id)
            else:
                break
        state = self.chat.state
        assert not state.held
        assert not state.live_runs
        assert not state.open_interactions
        entered = set(state.prompts)
        assert set(self.sent) == self.removed | (entered & set(self.sent)), "a message is lost"
        assert not self.removed & entered, "G3: removing never sends"
        assert all(node_id in state.nodes for node_id in leaves(state))


TestCore = pytest.mark.timeout(300)(Clients.TestCase)
TestCore.settings = settings(
    max_examples=int(os.environ.get("TURNGATE_MACHINE_EXAMPLES", "60")),
    stateful_step_count=int(os.environ.get("TURNGATE_MACHINE_STEPS", "50")),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    # A failure is told at once, as a program that repeats it: making it smaller may take minutes.
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
)
