"""What is checked of a runner's word about the step that its run is in (R3, A1)."""

from __future__ import annotations

from broker_service.domain.decision import Decision
from broker_service.domain.model import ToolCall, ToolExecutor
from broker_service.domain.state import RunNode
from turngate_core.errors import Reason, Refusal


def violation(problem: str) -> Refusal:
    """The refusal of what breaks the protocol, in plain words."""
    return Refusal(Reason.PROTOCOL_VIOLATION, problem, {"problem": problem})


def step_call(decision: Decision, run: RunNode, call_id: str) -> ToolCall:
    """A call of the run's current step. Refuses with PROTOCOL_VIOLATION any other."""
    if call_id not in run.step_calls:
        raise violation(f"call {call_id} is not one of the run's current step")
    return decision.state.calls[call_id].call


def check_server_call(decision: Decision, run: RunNode, call_id: str) -> None:
    """Refuse a call of the step that no runner executes."""
    if step_call(decision, run, call_id).executor is not ToolExecutor.SERVER:
        raise violation(f"call {call_id} is no server call")


def check_sound(call: ToolCall) -> None:
    """T2: arguments that are no JSON go back to the model and wait for nobody."""
    if call.malformed_arguments:
        raise violation(f"call {call.call_id} has arguments that are no JSON: refuse it")
