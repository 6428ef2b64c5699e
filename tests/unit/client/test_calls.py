"""Unary calls: request ids, safe retries, and errors that a program can act on (E1, E2)."""

from __future__ import annotations

import grpc
import pytest

from tests.unit.client.fake_broker import Failure, FakeBroker, serving
from turngate.v1 import broker_pb2 as pb
from turngate_client import RetryPolicy, TurngateClient, TurngateError

QUICK = RetryPolicy(timeout=5.0, first_pause=0.001, longest_pause=0.01)
STARTED = pb.SendMessageResponse(outcome=pb.SEND_OUTCOME_STARTED, run_id="r-1")


async def test_E1_a_retry_repeats_the_same_request_id() -> None:
    away = Failure(grpc.StatusCode.UNAVAILABLE, "SHUTTING_DOWN")
    async with (
        serving(FakeBroker(sends=[away, away, STARTED])) as broker,
        TurngateClient(broker.address, retry=QUICK) as client,
    ):
        assert (await client.session("s-1").send("hi")).run_id == "r-1"
    [first, *others] = [one.request_id for one in broker.send_requests]
    assert first
    assert others == [first, first]


async def test_E1_each_command_has_a_request_id_of_its_own_unless_given() -> None:
    async with (
        serving(FakeBroker(sends=[STARTED] * 3)) as broker,
        TurngateClient(broker.address, retry=QUICK) as client,
    ):
        session = client.session("s-1")
        await session.send("hi")
        await session.send("hi")
        await session.send("hi", request_id="mine")
    ids = [one.request_id for one in broker.send_requests]
    assert len(set(ids)) == 3
    assert ids[2] == "mine"


async def test_a_refusal_is_not_tried_again() -> None:
    refusal = Failure(grpc.StatusCode.FAILED_PRECONDITION, "SESSION_BUSY")
    async with (
        serving(FakeBroker(sends=[refusal, STARTED])) as broker,
        TurngateClient(broker.address, retry=QUICK) as client,
    ):
        with pytest.raises(TurngateError, match="SESSION_BUSY"):
            await client.session("s-1").send("hi")
    assert len(broker.send_requests) == 1


async def test_retries_end_with_the_deadline_and_the_last_error() -> None:
    policy = RetryPolicy(timeout=0.2, first_pause=0.01, longest_pause=0.02)
    away = Failure(grpc.StatusCode.UNAVAILABLE, "STORE_UNAVAILABLE")
    async with (
        serving(FakeBroker(sends=[away] * 100)) as broker,
        TurngateClient(broker.address, retry=policy) as client,
    ):
        with pytest.raises(TurngateError, match="STORE_UNAVAILABLE"):
            await client.session("s-1").send("hi")
    assert 2 < len(broker.send_requests) < 30


async def test_nobody_at_the_address_is_an_error_with_the_code_only() -> None:
    policy = RetryPolicy(timeout=0.1, first_pause=0.01)
    async with TurngateClient("127.0.0.1:1", retry=policy) as client:
        with pytest.raises(TurngateError) as caught:
            await client.session("s-1").send("hi")
    assert (caught.value.code, caught.value.reason) == (grpc.StatusCode.UNAVAILABLE, "")


async def test_E2_reason_metadata_and_violations_are_decoded() -> None:
    refusal = Failure(
        grpc.StatusCode.INVALID_ARGUMENT,
        "INVALID_ANSWER",
        "the answer does not fit the form",
        {"interaction_id": "i-1"},
        (("/content/city", "is required"), ("/content/nights", "must be at most 14")),
    )
    async with (
        serving(FakeBroker(sends=[refusal])) as broker,
        TurngateClient(broker.address, retry=QUICK) as client,
    ):
        with pytest.raises(TurngateError) as caught:
            await client.session("s-1").send("hi")
    error = caught.value
    assert error.code is grpc.StatusCode.INVALID_ARGUMENT
    assert error.reason == "INVALID_ANSWER"
    assert error.metadata == {"interaction_id": "i-1"}
    assert [(one.field, one.description) for one in error.violations] == [
        ("/content/city", "is required"),
        ("/content/nights", "must be at most 14"),
    ]
    assert str(error) == "INVALID_ANSWER: the answer does not fit the form"


async def test_P2_user_and_client_name_travel_as_metadata() -> None:
    async with (
        serving(FakeBroker(sends=[STARTED])) as broker,
        TurngateClient(broker.address, user="ann", client_name="laptop") as client,
    ):
        await client.session("s-1").send("hi")
    [metadata] = broker.metadata
    assert (metadata["turngate-user"], metadata["turngate-client"]) == ("ann", "laptop")


@pytest.mark.parametrize("name", ["Åsa", "a\nb"])
async def test_a_name_that_metadata_cannot_carry_is_refused_at_once(name: str) -> None:
    with pytest.raises(ValueError, match="turngate-user must be printable ASCII"):
        TurngateClient("127.0.0.1:1", user=name)


def test_pauses_grow_to_a_limit_and_vary() -> None:
    policy = RetryPolicy(first_pause=0.1, longest_pause=1.0)
    pauses = [policy.pause_before(attempt, 0.0) for attempt in range(2, 9)]
    assert pauses == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0, 1.0]
    assert policy.pause_before(1_000_000, 0.0) == 1.0
    assert policy.pause_before(2, 0.999) == pytest.approx(0.075, rel=0.01)
