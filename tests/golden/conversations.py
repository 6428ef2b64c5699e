"""Conversations on the core that together have everything that a broker writes.

Their logs are made once for each released schema (`make golden`), and kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from broker_service.dispatch.runner_events import delta_entry
from broker_service.domain import gate
from broker_service.domain.decision import principal
from broker_service.domain.deletion import delete_session
from broker_service.domain.importing import ImportSession, import_session
from broker_service.domain.limits import Limits
from broker_service.domain.model import (
    ApprovalPolicy,
    ClientTool,
    ConflictPolicy,
    DataPart,
    ExpiryPolicy,
    FilePart,
    GrantScope,
    Message,
    OnBusy,
    OperatorPolicy,
    Part,
    PartContent,
    Permission,
    PolicyRule,
    ProposedTool,
    ProviderState,
    ReasoningPart,
    RenderHint,
    ResultKind,
    Role,
    RunFailure,
    RunFailureReason,
    Session,
    SessionConfig,
    TextPart,
    ToolCall,
    ToolExecutor,
    ToolResult,
    TraceContext,
    Usage,
)
from broker_service.domain.reports import Began, Failed, Finished, Hinted, Resulted, Withdrew
from broker_service.domain.runs import mark_unplaced
from broker_service.domain.sessions import CreateSession, create_session
from broker_service.domain.starts import Verdict
from broker_service.encoding import encode_event
from broker_service.storage.port import EntryKind
from tests.golden.logs import StoredLog
from tests.unit.broker.conversation import (
    ANN,
    DECLINED,
    FORM,
    LUND,
    NESTED_FORM,
    VISBY,
    Conversation,
    client_call,
    connection,
    form,
    server_call,
    tool_result,
)
from turngate.v1 import event_pb2, runner_pb2

MINUTE = 60_000
TRACE = TraceContext("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "vendor=1")
POLICY = OperatorPolicy(
    "pol-1", ApprovalPolicy(Permission.ALLOW, (PolicyRule("rm*", Permission.DENY),))
)
SIGN = ClientTool(
    name="sign",
    description="A signature",
    input_schema_json='{"type":"object"}',
    kind="pen",
    params_json='{"colour":"blue"}',
    output_schema_json='{"type":"object"}',
    expires_after=2 * MINUTE,
    on_expiry=ExpiryPolicy.DENY,
    conflict_policy=ConflictPolicy.FORK,
    grant_scope=GrantScope.ONCE,
)
CONFIG = SessionConfig(
    agent="travel",
    client_tools=(
        SIGN,
        ClientTool("scan", expires_after=MINUTE, on_expiry=ExpiryPolicy.CANCEL_RUN),
        ClientTool("weigh", expires_after=MINUTE, on_expiry=ExpiryPolicy.FAIL_CALL),
        ClientTool("once", conflict_policy=ConflictPolicy.FIRST_WINS),
    ),
    approval_policy=ApprovalPolicy(
        Permission.ALLOW_READS,
        (
            PolicyRule("pay*", Permission.ASK),
            PolicyRule("look_up", Permission.ALLOW),
            PolicyRule("forbidden", Permission.DENY),
        ),
        GrantScope.SESSION,
    ),
    on_busy=OnBusy.HOLD,
    retention=30 * 24 * 60 * MINUTE,
    labels={"team": "north"},
    interaction_expires_after=60 * MINUTE,
    on_expiry=ExpiryPolicy.FAIL_CALL,
    conflict_policy=ConflictPolicy.FORK,
    unclaimed_after=5 * MINUTE,
    interaction_link="https://example.org/{session_id}/{interaction_id}",
    title="A trip",
    expire_while_open=True,
)


class Told(Conversation):
    """A conversation with everything that a session can have, and with deltas."""

    def __init__(self, config: SessionConfig, *messages: Message) -> None:
        self.limits = Limits(questions_a_step=4, questions_a_turn=8)
        self.now = 1_800_000_000_000
        self._minted = 0
        self.operator_policy = POLICY
        self.deltas: list[tuple[int, bytes]] = []
        session = Session("s-1", "t-1", ANN, ("ben", "cai"), config)
        decision, self.first_run = create_session(
            CreateSession(session, messages, TRACE),
            self.now,
            principal(ANN),
            self.mint,
            self.limits,
            POLICY,
        )
        self.state, self.log = decision.state, list(decision.events)

    def stream(self, run_id: str, message_id: str) -> None:
        """Pieces of a message that is being written."""
        text, reasoning = event_pb2.TEXT_KIND_TEXT, event_pb2.TEXT_KIND_REASONING
        pieces = [
            runner_pb2.RunnerEvent(
                text_delta=event_pb2.TextDelta(message_id=message_id, kind=reasoning, text="Well")
            ),
            runner_pb2.RunnerEvent(
                text_delta=event_pb2.TextDelta(
                    message_id=message_id, part_index=1, kind=text, text="Whe"
                )
            ),
            runner_pb2.RunnerEvent(
                text_delta=event_pb2.TextDelta(
                    message_id=message_id, part_index=1, kind=text, offset=3, text="re?"
                )
            ),
            runner_pb2.RunnerEvent(
                tool_call_delta=event_pb2.ToolCallDelta(
                    message_id=message_id,
                    part_index=2,
                    call_id="c-form",
                    name="request_input",
                    arguments_delta='{"mess',
                )
            ),
            runner_pb2.RunnerEvent(
                tool_call_delta=event_pb2.ToolCallDelta(
                    message_id=message_id,
                    part_index=2,
                    call_id="c-form",
                    offset=6,
                    arguments_delta='age":1}',
                )
            ),
        ]
        for piece in pieces:
            entry = delta_entry(piece, run_id, message_id, self.now, "t-1")
            self.deltas.append((len(self.log), entry.payload))

    def whole_step(self, run_id: str, *contents: PartContent) -> str:
        """A message of the assistant with everything that may stand beside its parts."""
        message_id = self.mint("msg")
        message = Message(
            message_id,
            Role.ASSISTANT,
            tuple(Part(content) for content in contents),
            finish_reason="tool_use",
            usage=Usage(10, 20, 3),
            provider_state=ProviderState("acme", "large", b"\x00\xff"),
        )
        self.report(run_id, Began(message_id))
        self.stream(run_id, message_id)
        self.report(run_id, Finished(message))
        return message_id

    def fail_as(self, run_id: str, reason: RunFailureReason) -> None:
        self.report(run_id, Failed(RunFailure(reason, f"as {reason.name}", 1_500)))

    def bring_home(self, run_id: str) -> None:
        """Do what is left of the step, and end the run."""
        run = self.state.runs[run_id]
        left = [call_id for call_id in run.step_calls if call_id not in run.results]
        verdicts = self.propose(run_id, *map(ProposedTool, left))
        for call_id, verdict in zip(left, verdicts, strict=True):
            if verdict is Verdict.GRANTED:
                self.report(run_id, tool_result(call_id))
        self.complete(run_id)

    def stored(self) -> StoredLog:
        """As a store has it: deltas where they came."""
        entries: list[tuple[EntryKind, bytes]] = []
        for position, event in enumerate(self.log):
            entries += [(EntryKind.DELTA, data) for at, data in self.deltas if at == position]
            entries.append((EntryKind.EVENT, encode_event(event)))
        return StoredLog(tuple(entries))


def contents(text: str = "hello") -> tuple[Part, ...]:
    """A user's message with everything that it may have."""
    return (
        Part(TextPart(text)),
        Part(FilePart("https://example.org/map.png", "image/png", "map", 4096)),
        Part(DataPart("position", '{"lat":57.64,"lon":18.30}')),
    )


