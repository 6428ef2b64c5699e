"""The core and a naive model of its rules, side by side, as hypothesis drives them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine

from broker_service.domain.limits import Limits
from broker_service.domain.model import (
    ApprovalPolicy,
    ClientTool,
    ConflictPolicy,
    ExpiryPolicy,
    Interaction,
    InteractionKind,
    Permission,
    PolicyRule,
    SessionConfig,
)
from broker_service.domain.state import RunNode
from tests.unit.broker import naive_model
from tests.unit.broker.client_views import Client
from tests.unit.broker.conversation import Conversation
from turngate_core.errors import Refusal

T = TypeVar("T")

PEOPLE = st.sampled_from(["ann", "ben", "cai"])
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
KNOWN = frozenset({"pick_colour", "scan", "sign", "once_only", "forbidden"})
"""The client tools that the session's clients know, beside the built-in ones."""
STATES: set[object] = set()
"""The shapes of the states that were reached, for `make fuzz`."""
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


class SideBySide(RuleBasedStateMachine):
    """Core, model and a client that folds the log; they agree after each command."""

    def __init__(self) -> None:
        super().__init__()
        self.tools: dict[str, str] = {}
        self.chat = self.converse()
        self.model = naive_model.Model(self.tools, "once_only", "pick_colour")
        self.client = Client(KNOWN)
        COUNTS["conversations"] += 1

    def converse(self) -> Conversation:
        """The conversation that the commands are given to: one on the pure core."""
        return Conversation(CONFIG, limits=LIMITS)

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
            assert list(run.step_calls) == other.step, run.id
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
        assert held == [(other, model.branch_of[other]) for other in model.queue]
        assert bool(state.queue_pause) == model.paused
        self.client.check(self.chat.state, self.chat.log)
        STATES.add(self.shape())

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

    def active(self) -> list[RunNode]:
        """The runs that a runner may report about."""
        return [run for run in self.chat.state.runs.values() if run.active]

    def pick_run(self, data: st.DataObject, runs: list[RunNode]) -> RunNode:
        """One of them, drawn by its id: what hypothesis prints stays short."""
        return self.chat.run(data.draw(st.sampled_from([run.id for run in runs])))

    def pick_question(self, data: st.DataObject, questions: list[Interaction]) -> Interaction:
        question_id = data.draw(st.sampled_from([question.id for question in questions]))
        return self.chat.state.interactions[question_id]
