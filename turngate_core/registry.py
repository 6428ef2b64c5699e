"""What a client shows for a tool part: kind, then tool name, then the fallback (H3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from turngate_core import connection, forms
from turngate_core.display import APPROVAL_REQUESTED, APPROVAL_RESPONDED, ToolPart, is_settled
from turngate_core.render import RenderMap, render_kind_for

FORM: Final = "form"
CONNECT: Final = "connect"
FALLBACK: Final = "fallback"


@dataclass(frozen=True, slots=True)
class Registration:
    """What a host application shows itself: names of widgets by kind and by tool name."""

    by_kind: Mapping[str, str] = field(default_factory=dict)
    by_tool: Mapping[str, str] = field(default_factory=dict)


BUILT_IN: Final = Registration(
    by_kind={forms.KIND: FORM, connection.KIND: CONNECT},
    by_tool={forms.TOOL_NAME: FORM, connection.TOOL_NAME: CONNECT},
)


def widget_for(
    part: ToolPart,
    render_map: RenderMap,
    *,
    streaming: bool,
    last_message: bool,
    registered: Sequence[Registration] = (),
) -> str | None:
    """The widget that claims a part, or `None` (H3).

    `registered` in order of registration: the latest one wins, before what is built in.
    `streaming`: the turn is; `last_message`: the part is in it. Parts with approval data or
    executed by the provider are claimed by nobody. The fallback, which reports what nobody can
    show (D1), claims only what is still open now: old parts are never settled by themselves.
    """
    if part.approval is not None or part.provider_executed:
        return None
    tiers = (*reversed(registered), BUILT_IN)
    kind = render_kind_for(part.call_id, part.render, render_map)
    if kind is not None:
        for registration in tiers:
            if kind in registration.by_kind:
                return registration.by_kind[kind]
    for registration in tiers:
        if part.tool in registration.by_tool:
            return registration.by_tool[part.tool]
    about_approval = part.state in (APPROVAL_REQUESTED, APPROVAL_RESPONDED)
    if last_message and not streaming and not is_settled(part) and not about_approval:
        return FALLBACK
    return None
