"""What happens to calls that no client can show (D1, D2): nothing hangs silently."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias

from turngate_core import forms, registry
from turngate_core.display import INPUT_STREAMING, ToolPart, is_settled
from turngate_core.forms import UnsupportedForm, parse_form_text
from turngate_core.json_text import dump
from turngate_core.render import RenderMap

DEGRADED_PREFIX: Final = "elicitation: unsupported payload — "


@dataclass(frozen=True, slots=True)
class OutputSettlement:
    """The broker settles a call with an output, which is JSON text."""

    call_id: str
    output: str


@dataclass(frozen=True, slots=True)
class ErrorSettlement:
    """The broker settles a call with an error text."""

    call_id: str
    error_text: str


Settlement: TypeAlias = OutputSettlement | ErrorSettlement


@dataclass(frozen=True, slots=True)
class ParkedCall:
    """A call that becomes an interaction when its step parks (R4). `arguments` is JSON text."""

    call_id: str
    tool: str
    kind: str | None
    arguments: str


@dataclass(frozen=True, slots=True)
class ParkedStep:
    """What parking does to the calls of a step, in call order.

    `open` call ids wait for a client; those in `notices` among them need attention, visibly.
    """

    settlements: tuple[ErrorSettlement, ...]
    open: tuple[str, ...]
    notices: tuple[str, ...]


def is_form_call(tool: str, kind: str | None) -> bool:
    """True if a call is shown as a form: by its kind, else by its name (H3)."""
    if kind in registry.BUILT_IN.by_kind:
        return kind == forms.KIND
    return tool == forms.TOOL_NAME


def unsupported_form(call: ParkedCall) -> UnsupportedForm | None:
    """Why a call's payload is no form that a client can show; `None` if it is, or is no form."""
    if not is_form_call(call.tool, call.kind):
        return None
    form = parse_form_text(call.arguments)
    return form if isinstance(form, UnsupportedForm) else None


def degraded_error_text(form: UnsupportedForm) -> str:
    """What the model is told of a form that it can repair (D2)."""
    return DEGRADED_PREFIX + form.text


def park_step(calls: Iterable[ParkedCall], *, degraded_earlier: bool) -> ParkedStep:
    """What the write that parks a run does about unsupported forms (D2).

    All of them are settled, so that the model can repair them, unless an earlier step of the
    turn had such a settlement (`degraded_earlier`): then they stay open with a notice.
    """
    settlements: list[ErrorSettlement] = []
    stay_open: list[str] = []
    notices: list[str] = []
    for call in calls:
        unsupported = unsupported_form(call)
        if unsupported is not None and not degraded_earlier:
            settlements.append(ErrorSettlement(call.call_id, degraded_error_text(unsupported)))
            continue
        stay_open.append(call.call_id)
        if unsupported is not None:
            notices.append(call.call_id)
    return ParkedStep(tuple(settlements), tuple(stay_open), tuple(notices))


class UnhandledOutcome(StrEnum):
    """What a report that a client cannot show a call leads to (D1)."""

    NOT_HANDLED = "not_handled"
    OPEN = "open"
    OPEN_WITH_NOTICE = "open_with_notice"


def unhandled_outcome(
    tool: str, *, declared_tools: frozenset[str], earlier_not_handled: int
) -> UnhandledOutcome:
    """The outcome of `ReportUnhandled` (D1).

    A tool that is built in or declared by the session stays open: another client can do it. Any
    other is settled once a turn (`earlier_not_handled`: how often it was so in this turn).
    """
    if tool in registry.BUILT_IN.by_tool or tool in declared_tools:
        return UnhandledOutcome.OPEN
    if earlier_not_handled > 0:
        return UnhandledOutcome.OPEN_WITH_NOTICE
    return UnhandledOutcome.NOT_HANDLED


def not_handled_output(tool: str) -> str:
    """The output (no error) with which the broker settles a call that nobody handles (D1)."""
    message = f"No connected client can handle the tool {tool}."
    return dump({"status": "not_handled", "message": message})


class Display(StrEnum):
    """What a client shows for a parked part."""

    FORM = "form"
    CONNECT = "connect"
    HOST_WIDGET = "host_widget"
    FALLBACK_NOTE = "fallback_note"
    NEEDS_ATTENTION_NOTICE = "needs_attention_notice"
    NOTHING_UNTIL_SETTLED = "nothing_until_settled"


@dataclass(frozen=True, slots=True)
class PartOutcome:
    """What the broker settles about a parked part, and what a client shows until then."""

    settlements: tuple[Settlement, ...]
    display: Display


def part_outcome(
    part: ToolPart,
    render_map: RenderMap,
    *,
    streaming: bool,
    last_message: bool,
    degraded_earlier: bool = False,
    registered: Sequence[registry.Registration] = (),
) -> PartOutcome:
    """What becomes of one part, seen from a client that does as the registry says (D1, D2)."""
    widget = registry.widget_for(
        part,
        render_map,
        streaming=streaming,
        last_message=last_message,
        registered=registered,
    )
    if widget is None:
        return PartOutcome((), Display.NOTHING_UNTIL_SETTLED)
    if widget == registry.FALLBACK:
        settlement = OutputSettlement(part.call_id, not_handled_output(part.tool))
        return PartOutcome((settlement,), Display.FALLBACK_NOTE)
    if widget == registry.CONNECT:
        return PartOutcome((), Display.CONNECT)
    if widget != registry.FORM:
        return PartOutcome((), Display.HOST_WIDGET)
    return _form_outcome(part, degraded_earlier, parked=last_message and not streaming)


def _form_outcome(part: ToolPart, degraded_earlier: bool, *, parked: bool) -> PartOutcome:
    call = ParkedCall(part.call_id, part.tool, forms.KIND, part.arguments or "")
    # A payload that is still being written, or was settled, is not judged.
    judged = part.state != INPUT_STREAMING and not is_settled(part)
    if not judged or unsupported_form(call) is None:
        return PartOutcome((), Display.FORM)
    if degraded_earlier:
        return PartOutcome((), Display.NEEDS_ATTENTION_NOTICE)
    settlements = park_step([call], degraded_earlier=False).settlements if parked else ()
    return PartOutcome(settlements, Display.NOTHING_UNTIL_SETTLED)
