"""One granted call of a server tool, run by Pydantic AI's own graph (A1, S1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from pydantic_ai import CallToolsNode, ModelRequestNode, RunContext, UserPromptNode
from pydantic_ai.exceptions import UnexpectedModelBehavior
from pydantic_ai.messages import (
    BinaryContent,
    FileUrl,
    ModelMessage,
    ModelRequestPart,
    ModelResponse,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
    tool_return_ta,
)
from pydantic_ai.tools import ToolApproved

from runner_service.agents.protocol import (
    AgentFailure,
    GrantedCall,
    Output,
    ServerTool,
    ToolError,
    ToolOutcome,
    Turn,
)
from runner_service.pairing import calls_of
from runner_service.pydantic_ai.runs import Runs
from runner_service.pydantic_ai.tools import METADATA_KEY
from turngate.v1 import message_pb2, run_pb2, session_pb2

_Deps = TypeVar("_Deps")

_FAILED = frozenset({message_pb2.RESULT_KIND_TOOL, message_pb2.RESULT_KIND_CALL_REFUSED})
_DEFERS = (
    "The tool asks for an approval or an answer while it runs, which cannot be given here. It was "
    "not executed."
)


async def run_call(
    runs: Runs[_Deps], call: GrantedCall, messages: Sequence[ModelMessage], deps: _Deps
) -> ToolOutcome:
    """Run it with all that surrounds a tool there: validation, context, hooks, its time-out.

    `messages`: what the model had been shown before it made the call. A `ModelRetry` is an error
    result with its text. Raises `AgentFailure` when a tool wants to be called again more often than
    it allows, and whatever the tool raises.
    """
    made = ToolCallPart(call.name, call.arguments, call.call_id)
    # The call stands alone in its answer: its neighbours have grants and starts of their own.
    begun = [*messages, ModelResponse(parts=[made])]
    key = call.idempotency_key
    async with runs.open(begun, deps, call.turn, idempotency_key=key) as run:
        node = run.next_node
        if isinstance(node, UserPromptNode):
            node = await run.next(node)
        if not isinstance(node, CallToolsNode):
            return ToolError(_DEFERS)
        if _was_asked_for(call):
            node.tool_call_results = {call.call_id: ToolApproved()}
        manager = run.ctx.deps.tool_manager
        if manager.ctx is not None:
            manager.ctx.retries[call.name] = failures_before(call.turn, call.name)
        try:
            node = await run.next(node)
        except UnexpectedModelBehavior as error:
            raise AgentFailure(
                run_pb2.RUN_FAILURE_REASON_AGENT_ERROR,
                f"the tool {call.name!r} failed more often in a row than it may",
            ) from error
        if not isinstance(node, ModelRequestNode):
            return ToolError(_DEFERS)
        return _outcome(node.request.parts)


def idempotency_key(context: RunContext[_Deps]) -> str:
    """The key by which a tool recognises a repeated start (S1): the same for the same call."""
    told = (context.metadata or {}).get(METADATA_KEY)
    key = told.get("idempotency_key") if isinstance(told, dict) else None
    if not isinstance(key, str):
        raise LookupError("no call that a broker has granted")
    return key


def failures_before(turn: Turn, name: str) -> int:
    """In how many steps of this turn, one after the other, calls of the tool came to an error."""
    count = 0
    for paired in turn.history[turn.turn_start :]:
        kinds = [
            result.WhichOneof("outcome") == "error_text" and result.kind in _FAILED
            for call, result in zip(calls_of(paired.message), paired.results, strict=True)
            if call.name == name
        ]
        if kinds:
            count = count + 1 if any(kinds) else 0
    return count


def _was_asked_for(call: GrantedCall) -> bool:
    tool = call.turn.tools.get(call.name)
    return isinstance(tool, ServerTool) and tool.permission == session_pb2.PERMISSION_ASK


def _outcome(parts: Sequence[ModelRequestPart]) -> ToolOutcome:
    returned = next((part for part in parts if isinstance(part, ToolReturnPart)), None)
    if returned is None:
        return ToolError(_DEFERS)
    if returned.outcome != "success":
        return ToolError(returned.model_response_str(wrap_if_error=False))
    beside = [part.content for part in parts if isinstance(part, UserPromptPart)]
    value = _storable(returned.content)
    if beside:
        # What Pydantic AI would say to the model as the user's words stays with the result.
        value = {"return_value": value, "content": [_storable(content) for content in beside]}
    return Output(tool_return_ta.dump_json(value, by_alias=True).decode())


def _storable(value: object) -> object:
    """Contents of files do not travel through the services: the model is told of the file."""
    match value:
        case BinaryContent():
            return f"[a file of type {value.media_type}, {len(value.data)} bytes; it is not kept]"
        case FileUrl():
            return value.url
        case list() | tuple():
            return [_storable(one) for one in value]
        case dict():
            return {name: _storable(one) for name, one in value.items()}
        case _:
            return value
