"""The tools of an agent of Pydantic AI, and what the broker decides their starts by (A1, R4).

What Pydantic AI has no word for stands in a tool's metadata, under the key `turngate`, see
`ServerTraits` and `ClientTraits`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import (
    AbstractToolset,
    ApprovalRequiredToolset,
    CombinedToolset,
    WrapperToolset,
)
from pydantic_ai.toolsets.abstract import AGENT_TOOLSET_ID, ToolsetTool

from runner_service.agents.protocol import (
    AgentFailure,
    AgentTool,
    ClientTool,
    Declaration,
    ServerTool,
)
from runner_service.toolbox import BUILT_IN
from turngate.v1 import interaction_pb2, message_pb2, run_pb2, session_pb2
from turngate_core.json_text import JsonTextError, check
from turngate_core.policy import effective_destructive, effective_read_only

METADATA_KEY = "turngate"

_Deps = TypeVar("_Deps")
_Traits = TypeVar("_Traits", bound=BaseModel)
_Permission = Literal["allow", "ask", "deny"]


class ServerTraits(BaseModel):
    """What `metadata={"turngate": {...}}` may say of a tool that the runner executes.

    The words are those of `ServerTool`.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    permission: _Permission | None = None
    server_permission: _Permission | None = None
    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool = False
    after_answers: bool | None = None
    grant_scope: Literal["session", "once"] | None = None
    origin: str | None = None


class ClientTraits(BaseModel):
    """What `metadata={"turngate": {...}}` may say of an external tool.

    `declared`: false if it is not known whether any client can do the tool (D1). The words else are
    those of `ClientTool` and `Declaration`; `params` and `output_schema` are JSON as Python values.
    """

    model_config = ConfigDict(extra="forbid")

    kind: str = ""
    params: dict[str, object] | None = None
    origin: str | None = None
    declared: bool = True
    output_schema: dict[str, object] | None = None
    expires_after: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    on_expiry: Literal["fail_call", "cancel_run"] | None = None
    conflict_policy: Literal["fork", "first_wins"] | None = None


def agent_tools(tools: Iterable[ToolsetTool[_Deps]], agent_name: str) -> list[AgentTool]:
    """What these tools are to the runner; output tools are none. Raises `AgentFailure`."""
    built_in = {tool.name for tool in BUILT_IN}
    listed: list[AgentTool] = []
    for tool in tools:
        definition = tool.tool_def
        if definition.kind == "output":
            continue
        if definition.name in built_in:
            raise _unusable(definition, "this name is that of a built-in tool")
        if definition.kind == "external":
            listed.append(_client_tool(definition, agent_name))
        else:
            listed.append(_server_tool(tool, agent_name))
    return listed


def external_tools(tools: Iterable[AgentTool]) -> list[ToolDefinition]:
    """Client tools that are not the agent's own, as they are offered to the model."""
    return [
        ToolDefinition(
            name=tool.name,
            description=tool.description or None,
            parameters_json_schema=_schema_of(tool),
        )
        for tool in tools
        if isinstance(tool, ClientTool) and tool.origin in _NOT_THE_AGENTS
    ]


# As `offered_tools` calls them.
_NOT_THE_AGENTS = frozenset({"session", *(tool.origin for tool in BUILT_IN)})


def _schema_of(tool: ClientTool) -> dict[str, object]:
    if tool.input_schema_json:
        schema = json.loads(tool.input_schema_json)
        # Providers want an object with properties; `true` and the like are schemas, too.
        if isinstance(schema, dict):
            return {"type": "object", "properties": {}, **schema}
    return {"type": "object", "properties": {}}


