"""PostgreSQL's own: the order in which own and foreign news reach the listeners (W1)."""

import asyncio

from broker_service.storage.listeners import Listeners
from broker_service.storage.port import EntryKind, SessionKey, StoredEntry
from broker_service.storage.postgres_group import Head, Rows
from broker_service.storage.postgres_notices import Announcements
from broker_service.storage.postgres_sql import noticed, notices
from tests.contract.recorder import Recorder
from tests.contract.samples import OTHER, S


def entry(position: int) -> StoredEntry:
    return StoredEntry(position, position, EntryKind.EVENT, b"", "", "")


async def heard(recorder: Recorder) -> list[tuple[int, int]]:
    """What was heard of S so far: position and number of entries."""
    turn = asyncio.Event()
    asyncio.get_running_loop().call_soon(turn.set)  # after what is scheduled already
    await turn.wait()
    return [(position, len(entries)) for session, position, entries in recorder.calls]


def announcements() -> tuple[Announcements, Recorder]:
    listeners = Listeners(asyncio.get_running_loop())
    recorder = Recorder()
    listeners.add(recorder)
    return Announcements(listeners), recorder


async def test_foreign_news_that_comes_late_is_told_before_the_own_commit_and_then_dropped() -> (
    None
):
    news, recorder = announcements()
    news.own([(S, 1, (entry(1),))])
    news.own([(S, 4, (entry(3), entry(4)))])  # 2 was another replica's
    news.foreign(S, 2)
    assert await heard(recorder) == [(1, 1), (2, 0), (4, 2)]


async def test_foreign_news_that_comes_early_waits_for_the_own_commit_before_it() -> None:
    news, recorder = announcements()
    with news.held():
        news.foreign(S, 2)
        news.foreign(OTHER, 7)
        assert await heard(recorder) == []
        news.own([(S, 1, (entry(1),))])
    assert await heard(recorder) == [(1, 1), (2, 0), (7, 0)]


async def test_own_news_that_comes_back_tells_nothing_unless_its_commit_was_in_doubt() -> None:
    news, recorder = announcements()
    with news.held():
        news.own([(S, 1, (entry(1),))])
    news.foreign(S, 1)
    assert await heard(recorder) == [(1, 1)]
    with news.held():
        news.foreign(S, 2)  # own, and the connection breaks before its COMMIT is answered
    news.foreign(S, 3)  # own, and heard of only after that
    assert await heard(recorder) == [(1, 1), (2, 0), (3, 0)]


def test_payloads_say_what_they_were_made_from_and_fit_a_notification() -> None:
    rows = Rows()
    keys = [SessionKey("é" * 20, f'"{n}\n' * 10) for n in range(300)]
    rows.created = {key: Head(n, 1, n + 1) for n, key in enumerate(keys[:100])}
    rows.moved = {key: Head(n, 1, n + 101) for n, key in enumerate(keys[100:])}
    payloads = notices(rows)
    assert len(payloads) > 1
    assert all(len(payload.encode()) < 8_000 for payload in payloads)
    told = [pair for payload in payloads for pair in noticed(payload)]
    assert told == [(key, n + 1) for n, key in enumerate(keys)]
    assert notices(Rows()) == []
