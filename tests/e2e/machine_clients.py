"""The clients of the state machine on the real service: a command at a time, or two at once."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from broker_service.domain.model import GrantScope, InteractionKind
from broker_service.domain.state import RunNode
from tests.e2e.machine_commands import ServiceConversation
from tests.e2e.machine_services import Services
from tests.unit.broker import naive_model
from tests.unit.broker.side_by_side import CONFIG, COUNTS, LIMITS, PEOPLE, expectation
from tests.unit.broker.test_core_machine import Clients
from turngate_core.errors import Reason, Refusal

T = TypeVar("T")


class OnTheService(Clients):
    """The machine, with a session at the broker in place of the core."""

    chat: ServiceConversation

    def __init__(self, at: Services, *, long: bool) -> None:
        self.at = at
        self.long = long
        super().__init__()

    def converse(self) -> ServiceConversation:
        return ServiceConversation(self.at, CONFIG, LIMITS)

    def compare(self) -> None:
        for run_id in self.chat.decided_for:
            self.tell(self.chat.run(run_id), self.model.runs[run_id])
        super().compare()

    def late(self, data: st.DataObject) -> None:
        """R3: the runner says something after each of its last words."""

    def restart(self) -> None:
        """I3: the broker dies and comes anew. In the long form: it takes a second. A run under way
        would be taken over only when its lease has run out, which it never does here.
        """
        if self.long and not self.active():
            self.chat.restart()

    def pick_run(self, data: st.DataObject, runs: list[RunNode]) -> RunNode:
        """By its place: ids of the broker are other ones each time."""
        return runs[data.draw(st.integers(0, len(runs) - 1))]

    def teardown(self) -> None:
        try:
            super().teardown()
        finally:
            self.chat.close()


@dataclass(frozen=True)
class Act:
    """A command, what the model makes of it, and whether an answer is the one that it expects."""

    command: Callable[[], object]
    model: Callable[[], object]
    agrees: Callable[[object, object], bool]


class AtOnce(OnTheService):
    """Also gives two commands in the same moment: they come to what one after the other comes to,
    in one of the two orders (E1).
    """

    def __init__(self, at: Services, *, long: bool) -> None:
        self.acts: list[Act] | None = None
        super().__init__(at, long=long)

    def both(
        self,
        command: Callable[[], T],
        model: Callable[[], object],
        *,
        answers: Callable[[T], object] | None = None,
    ) -> T | Refusal:
        if self.acts is None:
            return super().both(command, model, answers=answers)
        given: list[T] = []

        def give() -> None:
            given.append(command())

        def agrees(done: object, expected: object) -> bool:
            if isinstance(done, Refusal) or isinstance(expected, naive_model.Refused):
                return isinstance(done, Refusal) and done.reason.name == str(expected)
            return not answers or answers(given[0]) == expected

        self.acts.append(Act(give, model, agrees))
        return Refusal(Reason.INTERNAL, "not given yet")

    @precondition(lambda self: self.chat.state.open_interactions)
    @rule(data=st.data())
    def two_at_once(self, data: st.DataObject) -> None:
        self.acts = []
        for _ in range(2):
            self.draw_act(data)
        acts, self.acts = self.acts, None
        before = set(self.chat.state.runs)
        way = data.draw(st.sampled_from([1, -1]))
        done = self.chat.at_once([act.command for act in acts[::way]])[::way]
        names = [run_id for run_id in self.chat.state.runs if run_id not in before]
        COUNTS["commands"] += len(acts)
        COUNTS["refused"] += sum(isinstance(answer, Refusal) for answer in done)
        start, problems = self.model, []
        in_order = list(zip(acts, done, strict=True))
        for order in (in_order, in_order[::-1]):
            self.model = copy.deepcopy(start)
            self.model.tools, self.model.names = self.tools, list(names)
            problem = self.explain(order)
            if not problem:
                return
            problems.append(problem)
        raise AssertionError(f"no order of the two leads to {done}: {problems}")

    def explain(self, order: list[tuple[Act, object]]) -> str:
        """What the answers and the state do not agree on with the model in this order."""
        try:
            self.model.due(self.chat.now)
            self.model.release()
            for act, done in order:
                expected = expectation(act.model)
                self.model.release()
                if not act.agrees(done, expected):
                    return f"the model expects {expected}"
            self.compare()
        except (AssertionError, LookupError) as error:
            return repr(error)
        return ""

    def draw_act(self, data: st.DataObject) -> None:
        client_tool, approval = InteractionKind.CLIENT_TOOL, InteractionKind.APPROVAL
        kinds = ["settle"] * 4 * self.asked(client_tool) + ["decide"] * 3 * self.asked(approval)
        by = data.draw(PEOPLE)
        match data.draw(st.sampled_from([*kinds, "cancel", "cancel run"])):
            case "settle":
                self.settle(data, by, data.draw(st.booleans()), data.draw(st.booleans()))
            case "decide":
                self.decide(data, by, data.draw(st.booleans()), GrantScope.SESSION)
            case "cancel":
                questions = list(self.chat.state.interactions.values())
                question = self.pick_question(data, questions)
                run = self.pick_owner(data, question)
                self.both(
                    lambda: self.chat.cancel_interaction(question.id, run=run, by=by),
                    lambda: self.model.cancel_question(self.model.questions[question.id], run),
                )
            case _:
                run_id = data.draw(st.sampled_from(list(self.chat.state.runs)))
                self.both(
                    lambda: self.chat.cancel(run_id, by=by),
                    lambda: self.model.cancel(run_id, False),
                    answers=lambda acted_on: acted_on,
                )
