"""What OpenAI Chat Completions refuses beyond the form of a request.

Source of the pairing rules: guide "Function calling", the flow with `tool_calls` and `tool`
messages. Messages and places are those of the service, as users report them.
"""

from tests.providers.openai_chat_request import (
    AssistantMessage,
    ChatRequest,
    NamedTool,
    ToolMessage,
)
from tests.providers.openai_common import check_schema, check_tool_names, model_named
from tests.providers.refusal import Refused


def check(request: ChatRequest) -> None:
    """Raises `Refused` for the first rule that the request breaks."""
    _check_model(request)
    _check_tools(request)
    _check_contents(request)
    _check_pairs(request)


def _check_model(request: ChatRequest) -> None:
    model = model_named(request.model)
    # API reference, `stream_options`: "Only set this when you set `stream: true`."
    if request.stream_options is not None and not request.stream:
        raise Refused(
            400,
            "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
            param="stream_options",
        )
    if request.n is not None and request.n > 1:
        raise Refused(400, "The fake provider answers with one choice only.", param="n")
    if not model.reasons:
        if request.reasoning_effort is not None:
            raise Refused(400, "Unrecognized request argument supplied: reasoning_effort")
        return
    # API reference, `max_tokens`: "deprecated in favor of `max_completion_tokens`, and is not
    # compatible with o-series models"; guide "Reasoning models": no sampling parameters.
    if request.max_tokens is not None:
        raise Refused(
            400,
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
            "'max_completion_tokens' instead.",
            param="max_tokens",
            code="unsupported_parameter",
        )
    if request.temperature not in (None, 1):
        raise Refused(
            400,
            f"Unsupported value: 'temperature' does not support {request.temperature} with this "
            "model. Only the default (1) value is supported.",
            param="temperature",
            code="unsupported_value",
        )


def _check_tools(request: ChatRequest) -> None:
    if request.tools is None:
        # API reference: `tool_choice` and `parallel_tool_calls` say something of `tools`.
        for name in ("tool_choice", "parallel_tool_calls"):
            if getattr(request, name) is not None:
                raise Refused(
                    400, f"'{name}' is only allowed when 'tools' are specified.", param=name
                )
        return
    names = [tool.function.name for tool in request.tools]
    check_tool_names(names, "tools")
    for index, tool in enumerate(request.tools):
        function = tool.function
        place = f"tools[{index}].function.parameters"
        check_schema(function.name, function.parameters, function.strict is True, place)
    choice = request.tool_choice
    if isinstance(choice, NamedTool) and choice.function.name not in names:
        raise Refused(
            400,
            f"Tool choice 'function' not found in 'tools' parameter: '{choice.function.name}'.",
            param="tool_choice",
        )


def _check_contents(request: ChatRequest) -> None:
    for index, message in enumerate(request.messages):
        # API reference, assistant message: content is "Required unless `tool_calls` or
        # `function_call` is specified"; it is required of all others.
        optional = isinstance(message, AssistantMessage) and (message.tool_calls or message.refusal)
        if message.content is None and not optional:
            raise Refused(
                400,
                "Invalid value for 'content': expected a string, got null.",
                param=f"messages.[{index}].content",
            )


def _check_pairs(request: ChatRequest) -> None:
    open_calls: dict[str, int | None] = {}  # id of a call: where its result is
    caller = -1
    for index, message in enumerate(request.messages):
        if isinstance(message, ToolMessage):
            _take_result(index, message, open_calls)
            continue
        _check_answered(open_calls)
        open_calls, caller = {}, index
        if isinstance(message, AssistantMessage):
            for call in message.tool_calls or []:
                # Two calls of one id could not be answered apart; no documented rule.
                if call.id in open_calls:
                    raise Refused(
                        400,
                        f"Invalid parameter: Duplicate value for 'id' of '{call.id}'.",
                        param=f"messages.[{caller}].tool_calls",
                    )
                open_calls[call.id] = None
    _check_answered(open_calls)


def _take_result(index: int, message: ToolMessage, open_calls: dict[str, int | None]) -> None:
    if not open_calls:
        raise Refused(
            400,
            "Invalid parameter: messages with role 'tool' must be a response to a preceeding "
            "message with 'tool_calls'.",
            param=f"messages.[{index}].role",
        )
    if message.tool_call_id not in open_calls:
        raise Refused(
            400,
            f"Invalid parameter: 'tool_call_id' of '{message.tool_call_id}' not found in "
            "'tool_calls' of previous message.",
            param=f"messages.[{index}].tool_call_id",
        )
    earlier = open_calls[message.tool_call_id]
    if earlier is not None:
        raise Refused(
            400,
            f"Invalid parameter: Duplicate value for 'tool_call_id' of '{message.tool_call_id}', "
            f"in messages[{earlier}] and messages[{index}].",
            param=f"messages.[{index}].tool_call_id",
        )
    open_calls[message.tool_call_id] = index


def _check_answered(calls: dict[str, int | None]) -> None:
    missing = [call for call, result in calls.items() if result is None]
    if missing:
        raise Refused(
            400,
            "An assistant message with 'tool_calls' must be followed by tool messages responding "
            "to each 'tool_call_id'. The following tool_call_ids did not have response messages: "
            + ", ".join(missing),
            param="messages",
        )
