"""The outbox: numbers, what is sent together, what is joined, heartbeats."""

from __future__ import annotations

import asyncio

from runner_service.outbox import MAX_BATCH_BYTES, MAX_QUEUED_BYTES, Outbox, RunnerEvent
from turngate.v1 import event_pb2, message_pb2, runner_pb2


def delta(text: str, part: int = 0) -> RunnerEvent:
    return RunnerEvent(
        text_delta=event_pb2.TextDelta(
            message_id="m", part_index=part, kind=event_pb2.TEXT_KIND_TEXT, text=text
        )
    )


def result(size: int) -> RunnerEvent:
    found = message_pb2.ToolResult(call_id="c", error_text="x" * size)
    return RunnerEvent(tool_result=runner_pb2.RunnerToolResult(result=found))


async def batches(outbox: Outbox) -> list[list[RunnerEvent]]:
    outbox.close()
    return [list(batch.events) async for batch in outbox.batches()]


async def test_text_that_queues_up_is_joined_and_numbered_once() -> None:
    outbox = Outbox(60)
    numbers = [outbox.put(one) for one in (delta("a"), delta("b"), delta("c", 1), delta("d", 1))]
    assert numbers == [1, 1, 2, 2]
    ((first, second),) = await batches(outbox)
    assert (first.number, first.text_delta.text) == (1, "ab")
    assert (second.number, second.text_delta.text) == (2, "cd")


async def test_text_behind_something_else_is_not_joined() -> None:
    outbox = Outbox(60)
    for event in (delta("a"), result(1), delta("b")):
        outbox.put(event)
    (events,) = await batches(outbox)
    assert [event.number for event in events] == [1, 2, 3]


async def test_what_was_put_together_stays_together() -> None:
    """One message, so that the broker decides it in one commit; others fill up to a size."""
    outbox = Outbox(60)
    large = MAX_BATCH_BYTES * 2 // 3
    outbox.put(result(large), result(large))
    outbox.put(result(large))
    outbox.put(result(1))
    sizes = [len(batch) for batch in await batches(outbox)]
    assert sizes == [2, 2]


async def test_who_writes_too_much_waits_for_room() -> None:
    outbox = Outbox(60)
    outbox.put(result(MAX_QUEUED_BYTES))
    waiting = asyncio.ensure_future(outbox.room())
    done, _ = await asyncio.wait({waiting}, timeout=0.05)
    assert not done
    outbox.close()
    async for _ in outbox.batches():
        pass
    await asyncio.wait_for(waiting, 5)


async def test_heartbeats_fill_silence_and_stop_at_the_end() -> None:
    outbox = Outbox(0.02)
    stream = outbox.batches()
    for number in (1, 2):
        batch = await asyncio.wait_for(anext(stream), 5)
        assert [event.WhichOneof("event") for event in batch.events] == ["heartbeat"]
        assert batch.events[0].number == number
    outbox.end()
    silent = asyncio.ensure_future(anext(stream))
    done, _ = await asyncio.wait({silent}, timeout=0.1)
    assert not done
    outbox.put(result(1))
    assert (await silent).events[0].number == 3
    await stream.aclose()
