"""How to show a call: render hints by call id (H1, H2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from turngate_core.display import DisplayPart, RenderHintPart
from turngate_core.json_text import JsonValue

RenderMap: TypeAlias = Mapping[str, Mapping[str, JsonValue]]


def build_render_map(parts: Iterable[DisplayPart]) -> RenderMap:
    """The hints of one message by call id (H1).

    The last one with a call id and an object wins, even if it has no kind; others are skipped.
    Hints of other messages do not count.
    """
    hints: dict[str, Mapping[str, JsonValue]] = {}
    for part in parts:
        if not isinstance(part, RenderHintPart):
            continue
        if isinstance(part.call_id, str) and part.call_id and isinstance(part.render, dict):
            hints[part.call_id] = part.render
    return hints


def render_kind_for(call_id: str | None, inline: JsonValue, render_map: RenderMap) -> str | None:
    """The kind of a call: an inline kind first, then the map (H2).

    A kind that is no text, or empty, is none.
    """
    inline_kind = _kind(inline) if isinstance(inline, dict) else None
    if inline_kind is not None:
        return inline_kind
    hint = render_map.get(call_id) if call_id is not None else None
    return _kind(hint) if hint is not None else None


def _kind(render: Mapping[str, JsonValue]) -> str | None:
    kind = render.get("kind")
    return kind if isinstance(kind, str) and kind else None
