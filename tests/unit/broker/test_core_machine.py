"""Every command of the core in random order from several clients, over several branches.

The conversation checks all invariants after each command. At the end everything that is open is
answered and every run is brought to its end: nothing may be left that waits for nobody.
`TURNGATE_MACHINE_EXAMPLES` sets how many conversations are tried.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from broker_service.domain.decision import Decision
from broker_service.domain.events import BranchSelected, GrantRevoked, PromptAdded
from broker_service.domain.model import (
    ApprovalPolicy,
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
    RunCause,
    RunState,
    SessionConfig,
    ToolCall,
    ToolExecutor,
    ToolResult,
)
from broker_service.domain.reports import (
    Began,
    Completed,
    Finished,
    Hinted,
    Parked,
    Resulted,
    Withdrew,
)
from broker_service.domain.runs import create_run
from broker_service.domain.starts import Verdict
from broker_service.domain.state import RunNode
from broker_service.encoding import decode_event, encode_event
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
    user,
)
from tests.unit.broker.invariants import leaves
from turngate_core.errors import Reason, Refusal

T = TypeVar("T")

PEOPLE = st.sampled_from(["ann", "ben", "cai"])
OUTPUTS = {
    "request_input": [VISBY, LUND, DECLINED],
    "request_connection": [CONNECTED, '{"connected":false,"integration":"bank"}'],
    "pick_colour": ['"red"', "7", '{"approved":true}'],
}
CLIENT_CALLS = [
    ("request_input", FORM),
    ("request_input", NESTED_FORM),
    ("request_connection", '{"integration":"bank"}'),
    ("pick_colour", "{}"),
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
CONFIG = SessionConfig(
    agent="travel",
    approval_policy=ApprovalPolicy(rules=(PolicyRule("forbidden", Permission.DENY),)),
)


def outcome(command: Callable[[], T]) -> T | Refusal:
    try:
        return command()
    except Refusal as refusal:
        return refusal


class Clients(RuleBasedStateMachine):
    """Clients, runner and broker that do whatever comes to their mind."""

    def __init__(self) -> None:
        super().__init__()
        self.chat = Conversation(CONFIG)
        self.traits: dict[str, ProposedTool] = {}
        self.sent: dict[str, tuple[str, str]] = {}
        self.removed: set[str] = set()
        self.edits = 0

    # --- what there is to act on ---

    def active(self) -> list[RunNode]:
        return [run for run in self.chat.state.runs.values() if run.active]

    def running(self, *, writing: bool) -> list[RunNode]:
        is_running = [run for run in self.active() if run.state is RunState.RUNNING]
        return [run for run in is_running if bool(run.open_message_id) is writing]

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

    @initialize(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        """Somebody has said something, and the first step has been made."""
        self.sent["m-0"] = ("hello", "ann")
        run_id = self.chat.send("hello", "m-0").run_id
        self.whole_step(run_id, data)

    # --- clients ---

    @rule(
        by=PEOPLE,
        text=st.sampled_from("abc"),
        on_busy=st.sampled_from([None, OnBusy.HOLD, OnBusy.REJECT]),
        data=st.data(),
    )
    def send(self, by: str, text: str, on_busy: OnBusy | None, data: st.DataObject) -> None:
        nodes = [*self.chat.state.prompts, *self.chat.state.runs]
        branch = data.draw(st.just("") | st.sampled_from(nodes))
        message_id = self.chat.mint("m")
        sent = outcome(
            lambda: self.chat.send(text, message_id, by=by, branch=branch, on_busy=on_busy)
        )
        if isinstance(sent, Refusal):
            assert sent.reason is Reason.SESSION_BUSY
            assert on_busy is OnBusy.REJECT
            return
        assert bool(sent.run_id) != bool(sent.held)
        self.sent[message_id] = (text, by)

    @precondition(lambda self: self.chat.state.held)
    @rule(data=st.data(), text=st.sampled_from("xyz"))
    def edit_held(self, data: st.DataObject, text: str) -> None:
        held = data.draw(st.sampled_from(self.chat.state.held))
        self.chat.edit_held(held.message.id, text, by=held.message.author)
        self.sent[held.message.id] = (text, held.message.author)

    @precondition(lambda self: self.chat.state.held)
    @rule(data=st.data(), by=PEOPLE)
    def remove_held(self, data: st.DataObject, by: str) -> None:
        held = data.draw(st.sampled_from(self.chat.state.held))
        self.chat.remove_held(held.message.id, by=by)
        self.removed.add(held.message.id)

    @precondition(lambda self: self.chat.state.queue_pause)
    @rule(by=PEOPLE)
    def resume_queue(self, by: str) -> None:
        self.chat.resume_queue(by=by)
        assert self.chat.state.queue_pause is None

    def questions(self, kind: InteractionKind) -> list[Interaction]:
        """Open ones of this kind, each several times, and all others."""
        every = self.chat.state.interactions
        still_open = [every[interaction_id] for interaction_id in self.chat.state.open_interactions]
        return [question for question in still_open if question.kind is kind] * 9 + [
            *every.values()
        ]

    @precondition(lambda self: self.chat.state.interactions)
    @rule(data=st.data(), by=PEOPLE, by_call=st.booleans(), as_error=st.booleans())
    def settle(self, data: st.DataObject, by: str, by_call: bool, as_error: bool) -> None:
        state = self.chat.state
        question = data.draw(st.sampled_from(self.questions(InteractionKind.CLIENT_TOOL)))
        outputs = OUTPUTS.get(question.tool_name, ["null"])
        output = None if as_error else data.draw(st.sampled_from(outputs))
        error = "it broke" if as_error else None
        interaction_id, run, call = question.id, "", ""
        if by_call:
            owners = [r.id for r in state.runs.values() if state.owns_call(r, question.call_id)]
            interaction_id, run = "", data.draw(st.sampled_from(owners))
            call = question.call_id
        runs = len(state.runs)
        settled = outcome(
            lambda: self.chat.settle(interaction_id, output, error=error, run=run, call=call, by=by)
        )
        if not isinstance(settled, Refusal):
            assert len(self.chat.state.runs) - runs == settled.fork_opened
            assert self.chat.interaction(question.call_id).state is InteractionState.ANSWERED
        elif question.kind is InteractionKind.APPROVAL:
            assert settled.reason is Reason.WRONG_INTERACTION_KIND
        else:
            assert question.state is not InteractionState.OPEN, "I3: it can be answered"
            assert settled.reason is Reason.ALREADY_SETTLED

    @precondition(lambda self: self.chat.state.interactions)
    @rule(
        data=st.data(),
        by=PEOPLE,
        approve=st.booleans(),
        scope=st.sampled_from([None, GrantScope.ONCE, GrantScope.SESSION]),
    )
    def decide(self, data: st.DataObject, by: str, approve: bool, scope: GrantScope | None) -> None:
        question = data.draw(st.sampled_from(self.questions(InteractionKind.APPROVAL)))
        wanted = InteractionState.APPROVED if approve else InteractionState.DENIED
        runs = len(self.chat.state.runs)
        decided = outcome(lambda: self.chat.decide(question.id, approve, by=by, scope=scope))
        if not isinstance(decided, Refusal):
            assert len(self.chat.state.runs) == runs, "A2: decisions never fork"
            assert self.chat.interaction(question.call_id).state is wanted
        elif question.kind is InteractionKind.CLIENT_TOOL:
            assert decided.reason is Reason.WRONG_INTERACTION_KIND
        else:
            assert decided.reason is Reason.ALREADY_DECIDED
            assert question.state not in (InteractionState.OPEN, wanted)

    @precondition(lambda self: self.edits < 2)
    @rule(data=st.data())
    def edit_prompt(self, data: st.DataObject) -> None:
        """A prompt beside another one, as an edit makes it (C2), so that there are branches."""
        self.edits += 1
        prompt = data.draw(st.sampled_from(list(self.chat.state.prompts.values())))
        message = user(self.chat.mint("m"), "instead")

        def edit(decision: Decision) -> None:
            decision.emit(PromptAdded(message, prompt.parent_id, prompt.id, selected=True))
            create_run(decision, message.id, RunCause.PROMPT, selected=True)

        self.chat.act(edit)

    @precondition(lambda self: self.edits)
    @rule(data=st.data())
    def select_branch(self, data: st.DataObject) -> None:
        self.select(data.draw(st.sampled_from(leaves(self.chat.state))))

    def select(self, node_id: str) -> None:
        end = self.chat.state.end_of_branch(node_id)
        if end != self.chat.state.selected:
            self.chat.act(lambda d: d.emit(BranchSelected(end)))

    @precondition(lambda self: self.chat.state.grants)
    @rule(data=st.data())
    def revoke(self, data: st.DataObject) -> None:
        grant = data.draw(st.sampled_from(sorted(self.chat.state.grants)))
        self.chat.act(lambda d: d.emit(GrantRevoked(grant)))

    # --- the runner ---

    @precondition(lambda self: self.steps_over())
    @rule(data=st.data(), calls=st.integers(0, 4), finished=st.sampled_from([True, True, False]))
    def write(self, data: st.DataObject, calls: int, finished: bool) -> None:
        """The next model call."""
        run = data.draw(st.sampled_from(self.steps_over()))
        message_id = self.chat.mint("msg")
        made = [self.draw_call(data) for _ in range(calls)]
        self.chat.report(run.id, Began(message_id))
        if finished:
            self.chat.report(run.id, Finished(said(message_id, *made)))

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
        self.chat.report(run_id, Began(message_id), Finished(said(message_id, *made)))
        self.next_move(self.chat.run(run_id))

    @precondition(lambda self: self.running(writing=True))
    @rule(data=st.data())
    def withdraw(self, data: st.DataObject) -> None:
        run = data.draw(st.sampled_from(self.running(writing=True)))
        self.chat.report(run.id, Withdrew(run.open_message_id))

    @precondition(lambda self: any(self.to_propose(run) for run in self.active()))
    @rule(data=st.data())
    def propose(self, data: st.DataObject) -> None:
        runs = [run for run in self.active() if self.to_propose(run) and not run.open_message_id]
        run = data.draw(st.sampled_from(runs))
        tools = self.to_propose(run)
        for verdict in self.chat.verdicts(run.id, *tools):
            record = self.chat.state.calls[verdict.call_id]
            assert verdict.verdict is not Verdict.CANCELLED
            if verdict.verdict is Verdict.WAIT:
                assert record.started_by != run.id, "S1"
                assert record.result is None, "S1: what is recorded is reused"

    @precondition(lambda self: any(self.under_way(run) for run in self.active()))
    @rule(data=st.data(), output=st.sampled_from(["1", '{"approved":true}']))
    def result(self, data: st.DataObject, output: str) -> None:
        run = data.draw(st.sampled_from([r for r in self.active() if self.under_way(r)]))
        call_id = data.draw(st.sampled_from(self.under_way(run)))
        runs = len(self.chat.state.runs)
        self.chat.report(run.id, tool_result(call_id, output))
        assert len(self.chat.state.runs) == runs, "A4"
        assert self.chat.run(run.id).state is RunState.RUNNING, "A4"

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
            self.chat.report(run.id, Hinted("", RenderHint(call_id, "colour")))
        else:
            refused = ToolResult(call_id, error_text="no", kind=ResultKind.CALL_REFUSED)
            self.chat.report(run.id, Resulted(refused))

    @precondition(lambda self: self.active())
    @rule(data=st.data())
    def go_on(self, data: st.DataObject) -> None:
        """What a runner that keeps the protocol does next."""
        self.next_move(data.draw(st.sampled_from(self.active())))

    def next_move(self, run: RunNode) -> None:
        if run.open_message_id:
            self.chat.report(run.id, Finished(said(run.open_message_id)))
            return
        if (tools := self.to_propose(run)) and Verdict.WAIT in self.chat.propose(run.id, *tools):
            return  # another fork runs a call of this step (S1)
        for call_id in self.under_way(run):
            self.chat.report(run.id, tool_result(call_id))
        waiting = self.to_propose(run)
        if waiting or self.unresolved(run, ToolExecutor.CLIENT):
            self.chat.report(run.id, Parked(waiting))
        else:
            self.chat.report(run.id, Completed())

    @precondition(lambda self: self.active())
    @rule(data=st.data())
    def fail(self, data: st.DataObject) -> None:
        self.chat.report(data.draw(st.sampled_from(self.active())).id, FAILED)

    @precondition(lambda self: any(r.state is RunState.RUNNING for r in self.active()))
    @rule(data=st.data(), on_purpose=st.booleans())
    def lose(self, data: st.DataObject, on_purpose: bool) -> None:
        run = data.draw(st.sampled_from([r for r in self.active() if r.state is RunState.RUNNING]))
        if on_purpose:
            self.chat.hand_over(run.id)
        else:
            self.chat.lose(run.id)

    # --- what changes nothing ---

    @rule(data=st.data(), what=st.sampled_from(["send again", "late", "restart"]))
    def nothing_happens(self, data: st.DataObject, what: str) -> None:
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
            sent = self.chat.send(text, message_id, by=by)
            assert bool(sent.held) == any(h.message.id == message_id for h in self.chat.state.held)

    def late(self, data: st.DataObject) -> None:
        """R3: what an attempt sends after its end is refused."""
        run = data.draw(st.sampled_from(list(self.chat.state.runs.values())))
        attempt = run.attempt - (run.state is RunState.RUNNING)
        with self.chat.refused(Reason.STALE_ATTEMPT):
            self.chat.report(run.id, Began(self.chat.mint("msg")), attempt=attempt)

    def teardown(self) -> None:
        """Nothing is left that waits for nobody, and no message is lost (G2, S2)."""
        for turn in range(400):
            state = self.chat.state
            if state.open_interactions:
                question = state.interactions[next(iter(state.open_interactions))]
                if question.kind is InteractionKind.APPROVAL:
                    self.chat.decide(question.id)
                else:
                    self.chat.settle(question.id, error="never mind")
            elif self.active():
                self.next_move(self.active()[turn % len(self.active())])
            elif state.held:
                first = state.held[0]
                if first.reason is HoldReason.QUEUE_PAUSED:
                    self.chat.resume_queue()
                else:
                    assert first.reason is HoldReason.BRANCH_NOT_SELECTED
                    self.select(first.branch_node_id)
            else:
                break
        state = self.chat.state
        assert not state.held
        assert not state.live_runs
        assert not state.open_interactions
        entered = set(state.prompts)
        assert set(self.sent) == self.removed | (entered & set(self.sent)), "a message is lost"
        assert not self.removed & entered, "G3: removing never sends"


TestCore = pytest.mark.timeout(300)(Clients.TestCase)
TestCore.settings = settings(
    max_examples=int(os.environ.get("TURNGATE_MACHINE_EXAMPLES", "60")), stateful_step_count=50
)
