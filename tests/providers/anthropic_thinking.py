"""What Anthropic Messages refuses of thinking: configurations, signatures, missing blocks.

Source: platform.claude.com/docs, "Thinking" ("Preserving thinking blocks", "Thinking with tool
use"), "Extended thinking", "Troubleshooting thinking" (which model takes which configuration) and
"Preserved thinking" ("Prefix checks", "Fix a thinking block bound to a different conversation").
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.providers.anthropic_request import (
    AdaptiveThinking,
    DisabledThinking,
    EnabledThinking,
    MessagesRequest,
    RedactedThinkingBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from tests.providers.anthropic_rules import Placed, Turn
from tests.providers.refusal import Refused
from tests.providers.signatures import Sealed, digest, opened

BINDING_BETA = "thinking-binding-controls-2026-08-01"


@dataclass(frozen=True, slots=True)
class Model:
    """What a model takes ("Troubleshooting thinking", the table)."""

    types: frozenset[str]
    """The values of `thinking.type`."""
    default_on: bool = False
    """Whether it thinks when `thinking` is left out."""
    binds: bool = False
    """Whether its thinking is valid only behind the conversation that it came from."""
    prefill: bool = False


MODELS = {
    "claude-haiku-4-5": Model(frozenset({"enabled", "disabled"}), prefill=True),
    "claude-opus-4-6": Model(frozenset({"enabled", "adaptive", "disabled"})),
    "claude-opus-5-5": Model(frozenset({"adaptive"}), default_on=True, binds=True),
}


def thinks(request: MessagesRequest, model: Model) -> bool:
    """Whether the answer may have thinking."""
    if request.thinking is None:
        return model.default_on
    return not isinstance(request.thinking, DisabledThinking)


def check_configuration(request: MessagesRequest, model: Model, betas: set[str]) -> None:
    """Raises `Refused` for a configuration that the model does not take."""
    thinking = request.thinking
    if thinking is not None and thinking.type not in model.types:
        raise Refused(
            400,
            f'"thinking.type.{thinking.type}" is not supported for this model. Supported: '
            f"{', '.join(sorted(model.types))}.",
        )
    binding = thinking.block_binding if isinstance(thinking, AdaptiveThinking) else None
    if binding is not None and BINDING_BETA not in betas:
        raise Refused(400, "thinking.adaptive.block_binding: Extra inputs are not permitted")
    if not isinstance(thinking, EnabledThinking):
        return
    if thinking.budget_tokens >= request.max_tokens:
        raise Refused(400, "`max_tokens` must be greater than `thinking.budget_tokens`.")
    # "Extended thinking": not compatible with forced tool use, nor with another temperature.
    if request.tool_choice is not None and request.tool_choice.type in ("any", "tool"):
        raise Refused(400, "Thinking may not be enabled when tool_choice forces tool use.")
    if request.temperature not in (None, 1):
        raise Refused(400, "`temperature` may only be set to 1 when thinking is enabled.")


# --- the conversation before a block ---


def prefix(request: MessagesRequest, before: Iterable[tuple[str, Mapping[str, Any]]]) -> str:
    """What a block is bound to: system prompt, tools, and all blocks before it with their role.

    Cache markers are no part of it.
    """
    return digest(
        [
            [plain(block) for block in request.system or []],
            [plain(tool) for tool in request.tools or []],
            [[role, block] for role, block in before],
        ]
    )


def plain(part: Any) -> dict[str, Any]:
    """A block or a tool as plain data, without what does not count as a change."""
    data: dict[str, Any] = part.model_dump(exclude_none=True)
    return _stripped(data)


def _stripped(data: dict[str, Any]) -> dict[str, Any]:
    kept = {k: v for k, v in data.items() if k not in ("cache_control", "caller")}
    if kept.get("is_error") is False:
        del kept["is_error"]
    if kept.get("type") == "tool_result":
        kept["content"] = [_stripped(block) for block in kept.get("content", [])]
    return kept


def history(turns: Sequence[Turn]) -> Iterator[tuple[str, dict[str, Any]]]:
    """All blocks of the request in order, with their role, plain."""
    for turn in turns:
        for placed in turn.blocks:
            yield turn.role, plain(placed.block)


# --- blocks ---


def check_blocks(
    request: MessagesRequest, model: Model, turns: Sequence[Turn], minted: Mapping[str, list[str]]
) -> list[tuple[str, str]]:
    """The places of blocks that the model does not get to see, each with the reason.

    `minted`: by the id of each tool call, the signatures of the thinking that led to it. Raises
    `Refused`.
    """
    dropped: list[tuple[str, str]] = []
    before: list[tuple[str, dict[str, Any]]] = []
    latest = next((turn for turn in reversed(turns) if turn.role == "assistant"), None)
    for turn in turns:
        for placed in turn.blocks:
            if isinstance(placed.block, RedactedThinkingBlock):
                raise Refused(400, f"{placed.place}: Invalid `data` in `redacted_thinking` block")
            if isinstance(placed.block, ThinkingBlock):
                sealed = _genuine(placed, placed.block, turn is latest)
                if sealed.model != request.model:
                    # A model cannot read another one's thinking: such blocks are left out.
                    dropped.append((placed.place, "model_binding_mismatch"))
                elif model.binds and sealed.prefix != prefix(request, before):
                    _check_may_drop(request, placed)
                    dropped.append((placed.place, "prefix_binding_mismatch"))
            before.append((turn.role, plain(placed.block)))
    if thinks(request, model):
        _check_kept(request, _loop(turns), minted)
    elif turns[-1].role == "assistant":
        _check_prefill(turns[-1])
    return dropped


def _genuine(placed: Placed, block: ThinkingBlock, latest: bool) -> Sealed:
    sealed = opened(block.signature)
    if sealed is not None and sealed.thinking == digest(block.thinking):
        return sealed
    if sealed is not None and latest:
        raise Refused(
            400,
            f"{placed.place}: `thinking` or `redacted_thinking` blocks in the latest assistant "
            "message cannot be modified. These blocks must remain as they were in the original "
            "response.",
        )
    raise Refused(400, f"{placed.place}: Invalid `signature` in `thinking` block")


def _check_may_drop(request: MessagesRequest, placed: Placed) -> None:
    thinking = request.thinking
    binding = thinking.block_binding if isinstance(thinking, AdaptiveThinking) else None
    if binding is None or binding.prefix_mismatch_behavior != "drop_block":
        raise Refused(
            400,
            f"{placed.place}: Invalid `signature` in `thinking` block. The block is bound to a "
            "different conversation. Remove the block, or set "
            '`thinking.block_binding.prefix_mismatch_behavior` to "drop_block".',
        )


def _loop(turns: Sequence[Turn]) -> list[Turn]:
    """The assistant's turns since a user said something: a tool-use loop is one assistant turn."""
    loop: list[Turn] = []
    for turn in reversed(turns):
        if turn.role == "assistant":
            loop.insert(0, turn)
        elif not any(isinstance(placed.block, ToolResultBlock) for placed in turn.blocks):
            break
    return loop


