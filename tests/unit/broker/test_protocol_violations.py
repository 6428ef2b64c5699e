"""R3, R4, A1, S1, T2: what the author of a runner reads when an agent breaks the protocol."""

from __future__ import annotations

import pytest

from broker_service.domain.model import (
    ClientTool,
    FilePart,
    Message,
    Part,
    ProposedTool,
    RenderHint,
    ResultKind,
    Role,
    TextPart,
    ToolCall,
    ToolExecutor,
    ToolResult,
)
from broker_service.domain.reports import (
    Began,
    Cancelled,
    Completed,
    Finished,
    Hinted,
    Parked,
    Proposed,
    Resulted,
    RunnerEvent,
    Withdrew,
)
from tests.unit.broker.conversation import (
    Conversation,
    client_call,
    form,
    said,
    server_call,
    tool_result,
)
from turngate_core.errors import Reason

PROVIDER = ToolExecutor.PROVIDER
NO_OBJECT = "expecting property name enclosed in double quotes at line 1 column 2"
WHERE_ELSE = "text that is no JSON belongs into malformed_arguments"
NOT_THE_PROVIDER_S = (
    "result of c-1: a message holds results of the calls before it that the provider executed, "
    "of kind TOOL, and no others"
)


def violation(chat: Conversation, *events: RunnerEvent) -> str:
    run_id = chat.state.selected
    with chat.refused(Reason.PROTOCOL_VIOLATION) as caught:
        chat.report(run_id, *events)
    assert caught.value.metadata == {"problem": caught.value.message}
    return caught.value.message


def at_work(*calls: ToolCall) -> Conversation:
    """A run whose first message, `msg_2`, has these calls."""
    chat = Conversation()
    chat.send("hi", "m-1")
    chat.step("run_1", *calls)
    return chat


def writing() -> Conversation:
    """A run that has begun the message `w-1`."""
    chat = Conversation()
    chat.send("hi", "m-1")
    chat.report("run_1", Began("w-1"))
    return chat


def finished(*contents: TextPart | ToolCall | ToolResult) -> Finished:
    return Finished(said("w-1", *contents))


@pytest.mark.parametrize(
    ("event", "told"),
    [
        (Began("w-2"), "message w-1 is still being written"),
        (Withdrew("w-2"), "message w-2 is not being written"),
        (Parked(), "parked while a message is being written"),
        (Completed(), "completed while a message is being written"),
        (Cancelled(), "cancelled, but nobody asked for it"),
        (Finished(said("w-2")), "message w-2 is not being written"),
        (
            Finished(Message("w-1", Role.USER, (Part(TextPart("hi")),))),
            "a runner's message has the role ASSISTANT",
        ),
        (
            Finished(Message("w-1", Role.ASSISTANT, (Part(FilePart("s3://b/o")),))),
            "a runner's message holds text, reasoning, calls, results and data only",
        ),
        (finished(server_call("c 1")), "call id 'c 1' is taken or malformed"),
        (
            finished(server_call("c-1"), server_call("c-1")),
            "call id 'c-1' stands twice in one message",
        ),
        (
            finished(ToolCall("c-1", "", "{}", executor=ToolExecutor.SERVER)),
            "call c-1 lacks its tool's name or its executor",
        ),
        (finished(ToolCall("c-1", "pay")), "call c-1 lacks its tool's name or its executor"),
        (
            finished(server_call("c-1", arguments="{")),
            f"arguments of call c-1 are no JSON ({NO_OBJECT}); {WHERE_ELSE}",
        ),
        (
            finished(ToolResult("c-1", output_json="1", kind=ResultKind.TOOL)),
            NOT_THE_PROVIDER_S,
        ),
        (
            finished(
                ToolCall("c-1", "search", executor=PROVIDER),
                ToolResult("c-1", output_json="1", kind=ResultKind.CLIENT),
            ),
            NOT_THE_PROVIDER_S,
        ),
        (
            finished(
                ToolCall("c-2", "search", executor=PROVIDER),
                ToolCall("c-1", "search", executor=PROVIDER),
            ),
            "calls ['c-1', 'c-2'] of the provider came without a result",
        ),
        (
            finished(
                ToolCall("c-1", "search", executor=PROVIDER),
                ToolResult("c-1", output_json="{", kind=ResultKind.TOOL),
            ),
            f"output of call c-1 is no JSON: {NO_OBJECT}",
        ),
    ],
)
def test_while_a_message_is_being_written(event: RunnerEvent, told: str) -> None:
    assert violation(writing(), event) == told


