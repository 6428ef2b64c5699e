"""Folds events into the state of a session. The only place that changes a `SessionState`.

Total over all events that were ever released: a stored log is readable for ever.
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from broker_service.domain.events import (
    AnswerAdded,
    BranchSelected,
    Event,
    GrantRevoked,
    HeldMessageRemoved,
    HoldChanged,
    InteractionClosed,
    InteractionOpened,
    MessageCompleted,
    MessageHeld,
    MessageStarted,
    MessageWithdrawn,
    NoticeAdded,
    OperatorPolicyRecorded,
    PromptAdded,
    QueuePaused,
    QueueResumed,
    RenderHintAdded,
    RunCreated,
    RunStateChanged,
    SessionCreated,
    SessionDeleted,
    SessionEvent,
    SessionImported,
    ToolResultAdded,
    ToolStarted,
)
from broker_service.domain.model import (
    FINAL_STATES,
    Answer,
    GrantScope,
    Interaction,
    InteractionKind,
    InteractionState,
    Message,
    ResultKind,
    Role,
    RunCause,
    RunChangeCause,
    RunState,
    SessionConfig,
    ToolResult,
    Usage,
)
from broker_service.domain.state import (
    CallRecord,
    GrantRecord,
    PromptNode,
    RunNode,
    SessionState,
    answer_digest,
    content_digest,
)


def begin(event: SessionEvent) -> SessionState:
    """The state after the first event of a log."""
    created = event.event
    assert isinstance(created, SessionCreated), "a log begins with session_created"
    return SessionState(
        session=created.session,
        config=created.session.config or SessionConfig(),
        version=1,
        update_time=event.create_time,
    )


def apply(state: SessionState, event: SessionEvent) -> None:
    """Fold one event, in place."""
    state.version += 1
    state.update_time = event.create_time
    _fold(state, event.event, event.create_time)


def _fold(state: SessionState, event: Event, now: int) -> None:
    match event:
        case PromptAdded():
            _prompt_added(state, event)
        case RunCreated():
            _run_created(state, event)
        case RunStateChanged():
            _run_state_changed(state, event, now)
        case MessageStarted():
            run = state.runs[event.run_id]
            run.open_message_id = event.message_id
            state.message_nodes[event.message_id] = event.run_id
        case MessageCompleted():
            _message_completed(state, event.message)
        case MessageWithdrawn():
            state.runs[event.run_id].open_message_id = ""
        case RenderHintAdded():
            state.runs[event.run_id].hints[event.hint.tool_call_id] = event.hint
            state.message_nodes[event.message_id] = event.run_id
            record = state.calls.get(event.hint.tool_call_id)
            if record is not None and record.declaration is None:
                record.declaration = event.declaration
        case ToolStarted():
            record = state.calls[event.call_id]
            record.started_by = event.run_id
            record.started_in = event.attempt
            record.idempotent = event.idempotent
        case ToolResultAdded():
            _result_added(state, event)
        case InteractionOpened():
            _interaction_opened(state, event.interaction)
        case AnswerAdded():
            _answer_added(state, event)
        case InteractionClosed():
            interaction = state.interactions[event.interaction_id]
            _close(state, interaction, event.state, now, interaction.answers)
        case NoticeAdded():
            interaction = state.interactions[event.interaction_id]
            state.interactions[interaction.id] = replace(interaction, notice=event.notice)
        case MessageHeld():
            _message_held(state, event)
        case HoldChanged():
            _hold_changed(state, event)
        case HeldMessageRemoved():
            state.held = [h for h in state.held if h.message.id != event.message_id]
        case QueuePaused():
            state.queue_pause = event.pause
        case QueueResumed():
            state.queue_pause = None
            state.failures_in_row = 0
        case BranchSelected():
            state.selected = event.node_id
        case GrantRevoked():
            if grant := state.grants.get(event.grant_id):  # none if its approval was imported (P3)
                grant.revoked = True
        case SessionImported():
            pass  # its time is what counts: the last event's
        case SessionDeleted():
            state.deleted = True
        case OperatorPolicyRecorded():
            state.operator_policies[event.operator_policy.id] = event.operator_policy.policy
        case SessionCreated():
            raise AssertionError("session_created is the first event of a log only")
        case _:
            assert_never(event)


def _prompt_added(state: SessionState, event: PromptAdded) -> None:
    message = event.message
    assert message.role is not None
    state.prompts[message.id] = PromptNode(
        id=message.id,
        parent_id=event.parent_node_id,
        role=message.role,
        author=message.author,
        digest=content_digest(message.parts),
        edits_prompt_id=event.edits_prompt_id,
        messages_before=(
            state.messages_through(event.parent_node_id) if event.parent_node_id else 0
        ),
    )
    state.children.setdefault(event.parent_node_id, []).append(message.id)
    state.message_nodes[message.id] = message.id
    state.nodes.append(message.id)
    if event.was_held:
        state.held = [h for h in state.held if h.message.id != message.id]
    else:
        state.failures_in_row = 0  # a new send starts the count again (G2)
    if event.selected:
        state.selected = message.id


def _run_created(state: SessionState, event: RunCreated) -> None:
    created = event.run
    assert created.state is not None
    assert created.cause is not None
    assert created.create_time is not None
    run = RunNode(
        id=created.id,
        prompt_id=created.prompt_id,
        state=created.state,
        cause=created.cause,
        agent=created.agent,
        create_time=created.create_time,
        update_time=created.create_time,
        origin_id=created.origin_run_id,
        origin_through=event.origin_through_message_id,
        inherited=tuple((i.call_id, i.run_id) for i in event.inherited_results),
        supersedes=created.supersedes_run_id,
        operator_policy_id=created.operator_policy_id,
        trace_context=created.trace_context,
        waits=list(created.waits_for_interaction_ids),
    )
    if created.origin_run_id:
        origin = state.runs[created.origin_run_id]
        run.collecting = True
        run.step = origin.step
        run.message_count = origin.message_count
        run.questions = origin.questions
        run.degraded = origin.degraded
        run.not_handled_tools = origin.not_handled_tools
        run.over_limit_step = origin.over_limit_step
        if event.origin_through_message_id == origin.step_message_id:
            run.step_message_id = origin.step_message_id
            run.step_calls = origin.step_calls
            run.hints = dict(origin.hints)
        for inherited in event.inherited_results:
            recorded = state.recorded_result(inherited.run_id, inherited.call_id)
            run.results[inherited.call_id] = recorded
            run.result_runs[inherited.call_id] = inherited.run_id
            _mark(state, run, recorded)
    state.runs[run.id] = run
    state.nodes.append(run.id)
    state.children.setdefault(run.prompt_id, []).append(run.id)
    state.live_runs[run.id] = None
    if created.supersedes_run_id:
        superseded = state.runs[created.supersedes_run_id]
        # The first successor keeps its place: second answers (F5) supersede the same run again.
        # But a retry takes that of an earlier one, which was cancelled (R6).
        if not superseded.superseded_by or run.cause is RunCause.RETRY:
            superseded.superseded_by = run.id
        superseded.waits = []
        state.live_runs.pop(superseded.id, None)
    if event.selected:
        state.selected = run.id


def _run_state_changed(state: SessionState, event: RunStateChanged, now: int) -> None:
    run = state.runs[event.run_id]
    if event.cause is RunChangeCause.ATTEMPT_LOST:
        run.lost_attempts += 1
    if event.state in (RunState.CANCELLING, RunState.CANCELLED):
        run.cancel_cause = event.cause or run.cancel_cause
    run.state = event.state
    run.update_time = now
    if event.attempt:
        run.attempt = event.attempt
    if event.state is RunState.RUNNING and run.collecting:
        run.collecting = False
        run.fork_results = dict(run.results)
        run.fork_result_runs = dict(run.result_runs)
    run.unplaced = event.unplaced
    run.waits = list(event.waits_for_interaction_ids)
    if event.state in FINAL_STATES:
        run.failure = event.failure
        run.open_message_id = ""
        state.live_runs.pop(run.id, None)
    if event.state is RunState.FAILED:
        state.failures_in_row += 1
        state.last_failed_run = run.id
    elif event.state is RunState.COMPLETED:
        state.failures_in_row = 0


def _message_completed(state: SessionState, message: Message) -> None:
    if message.role is not Role.ASSISTANT:
        return
    run = state.runs[message.run_id]
    calls = message.calls()
    run.open_message_id = ""
    run.step = message.step
    run.message_count += 1
    run.step_message_id = message.id
    run.step_calls = tuple(call.call_id for call in calls)
    run.results = {}
    run.result_runs = {}
    run.hints = {}
    run.lost_attempts = 0
    run.usage = _sum(run.usage, message.usage)
    state.message_nodes[message.id] = run.id
    for call in calls:
        state.calls[call.call_id] = CallRecord(call=call, message_id=message.id, run_id=run.id)
    for part in message.parts:
        # A provider-executed call brings its result in its message.
        if isinstance(part.content, ToolResult):
            run.results[part.content.call_id] = part.content
            run.result_runs[part.content.call_id] = run.id


def _sum(one: Usage | None, other: Usage | None) -> Usage | None:
    if one is None or other is None:
        return one or other
    return Usage(
        one.input_tokens + other.input_tokens,
        one.output_tokens + other.output_tokens,
        one.cached_input_tokens + other.cached_input_tokens,
    )


def _result_added(state: SessionState, event: ToolResultAdded) -> None:
    run = state.runs[event.run_id]
    call_id = event.result.call_id
    record = state.calls[call_id]
    result = event.result
    if event.same_as_run_id:
        same = state.recorded_result(event.same_as_run_id, call_id)
        result = replace(result, output_json=same.output_json, error_text=same.error_text)
        run.lenders |= {event.same_as_run_id}
    run.results[call_id] = result
    run.result_runs[call_id] = event.same_as_run_id or run.id
    if result.answer_id:
        digest = answer_digest(result.output_json, result.error_text)
        state.answer_digests.setdefault(result.answer_id, digest)
    elif record.started and record.result is None:
        record.result = result
        record.result_run = run.result_runs[call_id]
    _mark(state, run, result)


def _mark(state: SessionState, run: RunNode, result: ToolResult) -> None:
    """What a result of the run's step says about its turn (D1 to D3)."""
    if result.kind is ResultKind.NOT_HANDLED:
        run.not_handled_tools |= {state.calls[result.call_id].call.name}
    elif result.kind is ResultKind.UNSUPPORTED_PAYLOAD:
        run.degraded = True
    elif result.kind is ResultKind.QUESTION_LIMIT:
        run.over_limit_step = run.step