def trip() -> Told:
    """Answers, forks, approvals, grants, branches; first messages, and pieces of messages."""
    chat = Told(
        CONFIG,
        Message("m-sys", Role.SYSTEM, (Part(TextPart("Be brief.")),)),
        Message("m-1", Role.USER, contents(), author=ANN),
    )
    run = chat.first_run
    chat.whole_step(
        run,
        ReasoningPart("Well"),
        TextPart("Where?"),
        ToolCall("c-form", "request_input", FORM, "", ToolExecutor.CLIENT, "p-1", "ui"),
        ToolCall("c-search", "search", "{}", "", ToolExecutor.PROVIDER, "p-2", "web"),
        ToolResult("c-search", '["a"]', kind=ResultKind.TOOL),
        ToolCall("c-bad", "look_up", "", "{nope", ToolExecutor.SERVER),
        ToolCall("c-pay", "pay", '{"sum":9007199254740993}', "", ToolExecutor.SERVER, "", "bank"),
        ToolCall("c-look", "look_up", '{"x":1.0}', executor=ToolExecutor.SERVER),
        client_call("c-sign", "sign"),
        client_call("c-agent", "agents_own"),
    )
    chat.report(run, Hinted("h-1", RenderHint("c-form", "elicitation", '{"a":1}')))
    chat.report(run, Hinted("h-2", RenderHint("c-agent", "own"), SIGN))
    refused = ToolResult("c-bad", error_text="no JSON", kind=ResultKind.CALL_REFUSED)
    chat.report(run, Resulted(refused))
    pay = ProposedTool("c-pay", Permission.ASK)
    chat.propose(run, pay, ProposedTool("c-look", read_only=True, idempotent=True))
    chat.report(run, tool_result("c-look"))
    chat.park(run, pay)
    chat.send("meanwhile", "m-held", by="ben")
    form_, sign = chat.interaction("c-form"), chat.interaction("c-sign")
    chat.settle(form_.id, VISBY, by="ben", client="phone", tool="request_input", client_ref="r-7")
    chat.settle(form_.id, LUND, by="cai")
    chat.settle(sign.id, error="the pen is dry")
    chat.settle(chat.interaction("c-agent").id, '{"ok":true}')
    chat.decide(chat.interaction("c-pay").id, reason="it is cheap", scope=GrantScope.SESSION)
    fork = chat.state.runs[run].superseded_by
    chat.propose(fork, pay)
    chat.report(fork, tool_result("c-pay"))
    same = '{"sum": 9007199254740993}'
    again = ToolCall("c-again", "pay", same, "", ToolExecutor.SERVER, "", "bank")
    chat.step(fork, again)
    chat.propose(fork, ProposedTool("c-again", Permission.ASK))
    chat.report(fork, tool_result("c-again"))
    chat.complete(fork)
    for other in list(chat.state.live_runs):
        chat.bring_home(other)
    chat.revoke(next(iter(chat.state.grants)))
    chat.edit("m-1", "or rather", "m-2")
    edited = chat.state.selected
    chat.step(edited, server_call("c-pay-2", "pay_more"), server_call("c-no", "forbidden"))
    twice = (ProposedTool("c-pay-2", Permission.ASK, grant_scope=GrantScope.ONCE),)
    chat.propose(edited, *twice, ProposedTool("c-no"))
    chat.park(edited, *twice)
    chat.decide(chat.interaction("c-pay-2").id, False, reason="too dear")
    chat.complete(edited)
    chat.regenerate(edited)
    chat.select("m-1")
    return chat


