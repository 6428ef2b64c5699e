"""E2: a refusal on the wire is small, ASCII where it has to be, and whole where it can be."""

import pytest
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo
from google.rpc.status_pb2 import Status

from turngate_core.errors import Code, Reason, Refusal, invalid_field
from turngate_serving.errors import MAX_DETAILS_BYTES, MAX_MESSAGE_BYTES, wire_status


def details(refusal: Refusal) -> tuple[int, ErrorInfo, BadRequest]:
    ((key, raw),) = wire_status(refusal).trailers
    assert key == "grpc-status-details-bin"
    info, bad_request = ErrorInfo(), BadRequest()
    for detail in Status.FromString(raw).details:
        assert detail.Unpack(info) or detail.Unpack(bad_request)
    return len(raw), info, bad_request


def test_each_reason_has_its_code_on_the_wire() -> None:
    for reason in Reason:
        status = wire_status(Refusal(reason, "so"))
        assert status.code.name == Refusal(reason, "so").code
        _, info, _ = details(Refusal(reason, "so"))
        assert (info.reason, info.domain) == (reason, "turngate")


def test_the_other_code_of_a_reason_is_used() -> None:
    status = wire_status(Refusal(Reason.LIMIT_EXCEEDED, "", code=Code.RESOURCE_EXHAUSTED))
    assert status.code.name == "RESOURCE_EXHAUSTED"


def test_few_violations_are_all_there() -> None:
    _, _, bad_request = details(invalid_field("page_size", "at most 1000"))
    (violation,) = bad_request.field_violations
    assert (violation.field, violation.description) == ("page_size", "at most 1000")


@pytest.mark.parametrize("letter", ["d", "é", "\U0001f600"])
@pytest.mark.parametrize("length", [5, 150, 5000])
def test_many_violations_are_cut_with_a_note(letter: str, length: int) -> None:
    violations = [(f"content.f{number}", letter * length) for number in range(1000)]
    metadata = {"interaction_id": "i" * 128, "other": "o" * 500}
    size, _, bad_request = details(
        Refusal(Reason.INVALID_ANSWER, letter * 2000, metadata, violations)
    )
    assert size <= MAX_DETAILS_BYTES
    *kept, note = bad_request.field_violations
    assert note.description == f"and {1000 - len(kept)} more that do not fit in here"
    assert [violation.field for violation in kept] == [f"content.f{n}" for n in range(len(kept))]
    assert kept


def test_room_is_used_for_violations() -> None:
    size, _, _ = details(Refusal(Reason.INVALID_ANSWER, "", {}, [("a", "b" * 20)] * 1000))
    assert size > MAX_DETAILS_BYTES - 300


def test_a_long_message_is_cut() -> None:
    message = wire_status(Refusal(Reason.INVALID_FIELD, "é" * 5000)).message
    assert len(message.encode()) <= MAX_MESSAGE_BYTES
    assert message.endswith("é...")


def test_metadata_is_ascii() -> None:
    _, info, _ = details(Refusal(Reason.AGENT_NOT_FOUND, "", {"agent": "café \U0001f600\n"}))
    assert info.metadata["agent"] == "caf\\xe9 \\U0001f600\n"


def test_text_with_unpaired_surrogates_can_be_sent() -> None:
    """T2: such text comes in by JSON escapes, and its refusal must not fail."""
    bad = "a\ud800"
    status = wire_status(Refusal(Reason.INVALID_JSON, bad, {"field": bad}, [(bad, bad)]))
    assert status.message == "a\\ud800"
