"""A request to OpenAI Chat Completions: the fields that the fake looks at.

Source: API reference, "Create chat completion", and the types of the client `openai`
(`openai.types.chat.completion_create_params`).
"""

from typing import Annotated, Any, Literal

from openai.types.chat.completion_create_params import (
    CompletionCreateParamsNonStreaming,
    CompletionCreateParamsStreaming,
)
from pydantic import BeforeValidator, Field

from tests.providers.openai_common import ToolName
from tests.providers.refusal import OpenPart, Part

PARAMETERS = frozenset(CompletionCreateParamsNonStreaming.__annotations__) | frozenset(
    CompletionCreateParamsStreaming.__annotations__
)


def _parts(content: object) -> object:
    # "content: string or array": a string is one text part.
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


class TextPart(Part):
    type: Literal["text"]
    text: str


class RefusalPart(Part):
    type: Literal["refusal"]
    refusal: str


class MediaPart(OpenPart):
    type: Literal["image_url", "input_audio", "file"]


TextParts = Annotated[list[TextPart], Field(min_length=1), BeforeValidator(_parts)]
UserParts = Annotated[
    list[Annotated[TextPart | MediaPart, Field(discriminator="type")]],
    Field(min_length=1),
    BeforeValidator(_parts),
]
AssistantParts = Annotated[
    list[Annotated[TextPart | RefusalPart, Field(discriminator="type")]], BeforeValidator(_parts)
]
Name = Annotated[str, Field(pattern=r"^[^\s<|\\/>]+$", max_length=64)]


class Function(Part):
    name: ToolName
    arguments: str


class ToolCallPart(Part):
    # The service takes ids of up to 40 characters here (`string_above_max_length`).
    id: Annotated[str, Field(max_length=40)]
    type: Literal["function"]
    function: Function


class SystemMessage(Part):
    role: Literal["system", "developer"]
    content: TextParts | None
    name: Name | None = None


class UserMessage(Part):
    role: Literal["user"]
    content: UserParts | None
    name: Name | None = None


class AssistantMessage(Part):
    role: Literal["assistant"]
    content: AssistantParts | None = None
    refusal: str | None = None
    name: Name | None = None
    tool_calls: Annotated[list[ToolCallPart], Field(min_length=1)] | None = None


class ToolMessage(Part):
    role: Literal["tool"]
    content: TextParts | None
    tool_call_id: str


Message = Annotated[
    SystemMessage | UserMessage | AssistantMessage | ToolMessage, Field(discriminator="role")
]


class FunctionDefinition(Part):
    name: ToolName
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class Tool(Part):
    type: Literal["function"]
    function: FunctionDefinition


class NamedFunction(Part):
    name: str


class NamedTool(Part):
    type: Literal["function"]
    function: NamedFunction


class StreamOptions(Part):
    include_usage: bool | None = None
    include_obfuscation: bool | None = None


class ChatRequest(Part):
    model: str
    messages: Annotated[list[Message], Field(min_length=1)]
    tools: Annotated[list[Tool], Field(min_length=1, max_length=128)] | None = None
    tool_choice: Literal["none", "auto", "required"] | NamedTool | None = None
    parallel_tool_calls: bool | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    n: Annotated[int, Field(ge=1)] | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    max_completion_tokens: Annotated[int, Field(ge=1)] | None = None
    temperature: int | float | None = None
    reasoning_effort: str | None = None
