"""One step: one answer of the model that the agent accepts, as pieces of a message."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterator
from dataclasses import replace
from typing import TypeVar

from pydantic_ai import AgentRun, CallToolsNode, ModelRequestNode, UserPromptNode
from pydantic_ai.messages import (
    AgentStreamEvent,
    BinaryContent,
    ModelResponse,
    NativeToolCallPart,
    NativeToolReturnPart,
    PartDeltaEvent,
    PartEndEvent,
    PartStartEvent,
    SpeechPart,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
    ToolCallPartDelta,
    tool_return_ta,
)
from pydantic_core import PydanticSerializationError
from pydantic_graph import End

from runner_service.agents.protocol import (
    AgentFailure,
    Call,
    CallPiece,
    DataPiece,
    Output,
    ProviderCall,
    ReasoningPiece,
    StepEnd,
    StepPiece,
    TextPiece,
    ToolError,
)
from runner_service.pydantic_ai.provider_state import ModelId, state_of
from turngate.v1 import message_pb2, run_pb2

_Deps = TypeVar("_Deps")

# The kind of the data part that has an agent's structured output.
OUTPUT_KIND = "output"


async def step(
    run: AgentRun[_Deps, object], model: ModelId, *, is_text_final: bool
) -> AsyncGenerator[StepPiece, None]:
    """The pieces of the next message.

    `is_text_final`: any text is an output of the agent's type; else, or with validators, text waits
    until it is known to be one, or to be a comment beside calls. An answer that the agent does not
    accept is asked for again here, as often as the agent allows; of it only reasoning is told.

    Calls win: an output that stands beside them is left out, and the model gives it again when it
    has the results. Raises what Pydantic AI raises.
    """
    is_text_final = is_text_final and not run.ctx.deps.output_validators
    node = run.next_node
    if isinstance(node, UserPromptNode):
        node = await run.next(node)
    attempt = 0
    skipped = 0
    while isinstance(node, ModelRequestNode):
        attempt += 1
        async with node.stream(run.ctx) as stream:
            reading = _Reading(run, f"{attempt}.", is_text_final=is_text_final)
            async for event in stream:
                for piece in reading.take(event):
                    yield piece
        node = await run.next(node)
        if not isinstance(node, CallToolsNode):
            skipped += reading.reasoning_told
            continue  # a hook wants another answer
        response = node.model_response
        calls = [part for part in response.parts if reading.is_call(part)]
        if calls:
            for piece in reading.rest(response):
                yield piece
            kept = _without_outputs(response, reading)
            yield _end(run, response, state_of(kept, model, skipped=skipped))
            return
        node = await run.next(node)
        if isinstance(node, End):
            state = None
            output = node.data.output
            if isinstance(output, str) and output == reading.text_of(response):
                for piece in reading.rest(response):
                    yield piece
                state = state_of(response, model, skipped=skipped)
            elif output is not None:
                yield TextPiece(output) if isinstance(output, str) else _data(output)
            yield _end(run, response, state)
            return
        skipped += reading.reasoning_told
    raise AgentFailure(run_pb2.RUN_FAILURE_REASON_AGENT_ERROR, "the agent ended without an answer")


class _Reading:
    """Tells one answer of the model while it comes."""

    def __init__(
        self, run: AgentRun[_Deps, object], key_prefix: str, *, is_text_final: bool
    ) -> None:
        definitions = run.ctx.deps.tool_manager.tool_defs
        self._outputs = {tool.name for tool in definitions if tool.kind == "output"}
        self._prefix = key_prefix
        self._is_told = is_text_final
        self._held: list[StepPiece] = []
        self._native: dict[str, NativeToolCallPart] = {}
        self._begun: dict[int, str] = {}
        self.reasoning_told = 0

    def is_call(self, part: object) -> bool:
        """Whether it is a call that the runner has to do with: not one that gives an output."""
        return isinstance(part, ToolCallPart) and part.tool_name not in self._outputs

    def take(self, event: AgentStreamEvent) -> Iterator[StepPiece]:
        """What an event of the stream tells."""
        match event:
            case PartStartEvent(part=TextPart(content=text) | SpeechPart(content=text)):
                yield from self._in_order(TextPiece(text))
            case PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
                yield from self._in_order(TextPiece(text))
            case PartStartEvent(part=ThinkingPart(content=text)):
                yield from self._reasoning(text)
            case PartDeltaEvent(delta=ThinkingPartDelta(content_delta=str(text))):
                yield from self._reasoning(text)
            case PartStartEvent(index=index, part=ToolCallPart(tool_name=name, args=arguments)):
                yield from self._call(index, name, arguments)
            case PartDeltaEvent(
                index=index, delta=ToolCallPartDelta(args_delta=str(arguments))
            ) if index in self._begun:
                yield CallPiece(self._key(index), self._begun[index], arguments)
            case PartEndEvent(part=NativeToolCallPart() as part):
                self._native[part.tool_call_id] = part
            case PartEndEvent(part=NativeToolReturnPart() as part):
                call = self._native.get(part.tool_call_id)
                yield from self._in_order(_provider_call(part, call))
            case _:
                pass

    def text_of(self, response: ModelResponse) -> str:
        """All text of the answer."""
        return "".join(
            part.content for part in response.parts if isinstance(part, (TextPart, SpeechPart))
        )

    def rest(self, response: ModelResponse) -> Iterator[StepPiece]:
        """What was not told yet of an answer that is accepted."""
        yield from self._flush()
        for index, part in enumerate(response.parts):
            if isinstance(part, ToolCallPart) and self.is_call(part):
                key = self._key(index) if index in self._begun else ""
                yield Call(part.tool_name, _arguments(part), part.tool_call_id, key)

    def _in_order(self, piece: StepPiece) -> Iterator[StepPiece]:
        """Behind the text that waits, if any does."""
        if self._is_told:
            yield piece
        else:
            self._held.append(piece)

    def _reasoning(self, text: str) -> Iterator[StepPiece]:
        self.reasoning_told += len(text)
        yield ReasoningPiece(text)

    def _call(self, index: int, name: str, arguments: object) -> Iterator[StepPiece]:
        if name in self._outputs:
            return
        # Calls win, so the text before and after them is a comment.
        yield from self._flush()
        self._begun[index] = name
        shown = arguments if isinstance(arguments, str) else ""
        yield CallPiece(self._key(index), name, shown)

    def _flush(self) -> Iterator[StepPiece]:
        yield from self._held
        self._held = []
        self._is_told = True

    def _key(self, index: int) -> str:
        return f"{self._prefix}{index}"


def _without_outputs(response: ModelResponse, reading: _Reading) -> ModelResponse:
    kept = [
        part
        for part in response.parts
        if not isinstance(part, ToolCallPart) or reading.is_call(part)
    ]
    if len(kept) == len(response.parts):
        return response
    return replace(response, parts=kept)


def _end(
    run: AgentRun[_Deps, object],
    response: ModelResponse,
    state: message_pb2.ProviderState | None,
) -> StepEnd:
    details = response.provider_details or {}
    usage = run.usage
    return StepEnd(
        finish_reason=str(details.get("finish_reason") or response.finish_reason or ""),
        usage=message_pb2.Usage(
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cached_input_tokens=usage.cache_read_tokens,
        ),
        provider_state=state,
    )


def _arguments(part: ToolCallPart | NativeToolCallPart) -> str:
    """The text as the provider wrote it; a provider that gives an object has none."""
    if isinstance(part.args, str):
        return part.args
    return json.dumps(part.args, ensure_ascii=False) if part.args else ""


def _provider_call(part: NativeToolReturnPart, call: NativeToolCallPart | None) -> ProviderCall:
    if part.outcome == "success":
        outcome: Output | ToolError = Output(tool_return_ta.dump_json(part.content).decode())
    else:
        outcome = ToolError(part.model_response_str(wrap_if_error=False))
    arguments = "" if call is None else _arguments(call)
    return ProviderCall(part.tool_name, arguments, outcome, part.tool_call_id)


def _data(output: object) -> DataPiece:
    if isinstance(output, BinaryContent):
        raise AgentFailure(
            run_pb2.RUN_FAILURE_REASON_AGENT_ERROR,
            "the agent's output is a file, and only references to files are kept",
        )
    try:
        return DataPiece(OUTPUT_KIND, tool_return_ta.dump_json(output, by_alias=True).decode())
    except PydanticSerializationError as error:
        raise AgentFailure(
            run_pb2.RUN_FAILURE_REASON_AGENT_ERROR, "the agent's output has no form as JSON"
        ) from error
