"""A request to OpenAI Responses: the fields that the fake looks at.

Source: API reference, "Create a model response", and the types of the client `openai`
(`openai.types.responses.response_create_params`).
"""

from typing import Annotated, Any, Literal, TypeAlias

from openai.types.responses.response_create_params import (
    ResponseCreateParamsNonStreaming,
    ResponseCreateParamsStreaming,
)
from pydantic import BeforeValidator, Discriminator, Field, Tag

from tests.providers.openai_common import ToolName
from tests.providers.refusal import OpenPart, Part

PARAMETERS = frozenset(ResponseCreateParamsNonStreaming.__annotations__) | frozenset(
    ResponseCreateParamsStreaming.__annotations__
)

# The service takes at most 64 characters for ids of items and calls (`string_above_max_length`).
ItemId = Annotated[str, Field(max_length=64)]
CallId = Annotated[str, Field(min_length=1, max_length=64)]
Status = Literal["in_progress", "completed", "incomplete"]


def _input_parts(content: object) -> object:
    return [{"type": "input_text", "text": content}] if isinstance(content, str) else content


def _output_parts(content: object) -> object:
    return [{"type": "output_text", "text": content}] if isinstance(content, str) else content


def _as_items(given: object) -> object:
    # "A text input to the model, equivalent to a text input with the `user` role."
    return [{"role": "user", "content": given}] if isinstance(given, str) else given


class InputText(Part):
    type: Literal["input_text"]
    text: str


class InputMedia(OpenPart):
    type: Literal["input_image", "input_file"]


class OutputText(Part):
    type: Literal["output_text"]
    text: str
    annotations: list[dict[str, Any]] | None = None
    logprobs: list[dict[str, Any]] | None = None


class RefusalPart(Part):
    type: Literal["refusal"]
    refusal: str


InputParts = Annotated[
    list[Annotated[InputText | InputMedia, Field(discriminator="type")]],
    BeforeValidator(_input_parts),
]


class InputMessage(Part):
    type: Literal["message"] | None = None
    role: Literal["user", "system", "developer"]
    content: InputParts
    id: ItemId | None = None
    status: Status | None = None


class AssistantMessage(Part):
    type: Literal["message"] | None = None
    role: Literal["assistant"]
    content: Annotated[
        list[Annotated[OutputText | RefusalPart, Field(discriminator="type")]],
        BeforeValidator(_output_parts),
    ]
    id: ItemId | None = None
    status: Status | None = None
    phase: Literal["commentary", "final_answer"] | None = None


class FunctionCall(Part):
    type: Literal["function_call"]
    call_id: CallId
    name: ToolName
    arguments: str
    id: ItemId | None = None
    status: Status | None = None


class FunctionCallOutput(Part):
    type: Literal["function_call_output"]
    call_id: CallId
    output: InputParts
    id: ItemId | None = None
    status: Status | None = None


class SummaryText(Part):
    type: Literal["summary_text"]
    text: str


class ReasoningText(Part):
    type: Literal["reasoning_text"]
    text: str


class ReasoningItem(Part):
    type: Literal["reasoning"]
    id: ItemId
    summary: list[SummaryText]
    content: list[ReasoningText] | None = None
    encrypted_content: str | None = None
    status: Status | None = None


class ItemReference(Part):
    type: Literal["item_reference"]
    id: ItemId


def _kind(item: object) -> str:
    fields = item if isinstance(item, dict) else dict(vars(item))
    kind = fields.get("type") or "message"
    return "assistant" if kind == "message" and fields.get("role") == "assistant" else str(kind)


InputItem: TypeAlias = Annotated[
    Annotated[InputMessage, Tag("message")]
    | Annotated[AssistantMessage, Tag("assistant")]
    | Annotated[FunctionCall, Tag("function_call")]
    | Annotated[FunctionCallOutput, Tag("function_call_output")]
    | Annotated[ReasoningItem, Tag("reasoning")]
    | Annotated[ItemReference, Tag("item_reference")],
    Discriminator(_kind),
]


class FunctionTool(Part):
    type: Literal["function"]
    name: ToolName
    parameters: dict[str, Any] | None
    strict: bool | None = None
    description: str | None = None
    defer_loading: bool | None = None


class NamedTool(Part):
    type: Literal["function"]
    name: str


class ReasoningOptions(Part):
    effort: str | None = None
    summary: Literal["auto", "concise", "detailed"] | None = None
    generate_summary: str | None = None
    context: str | None = None


class StreamOptions(Part):
    include_obfuscation: bool | None = None


Includable = Literal[
    "file_search_call.results",
    "web_search_call.results",
    "web_search_call.action.sources",
    "message.input_image.image_url",
    "computer_call_output.output.image_url",
    "code_interpreter_call.outputs",
    "reasoning.encrypted_content",
    "message.output_text.logprobs",
]


class ResponsesRequest(Part):
    model: str
    input: Annotated[list[InputItem], BeforeValidator(_as_items), Field(default_factory=list)]
    instructions: str | None = None
    tools: list[FunctionTool] | None = None
    tool_choice: Literal["none", "auto", "required"] | NamedTool | None = None
    parallel_tool_calls: bool | None = None
    include: list[Includable] | None = None
    store: bool | None = None
    previous_response_id: str | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    reasoning: ReasoningOptions | None = None
    max_output_tokens: Annotated[int, Field(ge=16)] | None = None
    temperature: int | float | None = None
