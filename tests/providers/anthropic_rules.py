"""What Anthropic Messages refuses beyond the form of a request; thinking: `anthropic_thinking`.

Source: API reference, "Create a Message"; platform.claude.com/docs, "Handle tool calls" (its
"Important formatting requirements"), "Prompt caching", "Errors". Messages and places are those of
the service, as users report them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.providers.anthropic_request import (
    Block,
    Message,
    MessagesRequest,
    NamedToolChoice,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from tests.providers.refusal import Refused


@dataclass(frozen=True, slots=True)
class Placed:
    """A block with its place in the request."""

    message: int
    position: int
    block: Block

    @property
    def place(self) -> str:
        return f"messages.{self.message}.content.{self.position}"


@dataclass(frozen=True, slots=True)
class Turn:
    """Consecutive messages of one role: the service combines them into one turn."""

    role: str
    index: int
    """Of its last message."""
    blocks: tuple[Placed, ...]

    @property
    def tool_uses(self) -> list[str]:
        return [p.block.id for p in self.blocks if isinstance(p.block, ToolUseBlock)]

    @property
    def results(self) -> list[tuple[Placed, str]]:
        """The results that stand first: what comes after something else does not count."""
        first: list[tuple[Placed, str]] = []
        for placed in self.blocks:
            if not isinstance(placed.block, ToolResultBlock):
                break
            first.append((placed, placed.block.tool_use_id))
        return first


def turns(messages: Sequence[Message]) -> list[Turn]:
    """API reference, `messages`: "Consecutive `user` or `assistant` turns in your request will be
    combined into a single turn." A system message belongs to what comes before it."""
    combined: list[Turn] = []
    for index, message in enumerate(messages):
        blocks = tuple(Placed(index, n, block) for n, block in enumerate(message.content))
        if message.role == "system":
            continue
        if combined and combined[-1].role == message.role:
            blocks = combined.pop().blocks + blocks
        combined.append(Turn(message.role, index, blocks))
    return combined


def check(request: MessagesRequest, prefill: bool) -> list[Turn]:
    """The turns of the request. Raises `Refused` for the first rule that it breaks.

    `prefill`: whether the model goes on with a message of the assistant that stands last.
    """
    _check_texts(request)
    _check_order(request)
    combined = turns(request.messages)
    _check_sides(combined)
    _check_pairs(combined)
    _check_last(combined[-1], prefill)
    _check_tools(request)
    _check_cache_control(request)
    return combined


def _check_texts(request: MessagesRequest) -> None:
    for instruction in request.system or []:
        if not instruction.text:
            raise Refused(400, "system: text content blocks must be non-empty")
    for index, message in enumerate(request.messages):
        last = index == len(request.messages) - 1
        if not message.content and not (last and message.role == "assistant"):
            raise Refused(
                400,
                f"messages.{index}: all messages must have non-empty content except for the "
                "optional final assistant message",
            )
        for position, block in enumerate(message.content):
            if isinstance(block, TextBlock):
                _check_text(block, f"messages.{index}.content.{position}")


def _check_text(block: TextBlock, place: str) -> None:
    if not block.text and block.cache_control:
        # "Prompt caching": "Empty text blocks cannot be cached."
        raise Refused(400, f"{place}.text: cache_control cannot be set for empty text blocks")
    if not block.text:
        raise Refused(400, "messages: text content blocks must be non-empty")
    if not block.text.strip():
        raise Refused(400, "messages: text content blocks must contain non-whitespace text")


def _check_order(request: MessagesRequest) -> None:
    if not request.messages:
        raise Refused(400, "messages: at least one message is required")
    # The service said so until it combined turns, and other hosts of the models still do.
    if request.messages[0].role != "user":
        raise Refused(400, 'messages: first message must use the "user" role')
    roles = [message.role for message in request.messages]
    for index, role in enumerate(roles):
        # "Mid-conversation system messages": behind a user's, and before an assistant's or last.
        follows = roles[index + 1] if index + 1 < len(roles) else "assistant"
        if role == "system" and (roles[index - 1] == "assistant" or follows == "user"):
            raise Refused(
                400,
                f"messages.{index}: a `system` message must follow a `user` message and come "
                "before an `assistant` message or last",
            )