def _interaction_opened(state: SessionState, interaction: Interaction) -> None:
    record = state.calls[interaction.call_id]
    run = state.runs[interaction.run_id]
    # What the event leaves out, because the log has it already.
    state.interactions[interaction.id] = replace(
        interaction,
        session_id=state.session.id,
        arguments_json=record.call.arguments_json,
        render_hint=(
            run.hints.get(interaction.call_id)
            if interaction.kind is InteractionKind.CLIENT_TOOL
            else None
        ),
    )
    state.open_interactions[interaction.id] = None
    record.interaction_id = interaction.id
    run.questions += 1


def _answer_added(state: SessionState, event: AnswerAdded) -> None:
    interaction = state.interactions[event.interaction_id]
    answers = (*interaction.answers, event.answer)
    if interaction.state is InteractionState.OPEN or event.state is not interaction.state:
        _close(state, interaction, event.state, event.answer.create_time or 0, answers)
    else:
        state.interactions[interaction.id] = replace(interaction, answers=answers)
    if interaction.kind is InteractionKind.APPROVAL:
        _approval_decided(state, interaction, event.answer)


def _close(
    state: SessionState,
    interaction: Interaction,
    to: InteractionState,
    now: int,
    answers: tuple[Answer, ...],
) -> None:
    for run in state.waiting_runs(interaction.id):
        run.waits.remove(interaction.id)
    state.open_interactions.pop(interaction.id, None)
    state.interactions[interaction.id] = replace(
        interaction, state=to, close_time=now, answers=answers
    )


