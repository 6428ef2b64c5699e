"""Well-paired history (T4), from any history that a broker may send."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from runner_service.pairing import calls_of, pair
from turngate.v1 import message_pb2

Message = message_pb2.Message
Part = message_pb2.Part
ToolResult = message_pb2.ToolResult


def prompt(text: str = "hi") -> Message:
    return Message(
        id="p", role=message_pb2.ROLE_USER, parts=[Part(text=message_pb2.TextPart(text=text))]
    )


def call(
    call_id: str,
    executor: message_pb2.ToolExecutor.ValueType = message_pb2.TOOL_EXECUTOR_SERVER,
) -> Part:
    return Part(tool_call=message_pb2.ToolCall(call_id=call_id, name="t", executor=executor))


def result(call_id: str, output: str = "1") -> Part:
    kind = message_pb2.RESULT_KIND_TOOL
    return Part(tool_result=ToolResult(call_id=call_id, output_json=output, kind=kind))


def hint(call_id: str) -> Part:
    return Part(render_hint=message_pb2.RenderHint(tool_call_id=call_id))


def said(*parts: Part) -> Message:
    return Message(id="m", role=message_pb2.ROLE_ASSISTANT, parts=parts)


def test_results_follow_their_message_in_call_order() -> None:
    """T4: whatever order they came in."""
    message = said(call("a"), call("b"), result("b", "2"), result("a", "1"))
    (_, paired) = pair([prompt(), message], 0).messages
    assert [one.output_json for one in paired.results] == ["1", "2"]
    assert [part.WhichOneof("content") for part in paired.message.parts] == ["tool_call"] * 2


def test_a_call_without_result_gets_a_typed_one_that_says_why() -> None:
    (paired,) = pair([said(call("a"))], 0).messages
    (synthetic,) = paired.results
    assert (synthetic.call_id, synthetic.kind) == ("a", message_pb2.RESULT_KIND_RUN_FAILED)
    assert synthetic.error_text


def test_a_synthetic_result_without_text_is_told_in_words() -> None:
    unknown = Part(
        tool_result=ToolResult(call_id="a", kind=message_pb2.RESULT_KIND_OUTCOME_UNKNOWN)
    )
    (paired,) = pair([said(call("a"), unknown)], 0).messages
    assert "may or may not" in paired.results[0].error_text
    assert paired.results[0].kind == message_pb2.RESULT_KIND_OUTCOME_UNKNOWN


def test_an_absent_output_stays_absent() -> None:
    """X4: empty output is an answer."""
    absent = Part(tool_result=ToolResult(call_id="a", kind=message_pb2.RESULT_KIND_CLIENT))
    (paired,) = pair([said(call("a"), absent)], 0).messages
    assert paired.results[0].WhichOneof("outcome") is None


def test_hints_approvals_and_foreign_results_are_not_shown_to_a_model() -> None:
    """H1, A5: they are for clients; a result without a call is nothing."""
    approval = Part(approval_request=message_pb2.ApprovalRequest(call_id="a"))
    decision = Part(approval_decision=message_pb2.ApprovalDecision(call_id="a", approved=True))
    messages = [prompt(), said(call("a"), result("a"), approval, decision), said(hint("a"))]
    messages.append(Message(id="u", role=message_pb2.ROLE_USER, parts=[result("x")]))
    paired = pair(messages, 0).messages
    assert len(paired) == 2
    assert [part.WhichOneof("content") for part in paired[1].message.parts] == ["tool_call"]


def test_the_turn_start_follows_messages_that_are_left_out() -> None:
    """T5: computed on the branch, kept through pairing."""
    paired = pair([prompt("one"), said(hint("a")), prompt("two"), said(call("b"))], 2)
    assert paired.messages[paired.turn_start].message.parts[0].text.text == "two"


def test_what_the_provider_executed_stays_with_its_call() -> None:
    message = said(call("a", message_pb2.TOOL_EXECUTOR_PROVIDER), result("a"), call("b"))
    (paired,) = pair([message], 0).messages
    kinds = [part.WhichOneof("content") for part in paired.message.parts]
    assert kinds == ["tool_call", "tool_result", "tool_call"]
    assert [one.call_id for one in paired.results] == ["b"]


def test_the_history_that_came_in_is_not_changed() -> None:
    message = said(call("a"), result("a"), hint("a"))
    before = message.SerializeToString(deterministic=True)
    pair([message], 0)
    assert message.SerializeToString(deterministic=True) == before


_IDS = st.sampled_from(["a", "b", "c", "d"])
_PARTS = st.one_of(
    st.builds(call, _IDS, st.sampled_from(list(message_pb2.ToolExecutor.values()))),
    st.builds(result, _IDS),
    st.builds(hint, _IDS),
    st.just(Part(text=message_pb2.TextPart(text="x"))),
)
_MESSAGES = st.builds(
    lambda role, parts: Message(role=role, parts=parts),
    st.sampled_from([message_pb2.ROLE_USER, message_pb2.ROLE_ASSISTANT]),
    st.lists(_PARTS, max_size=6),
)


@given(st.lists(_MESSAGES, max_size=6))
def test_every_history_comes_out_well_paired(messages: list[Message]) -> None:
    """T4, for histories of any shape, foreign ones included."""
    for paired in pair(messages, 0).messages:
        expected = [one.call_id for one in calls_of(paired.message)]
        assert [one.call_id for one in paired.results] == expected
        parts = list(paired.message.parts)
        for index, part in enumerate(parts):
            if part.WhichOneof("content") == "tool_result":
                before = parts[index - 1].tool_call
                assert before.executor == message_pb2.TOOL_EXECUTOR_PROVIDER
                assert before.call_id == part.tool_result.call_id
