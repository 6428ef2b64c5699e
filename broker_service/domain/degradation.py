"""Nothing hangs silently: calls that no client can show (D1)."""

from __future__ import annotations

from broker_service.domain.closing import Closed, close_in_place
from broker_service.domain.decision import Decision
from broker_service.domain.events import NoticeAdded
from broker_service.domain.interactions import (
    InteractionRef,
    addressed_run,
    find_interaction,
    refuse_kind,
)
from broker_service.domain.model import (
    Interaction,
    InteractionKind,
    InteractionNotice,
    InteractionState,
    ResultKind,
    ToolResult,
)
from turngate_core.degradation import UnhandledOutcome, not_handled_output, unhandled_outcome


def report_unhandled(decision: Decision, ref: InteractionRef) -> Closed:
    """A client cannot show a call (D1). An undeclared one is settled once per tool and turn, then
    it gets a notice; a declared one stays open: another client can do it.
    """
    state = decision.state
    interaction = find_interaction(state, ref)
    refuse_kind(interaction, InteractionKind.CLIENT_TOOL)
    if interaction.state is not InteractionState.OPEN:
        return Closed(interaction.id, state.successor(interaction.run_id))  # nothing to report
    acted_on = addressed_run(state, state.waiting_runs(interaction.id), ref.run_id).id
    degrade(decision, interaction)
    return Closed(interaction.id, acted_on)


def degrade(decision: Decision, interaction: Interaction) -> None:
    """Do about an open call what D1 says: settle it, let it be, or ask people to look at it."""
    state = decision.state
    name = interaction.tool_name
    turn = state.waiting_runs(interaction.id)[0]
    outcome = unhandled_outcome(
        name,
        declared_tools=frozenset({name} if interaction.declared else ()),
        earlier_not_handled=int(name in turn.not_handled_tools),
    )
    if outcome is UnhandledOutcome.NOT_HANDLED:
        _settle(decision, interaction)
    elif outcome is UnhandledOutcome.OPEN_WITH_NOTICE and interaction.notice is None:
        decision.emit(NoticeAdded(interaction.id, InteractionNotice.UNHANDLED))


def _settle(decision: Decision, interaction: Interaction) -> None:
    """The broker settles the call in place with a non-error output (D1)."""
    result = ToolResult(
        call_id=interaction.call_id,
        output_json=not_handled_output(interaction.tool_name),
        kind=ResultKind.NOT_HANDLED,
        interaction_id=interaction.id,
        create_time=decision.now,
    )
    close_in_place(decision, interaction, InteractionState.NOT_HANDLED, result)
