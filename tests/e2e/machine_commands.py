"""The commands of the state machine on the real service: what `Conversation` does on the core, done
by clients over gRPC and by a runner that the test tells what to do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from broker_service.domain import gate, reports
from broker_service.domain.approvals import Decided
from broker_service.domain.closing import Closed
from broker_service.domain.model import (
    GrantScope,
    HeldMessage,
    OnBusy,
    RunState,
)
from broker_service.domain.reports import Reported, RunnerEvent
from broker_service.domain.settlement import Settled
from broker_service.domain.starts import ToolVerdict
from broker_service.encoding import enum_to_proto, from_proto
from tests.e2e.machine_runner import Hand, gone, stopping
from tests.e2e.machine_session import FollowedConversation
from tests.unit.broker.conversation import ANN
from turngate.v1 import broker_pb2
from turngate.v1.message_pb2 import GrantScope as ProtoGrantScope
from turngate.v1.session_pb2 import OnBusy as ProtoOnBusy

LAST_WORDS = (reports.Parked, reports.Completed, reports.Failed, reports.Cancelled)


class ServiceConversation(FollowedConversation):
    """Every command is given by the client of who gives it, or done by the runner of its run."""

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
        return self._sent(
            lambda request_id: self._sessions[by].send(
                text,
                message_id=message_id,
                branch_node_id=branch,
                on_busy=ProtoOnBusy.ValueType(enum_to_proto(on_busy)),
                request_id=request_id,
            )
        )

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
        return self._sent(
            lambda request_id: self._sessions[by].send(
                text,
                message_id=message_id,
                edits_message_id=prompt_id,
                keep_running=keep_running,
                on_busy=ProtoOnBusy.ValueType(enum_to_proto(on_busy)),
                request_id=request_id,
            )
        )

    def _sent(self, call: Callable[[str], Awaitable[broker_pb2.SendMessageResponse]]) -> gate.Sent:
        sent = self._give(call)
        held = from_proto(HeldMessage, sent.held) if sent.HasField("held") else None
        return gate.Sent(sent.message_id, sent.run_id, held)

    def edit_held(self, message_id: str, text: str, *, by: str = ANN) -> HeldMessage:
        held = self._give(
            lambda request_id: self._sessions[by].update_held(
                message_id, text, request_id=request_id
            )
        )
        return from_proto(HeldMessage, held)

    def remove_held(self, message_id: str, *, by: str = ANN) -> None:
        self._give(
            lambda request_id: self._sessions[by].remove_held(message_id, request_id=request_id)
        )

    def resume_queue(self, *, by: str = ANN) -> str:
        return self._give(lambda request_id: self._sessions[by].resume_queue(request_id=request_id))

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
        assert not client, "the client of a person has a name of its own"
        ref, session = named(interaction_id, run, call), self._sessions[by]

        async def settle(request_id: str) -> broker_pb2.SettleToolCallResponse:
            if output is None:
                return await session.settle_error(
                    ref, error or "", tool_name=tool, client_ref=client_ref, request_id=request_id
                )
            return await session.settle_json(
                ref, output, tool_name=tool, client_ref=client_ref, request_id=request_id
            )

        settled = self._give(settle)
        return Settled(
            settled.interaction_id,
            settled.answer_id,
            settled.run_id,
            settled.fork_opened,
            settled.superseded_run_id,
            settled.acted_on_run_id,
            settled.message_id,
            settled.client_ref,
        )

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
        ref, session = named(interaction_id, run, call), self._sessions[by]

        async def decide(request_id: str) -> broker_pb2.DecideApprovalResponse:
            if not approve:
                return await session.deny(ref, reason=reason, request_id=request_id)
            return await session.approve(
                ref,
                reason=reason,
                grant_scope=ProtoGrantScope.ValueType(enum_to_proto(scope)),
                request_id=request_id,
            )

        decided = self._give(decide)
        return Decided(
            decided.interaction_id, decided.answer_id, decided.acted_on_run_id, decided.client_ref
        )

    def cancel(self, run_id: str, *, keep_held: bool = False, by: str = ANN) -> str:
        held = broker_pb2.HELD_MESSAGES_KEEP if keep_held else broker_pb2.HELD_MESSAGES_RELEASE
        cancelled = self._give(
            lambda request_id: self._sessions[by].cancel_run(
                run_id, held=held, request_id=request_id
            )
        )
        return cancelled.acted_on_run_id

    def cancel_interaction(
        self, interaction_id: str = "", *, run: str = "", call: str = "", by: str = ANN
    ) -> Closed:
        ref = named(interaction_id, run, call)
        closed = self._give(
            lambda request_id: self._sessions[by].cancel_interaction(ref, request_id=request_id)
        )
        return Closed(closed.interaction_id, closed.acted_on_run_id)

    def report_unhandled(
        self, interaction_id: str = "", *, run: str = "", call: str = "", by: str = ANN
    ) -> Closed:
        ref = named(interaction_id, run, call)
        closed = self._give(
            lambda request_id: self._sessions[by].report_unhandled(ref, request_id=request_id)
        )
        return Closed(closed.interaction_id, closed.acted_on_run_id)

    def regenerate(
        self, run_or_message_id: str, *, keep_running: bool = False, by: str = ANN
    ) -> tuple[str, str]:
        made = self._give(
            lambda request_id: self._sessions[by].regenerate(
                run_or_message_id, keep_running=keep_running, request_id=request_id
            )
        )
        return made.run.id, made.acted_on_run_id

    def retry(self, run_id: str, *, by: str = ANN) -> tuple[str, str]:
        made = self._give(
            lambda request_id: self._sessions[by].retry(run_id, request_id=request_id)
        )
        return made.run.id, made.acted_on_run_id

    def select(self, node_id: str, *, by: str = ANN) -> str:
        selected = self._give(
            lambda request_id: self._sessions[by].select_branch(node_id, request_id=request_id)
        )
        assert selected == self.state.selected
        return selected

    def revoke(self, grant_id: str, *, by: str = ANN) -> None:
        self._give(
            lambda request_id: self._sessions[by].revoke_grant(grant_id, request_id=request_id)
        )

    def wait(self, ms: int) -> None:
        self._pass(ms)
        self._and_compare(asyncio.sleep(0))

    # --- the runner ---

    def report(self, run_id: str, *events: RunnerEvent, attempt: int | None = None) -> Reported:
        assert attempt is None, "a told runner has the attempt that it was handed"
        self._pass(1_000)

        async def say() -> Reported:
            hand = await self._hand(run_id)
            verdicts = await hand.say(*events)
            ended = isinstance(events[-1], LAST_WORDS)
            if ended:
                hand.babble()
            proposed = [e for e in events if isinstance(e, reports.Proposed)]
            calls = [tool.call_id for event in proposed for tool in event.tools]
            return Reported(
                [ToolVerdict(call, said) for call, said in zip(calls, verdicts, strict=True)], ended
            )

        return self._and_compare(say())

    async def _hand(self, run_id: str) -> Hand:
        """The attempt that is at work on the run, or is to begin."""
        run = self.state.runs[run_id]
        begun = run.state is not RunState.PENDING
        return await self._at.runner.hand(run_id, run.attempt - begun)

    def lose(self, run_id: str, attempt: int | None = None) -> None:
        self._break_off(run_id, lambda hand: hand.leave(gone()))

    def hand_over(self, run_id: str) -> None:
        self._break_off(run_id, lambda hand: hand.leave(stopping()))

    def unplaced(self, run_id: str) -> None:
        """Instead of a day without a runner: one that breaks the protocol. The run fails, too."""
        self._break_off(run_id, lambda hand: hand.break_the_protocol())

    def end_of_grace(self, run_id: str) -> None:
        """Instead of the end of the grace: the runner obeys."""
        self.report(run_id, reports.Cancelled())

    def _break_off(self, run_id: str, how: Callable[[Hand], None]) -> None:
        self._pass(1_000)

        async def break_off() -> None:
            hand = await self._hand(run_id)
            how(hand)
            begun = (RunState.RUNNING, RunState.CANCELLING)

            def over() -> bool:
                run = self.state.runs[run_id]
                return run.attempt == hand.start.attempt and run.state not in begun

            await self._catch_up(over, f"the end of an attempt of {run_id}")

        self._and_compare(break_off())


def named(interaction_id: str, run: str, call: str) -> broker_pb2.InteractionRef:
    return broker_pb2.InteractionRef(interaction_id=interaction_id, run_id=run, call_id=call)
