"""A request to Anthropic Messages: the fields that the fake looks at.

Source: API reference, "Create a Message", and the types of the client `anthropic`
(`anthropic.types.message_create_params`, `anthropic.types.beta.message_create_params`). The service
names places as pydantic does, so its words come for nothing.
"""

from typing import Annotated, Any, Literal

from anthropic.types.beta.message_create_params import (
    MessageCreateParamsNonStreaming,
    MessageCreateParamsStreaming,
)
from pydantic import BeforeValidator, Discriminator, Field, Tag
from pydantic_core import ErrorDetails

from tests.providers.refusal import OpenPart, Part, Refused

# What the client sends as a header, not in the body.
_HEADERS = {"betas", "user_profile_id", "workspace_id"}
PARAMETERS = (
    frozenset(MessageCreateParamsNonStreaming.__annotations__)
    | frozenset(MessageCreateParamsStreaming.__annotations__)
) - _HEADERS

ToolUseId = Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]+$")]
# "Define tools": the name must match ^[a-zA-Z0-9_-]{1,128}$.
ToolName = Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]{1,128}$")]


def _blocks(content: object) -> object:
    # "Using a `string` for `content` is shorthand for an array of one content block of type
    # "text"."
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


class CacheControl(Part):
    type: Literal["ephemeral"]
    ttl: Literal["5m", "1h"] | None = None


class TextBlock(Part):
    type: Literal["text"]
    text: str
    cache_control: CacheControl | None = None
    citations: list[dict[str, Any]] | None = None


class MediaBlock(OpenPart):
    type: Literal["image", "document", "search_result"]
    cache_control: CacheControl | None = None


ResultBlock = Annotated[TextBlock | MediaBlock, Field(discriminator="type")]


class ThinkingBlock(Part):
    type: Literal["thinking"]
    thinking: str
    signature: str


class RedactedThinkingBlock(Part):
    type: Literal["redacted_thinking"]
    data: str


class ToolUseBlock(Part):
    type: Literal["tool_use"]
    id: ToolUseId
    name: ToolName
    input: dict[str, Any]
    cache_control: CacheControl | None = None
    caller: dict[str, Any] | None = None


class ToolResultBlock(Part):
    type: Literal["tool_result"]
    tool_use_id: ToolUseId
    content: Annotated[list[ResultBlock], BeforeValidator(_blocks)] | None = None
    is_error: bool | None = None
    cache_control: CacheControl | None = None


Block = Annotated[
    TextBlock | MediaBlock | ThinkingBlock | RedactedThinkingBlock | ToolUseBlock | ToolResultBlock,
    Field(discriminator="type"),
]


class Message(Part):
    role: Literal["user", "assistant", "system"]
    content: Annotated[list[Block], BeforeValidator(_blocks)]


class InputSchema(OpenPart):
    type: Literal["object"]


class CustomTool(Part):
    type: Literal["custom"] | None = None
    name: ToolName
    description: str | None = None
    input_schema: InputSchema
    cache_control: CacheControl | None = None
    strict: bool | None = None
    eager_input_streaming: bool | None = None
    defer_loading: bool | None = None
    input_examples: list[dict[str, Any]] | None = None
    allowed_callers: list[str] | None = None


class ServerTool(OpenPart):
    """A tool that Anthropic runs; its type has a date."""

    type: Annotated[str, Field(pattern=r"^[a-z_]+_\d{8}$")]
    name: str
    cache_control: CacheControl | None = None


def _kind_of_tool(tool: object) -> str:
    kind = tool.get("type") if isinstance(tool, dict) else getattr(tool, "type", None)
    return "custom" if kind in (None, "custom") else "server"


Tool = Annotated[
    Annotated[CustomTool, Tag("custom")] | Annotated[ServerTool, Tag("server")],
    Discriminator(_kind_of_tool),
]


class ToolChoice(Part):
    type: Literal["auto", "any", "none"]
    disable_parallel_tool_use: bool | None = None


class NamedToolChoice(Part):
    type: Literal["tool"]
    name: str
    disable_parallel_tool_use: bool | None = None


class BlockBinding(Part):
    prefix_mismatch_behavior: Literal["error", "drop_block"] | None = None


class EnabledThinking(Part):
    type: Literal["enabled"]
    # "Must be ≥1024 and less than `max_tokens`."
    budget_tokens: Annotated[int, Field(ge=1024)]
    display: Literal["summarized", "omitted"] | None = None


class AdaptiveThinking(Part):
    type: Literal["adaptive"]
    display: Literal["summarized", "omitted", "updates"] | None = None
    block_binding: BlockBinding | None = None


class DisabledThinking(Part):
    type: Literal["disabled"]


Thinking = Annotated[
    EnabledThinking | AdaptiveThinking | DisabledThinking, Field(discriminator="type")
]


class MessagesRequest(Part):
    model: str
    max_tokens: Annotated[int, Field(ge=0)]
    messages: list[Message]
    system: Annotated[list[TextBlock], BeforeValidator(_blocks)] | None = None
    tools: list[Tool] | None = None
    tool_choice: Annotated[ToolChoice | NamedToolChoice, Field(discriminator="type")] | None = None
    thinking: Thinking | None = None
    stream: bool | None = None
    # The client has these no more; models that are older than it still take them.
    temperature: int | float | None = None
    top_p: int | float | None = None
    top_k: int | None = None
    cache_control: CacheControl | None = None


def fault(error: ErrorDetails) -> Refused:
    """A fault of the request's form in Anthropic's words: place, then what pydantic says."""
    place = ".".join(str(step) for step in error["loc"])
    return Refused(400, f"{place}: {error['msg']}")
