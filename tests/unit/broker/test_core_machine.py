"""Every command of the core in random order, from several clients and runners, over many branches.

After each command all invariants hold (the conversation checks them), and the core agrees with a
second, naive model of the rules. At the end everything that is open is answered and every run is
brought to its end: nothing may be left that waits for nobody.

`TURNGATE_MACHINE_EXAMPLES` sets how many conversations are tried; `make fuzz` goes on for long.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from broker_service.domain.model import (
    GrantScope,
    HoldReason,
    Interaction,
    InteractionKind,
    InteractionState,
    OnBusy,
    RunState,
)
from broker_service.domain.reports import (
    Began,
)
from broker_service.encoding import decode_event, encode_event
from tests.unit.broker import naive_model
from tests.unit.broker.conversation import (
    CONNECTED,
    DECLINED,
    FAILED,
    LUND,
    VISBY,
    fold_log,
)
from tests.unit.broker.invariants import leaves
from tests.unit.broker.runner_rules import Runners
from tests.unit.broker.side_by_side import MINUTE, PEOPLE
from turngate_core.errors import Reason, Refusal

OUTPUTS = {
    "request_input": [VISBY, LUND, DECLINED],
    "request_connection": [CONNECTED, '{"connected":false,"integration":"bank"}'],
}
ON_BUSY = st.sampled_from([None, OnBusy.REJECT, OnBusy.INTERRUPT, OnBusy.INTERRUPT])


class Clients(Runners):
    """Clients, runners and broker that do whatever comes to their mind."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: dict[str, tuple[str, str]] = {}
        self.removed: set[str] = set()

    # --- what there is to act on ---

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
        is_open = [i for i in every if i.state is InteractionState.OPEN]
        answered = [i for i in every if i.state is InteractionState.ANSWERED]
        return is_open * 4 + answered * 2 + every

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

    def spared(self, data: st.DataObject, one_in: int = 6) -> bool:
        """Most of the time a disruptive command gives way to one that gets further: else little
        would ever be asked, answered and forked.
        """
        if data.draw(st.integers(1, one_in)) == one_in:
            return False
        client_tool, approval = InteractionKind.CLIENT_TOOL, InteractionKind.APPROVAL
        ways = ["settle"] * 3 * self.asked(client_tool) + ["decide"] * 2 * self.asked(approval)
        ways += ["step"] * 3 * bool(self.steps_over()) + ["go on"] * bool(self.active())
        match data.draw(st.sampled_from(ways or ["send"])):
            case "settle":
                by_call, as_error = data.draw(st.booleans()), data.draw(st.booleans())
                self.settle(data, data.draw(PEOPLE), by_call, as_error)
            case "decide":
                scope = data.draw(st.sampled_from([None, GrantScope.SESSION]))
                self.decide(data, data.draw(PEOPLE), data.draw(st.booleans()), scope)
            case "step":
                self.whole_step(self.pick_run(data, self.steps_over()).id, data)
            case "go on":
                self.next_move(self.pick_run(data, self.active()))
            case _:
                self.send("ann", "a", None, data)
        return True

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
        if self.spared(data) or len(self.chat.state.prompts) > 8:
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
        held = self.chat.state.held[data.draw(st.integers(0, len(self.chat.state.held) - 1))]
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
        message_id = data.draw(st.sampled_from([h.message.id for h in self.chat.state.held]))

        def remove() -> None:
            self.in_queue(message_id)
            self.model.queue.remove(message_id)

        removed = self.both(lambda: self.chat.remove_held(message_id, by=by), remove)
        if not isinstance(removed, Refusal):
            self.removed.add(message_id)

    def in_queue(self, message_id: str) -> None:
        """It may have entered by what has fallen due meanwhile."""
        if message_id not in self.model.queue:
            raise naive_model.Refused("HELD_MESSAGE_NOT_FOUND")

    @precondition(lambda self: self.chat.state.queue_pause)
    @rule(by=PEOPLE)
    def resume_queue(self, by: str) -> None:
        self.both(lambda: self.chat.resume_queue(by=by), self.model.resume_queue)

    @precondition(lambda self: self.asked(InteractionKind.CLIENT_TOOL))
    @rule(data=st.data(), by=PEOPLE, by_call=st.booleans(), as_error=st.booleans())
    def settle(self, data: st.DataObject, by: str, by_call: bool, as_error: bool) -> None:
        question = self.pick_question(data, self.questions(InteractionKind.CLIENT_TOOL))
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
        question = self.pick_question(data, self.questions(InteractionKind.APPROVAL))
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
        if self.spared(data, one_in=3):
            return
        question = self.pick_question(data, list(self.chat.state.interactions.values()))
        run = self.pick_owner(data, question)
        self.both(
            lambda: self.chat.cancel_interaction(question.id, run=run, by=by),
            lambda: self.model.cancel_question(self.model.questions[question.id], run),
        )

    @precondition(lambda self: self.asked(InteractionKind.CLIENT_TOOL))
    @rule(data=st.data(), by=PEOPLE)
    def report_unhandled(self, data: st.DataObject, by: str) -> None:
        question = self.pick_question(data, self.questions(InteractionKind.CLIENT_TOOL))
        run = self.pick_owner(data, question)
        self.both(
            lambda: self.chat.report_unhandled(question.id, run=run, by=by),
            lambda: self.model.unhandled(self.model.questions[question.id], run),
        )

    @rule(data=st.data(), by=PEOPLE, keep=st.booleans())
    def cancel_run(self, data: st.DataObject, by: str, keep: bool) -> None:
        if self.spared(data, one_in=3):
            return
        run_id = data.draw(st.sampled_from(list(self.chat.state.runs)))
        self.both(
            lambda: self.chat.cancel(run_id, keep_held=keep, by=by),
            lambda: self.model.cancel(run_id, keep),
            answers=lambda acted_on: acted_on,
        )

    @rule(data=st.data(), by=PEOPLE, keep=st.booleans(), by_message=st.booleans())
    def regenerate(self, data: st.DataObject, by: str, keep: bool, by_message: bool) -> None:
        if self.spared(data) or len(self.chat.state.runs) > 20:
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
            self.model.release()  # what enters now moves the selection on (G2)
            return self.model.selected

        self.both(
            lambda: self.chat.select(node_id, by=by),
            select,
            answers=lambda _: self.chat.state.selected,
        )

    @precondition(lambda self: self.chat.state.grants)
    @rule(data=st.data(), by=PEOPLE)
    def revoke(self, data: st.DataObject, by: str) -> None:
        grant = data.draw(st.sampled_from(list(self.chat.state.grants)))
        self.both(lambda: self.chat.revoke(grant, by=by), lambda: None)
        assert grant not in [other.id for other in self.chat.grants()]

    @precondition(lambda self: self.chat.state.open_interactions)
    @rule(data=st.data(), ms=st.sampled_from([30_000, MINUTE, MINUTE, 10 * MINUTE, 30 * MINUTE]))
    def time_passes(self, data: st.DataObject, ms: int) -> None:
        if not self.spared(data, one_in=3):
            self.both(lambda: self.chat.wait(ms), lambda: None)

    @precondition(lambda self: self.active())
    @rule(data=st.data())
    def fail(self, data: st.DataObject) -> None:
        if not self.spared(data, one_in=2) and self.active():
            self.report(self.pick_run(data, self.active()), FAILED)

    @precondition(lambda self: any(r.state is RunState.PENDING for r in self.active()))
    @rule(data=st.data())
    def unplaced(self, data: st.DataObject) -> None:
        if self.spared(data, one_in=3):
            return
        run = self.pick_run(data, [r for r in self.active() if r.state is RunState.PENDING])
        other = self.model.runs[run.id]
        self.both(lambda: self.chat.unplaced(run.id), lambda: self.model.finish(other, "FAILED"))

    # --- what changes nothing ---

    @rule(data=st.data(), what=st.sampled_from(["send again", "late", "restart"]))
    def nothing_happens(self, data: st.DataObject, what: str) -> None:
        while self.chat.due_within(1_000):
            self.both(lambda: self.chat.wait(1_000), lambda: None)
        length = len(self.chat.log)
        if what == "send again":
            self.send_again(data)
        elif what == "late":
            self.late(data)
        else:
            self.restart()
        assert len(self.chat.log) == length

    def restart(self) -> None:
        """I3: a restart of everything in between changes nothing."""
        stored = [encode_event(entry) for entry in self.chat.log]
        self.chat.state = fold_log([decode_event(payload) for payload in stored])

    def send_again(self, data: st.DataObject) -> None:
        """C5: the present state, whatever it is."""
        message_id = data.draw(st.sampled_from(sorted(set(self.sent) - self.removed) or [""]))
        if message_id:
            text, by = self.sent[message_id]
            sent = self.chat.send(text, message_id, by=by, on_busy=OnBusy.INTERRUPT)
            assert bool(sent.held) == any(h.message.id == message_id for h in self.chat.state.held)

    def late(self, data: st.DataObject) -> None:
        """R3: what an attempt sends after its end is refused."""
        run = self.pick_run(data, list(self.chat.state.runs.values()))
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


MACHINE = settings(
    max_examples=int(os.environ.get("TURNGATE_MACHINE_EXAMPLES", "60")),
    stateful_step_count=50,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    deadline=None,
    # A failure is told at once, as a program that repeats it: making it smaller may take minutes.
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
)

TestCore = pytest.mark.timeout(300)(Clients.TestCase)
TestCore.settings = MACHINE