def _approval_decided(state: SessionState, interaction: Interaction, answer: Answer) -> None:
    granted = answer.approved and not answer.imported  # P3
    if granted and answer.grant_scope is GrantScope.SESSION:
        state.grants[interaction.id] = GrantRecord(
            interaction_id=interaction.id,
            call_id=interaction.call_id,
            run_id=interaction.run_id,
            granted_by=answer.author,
            create_time=answer.create_time or 0,
        )
    else:
        state.grants.pop(interaction.id, None)


def _hold_changed(state: SessionState, event: HoldChanged) -> None:
    for index, held in enumerate(state.held):
        if held.message.id == event.message_id:
            state.held[index] = replace(
                held,
                reason=event.reason,
                waits_for_run_id=event.waits_for_run_id,
                waits_for_interaction_ids=event.waits_for_interaction_ids,
                branch_node_id=event.branch_node_id,
            )


def _message_held(state: SessionState, event: MessageHeld) -> None:
    for index, held in enumerate(state.held):
        if held.message.id == event.held.message.id:
            state.held[index] = event.held
            return
    state.failures_in_row = 0  # a new send starts the count again (G2)
    if event.held.interrupting:
        place = sum(1 for held in state.held if held.interrupting)
        state.held.insert(place, event.held)
    else:
        state.held.append(event.held)
