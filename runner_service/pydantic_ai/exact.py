"""Calls whose arguments reach a model as they stand in the log (T2)."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic_ai.messages import ToolCallPart

from turngate_core.json_text import JsonTextError, parse


@dataclass(repr=False)
class ExactCall(ToolCallPart):
    """A call with the exact text of its arguments.

    Pydantic AI itself reads the text and writes it anew, through doubles. Providers that take
    arguments as an object (Anthropic) still get them so.
    """

    def args_as_json_str(self) -> str:
        """The arguments digit for digit, if they are an object; else what Pydantic AI makes of
        them, since providers refuse what is none.
        """
        if isinstance(self.args, str) and self.args:
            try:
                if isinstance(parse(self.args), dict):
                    return self.args
            except JsonTextError:
                pass
        return super().args_as_json_str()
