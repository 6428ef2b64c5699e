"""Listeners: told once, in order, and never before it is durable (W1)."""

import asyncio

import pytest

from broker_service.storage.port import (
    Append,
    SessionKey,
    Store,
    StoredEntry,
    VersionConflict,
    Write,
)
from tests.contract.harness import Harness
from tests.contract.samples import OTHER, S, delta, event, everything, fence, held, texts, write

Call = tuple[SessionKey, int, tuple[StoredEntry, ...]]


class Recorder:
    def __init__(self) -> None:
        self.calls: list[Call] = []

    def __call__(
        self, session: SessionKey, position: int, entries: tuple[StoredEntry, ...]
    ) -> None:
        self.calls.append((session, position, entries))


async def test_a_listener_gets_session_last_position_and_entries(store: Store) -> None:
    recorder = Recorder()
    store.listen(recorder)
    first = await store.commit(write(event("a"), event("b"), effects=(held(),)))
    second = await store.commit(write(delta("c"), at=None, fence=fence()))
    assert recorder.calls == [(S, 2, first.entries[0]), (S, 3, second.entries[0])]


async def test_a_listener_hears_of_each_session_of_a_write(store: Store) -> None:
    recorder = Recorder()
    store.listen(recorder)
    await store.commit(Write((Append(S, (event(),), 0), Append(OTHER, (event(),), 0))))
    assert [(session, position) for session, position, _ in recorder.calls] == [(S, 1), (OTHER, 1)]


async def test_no_listener_hears_of_what_is_not_durable(store: Store, harness: Harness) -> None:
    """W1, seen from within the listener through a connection of its own."""
    seen: list[tuple[int, int | None]] = []
    store.listen(
        lambda session, position, _: seen.append((position, harness.durable_position(session)))
    )
    await asyncio.gather(
        *(store.commit(write(event(), session=SessionKey("acme", f"g{n}"))) for n in range(10))
    )
    for version in range(10):
        await store.commit(write(event(), at=version))
    assert seen == [(1, 1)] * 10 + [(n, n) for n in range(1, 11)]


async def test_nothing_is_heard_of_a_refused_write_or_of_effects_alone(store: Store) -> None:
    recorder = Recorder()
    store.listen(recorder)
    with pytest.raises(VersionConflict):
        await store.commit(write(event(), at=3))
    await store.commit(Write(effects=(held(),)))
    await store.commit(write(at=0))
    assert recorder.calls == []


async def test_each_listener_hears_each_entry_once_and_in_order(store: Store) -> None:
    recorders = [Recorder(), Recorder()]
    for recorder in recorders:
        store.listen(recorder)
    await store.commit(write(event(), effects=(held(),)))
    await asyncio.gather(
        *(store.commit(write(delta(str(n)), at=None, fence=fence())) for n in range(50)),
        *(store.commit(write(event(), at=n)) for n in (1, 2, 3)),
    )
    stored = await everything(store)
    for recorder in recorders:
        heard = tuple(entry for _, _, entries in recorder.calls for entry in entries)
        assert heard == stored
        assert all(position == entries[-1].position for _, position, entries in recorder.calls)


async def test_who_committed_goes_on_after_the_listeners(store: Store) -> None:
    """So that who has its answer finds it in every watch."""
    recorder = Recorder()
    store.listen(recorder)
    for version in range(5):
        await store.commit(write(event(), at=version))
        assert len(recorder.calls) == version + 1


async def test_a_listener_that_fails_keeps_nothing_from_the_others(store: Store) -> None:
    reported: list[str] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: reported.append(str(context["exception"])))

    def broken(session: SessionKey, position: int, entries: tuple[StoredEntry, ...]) -> None:
        raise LookupError("broken listener")

    recorder = Recorder()
    store.listen(broken)
    store.listen(recorder)
    await store.commit(write(event("a")))
    await store.commit(write(event("b"), at=1))
    assert [texts(entries) for _, _, entries in recorder.calls] == [["a"], ["b"]]
    assert reported == ["broken listener"] * 2
