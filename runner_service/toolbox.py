"""What is offered in a run, and which calls go back to the model at once (T2, R4)."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from functools import lru_cache

from runner_service.agents.protocol import AgentTool, ClientTool, ServerTool
from turngate.v1 import message_pb2, runner_pb2, session_pb2
from turngate_core import connection, forms
from turngate_core.json_text import JsonTextError, JsonValue, parse
from turngate_core.schema import Schema, SchemaError

REQUEST_INPUT_SCHEMA = (
    '{"type":"object","properties":{"message":{"type":"string"},'
    '"requestedSchema":{"type":"object"}},"required":["message","requestedSchema"]}'
)
REQUEST_CONNECTION_SCHEMA = (
    '{"type":"object","properties":{"integration":{"type":"string","minLength":1}},'
    '"required":["integration"]}'
)

BUILT_IN = (
    ClientTool(
        forms.TOOL_NAME,
        "Asks the user to fill in a form: a message and a flat JSON Schema.",
        REQUEST_INPUT_SCHEMA,
        forms.KIND,
        origin="turngate",
    ),
    ClientTool(
        connection.TOOL_NAME,
        "Asks the user to connect an account of another service.",
        REQUEST_CONNECTION_SCHEMA,
        connection.KIND,
        origin="turngate",
    ),
)


def offered_tools(
    own: Iterable[AgentTool], session_tools: Iterable[session_pb2.ClientTool]
) -> dict[str, AgentTool]:
    """All tools of a run by name: an agent's own tool wins over a session's of the same name.

    The other way round a client could take the place of a server tool.
    """
    tools: dict[str, AgentTool] = {
        tool.name: ClientTool(
            tool.name,
            tool.description,
            tool.input_schema_json,
            tool.kind,
            tool.params_json,
            origin="session",
        )
        for tool in session_tools
    }
    tools.update((tool.name, tool) for tool in own)
    tools.update((tool.name, tool) for tool in BUILT_IN)
    return tools


def refusal(
    call: message_pb2.ToolCall, tool: AgentTool | None, tools: Mapping[str, AgentTool]
) -> str | None:
    """Why a call goes back to the model, as a text that helps it; `None` if the call is fine.

    A form of an unsupported shape is fine here: it becomes an interaction, and the broker decides
    (D2).
    """
    name = call.name
    if tool is None or call.executor != executor_of(tool):
        return _not_offered(name, tools)
    try:
        value: JsonValue = parse(call.malformed_arguments or call.arguments_json or "{}")
    except JsonTextError as error:
        return f"The arguments of {name} are no JSON text that is accepted: {error}."
    if name == forms.TOOL_NAME:
        return None
    if not isinstance(value, dict):
        return f"The arguments of {name} must be a JSON object."
    if not tool.input_schema_json:
        return None
    violations = _violations(tool.input_schema_json, value)
    if not violations:
        return None
    return f"The arguments of {name} do not fit its schema: {'; '.join(violations)}."


def executor_of(tool: AgentTool | None) -> message_pb2.ToolExecutor.ValueType:
    """Who executes a call of the tool. A tool that was not offered nobody does: it is refused."""
    if isinstance(tool, ClientTool):
        return message_pb2.TOOL_EXECUTOR_CLIENT
    return message_pb2.TOOL_EXECUTOR_SERVER


def hint_of(tool: AgentTool | None, call: message_pb2.ToolCall) -> runner_pb2.RunnerRenderHint:
    """How clients may show a call of a client tool (H1)."""
    hint = message_pb2.RenderHint(tool_call_id=call.call_id, kind=call.name)
    if isinstance(tool, ClientTool):
        hint.kind = tool.kind or call.name
        hint.params_json = tool.params_json
    return runner_pb2.RunnerRenderHint(hint=hint, declaration=declaration_of(tool))


def declaration_of(tool: AgentTool | None) -> session_pb2.ClientTool | None:
    """What the broker is told about a client tool that the agent declares (D1), else `None`."""
    if not isinstance(tool, ClientTool) or tool.declaration is None:
        return None
    said = tool.declaration
    declaration = session_pb2.ClientTool(
        output_schema_json=said.output_schema_json,
        on_expiry=said.on_expiry,
        conflict_policy=said.conflict_policy,
    )
    if said.expires_after is not None:
        declaration.expires_after.FromMilliseconds(round(said.expires_after * 1000))
    return declaration


def proposal_of(tool: ServerTool, call_id: str = "") -> runner_pb2.ProposedTool:
    """What the broker is told about a server tool that wants to start (A1)."""
    return runner_pb2.ProposedTool(
        call_id=call_id,
        tool_permission=tool.permission,
        server_permission=tool.server_permission,
        read_only=tool.read_only,
        destructive=tool.destructive,
        idempotent=tool.idempotent,
        after_answers=tool.after_answers,
        grant_scope=tool.grant_scope,
    )


def _violations(schema_json: str, value: JsonValue) -> list[str]:
    schema = _compiled(schema_json)
    if schema is None:
        return []
    found = schema.violations_of_value(value)
    return [f"{violation.path or 'the whole'}: {violation.message}" for violation in found]


@lru_cache(maxsize=256)
def _compiled(schema_json: str) -> Schema | None:
    try:
        return Schema(schema_json)
    except SchemaError:
        # Checked where it was declared; one that is no schema cannot refuse anything.
        return None


def _not_offered(name: str, tools: Mapping[str, AgentTool]) -> str:
    close = difflib.get_close_matches(name[:128], tools, n=1)
    hint = f" Did you mean {close[0]}?" if close else ""
    known = ", ".join(sorted(tools)[:50])
    return f"There is no tool {name[:128]!r}.{hint} The tools are: {known}."