def queue() -> Told:
    """Everything that a held message can go through."""
    chat = Told(SessionConfig())
    first = chat.start()
    chat.step(first)
    held = Message("m-a", Role.USER, contents("a"), author=ANN)
    chat.act(lambda d: gate.send_message(d, gate.SendMessage(held, "", None, TRACE)))
    chat.send("b", "m-b")
    chat.send("c", "m-c", by="ben", on_busy=OnBusy.INTERRUPT)
    chat.edit_held("m-b", "b, edited")
    chat.remove_held("m-a")
    chat.stopped(first)
    second = chat.state.selected
    chat.ask(second, form("q-1"))
    chat.send("while it is open", "m-d")
    chat.edit("m-c", "beside", "m-e", by="ben")
    away = chat.state.selected
    chat.send("on purpose", "m-f", branch=second)
    chat.settle(chat.interaction("q-1").id, DECLINED)
    chat.complete(chat.state.runs[second].superseded_by)
    chat.cancel(away, keep_held=True)
    chat.send("resumed by this", "m-g")
    chat.fail(chat.state.selected)
    for run_id in list(chat.state.live_runs):
        chat.fail(run_id)
    chat.select(second)
    for text in ("one", "two", "three", "four"):
        chat.send(text, f"m-{text}")
    for _ in range(2):
        for run_id in list(chat.state.live_runs):
            chat.fail(run_id)
    chat.resume_queue()
    for run_id in list(chat.state.live_runs):
        chat.fail(run_id)
    return chat


