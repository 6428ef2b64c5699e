"""The scripted agent: plays a script as if it were a model with tools (docs/scripted-agent.md)."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

from runner_service.agents.effects import EffectError, Effects, is_there, pause
from runner_service.agents.placeholders import PlaceholderError, Scope, fill_text, fill_value
from runner_service.agents.protocol import (
    AgentFailure,
    AgentProfile,
    AgentTool,
    Call,
    CallPiece,
    Declaration,
    GrantedCall,
    Output,
    ProviderCall,
    ReasoningPiece,
    StepEnd,
    StepPiece,
    TextPiece,
    ToolAbandoned,
    ToolError,
    ToolOutcome,
    Turn,
)
from runner_service.agents.protocol import ClientTool as OfferedClientTool
from runner_service.agents.protocol import ServerTool as OfferedServerTool
from runner_service.agents.script import Agent, ClientTool, ServerTool, Step, schema_text
from runner_service.agents.script import Turn as ScriptTurn
from runner_service.agents.script_loader import load_script
from runner_service.agents.script_parts import CallTool, Count, Fail, Part, Reasoning, Text
from runner_service.agents.script_position import find_position
from turngate.v1 import interaction_pb2, message_pb2, run_pb2, session_pb2
from turngate_core.json_text import DEFAULT_MAX_BYTES, JsonLimits, JsonValue, dump, parse
from turngate_core.number import Number

DEMO_SCRIPT = Path(__file__).parent / "demo.yaml"

# What an agent says where its script has no turn for it.
FALLBACK = ScriptTurn.model_validate({"steps": [{"parts": [{"text": "You said: ${user.text}"}]}]})
_NOTHING_MORE = Step.model_validate({"parts": [{"text": "(The script says nothing more here.)"}]})
_WORD = re.compile(r"\S+\s*|\s+")
_LIMITS = JsonLimits(max_bytes=DEFAULT_MAX_BYTES, max_depth=64)


class ScriptedAgent:
    """One agent of a script. It keeps no state: the history says where it is."""

    def __init__(self, name: str, script: Agent, data_dir: Path) -> None:
        self._name = name
        self._script = script
        self._effects = Effects(data_dir)
        self._profile = AgentProfile(
            name=name,
            description=script.description,
            history_window=script.history_window,
        )
        self._tools = tuple(_offered(name, script))

    @property
    def profile(self) -> AgentProfile:
        """What the script says that it is."""
        return self._profile

    async def tools(self, turn: Turn | None) -> Sequence[AgentTool]:
        """The tools of the script, always the same."""
        return self._tools

    async def next_step(self, turn: Turn) -> AsyncIterator[StepPiece]:
        """The pieces of the step that the history leads to."""
        position = find_position(self._script, turn, FALLBACK)
        step = position.step or _NOTHING_MORE
        try:
            for index, part in enumerate(step.parts):
                async for piece in self._play(part, str(index), position.scope, turn):
                    yield piece
        except (PlaceholderError, EffectError) as error:
            raise AgentFailure(
                run_pb2.RUN_FAILURE_REASON_AGENT_ERROR, f"script of {self._name}: {error}"
            ) from error
        yield _end(step)

    async def execute(self, call: GrantedCall) -> ToolOutcome:
        """The effects of a server tool, one after the other, then what it returns."""
        tool = self._script.tools[call.name]
        if not isinstance(tool, ServerTool):
            return ToolError(f"{call.name} is no server tool")
        scope = _tool_scope(call)
        cancelled = call.turn.cancelled
        try:
            for effect in tool.does:
                number = await self._effects.perform(effect, scope, cancelled)
                if isinstance(effect, Count):
                    scope = {**scope, "count": Number(str(number))}
                if cancelled.is_set() and tool.on_cancel == "stop":
                    raise ToolAbandoned
            return _returned(tool, scope)
        except (PlaceholderError, EffectError) as error:
            return ToolError(f"{call.name}: {error}")

    async def _play(
        self, part: Part, key: str, scope: Scope, turn: Turn
    ) -> AsyncIterator[StepPiece]:
        match part:
            case Text(text=template, pace=pace, repeat=repeat):
                text = fill_text(template, scope) * repeat
                async for word in _words(text, pace, turn):
                    yield TextPiece(word)
            case Reasoning(reasoning=template, pace=pace, repeat=repeat):
                text = fill_text(template, scope) * repeat
                async for word in _words(text, pace, turn):
                    yield ReasoningPiece(word)
            case CallTool():
                async for piece in _calls(part, key, scope, turn):
                    yield piece
            case Fail():
                self._fail(part, scope)
            case _:
                await self._effects.perform(part, scope, turn.cancelled)

    def _fail(self, part: Fail, scope: Scope) -> None:
        if part.unless_file is not None and is_there(self._effects.path(part.unless_file, scope)):
            return
        if part.if_file is not None and not is_there(self._effects.path(part.if_file, scope)):
            return
        if part.fail == "unexpected":
            raise RuntimeError("the script asks for an error that nobody expects")
        raise AgentFailure(
            run_pb2.RunFailureReason.Value(f"RUN_FAILURE_REASON_{part.fail.upper()}"),
            fill_text(part.message, scope),
            retry_after_ms=round(part.retry_after * 1000),
        )


def scripted_agents(path: Path, data_dir: Path) -> dict[str, ScriptedAgent]:
    """The agents of a script by name. Raises `ScriptError`."""
    script = load_script(path)
    return {name: ScriptedAgent(name, one, data_dir) for name, one in script.agents.items()}


def _offered(agent_name: str, script: Agent) -> Iterator[AgentTool]:
    for name, tool in script.tools.items():
        if isinstance(tool, ServerTool):
            yield OfferedServerTool(
                name=name,
                description=tool.description,
                input_schema_json=schema_text(tool.input_schema),
                origin=agent_name if tool.origin is None else tool.origin,
                permission=_permission(tool.permission),
                server_permission=_permission(tool.server_permission),
                read_only=tool.read_only,
                destructive=tool.destructive,
                idempotent=tool.idempotent,
                after_answers=tool.after_answers,
                grant_scope=message_pb2.GrantScope.Value(
                    f"GRANT_SCOPE_{(tool.grant_scope or 'unspecified').upper()}"
                ),
            )
        else:
            yield OfferedClientTool(
                name=name,
                description=tool.description,
                input_schema_json=schema_text(tool.input_schema),
                kind=tool.kind,
                params_json=schema_text(tool.params),
                origin=agent_name,
                declaration=_declaration(tool) if tool.declared else None,
            )


def _declaration(tool: ClientTool) -> Declaration:
    return Declaration(
        output_schema_json=schema_text(tool.output_schema),
        expires_after=tool.expires_after,
        on_expiry=interaction_pb2.ExpiryPolicy.Value(
            f"EXPIRY_POLICY_{(tool.on_expiry or 'unspecified').upper()}"
        ),
        conflict_policy=interaction_pb2.ConflictPolicy.Value(
            f"CONFLICT_POLICY_{(tool.conflict_policy or 'unspecified').upper()}"
        ),
    )


def _permission(name: str | None) -> session_pb2.Permission.ValueType:
    return session_pb2.Permission.Value(f"PERMISSION_{(name or 'unspecified').upper()}")


async def _words(text: str, pace: float, turn: Turn) -> AsyncIterator[str]:
    if not pace:
        yield text
        return
    for index, word in enumerate(_WORD.findall(text)):
        if index:
            await pause(pace, turn.cancelled)
        yield word


async def _calls(part: CallTool, key: str, scope: Scope, turn: Turn) -> AsyncIterator[StepPiece]:
    provider_call_id = fill_text(part.provider_call_id, scope)
    for number in range(1, part.times + 1):
        numbered = {**scope, "count": Number(str(number))}
        arguments = _arguments(part, numbered)
        if part.by_provider:
            yield ProviderCall(part.call, arguments, _provided(part, numbered), provider_call_id)
            continue
        call_key = f"{key}.{number}"
        if part.pace is not None:
            async for piece in _words(arguments, part.pace, turn):
                yield CallPiece(call_key, part.call, piece)
        yield Call(part.call, arguments, provider_call_id, call_key)


def _arguments(part: CallTool, scope: Scope) -> str:
    if part.arguments_text is not None:
        return part.arguments_text
    return "{}" if part.arguments is None else dump(fill_value(part.arguments, scope))


def _provided(part: CallTool, scope: Scope) -> ToolOutcome:
    if part.provider_error is not None:
        return ToolError(fill_text(part.provider_error, scope))
    return Output(dump(fill_value(part.provider_output, scope)))


def _end(step: Step) -> StepEnd:
    usage = step.usage
    waits = any(not call.by_provider for call in step.calls)
    return StepEnd(
        finish_reason=step.finish_reason or ("tool_calls" if waits else "stop"),
        usage=None if usage is None else message_pb2.Usage(**dict(usage)),
    )


def _tool_scope(call: GrantedCall) -> Scope:
    turn = call.turn
    history = turn.history[turn.turn_start :]
    parts = history[0].message.parts if history else ()
    text = "".join(part.text.text for part in parts if part.HasField("text"))
    arguments: JsonValue = parse(call.arguments, _LIMITS)
    return {
        "arguments": arguments,
        "call": {"id": call.call_id, "idempotency_key": call.idempotency_key},
        "session": {"id": turn.session_id},
        "run": {"id": turn.run_id, "attempt": Number(str(turn.attempt))},
        "user": {"text": text, "principal": turn.principal, "tenant": turn.tenant_id},
    }


def _returned(tool: ServerTool, scope: Scope) -> ToolOutcome:
    if tool.error is not None:
        return ToolError(fill_text(tool.error, scope))
    if tool.output_text is not None:
        return Output(tool.output_text)
    if tool.output_bytes is not None:
        return Output('"' + "x" * (tool.output_bytes - 2) + '"')
    return Output(dump(fill_value(tool.output, scope)))
