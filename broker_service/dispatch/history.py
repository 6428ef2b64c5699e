"""What a runner gets to begin with: the start, and the history in chunks (X6)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from broker_service.domain.grants import grants_of_branch
from broker_service.domain.model import (
    ApprovalDecision,
    InteractionState,
    Message,
)
from broker_service.domain.policies import policy_of_start
from broker_service.domain.state import RunNode, SessionState
from broker_service.domain.transcript import Step
from broker_service.encoding import enum_to_proto, to_proto
from broker_service.storage.port import Store
from broker_service.transcripts import read_transcript, split_message
from turngate.v1 import message_pb2, runner_pb2, session_pb2

PROTOCOL_REVISION = 1
"""Of `Execute`, as runner.proto describes it."""

CHUNK_BYTES = 900 * 1024
"""Nothing on the wire exceeds 1 MiB."""


async def opening(
    store: Store, state: SessionState, run: RunNode, attempt: int, window: int, heartbeat_ms: int
) -> list[runner_pb2.BrokerEvent]:
    """The start and all history chunks of an attempt, in order.

    The turn whole, older messages up to the agent's `window`; extraction never depends on how much
    that is, since the turn's results and call ids are lists of their own.
    """
    # Each node has a message, nearly always: the window of messages is read by nodes.
    path = state.path_to(run.id, limit=window + 2)
    transcript = await read_transcript(store, state, path)
    turn = transcript.messages([run.id], with_hints=False)
    older = transcript.messages(path[:-1], with_hints=False)
    prompt_and_turn = [*older[-1:], *turn]
    older = older[:-1]
    shown = [*older[max(0, len(older) - window) :], *prompt_and_turn]
    total = state.messages_through(run.id)
    start = _start(state, run, attempt, transcript.steps(run.id))
    start.branch_message_count = total
    start.history_offset = max(0, total - len(shown))
    start.turn_start = state.prompts[run.prompt_id].messages_before
    start.heartbeat_interval.FromMilliseconds(heartbeat_ms)
    events = [runner_pb2.BrokerEvent(start=start)]
    events += [runner_pb2.BrokerEvent(history=chunk) for chunk in _chunks(shown)]
    return events


def _start(
    state: SessionState, run: RunNode, attempt: int, steps: list[Step]
) -> runner_pb2.ExecuteStart:
    start = runner_pb2.ExecuteStart(
        session_id=state.session.id,
        run_id=run.id,
        attempt=attempt,
        agent=run.agent,
        completed_steps=run.step,
        tenant_id=state.session.tenant_id,
        principal=state.prompts[run.prompt_id].author,
        protocol_revision=PROTOCOL_REVISION,
    )
    for tool in state.config.client_tools:
        message = to_proto(tool)
        assert isinstance(message, session_pb2.ClientTool)
        start.client_tools.append(message)
    if policy := policy_of_start(state, run):
        start.approval_policy.MergeFromString(to_proto(policy).SerializeToString())
    if run.trace_context:
        start.trace_context.traceparent = run.trace_context.traceparent
        start.trace_context.tracestate = run.trace_context.tracestate
    for step in steps:
        for call in step.message.calls():
            start.used_call_ids.append(call.call_id)
            result = step.results.get(call.call_id)
            if result is not None and not result.imported:  # P3
                start.turn_results.add(
                    call_id=call.call_id,
                    kind=message_pb2.ResultKind.ValueType(enum_to_proto(result.kind)),
                    message_id=step.message.id,
                )
    start.turn_decisions.extend(_decisions(state, run))
    for grant in grants_of_branch(state, run.id):
        message = to_proto(replace(grant, arguments_json=""))
        assert isinstance(message, session_pb2.Grant)
        start.grants.append(message)
    return start


def _decisions(state: SessionState, run: RunNode) -> Iterator[message_pb2.ApprovalDecision]:
    """Decisions about calls of the open step that have no result yet."""
    for call_id in run.step_calls:
        interaction = state.interactions.get(state.calls[call_id].interaction_id)
        if interaction is None or call_id in run.results or not interaction.answers:
            continue
        if interaction.state is not InteractionState.APPROVED:
            continue
        answer = interaction.answers[-1]
        if answer.imported:  # P3
            continue
        message = to_proto(
            ApprovalDecision(
                interaction_id=interaction.id,
                call_id=call_id,
                approved=True,
                reason=answer.reason,
                grant_scope=answer.grant_scope,
                decided_by=answer.author,
                create_time=answer.create_time,
            )
        )
        assert isinstance(message, message_pb2.ApprovalDecision)
        yield message


def _chunks(messages: list[Message]) -> Iterator[runner_pb2.HistoryChunk]:
    chunk = runner_pb2.HistoryChunk()
    size = 0
    for message in messages:
        for piece in split_message(message, CHUNK_BYTES):
            proto = to_proto(piece)
            assert isinstance(proto, message_pb2.Message)
            if chunk.messages and size + proto.ByteSize() > CHUNK_BYTES:
                yield chunk
                chunk, size = runner_pb2.HistoryChunk(), 0
            chunk.messages.append(proto)
            size += proto.ByteSize()
    chunk.last = True
    yield chunk
