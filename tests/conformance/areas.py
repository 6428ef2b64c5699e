"""Each area: how a case's input goes through the public functions, and what comes out."""

from __future__ import annotations

from collections.abc import Callable

from tests.conformance import vocabulary as words
from tests.conformance.case_files import CaseError, JsonObject
from turngate_core import gate
from turngate_core.degradation import (
    ErrorSettlement,
    ParkedCall,
    Settlement,
    park_step,
    part_outcome,
    unhandled_outcome,
)
from turngate_core.display import ToolPart, is_settled
from turngate_core.extraction import (
    ClientCallVerdict,
    MatchedCall,
    ReplayMatcher,
    client_call_verdict,
)
from turngate_core.form_fields import canonical_property
from turngate_core.forms import UnsupportedForm, parse_form
from turngate_core.grants import StartGate
from turngate_core.json_text import JsonValue, parse
from turngate_core.number import Number
from turngate_core.policy import (
    GrantScope,
    Policy,
    Setting,
    denies_client_tool,
    policy_from_json,
    setting_from_json,
)
from turngate_core.registry import widget_for
from turngate_core.render import build_render_map, render_kind_for
from turngate_core.resume import InteractionKind, LiveSettlement, resume_due, settlement_resumes
from turngate_core.transcript import CallPart, turn_start_index


def extraction(given: JsonObject) -> JsonObject:
    messages = words.transcript(given)
    matcher = ReplayMatcher(messages)
    default = setting_from_json(given.get("default_policy")) or Setting.ASK
    policy = Policy(default)
    verdicts: list[JsonValue] = []
    for item in words.objects(given.get("gates"), "gates"):
        tool, arguments = words.text(item, "tool"), words.json_text_of(item, "args")
        match item.get("mode", "take"):
            case "take":
                matched = matcher.take(tool, arguments)
            case "peek":
                matched = matcher.peek(tool, arguments)
            case mode:
                raise CaseError(f"unknown mode {mode}")
        denied = denies_client_tool(tool, policy)
        verdict = client_call_verdict(matched, denied_by_policy=denied)
        verdicts.append(_client_verdict(verdict, matched))
    return {"turn_start_index": Number(str(turn_start_index(messages))), "verdicts": verdicts}


def _client_verdict(verdict: ClientCallVerdict, matched: MatchedCall | None) -> JsonObject:
    told: JsonObject = {"verdict": verdict.value}
    answer = matched.answer if matched is not None else None
    if verdict is ClientCallVerdict.FULFILLED and answer is not None:
        if answer.output is not None:
            told["output"] = parse(answer.output)
        if answer.is_error:
            told["is_error"] = True
    return told


def approvals(given: JsonObject) -> JsonObject:
    starts = StartGate(
        words.transcript(given),
        policy_from_json(given.get("policy")),
        GrantScope(words.text(given, "grant_scope")),
    )
    verdicts: list[JsonValue] = []
    for item in words.objects(given.get("gates"), "gates"):
        call = CallPart("", words.text(item, "tool"), words.json_text_of(item, "args") or "")
        verdict = starts.verdict(
            call,
            tool_setting=setting_from_json(item.get("spec_permission")),
            server_setting=setting_from_json(item.get("server_permission")),
            read_only=item.get("read_only") is True,
        )
        verdicts.append(verdict.value)
    return {"verdicts": verdicts}


def render_map(given: JsonObject) -> JsonObject:
    hints = build_render_map(words.display_parts(given))
    kinds: list[JsonValue] = []
    for lookup in words.objects(given.get("lookups"), "lookups"):
        call_id = lookup.get("call_id")
        own_id = call_id if isinstance(call_id, str) else None
        kinds.append(render_kind_for(own_id, lookup.get("inline"), hints))
    return {"size": Number(str(len(hints))), "kinds": kinds}


def registry(given: JsonObject) -> JsonObject:
    part, ctx = words.tool_part(_object(given, "part")), _object(given, "ctx")
    widget = widget_for(
        part,
        build_render_map(words.display_parts(given, "hints")),
        streaming=ctx.get("streaming") is True,
        last_message=ctx.get("last_message") is True,
        registered=words.registrations(given),
    )
    return {"claimed": widget is not None, "widget": widget}


def resume(given: JsonObject) -> JsonObject:
    messages = words.display(given)
    if given.get("live") is None:
        return {"resume": resume_due(messages)}
    live = _object(given, "live")
    settlement = LiveSettlement(InteractionKind(words.text(live, "kind")), words.text(live, "id"))
    return {"resume": settlement_resumes(messages, settlement)}


