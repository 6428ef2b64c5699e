"""Thinking that a provider wants to see again, where it cannot be shown."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic_ai import RunContext
from pydantic_ai.messages import ModelMessage, ModelResponse, ThinkingPart
from pydantic_ai.models import Model
from pydantic_ai.models.anthropic import AnthropicModelSettings
from pydantic_ai.settings import ModelSettings


def lacks_thinking(messages: Sequence[ModelMessage]) -> bool:
    """Whether the last answer made calls, and does not begin with thinking.

    So it is when another model made them, or when its state was too large to be kept.
    """
    for message in reversed(messages):
        if isinstance(message, ModelResponse):
            return bool(message.tool_calls) and not isinstance(message.parts[0], ThinkingPart)
    return False


def without_budget(context: RunContext[object]) -> ModelSettings:
    """No thinking on a budget for this one request.

    With it Anthropic refuses calls that do not begin with thinking, and says to disable it:
    https://docs.claude.com/en/docs/build-with-claude/extended-thinking. Adaptive thinking has no
    such rule.
    """
    model = context.model
    if not isinstance(model, Model) or model.system != "anthropic":
        return {}
    settings: dict[str, object] = {**(context.model_settings or {})}
    thinking = settings.get("anthropic_thinking")
    is_explicit = isinstance(thinking, dict) and thinking.get("type") == "enabled"
    is_adaptive = bool(model.profile.get("anthropic_supports_adaptive_thinking", False))
    if not is_explicit and (is_adaptive or not settings.get("thinking")):
        return {}
    return AnthropicModelSettings(thinking=False, anthropic_thinking={"type": "disabled"})
