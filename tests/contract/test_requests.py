"""The request ledger (E1)."""

import asyncio

import pytest

from broker_service.storage.port import (
    FenceLost,
    RecordedRequest,
    RememberRequest,
    RequestAlreadyRecorded,
    RequestKey,
    Store,
    WorkKind,
    Write,
)
from tests.contract.harness import Harness
from tests.contract.samples import REQUEST, event, everything, fence, held, texts, write


def remember(response: bytes, keep_until: int | None = None) -> RememberRequest:
    return RememberRequest(REQUEST, b"fingerprint", response, keep_until)


async def test_the_first_answer_is_found_again(store: Store) -> None:
    assert await store.find_request(REQUEST) is None
    await store.commit(write(event(), effects=(remember(b"first"),)))
    assert await store.find_request(REQUEST) == RecordedRequest(b"fingerprint", b"first")


async def test_the_second_of_one_id_fails_as_a_whole(store: Store) -> None:
    """E1: of two that meet, one is stored, and the other one finds its answer."""
    await store.commit(write(event("a"), effects=(remember(b"first"),)))
    with pytest.raises(RequestAlreadyRecorded) as refused:
        await store.commit(write(event("b"), at=1, effects=(held(), remember(b"second"))))
    assert refused.value.key == REQUEST
    assert texts(await everything(store)) == ["a"]
    assert await store.renew("b1", [held().work], 5) == set()
    assert await store.find_request(REQUEST) == RecordedRequest(b"fingerprint", b"first")


async def test_a_repeated_request_is_told_before_the_version_that_its_twin_moved(
    store: Store,
) -> None:
    await store.commit(write(event("a"), effects=(remember(b"first"),)))
    with pytest.raises(RequestAlreadyRecorded):
        await store.commit(write(event("b"), at=0, effects=(remember(b"second"),)))


async def test_ten_at_once_leave_one_answer(store: Store) -> None:
    outcomes = await asyncio.gather(
        *(store.commit(Write(effects=(remember(b"%d" % n),))) for n in range(10)),
        return_exceptions=True,
    )
    (winner,) = (n for n, outcome in enumerate(outcomes) if not isinstance(outcome, Exception))
    assert sum(isinstance(outcome, RequestAlreadyRecorded) for outcome in outcomes) == 9
    assert await store.find_request(REQUEST) == RecordedRequest(b"fingerprint", b"%d" % winner)


async def test_an_id_belongs_to_tenant_session_principal_and_method(store: Store) -> None:
    await store.commit(Write(effects=(remember(b"first"),)))
    for other in (
        REQUEST._replace(tenant_id="umbra"),
        REQUEST._replace(session_id=""),
        REQUEST._replace(principal="bob"),
        REQUEST._replace(method="CancelRun"),
        REQUEST._replace(request_id="req-2"),
    ):
        assert await store.find_request(other) is None
        await store.commit(Write(effects=(RememberRequest(other, b"f", b"other"),)))
        assert await store.find_request(other) == RecordedRequest(b"f", b"other")
    assert await store.find_request(REQUEST) == RecordedRequest(b"fingerprint", b"first")


async def test_a_request_that_has_run_out_is_as_if_it_had_never_been(
    store: Store, harness: Harness
) -> None:
    now = harness.clock.instant
    await store.commit(Write(effects=(remember(b"first", now + 10),)))
    harness.clock.advance(9)
    assert await store.find_request(REQUEST) is not None
    harness.clock.advance(1)
    assert await store.find_request(REQUEST) is None
    await store.commit(write(event(), effects=(remember(b"second", now + 99),)))
    assert await store.find_request(REQUEST) == RecordedRequest(b"fingerprint", b"second")


async def test_what_is_kept_outlives_the_sweep_of_what_has_run_out(
    store: Store, harness: Harness
) -> None:
    """E1: settlements, decisions and messages are remembered as long as the session lives."""
    keys = [RequestKey("acme", "s1", "ann", "CancelRun", f"r{n}") for n in range(30)]
    now = harness.clock.instant
    await store.commit(Write(effects=(remember(b"for ever"),)))
    for n, key in enumerate(keys):
        await store.commit(Write(effects=(RememberRequest(key, b"f", b"r", now + 1_000 * n),)))
    harness.clock.advance(15_000)
    for _ in range(3):  # a store may sweep now and then, with whatever it writes
        harness.clock.advance(100_000)
        await store.claim(WorkKind.RUN, "b1", store.now() + 1, 1)
    assert await store.find_request(REQUEST) == RecordedRequest(b"fingerprint", b"for ever")
    assert [await store.find_request(key) for key in keys] == [None] * 30


async def test_many_that_have_run_out_are_swept_and_none_that_has_not(
    store: Store, harness: Harness
) -> None:
    """E3: the ledger does not grow with all that was ever asked."""
    now = harness.clock.instant
    keys = [RequestKey("acme", "s1", "ann", "CancelRun", f"r{n}") for n in range(2_500)]
    await store.commit(
        Write(
            effects=tuple(
                RememberRequest(key, b"f", b"r", now + (10 if n % 5 else 10_000_000))
                for n, key in enumerate(keys)
            )
        )
    )
    for _ in range(5):
        harness.clock.advance(100_000)
        await store.claim(WorkKind.RUN, "b1", store.now() + 1, 1)
    found = [await store.find_request(key) is not None for key in keys[:100]]
    assert found == [n % 5 == 0 for n in range(100)]
    assert harness.count_requests() == 500


async def test_a_lost_fence_is_told_before_a_repeated_request(store: Store) -> None:
    await store.commit(write(event(), effects=(held(), remember(b"first"))))
    with pytest.raises(FenceLost):
        await store.commit(write(event(), at=1, fence=fence("b2"), effects=(remember(b"x"),)))