def gate_area(given: JsonObject) -> JsonObject:
    match given.get("op"):
        case None:
            status, messages = words.text(given, "status"), words.display(given)
            stopped = given.get("stopped") is True
            return {
                "release": gate.gate_open(status, messages, stopped=stopped),
                "awaiting_user": gate.awaiting_user(status, messages, stopped=stopped),
            }
        case "sequence":
            queue = gate.Queue()
            for step in words.objects(given.get("steps"), "steps"):
                queue = _queue_step(queue, step)
            return {"sent": list(queue.sent), "held": list(queue.held)}
        case op:
            raise CaseError(f"unknown operation {op}")


def _queue_step(queue: gate.Queue, step: JsonObject) -> gate.Queue:
    match step:
        case {"set": dict(seen)}:
            status, stopped = words.text(seen, "status"), seen.get("stopped") is True
            return gate.observe(queue, status, words.display(seen), stopped=stopped)
        case {"submit": str(message)}:
            return gate.submit(queue, message)
        case {"remove_index": Number(index)}:
            return gate.remove(queue, int(index))
        case {"clear": True}:
            return gate.clear(queue)
        case _:
            raise CaseError(f"unknown step {sorted(step)}")


def elicitation(given: JsonObject) -> JsonObject:
    form = parse_form(given.get("payload"))
    if isinstance(form, UnsupportedForm):
        return {"accepted": False, "reason": form.fault.value}
    properties: JsonObject = {}
    for field in form.fields:
        prop = canonical_property(field)
        items = prop.get("items")
        told: JsonObject = {
            "has_enum": "enum" in prop,
            "has_format": "format" in prop,
            "has_default": "default" in prop,
        }
        told.update({key: prop[key] for key in ("enum", "format", "default") if key in prop})
        if isinstance(items, dict) and "enum" in items:
            told["items_enum"] = items["enum"]
        properties[field.name] = told
    return {"accepted": True, "canonical_properties": properties}


def degrade(given: JsonObject) -> JsonObject:
    match given.get("op"):
        case None:
            return _degrade_part(given)
        case "park_step":
            return _degrade_park_step(given)
        case "report_unhandled":
            return _degrade_report_unhandled(given)
        case op:
            raise CaseError(f"unknown operation {op}")


def _degrade_part(given: JsonObject) -> JsonObject:
    ctx = _object(given, "ctx")
    outcome = part_outcome(
        words.tool_part(_object(given, "part")),
        build_render_map(words.display_parts(given, "hints")),
        streaming=ctx.get("streaming") is True,
        last_message=ctx.get("last_message") is True,
        degraded_earlier=given.get("degraded_earlier") is True,
        registered=words.registrations(given),
    )
    return {
        "settlements": [_settlement(settlement) for settlement in outcome.settlements],
        "display": outcome.display.value,
    }


def _degrade_park_step(given: JsonObject) -> JsonObject:
    parts = words.display_parts(given, "step")
    hints = build_render_map(parts)
    calls = [
        ParkedCall(
            part.call_id,
            part.tool,
            render_kind_for(part.call_id, part.render, hints),
            part.arguments or "",
        )
        for part in parts
        if isinstance(part, ToolPart) and not is_settled(part) and not part.provider_executed
    ]
    earlier = words.objects(given.get("earlier_steps"), "earlier_steps")
    parked = park_step(
        calls, degraded_earlier=any(step.get("degraded") is True for step in earlier)
    )
    return {
        "settlements": [_settlement(settlement) for settlement in parked.settlements],
        "open": list(parked.open),
        "notices": list(parked.notices),
    }


def _degrade_report_unhandled(given: JsonObject) -> JsonObject:
    declared = given.get("declared_tools")
    names = (
        [name for name in declared if isinstance(name, str)] if isinstance(declared, list) else []
    )
    outcomes: list[JsonValue] = []
    for report in words.objects(given.get("reports"), "reports"):
        earlier = report.get("earlier_not_handled_this_turn")
        outcome = unhandled_outcome(
            words.text(report, "tool"),
            declared_tools=frozenset(names),
            earlier_not_handled=int(earlier.literal) if isinstance(earlier, Number) else 0,
        )
        outcomes.append(outcome.value)
    return {"outcomes": outcomes}


def _settlement(settlement: Settlement) -> JsonObject:
    if isinstance(settlement, ErrorSettlement):
        told: JsonObject = {"channel": "error", "value": settlement.error_text}
    else:
        told = {"channel": "output", "value": parse(settlement.output)}
    return {"call_id": settlement.call_id, **told}


def _object(given: JsonObject, key: str) -> JsonObject:
    value = given.get(key)
    if not isinstance(value, dict):
        raise CaseError(f"{key}: not an object")
    return value


AREAS: dict[str, Callable[[JsonObject], JsonObject]] = {
    "extraction": extraction,
    "approvals": approvals,
    "render_map": render_map,
    "registry": registry,
    "resume": resume,
    "gate": gate_area,
    "elicitation": elicitation,
    "degrade": degrade,
}