def mishaps() -> Told:
    """What fails, expires, is lost, cancelled, not handled, and tried again."""
    chat = Told(replace(CONFIG, on_busy=OnBusy.INTERRUPT))
    for reason in RunFailureReason:
        chat.fail_as(chat.start(), reason)
        chat.resume_queue()
    run = chat.state.selected
    chat.retry(run)
    again = chat.state.selected
    chat.report(again, Began("msg-gone"), Withdrew("msg-gone"))
    chat.lose(again)
    chat.act(lambda d: mark_unplaced(d, again))
    chat.step(again, server_call("c-1"), server_call("c-2"))
    chat.propose(again, ProposedTool("c-1"), ProposedTool("c-2", idempotent=True))
    chat.hand_over(again)
    chat.propose(again, ProposedTool("c-2", idempotent=True))
    chat.fail(again)
    chat.unplaced(chat.start())
    run = chat.start()
    chat.ask(run, client_call("x-1", "scan"))
    chat.wait(MINUTE)
    run = chat.start()
    chat.ask(run, client_call("x-2", "weigh"), client_call("x-3", "sign"))
    chat.wait(2 * MINUTE)
    chat.complete(run)
    run = chat.start()
    chat.ask(run, form("x-4", NESTED_FORM), client_call("x-5", "unknown"), connection("x-6"))
    chat.report_unhandled(chat.interaction("x-5").id)
    chat.cancel_interaction(chat.interaction("x-6").id)
    chat.step(run, form("x-7", NESTED_FORM), client_call("x-8", "unknown"))
    chat.park(run)
    chat.report_unhandled(chat.interaction("x-8").id)
    chat.settle(chat.interaction("x-7").id, DECLINED)
    chat.settle(chat.interaction("x-8").id, "7")
    chat.complete(chat.state.selected)
    run = chat.start()
    chat.ask(run, *(client_call(f"y-{n}", "once") for n in range(5)))
    chat.cancel(run)
    run = chat.start()
    chat.step(run)
    chat.edit(chat.state.runs[run].prompt_id, "elsewhere")
    chat.stopped(run)
    chat.cancel(chat.state.selected)
    return chat


def moved() -> Told:
    """A trip that was exported and goes on elsewhere, with something under way and held."""
    source = trip()
    run = source.start("go on")
    source.ask(run, client_call("c-open", "once"))
    source.regenerate(run)
    source.send("held", "m-late")
    chat = Told(CONFIG)
    decision = import_session(
        ImportSession(tuple(source.log), "t-2", "s-2"),
        source.now,
        principal("admin"),
        source.mint,
        source.limits,
    )
    chat.state, chat.log, chat.now = decision.state, list(decision.events), source.now
    return chat


def deleted() -> Told:
    """A session that was deleted in the middle of something."""
    chat = Told(SessionConfig(on_busy=OnBusy.REJECT))
    run = chat.start()
    chat.send("held", "m-held", on_busy=OnBusy.HOLD)
    chat.step(run)
    chat.act(delete_session, principal(ANN))
    return chat


ALL: dict[str, Callable[[], Told]] = {
    "trip": trip,
    "queue": queue,
    "mishaps": mishaps,
    "moved": moved,
    "deleted": deleted,
}
