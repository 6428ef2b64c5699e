"""What OpenAI Responses refuses beyond the form of a request.

Source: guides "Function calling", "Conversation state" and "Reasoning models" ("Keeping reasoning
items in context"). Messages and places are those of the service, as users report them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.providers.openai_common import check_schema, check_tool_names, model_named
from tests.providers.openai_responses_request import (
    AssistantMessage,
    FunctionCall,
    FunctionCallOutput,
    InputItem,
    InputMessage,
    ItemReference,
    NamedTool,
    ReasoningItem,
    ResponsesRequest,
)
from tests.providers.refusal import Refused
from tests.providers.signatures import opened

_PREFIXES: dict[type[object], str] = {
    InputMessage: "msg",
    AssistantMessage: "msg",
    FunctionCall: "fc",
    FunctionCallOutput: "fc",
    ReasoningItem: "rs",
}


@dataclass(slots=True)
class Memory:
    """What the endpoint knows of the items that it gave out."""

    needs: dict[str, str] = field(default_factory=dict)
    """By the id of an item, the reasoning that it came from."""
    follower: dict[str, FunctionCall | AssistantMessage | ReasoningItem | None] = field(
        default_factory=dict
    )
    """By the id of a reasoning item, what came directly behind it."""
    stored: dict[str, InputItem] = field(default_factory=dict)
    """Items of responses that were stored, by id."""
    responses: dict[str, list[InputItem]] = field(default_factory=dict)
    """The conversation up to a stored response, by its id."""


def check(request: ResponsesRequest, memory: Memory) -> list[InputItem]:
    """The whole conversation of the request. Raises `Refused` for the first rule that it breaks."""
    _check_model(request)
    _check_tools(request)
    for index, item in enumerate(request.input):
        _check_id(index, item)
    conversation = [*_previous(request, memory), *(_resolved(i, memory) for i in request.input)]
    if not conversation:
        raise Refused(
            400,
            "Missing required parameter: 'input'.",
            param="input",
            code="missing_required_parameter",
        )
    _check_distinct(conversation)
    _check_reasoning(conversation, memory)
    _check_pairs(conversation)
    return conversation


def _check_model(request: ResponsesRequest) -> None:
    model = model_named(request.model)
    if request.stream_options is not None and not request.stream:
        raise Refused(
            400,
            "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
            param="stream_options",
        )
    if model.reasons:
        # Guide "Reasoning models": no sampling parameters.
        if request.temperature not in (None, 1):
            raise _unsupported("temperature")
        return
    # Other models do not reason, and have nothing to encrypt.
    if "reasoning.encrypted_content" in (request.include or []):
        raise Refused(400, "Encrypted content is not supported with this model.", param="include")
    if request.reasoning is not None and request.reasoning.effort is not None:
        raise _unsupported("reasoning.effort")


def _unsupported(name: str) -> Refused:
    return Refused(
        400,
        f"Unsupported parameter: '{name}' is not supported with this model.",
        param=name,
        code="unsupported_parameter",
    )


def _check_tools(request: ResponsesRequest) -> None:
    tools = request.tools or []
    names = [tool.name for tool in tools]
    check_tool_names(names, "tools")
    for index, tool in enumerate(tools):
        # API reference: strict is the default here.
        check_schema(
            tool.name, tool.parameters, tool.strict is not False, f"tools[{index}].parameters"
        )
    choice = request.tool_choice
    missing = isinstance(choice, NamedTool) and choice.name not in names
    if missing or (choice == "required" and not names):
        raise Refused(
            400,
            "Tool choice 'function' not found in 'tools' parameter.",
            param="tool_choice",
        )


def _check_id(index: int, item: InputItem) -> None:
    prefix = _PREFIXES.get(type(item))
    if prefix is None or item.id is None:
        return
    place = f"input[{index}].id"
    if not item.id.replace("_", "").replace("-", "").isalnum() or not item.id.isascii():
        raise Refused(
            400,
            f"Invalid '{place}': '{item.id}'. Expected an ID that contains letters, numbers, "
            "underscores, or dashes, but this value contained additional characters.",
            param=place,
            code="invalid_value",
        )
    if not item.id.startswith(prefix):
        raise Refused(
            400,
            f"Invalid '{place}': '{item.id}'. Expected an ID that begins with '{prefix}'.",
            param=place,
            code="invalid_value",
        )


def _previous(request: ResponsesRequest, memory: Memory) -> list[InputItem]:
    # Guide "Conversation state": the response must have been stored.
    if request.previous_response_id is None:
        return []
    if request.previous_response_id not in memory.responses:
        raise Refused(
            400,
            f"Previous response with id '{request.previous_response_id}' not found.",
            param="previous_response_id",
            code="previous_response_not_found",
        )
    return memory.responses[request.previous_response_id]


def _resolved(item: InputItem, memory: Memory) -> InputItem:
    """The item itself, or what it stands for in the store."""
    if isinstance(item, ItemReference):
        if item.id not in memory.stored:
            raise _not_found(item.id)
        return memory.stored[item.id]
    if isinstance(item, ReasoningItem):
        if item.encrypted_content is not None:
            if opened(item.encrypted_content) is None:
                start, end = item.encrypted_content[:4], item.encrypted_content[-4:]
                raise Refused(
                    400,
                    f"The encrypted content {start}...{end} could not be verified.",
                    code="invalid_encrypted_content",
                )
        elif item.id not in memory.stored:
            # Reasoning is not in the item, only its id or its encrypted content says it.
            raise _not_found(item.id)
    return item


def _not_found(item: str) -> Refused:
    return Refused(
        404,
        f"Item with id '{item}' not found. Items are not persisted when `store` is set to false. "
        "Try again with `store` set to true, or remove this item from your input.",
        param="input",
    )


def _check_distinct(items: Sequence[InputItem]) -> None:
    seen: set[str] = set()
    for item in items:
        if item.id is None:
            continue
        if item.id in seen:
            raise Refused(
                400,
                f"Duplicate item found with id {item.id}. Remove duplicate items from your input "
                "and try again.",
                param="input",
            )
        seen.add(item.id)


def _check_reasoning(items: Sequence[InputItem], memory: Memory) -> None:
    before: set[str] = set()
    for index, item in enumerate(items):
        after = items[index + 1] if index + 1 < len(items) else None
        if isinstance(item, ReasoningItem):
            before.add(item.id)
            if not _follows(item, after, memory):
                raise Refused(
                    400,
                    f"Item '{item.id}' of type 'reasoning' was provided without its required "
                    "following item.",
                    param="input",
                )
        elif item.id is not None:
            needed = memory.needs.get(item.id)
            if needed is not None and needed not in before:
                kind = item.type or "message"
                raise Refused(
                    400,
                    f"Item '{item.id}' of type '{kind}' was provided without its required "
                    f"'reasoning' item: '{needed}'.",
                    param="input",
                )


def _follows(item: ReasoningItem, after: InputItem | None, memory: Memory) -> bool:
    if item.id not in memory.follower:  # of another server: something of the model must follow
        return isinstance(after, FunctionCall | AssistantMessage | ReasoningItem)
    expected = memory.follower[item.id]
    if expected is None or after is None:
        return False
    if isinstance(expected, FunctionCall) and isinstance(after, FunctionCall):
        return expected.call_id == after.call_id
    return expected.id == after.id


def _check_pairs(items: Sequence[InputItem]) -> None:
    answered: dict[str, bool] = {}
    for item in items:
        if isinstance(item, FunctionCall):
            # Two calls of one id could not be answered apart; no documented rule.
            if item.call_id in answered:
                raise Refused(400, f"Duplicate call_id: '{item.call_id}'.", param="input")
            answered[item.call_id] = False
        elif isinstance(item, FunctionCallOutput):
            if item.call_id not in answered:
                raise Refused(
                    400,
                    f"No tool call found for function call output with call_id {item.call_id}.",
                    param="input",
                )
            if answered[item.call_id]:  # nor have two outputs of one call a documented meaning
                raise Refused(
                    400,
                    f"Duplicate function call output with call_id '{item.call_id}'.",
                    param="input",
                )
            answered[item.call_id] = True
    for call, has_output in answered.items():
        if not has_output:
            raise Refused(400, f"No tool output found for function call {call}.", param="input")
