"""The conversation of the demo as `grpcurl` lines, for a shell and any running broker."""

from __future__ import annotations

import shlex

from turngate_core.json_text import JsonValue, dump, parse

SERVICE = "turngate.v1.BrokerService"


def grpcurl_lines(
    address: str, session_id: str, first_text: str, second_text: str, answer_json: str
) -> list[str]:
    """Lines to paste one after the other; the session must be a new one.

    `answer_json`: what to answer the form with. The ids of questions are minted by the broker, so
    two of the lines read them into the shell's `ID`.
    """
    session: dict[str, JsonValue] = {"session_id": session_id}
    # The question opens a moment after the message was sent: the line waits for it.
    find = (
        "until ID=$("
        + _line(address, "ListInteractions", {"filter": dict(session)})
        + ' | grep -m1 \'"id":\' | cut -d\'"\' -f4); [ -n "$ID" ]; do sleep 0.2; done'
    )
    answer = parse(answer_json)
    return [
        f"grpcurl -plaintext {address} list {SERVICE}",
        _line(address, "CreateSession", {**session, "config": {"agent": "demo"}}),
        _line(address, "SendMessage", {**session, "text": first_text}),
        _line(address, "ListInteractions", {"filter": dict(session)}),
        _line(address, "SendMessage", {**session, "text": second_text}),
        find,
        _about_question(address, "SettleToolCall", session, {"output": answer}),
        find,
        _about_question(address, "DecideApproval", session, {"decision": "DECISION_APPROVE"}),
        _line(address, "GetTree", session),
        _line(address, "GetTranscript", session),
        _line(address, "WatchSession", session) + "  # goes on until Ctrl-C",
    ]


def _line(address: str, method: str, request: dict[str, JsonValue]) -> str:
    return f"grpcurl -plaintext -d {shlex.quote(dump(request))} {address} {SERVICE}/{method}"


def _about_question(
    address: str, method: str, session: dict[str, JsonValue], rest: dict[str, JsonValue]
) -> str:
    """A line whose question is the one in the shell's `ID`."""
    mark = "$ID"
    request = dump({**session, "interaction": {"interaction_id": mark}, **rest})
    before, _, after = request.partition(mark)
    quoted = f'{shlex.quote(before)}"{mark}"{shlex.quote(after)}'
    return f"grpcurl -plaintext -d {quoted} {address} {SERVICE}/{method}"