def _check_sides(combined: list[Turn]) -> None:
    for turn in combined:
        for placed in turn.blocks:
            match placed.block:
                case ToolResultBlock() if turn.role != "user":
                    kind, side = "tool_result", "user"
                case ToolUseBlock() if turn.role != "assistant":
                    kind, side = "tool_use", "assistant"
                case ThinkingBlock() | RedactedThinkingBlock() if turn.role != "assistant":
                    kind, side = placed.block.type, "assistant"
                case _:
                    continue
            raise Refused(
                400,
                f"messages.{placed.message}: `{kind}` blocks can only be in `{side}` messages",
            )


def _check_pairs(combined: list[Turn]) -> None:
    known: set[str] = set()
    for number, turn in enumerate(combined):
        for placed in turn.blocks:
            if isinstance(placed.block, ToolUseBlock):
                if placed.block.id in known:
                    raise Refused(400, f"{placed.place}: `tool_use` ids must be unique")
                known.add(placed.block.id)
        after = combined[number + 1] if number + 1 < len(combined) else None
        _check_answered(turn, after)
        if turn.role == "user":
            _check_results(turn, combined[number - 1] if number else None)


def _check_answered(turn: Turn, after: Turn | None) -> None:
    # "Tool result blocks must immediately follow their corresponding tool use blocks in the
    # message history", and "must come first in the content array".
    given = {of for _, of in after.results} if after else set()
    missing = [of for of in turn.tool_uses if of not in given]
    # Nor may text stand between a call and the result: what the assistant says comes before.
    uses = [isinstance(placed.block, ToolUseBlock) for placed in turn.blocks]
    said_after = any(
        isinstance(placed.block, TextBlock) and any(uses[:number])
        for number, placed in enumerate(turn.blocks)
    )
    if missing or said_after:
        raise Refused(
            400,
            f"messages.{turn.index}: `tool_use` ids were found without `tool_result` blocks "
            f"immediately after: {', '.join(missing or turn.tool_uses)}. Each `tool_use` block "
            "must have a corresponding `tool_result` block in the next message.",
        )


def _check_results(turn: Turn, before: Turn | None) -> None:
    asked = set(before.tool_uses) if before else set()
    seen: set[str] = set()
    for placed in turn.blocks:
        if not isinstance(placed.block, ToolResultBlock):
            continue
        of = placed.block.tool_use_id
        if of not in asked:
            raise Refused(
                400,
                f"{placed.place}: unexpected `tool_use_id` found in `tool_result` blocks: {of}. "
                "Each `tool_result` block must have a corresponding `tool_use` block in the "
                "previous message.",
            )
        if of in seen:
            raise Refused(
                400,
                f"{placed.place}: each tool_use must have a single result. Found multiple "
                f"`tool_result` blocks with id: {of}",
            )
        seen.add(of)


def _check_last(last: Turn, prefill: bool) -> None:
    if last.role != "assistant":
        return
    # "Errors", "Prefill not supported".
    if not prefill:
        raise Refused(
            400,
            "This model does not support assistant message prefill. The conversation must end "
            "with a user message.",
        )
    block = last.blocks[-1].block if last.blocks else None
    if isinstance(block, TextBlock) and block.text != block.text.rstrip():
        raise Refused(400, "messages: final assistant content cannot end with trailing whitespace")


def _check_tools(request: MessagesRequest) -> None:
    names = [tool.name for tool in request.tools or []]
    if len(set(names)) < len(names):
        raise Refused(400, "tools: Tool names must be unique.")
    choice = request.tool_choice
    # API reference, `tool_choice`: "How the model should use the provided tools."
    if choice is not None and choice.type != "none" and not names:
        raise Refused(400, "tool_choice may only be specified while providing tools")
    if isinstance(choice, NamedToolChoice) and choice.name not in names:
        raise Refused(400, f"Tool '{choice.name}' not found in provided tools")


def _check_cache_control(request: MessagesRequest) -> None:
    # "Prompt caching": "You can define up to 4 cache breakpoints"; the automatic one counts.
    found = sum(1 for marked in _cacheable(request) if marked is not None)
    if found > 4:
        raise Refused(
            400, f"A maximum of 4 blocks with cache_control may be provided. Found {found}."
        )


def _cacheable(request: MessagesRequest) -> Iterator[object]:
    yield request.cache_control
    yield from (block.cache_control for block in request.system or [])
    yield from (tool.cache_control for tool in request.tools or [])
    for message in request.messages:
        for block in message.content:
            yield getattr(block, "cache_control", None)
            if isinstance(block, ToolResultBlock):
                yield from (inner.cache_control for inner in block.content or [])
