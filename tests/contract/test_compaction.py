"""Compaction: deltas of finished messages go, everything else stays where it is (W3)."""

from broker_service.storage.port import (
    DeleteDeltas,
    Loaded,
    SessionKey,
    Store,
    Write,
)
from tests.contract.harness import Harness
from tests.contract.recorder import Recorder
from tests.contract.samples import OTHER, S, delta, event, everything, fence, held, texts, write


async def fill(store: Store, session: SessionKey = S) -> None:
    """Positions 1-8: a run with m1 and m2, which are finished, and m3, which is not."""
    await store.commit(write(event("r", "run1"), session=session, effects=(held(),)))
    await store.commit(
        write(
            delta("a", subject_id="m1"),
            delta("b", subject_id="m1"),
            session=session,
            at=None,
            fence=fence(),
        )
    )
    await store.commit(
        write(
            event("m1 whole", "run1", "m1"),
            delta("x", subject_id="m2"),
            event("m2 withdrawn", "run1", "m2"),
            delta("y", subject_id="m3"),
            delta("z", subject_id="m3"),
            session=session,
            at=1,
        )
    )


async def test_deltas_of_these_subjects_are_removed_and_their_events_stay(store: Store) -> None:
    """W3: withdrawals and ends are kept, under the positions that they had."""
    await fill(store)
    await store.commit(Write(effects=(DeleteDeltas(S, ("m1", "m2")),)))
    kept = await everything(store)
    assert [(entry.position, entry.payload.decode()) for entry in kept] == [
        (1, "r"),
        (4, "m1 whole"),
        (6, "m2 withdrawn"),
        (7, "y"),
        (8, "z"),
    ]
    assert [entry.version for entry in kept] == [1, 2, 3, 3, 3]
    assert texts(await store.read_subject(S, "m1")) == ["m1 whole"]
    assert texts(await store.read_nodes(S, ["run1"])) == texts(kept)


async def test_reads_after_any_position_skip_what_was_removed(store: Store) -> None:
    """W1: the rest after any cursor is the rest of what is kept."""
    await fill(store)
    await store.commit(Write(effects=(DeleteDeltas(S, ("m1", "m2")),)))
    kept = (1, 4, 6, 7, 8)
    for after in range(9):
        rest = await store.read(S, after, 100, 1_000)
        assert tuple(e.position for e in rest) == tuple(p for p in kept if p > after)


async def test_the_log_goes_on_behind_deltas_removed_at_its_end(store: Store) -> None:
    await fill(store)
    await store.commit(Write(effects=(DeleteDeltas(S, ("m3",)),)))
    assert await store.last_position(S) == 8
    await store.commit(write(event("next"), at=3))
    assert (await everything(store))[-1].position == 9
    assert texts(await everything(store))[-2:] == ["m2 withdrawn", "next"]


async def test_what_is_folded_is_the_same_after_compaction(store: Store) -> None:
    await fill(store)
    before = await store.load(S)
    await store.commit(Write(effects=(DeleteDeltas(S, ("m1", "m2", "m3")),)))
    assert isinstance(before, Loaded)
    assert await store.load(S) == before


async def test_other_sessions_with_the_same_subject_keep_theirs(store: Store) -> None:
    await fill(store)
    theirs = SessionKey("umbra", "s1")
    for session in (OTHER, theirs):
        await store.commit(write(event("e"), delta("d", subject_id="m1"), session=session))
    await store.commit(Write(effects=(DeleteDeltas(S, ("m1",)),)))
    for session in (OTHER, theirs):
        assert texts(await everything(store, session)) == ["e", "d"]


async def test_nothing_to_remove_is_no_error(store: Store) -> None:
    await fill(store)
    whole = await everything(store)
    await store.commit(
        Write(
            effects=(
                DeleteDeltas(S, ("none", "")),
                DeleteDeltas(S, ()),
                DeleteDeltas(SessionKey("acme", "none"), ("m1",)),
            )
        )
    )
    assert await everything(store) == whole


async def test_listeners_hear_nothing_of_it(store: Store) -> None:
    await fill(store)
    recorder = Recorder()
    store.listen(recorder)
    await store.commit(Write(effects=(DeleteDeltas(S, ("m1",)),)))
    await store.commit(write(event("next"), at=3))
    await recorder.until_at(S, 9)
    assert [texts(entries) for _, _, entries in recorder.calls] == [["next"]]


async def test_what_was_removed_stays_removed_after_a_restart(harness: Harness) -> None:
    store = await harness.open()
    await fill(store)
    await store.commit(Write(effects=(DeleteDeltas(S, ("m1", "m2")),)))
    await store.close()
    again = await harness.open()
    try:
        assert texts(await everything(again)) == ["r", "m1 whole", "m2 withdrawn", "y", "z"]
    finally:
        await again.close()