def _check_kept(
    request: MessagesRequest, loop: list[Turn], minted: Mapping[str, list[str]]
) -> None:
    # "You must pass thinking blocks back complete and unmodified" while tools are in use. What
    # the model thought before a call is known from the call's id; with extended thinking, the
    # loop begins with a thinking block in any case.
    for number, turn in enumerate(loop):
        there = [p.block.signature for p in turn.blocks if isinstance(p.block, ThinkingBlock)]
        needed = {s for use in turn.tool_uses for s in minted.get(use, []) if _own(request, s)}
        begins = isinstance(turn.blocks[0].block, ThinkingBlock) if turn.blocks else False
        manual = isinstance(request.thinking, EnabledThinking) and number == 0
        if not needed <= set(there) or (manual and not begins):
            found = turn.blocks[0].block.type if turn.blocks else "nothing"
            raise Refused(
                400,
                f"messages.{turn.index}.content.0.type: Expected `thinking` or "
                f"`redacted_thinking`, but found `{found}`. When `thinking` is enabled, a final "
                "`assistant` message must start with a thinking block (preceeding the lastmost "
                "set of `tool_use` and `tool_result` blocks). We recommend you include thinking "
                "blocks from previous turns. To avoid this requirement, disable `thinking`. "
                "Please consult our documentation at "
                "https://docs.claude.com/en/docs/build-with-claude/extended-thinking",
            )


def _own(request: MessagesRequest, signature: str) -> bool:
    sealed = opened(signature)
    return sealed is not None and sealed.model == request.model


def _check_prefill(last: Turn) -> None:
    for placed in last.blocks:
        if isinstance(placed.block, ThinkingBlock):
            raise Refused(
                400,
                f"{placed.place}: When thinking is disabled, an `assistant` message in the final "
                "position cannot contain `thinking`. To use thinking blocks, enable `thinking` in "
                "your request.",
            )


def led_to(blocks: Sequence[ThinkingBlock | ToolUseBlock]) -> dict[str, list[str]]:
    """Of an answer: by the id of each tool call, the signatures of the thinking before it."""
    signatures: list[str] = []
    found: dict[str, list[str]] = {}
    for block in blocks:
        if isinstance(block, ThinkingBlock):
            signatures.append(block.signature)
        else:
            found[block.id] = list(signatures)
    return found