@pytest.mark.parametrize(
    ("event", "told"),
    [
        (Began("w-1"), "a message began while a call of the step before has no result"),
        (Completed(), "completed while a call of the step has no result"),
        (Proposed((ProposedTool("c-1"),) * 2), "call c-1 was proposed twice"),
        (tool_result("c-9"), "call c-9 is not one of the run's current step"),
        (tool_result("c-1"), "call c-1 was not granted to this run"),
        (
            Resulted(ToolResult("c-1", output_json="1", kind=ResultKind.CLIENT)),
            "a runner's results are of kind TOOL or CALL_REFUSED",
        ),
        (
            Hinted("h-1", RenderHint("c-9")),
            "call c-9 is not one of the run's current step",
        ),
        (Hinted("h 1", RenderHint("c-1")), "message id 'h 1' is taken or malformed"),
        (Hinted("m-1", RenderHint("c-1")), "message id 'm-1' is taken or malformed"),
        (
            Hinted("h-1", RenderHint("c-1"), ClientTool("look_up")),
            "call c-1 is declared, but is no client call",
        ),
        (Proposed((ProposedTool("c-2"),)), "call c-2 is no server call"),
    ],
)
def test_about_the_calls_of_a_step(event: RunnerEvent, told: str) -> None:
    assert violation(at_work(server_call("c-1"), form("c-2")), event) == told


@pytest.mark.parametrize("message_id", ["m-1", "run_1", "msg_2", "w 1", ""])
def test_ids_are_minted_once(message_id: str) -> None:
    """T3: of a prompt, a run, a message; or none at all."""
    told = violation(at_work(), Began(message_id))
    assert told == f"message id {message_id!r} is taken or malformed"


def test_a_call_s_id_is_taken_in_the_whole_session() -> None:
    """T3."""
    chat = at_work(server_call("c-1"))
    chat.propose("run_1", ProposedTool("c-1"))
    chat.report("run_1", tool_result("c-1"), Began("w-1"))
    assert violation(chat, finished(form("c-1"))) == "call id 'c-1' is taken or malformed"


def test_a_start_is_granted_once_an_attempt() -> None:
    """S1; with its result the call may be proposed again, and is reused."""
    chat = at_work(server_call("c-1"))
    proposed = ProposedTool("c-1", idempotent=True)
    chat.propose("run_1", proposed)
    assert violation(chat, Proposed((proposed,))) == "call c-1 was proposed twice"
    chat.report("run_1", tool_result("c-1"))
    chat.propose("run_1", proposed)


def test_an_output_that_is_no_json() -> None:
    """T2."""
    chat = at_work(server_call("c-1"))
    chat.propose("run_1", ProposedTool("c-1"))
    assert violation(chat, tool_result("c-1", "[1,")) == (
        "output of call c-1 is no JSON: expecting value at line 1 column 4"
    )


def test_nothing_comes_after_the_end() -> None:
    """R3."""
    told = violation(at_work(), Completed(), Began("w-1"))
    assert told == "an event after the end of the attempt"


def test_arguments_that_are_no_json_wait_for_nobody() -> None:
    """T2, R4: the runner has to refuse the call."""
    bad = ToolCall("c-1", "look_up", malformed_arguments="{", executor=ToolExecutor.SERVER)
    told = "call c-1 has arguments that are no JSON: refuse it"
    assert violation(at_work(bad), Proposed((ProposedTool("c-1"),))) == told
    assert violation(at_work(bad), Parked((ProposedTool("c-1"),))) == told


@pytest.mark.parametrize(
    ("declaration", "told"),
    [
        (ClientTool("pick_colour", expires_after=0), "its expires_after has to be positive"),
        (ClientTool("pick_colour", expires_after=-5), "its expires_after has to be positive"),
        (
            ClientTool("pick_colour", output_schema_json="[" + " " * 65_536),
            "its output schema is over 65536 bytes",
        ),
        (
            ClientTool("pick_colour", output_schema_json="3"),
            "its output schema is no JSON Schema: a schema must be an object, true or false",
        ),
    ],
)
def test_a_declaration_by_which_nobody_could_answer(declaration: ClientTool, told: str) -> None:
    """R4, I4."""
    chat = at_work(client_call("c-1"))
    hinted = Hinted("h-1", RenderHint("c-1", "colour"), declaration)
    assert violation(chat, hinted) == f"declaration of call c-1: {told}"


def test_the_least_expiry_and_the_greatest_schema_of_a_declaration() -> None:
    """E3: at the limit."""
    chat = at_work(client_call("c-1"))
    schema = '{"type":"string"}'
    given = ClientTool(
        "pick_colour",
        expires_after=1,
        output_schema_json=schema + " " * (65_536 - len(schema)),
    )
    chat.report("run_1", Hinted("h-1", RenderHint("c-1", "colour"), given))


def test_what_a_runner_does_that_is_right() -> None:
    """The same events, each where it belongs."""
    chat = writing()
    search = ToolCall("c-0", "search", executor=PROVIDER)
    found = ToolResult("c-0", output_json="1", kind=ResultKind.TOOL)
    chat.report("run_1", Withdrew("w-1"))
    chat.report(
        "run_1", Began("w-2"), Finished(said("w-2", TextPart("Hm."), search, found, form("c-1")))
    )
    chat.report("run_1", Hinted("h-1", RenderHint("c-1", "elicitation")), Parked())
    assert chat.open_calls() == ["c-1"]
