"""What runners do, in random order."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from broker_service.domain.model import (
    GrantScope,
    Interaction,
    InteractionKind,
    Permission,
    ProposedTool,
    RenderHint,
    ResultKind,
    RunState,
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
from tests.unit.broker import naive_model
from tests.unit.broker.conversation import FAILED, FORM, NESTED_FORM, said, tool_result
from tests.unit.broker.side_by_side import MINUTE, SideBySide
from turngate_core.errors import Refusal

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
    tool_permission=st.sampled_from(
        [None, Permission.ASK, Permission.ASK, Permission.ALLOW, Permission.DENY]
    ),
    destructive=st.sampled_from([False, False, True]),
    idempotent=st.booleans(),
    after_answers=st.sampled_from([None, True, False]),
    grant_scope=st.sampled_from([None, None, GrantScope.ONCE]),
)


class Runners(SideBySide):
    """Runners that keep the protocol, and do whatever comes to their mind within it."""

    def __init__(self) -> None:
        super().__init__()
        self.traits: dict[str, ProposedTool] = {}

    def unresolved(self, run: RunNode, executor: ToolExecutor) -> list[str]:
        calls = self.chat.state.calls
        return [
            call_id
            for call_id in run.step_calls
            if call_id not in run.results and calls[call_id].call.executor is executor
        ]

    def under_way(self, run: RunNode) -> list[str]:
        """Calls that this attempt was granted and has not reported."""
        if run.state is RunState.PENDING:
            return []  # the next attempt proposes them anew
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

    def report(self, run: RunNode, *events: RunnerEvent) -> list[Verdict]:
        """Report to the core; the model is told what the runner was granted and has said."""
        reported = self.both(
            lambda: self.chat.report(run.id, *events).verdicts,
            lambda: self.take_in(run, events),
        )
        assert not isinstance(reported, Refusal)
        return [verdict.verdict for verdict in reported]

    def take_in(self, run: RunNode, events: tuple[RunnerEvent, ...]) -> None:
        """What the core made of it is told: starts, results, and which calls became questions."""
        other = self.model.runs[run.id]
        self.model.take(other)
        for event in events:
            if isinstance(event, Finished):
                calls = event.message.calls()
                self.tools |= {call.call_id: call.name for call in calls}
                other.step, other.results, other.lost = [c.call_id for c in calls], {}, 0
        self.tell(run, other)
        match events[-1]:
            case Parked() if run.state in (RunState.PARKED, RunState.PENDING):
                other.state = "PARKED"
                asked = [self.chat.state.interactions[i] for i in run.waits]
                other.waits = [self.question(interaction) for interaction in asked]
                self.model.resume([other])
            case Parked() | Cancelled():
                self.model.finish(other, "FAILED")
            case Completed():
                self.model.finish(other, "COMPLETED")
            case _ if events[-1] is FAILED:
                self.model.finish(other, "FAILED")
            case _:
                pass

    def tell(self, run: RunNode, other: naive_model.Run) -> None:
        for call_id in run.step_calls:
            record, result = self.chat.state.calls[call_id], run.results.get(call_id)
            if record.started:
                self.model.starts[call_id] = (record.started_by, record.idempotent)
            unknown = result is not None and result.kind is ResultKind.OUTCOME_UNKNOWN
            if result and result.kind and not (unknown and record.started_by == run.id):
                other.results.setdefault(call_id, result.kind.name)

    def question(self, interaction: Interaction) -> naive_model.Question:
        """The model's; a new one if it was opened just now."""
        if interaction.id in self.model.questions:
            return self.model.questions[interaction.id]
        is_approval = interaction.kind is InteractionKind.APPROVAL
        otherwise = (30 * MINUTE, "DENIED" if is_approval else "EXPIRED")
        declared = {"scan": (MINUTE, "CANCEL_RUN"), "sign": (2 * MINUTE, "DENIED")}
        after, what = declared.get(interaction.tool_name, otherwise)
        now = interaction.create_time or 0
        question = naive_model.Question(
            interaction.id,
            interaction.call_id,
            interaction.tool_name,
            interaction.run_id,
            is_approval,
            [(now + after, what)],
        )
        if question.tool == "pick_colour":
            question.deadlines.append((now + naive_model.UNCLAIMED_AFTER, "UNCLAIMED"))
        self.model.questions[question.id] = question
        return question

    @precondition(lambda self: self.steps_over())
    @rule(data=st.data(), calls=st.integers(0, 4), finished=st.sampled_from([True, True, False]))
    def write(self, data: st.DataObject, calls: int, finished: bool) -> None:
        """The next model call."""
        run = self.pick_run(data, self.steps_over())
        message_id = self.chat.mint("msg")
        made = [self.draw_call(data) for _ in range(calls)]
        self.report(run, Began(message_id))
        if finished:
            self.report(run, Finished(said(message_id, *made)))

    def search(self) -> list[ToolCall | ToolResult]:
        """What the provider has executed comes with its result."""
        call = ToolCall(self.chat.mint("c"), "search", "{}", executor=ToolExecutor.PROVIDER)
        return [call, ToolResult(call.call_id, output_json="[]", kind=ResultKind.TOOL)]

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
        self.whole_step(self.pick_run(data, self.steps_over()).id, data)

    def steps_over(self) -> list[RunNode]:
        return [
            run
            for run in self.active()
            if not run.open_message_id and all(call in run.results for call in run.step_calls)
        ]

    def whole_step(self, run_id: str, data: st.DataObject) -> None:
        message_id = self.chat.mint("msg")
        made = [self.draw_call(data) for _ in range(data.draw(st.integers(1, 4)))]
        searched = self.search() if data.draw(st.integers(0, 5)) == 5 else []
        run = self.chat.run(run_id)
        self.report(run, Began(message_id), Finished(said(message_id, *searched, *made)))
        self.next_move(run)

    @precondition(lambda self: any(run.open_message_id for run in self.active()))
    @rule(data=st.data())
    def withdraw(self, data: st.DataObject) -> None:
        run = self.pick_run(data, [run for run in self.active() if run.open_message_id])
        self.report(run, Withdrew(run.open_message_id))

    @precondition(lambda self: any(self.to_propose(r) for r in self.active()))
    @rule(data=st.data())
    def propose(self, data: st.DataObject) -> None:
        runs = [run for run in self.active() if self.to_propose(run) and not run.open_message_id]
        run = self.pick_run(data, runs)
        self.propose_all(run)

    def race(self, run: RunNode) -> list[Verdict]:
        """Propose; forks of the same step do so right behind, and wait for its results (S1)."""
        calls = {tool.call_id for tool in self.to_propose(run)}
        verdicts = self.propose_all(run)
        for other in self.active():
            if other is not run and calls & {tool.call_id for tool in self.to_propose(other)}:
                self.propose_all(other)
        return verdicts

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
        run = self.pick_run(data, [r for r in self.active() if self.under_way(r)])
        call_id = data.draw(st.sampled_from(self.under_way(run)))
        state, runs = run.state, len(self.chat.state.runs)
        self.report(run, tool_result(call_id, output))
        assert len(self.chat.state.runs) - runs <= len(self.chat.state.held) + 1, "A4"
        assert run.state is state, "A4"

    @precondition(lambda self: self.active())
    @rule(data=st.data(), hinted=st.booleans())
    def refuse_or_hint(self, data: st.DataObject, hinted: bool) -> None:
        run = self.pick_run(data, self.active())
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
        self.next_move(self.pick_run(data, self.active()))

    def next_move(self, run: RunNode) -> None:
        if not run.active:
            return  # something has fallen due meanwhile
        if run.state is RunState.CANCELLING:
            self.report(run, Cancelled())
            return
        if run.open_message_id:
            self.report(run, Finished(said(run.open_message_id)))
            return
        if self.to_propose(run) and Verdict.WAIT in self.race(run):
            return  # another fork runs a call of this step (S1)
        for call_id in self.under_way(run):
            self.report(run, tool_result(call_id))
        waiting = self.to_propose(run)
        if waiting or self.unresolved(run, ToolExecutor.CLIENT):
            self.report(run, Parked(waiting))
        else:
            self.report(run, Completed())

    @precondition(lambda self: any(r.state is not RunState.PENDING for r in self.active()))
    @rule(data=st.data(), how=st.sampled_from(["lost", "handed over", "grace"]))
    def lose(self, data: st.DataObject, how: str) -> None:
        runs = [r for r in self.active() if r.state is not RunState.PENDING]
        run = self.pick_run(data, runs)
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