def _server_tool(tool: ToolsetTool[_Deps], agent_name: str) -> ServerTool:
    definition = tool.tool_def
    traits = _traits(ServerTraits, definition)
    hints = _hints(definition)
    asks = definition.kind == "unapproved" or _asks(tool)
    return ServerTool(
        name=definition.name,
        description=definition.description or "",
        input_schema_json=_json(definition.parameters_json_schema, definition),
        origin=traits.origin or _origin(tool, agent_name),
        permission=_permission("deny" if traits.permission == "deny" else "ask")
        if asks
        else _permission(traits.permission),
        server_permission=_permission(traits.server_permission),
        read_only=effective_read_only(
            declared=traits.read_only, remote_hint=hints.get("readOnlyHint")
        ),
        destructive=effective_destructive(
            declared=traits.destructive, remote_hint=hints.get("destructiveHint")
        ),
        # A server's word that a repetition is harmless would loosen S1: only the agent's counts.
        idempotent=traits.idempotent and hints.get("idempotentHint") is not False,
        after_answers=traits.after_answers,
        grant_scope=message_pb2.GrantScope.Value(
            f"GRANT_SCOPE_{(traits.grant_scope or 'unspecified').upper()}"
        ),
    )


def _client_tool(definition: ToolDefinition, agent_name: str) -> ClientTool:
    traits = _traits(ClientTraits, definition)
    output_schema = traits.output_schema or definition.return_schema
    declaration = Declaration(
        output_schema_json=_json(output_schema, definition) if output_schema else "",
        expires_after=traits.expires_after,
        on_expiry=interaction_pb2.ExpiryPolicy.Value(
            f"EXPIRY_POLICY_{(traits.on_expiry or 'unspecified').upper()}"
        ),
        conflict_policy=interaction_pb2.ConflictPolicy.Value(
            f"CONFLICT_POLICY_{(traits.conflict_policy or 'unspecified').upper()}"
        ),
    )
    return ClientTool(
        name=definition.name,
        description=definition.description or "",
        input_schema_json=_json(definition.parameters_json_schema, definition),
        kind=traits.kind,
        params_json=_json(traits.params, definition) if traits.params else "",
        origin=traits.origin or _toolset_id(definition) or agent_name,
        declaration=declaration if traits.declared else None,
    )


def _traits(kind: type[_Traits], definition: ToolDefinition) -> _Traits:
    given = (definition.metadata or {}).get(METADATA_KEY, {})
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(str(step) for step in (METADATA_KEY, *problem["loc"]))
        raise _unusable(definition, f"metadata {place}: {problem['msg']}") from error


def _hints(definition: ToolDefinition) -> Mapping[str, bool]:
    """What a remote tool server says of a tool; empty for any other."""
    given = (definition.metadata or {}).get("annotations")
    if not isinstance(given, dict):
        return {}
    return {str(name): value for name, value in given.items() if isinstance(value, bool)}


def _asks(tool: ToolsetTool[_Deps]) -> bool:
    """Whether a toolset on the way to the tool asks for approvals.

    It may ask for some calls only, which shows when it runs. Then it is too late to ask, so all
    calls of such a tool are asked for.
    """
    return _asks_within(getattr(tool, "source_toolset", tool.toolset), tool.tool_def.name)


def _asks_within(toolset: AbstractToolset[_Deps], name: str) -> bool:
    if isinstance(toolset, ApprovalRequiredToolset):
        return True
    if isinstance(toolset, WrapperToolset):
        return _asks_within(toolset.wrapped, name)
    if isinstance(toolset, CombinedToolset):
        return any(_asks_within(one, name) for one in toolset.toolsets)
    return False


def _origin(tool: ToolsetTool[_Deps], agent_name: str) -> str:
    toolset_id = tool.toolset.id
    if toolset_id == AGENT_TOOLSET_ID:
        toolset_id = None
    return _toolset_id(tool.tool_def) or toolset_id or agent_name


def _toolset_id(definition: ToolDefinition) -> str:
    found = definition.toolset_id
    return "" if found is None or found == AGENT_TOOLSET_ID else found


def _permission(name: str | None) -> session_pb2.Permission.ValueType:
    return session_pb2.Permission.Value(f"PERMISSION_{(name or 'unspecified').upper()}")


def _json(value: object, definition: ToolDefinition) -> str:
    text = json.dumps(value, ensure_ascii=False)
    try:
        check(text)
    except JsonTextError as error:
        raise _unusable(definition, f"a schema or its params: {error}") from error
    return text


def _unusable(definition: ToolDefinition, problem: str) -> AgentFailure:
    return AgentFailure(
        run_pb2.RUN_FAILURE_REASON_AGENT_ERROR, f"tool {definition.name!r}: {problem}"
    )
