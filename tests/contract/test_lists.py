"""Lists: sessions newest first, open interactions oldest first, by who may see them (P1, I5)."""

import pytest

from broker_service.storage.port import (
    DeleteInteraction,
    PutInteraction,
    SessionFilter,
    SessionKey,
    Store,
    Write,
)
from tests.contract.samples import S, row

ACME = SessionFilter("acme")


async def sessions(store: Store, where: SessionFilter = ACME, limit: int = 100) -> list[str]:
    """All pages, one after the other."""
    found: list[str] = []
    after = None
    while True:
        page = await store.list_sessions(where, after, limit)
        found += [payload.decode() for payload in page.rows]
        if page.next_after is None:
            return found
        assert len(page.rows) == limit
        after = page.next_after


async def interactions(store: Store, where: SessionFilter = ACME, limit: int = 100) -> list[str]:
    found: list[str] = []
    after = None
    while True:
        page = await store.list_interactions(where, after, limit)
        found += [payload.decode() for payload in page.rows]
        if page.next_after is None:
            return found
        assert len(page.rows) == limit
        after = page.next_after


async def test_sessions_are_listed_newest_first_ties_by_id(store: Store) -> None:
    await store.commit(
        Write(effects=(row("b", 10), row("d", 30), row("a", 20), row("c", 20), row("e", 5)))
    )
    expected = ["d", "c", "a", "b", "e"]
    for limit in (1, 2, 3, 5, 100):
        assert await sessions(store, limit=limit) == expected


async def test_a_full_last_page_has_no_next(store: Store) -> None:
    await store.commit(Write(effects=(row("a", 1), row("b", 2))))
    page = await store.list_sessions(ACME, None, 2)
    assert (page.rows, page.next_after) == ((b"b", b"a"), None)
    assert (await store.list_sessions(ACME, None, 1)).next_after == (2, "b")


async def test_pages_are_stable_while_others_are_added_and_updated(store: Store) -> None:
    await store.commit(Write(effects=tuple(row(f"s{n}", n) for n in range(6))))
    first = await store.list_sessions(ACME, None, 3)
    await store.commit(Write(effects=(row("new", 99), row("s3", 3, payload="s3 moved"))))
    second = await store.list_sessions(ACME, first.next_after, 3)
    assert (*first.rows, *second.rows) == (b"s5", b"s4", b"s3", b"s2", b"s1", b"s0")
    assert await store.find_session(SessionKey("acme", "s3")) == b"s3 moved"


@pytest.mark.parametrize("limit", [1, 100])
async def test_a_principal_sees_what_it_owns_or_takes_part_in(store: Store, limit: int) -> None:
    """P1"""
    await store.commit(
        Write(
            effects=(
                row("own", 1, owner="ann"),
                row("part", 2, owner="bob", participants=("cid", "ann")),
                row("both", 3, owner="ann", participants=("ann",)),
                row("others", 4, owner="bob", participants=("cid",)),
                row("theirs", 5, owner="ann", tenant="umbra"),
            )
        )
    )
    assert await sessions(store, SessionFilter("acme", "ann"), limit) == ["both", "part", "own"]
    assert await sessions(store, SessionFilter("acme", "cid"), limit) == ["others", "part"]
    assert await sessions(store, SessionFilter("acme", "nobody"), limit) == []
    assert await sessions(store, SessionFilter("acme"), limit) == ["others", "both", "part", "own"]
    assert await sessions(store, SessionFilter("umbra"), limit) == ["theirs"]


async def test_sessions_are_found_by_all_labels_together(store: Store) -> None:
    await store.commit(
        Write(
            effects=(
                row("a", 1, labels=(("team", "red"), ("env", "prod"))),
                row("b", 2, labels=(("team", "red"),)),
                row("c", 3, owner="bob", labels=(("team", "red"), ("env", "prod"))),
                row("d", 4, labels=(("env", "team"),)),
            )
        )
    )
    red, prod = ("team", "red"), ("env", "prod")
    assert await sessions(store, SessionFilter("acme", labels=(red,)), 1) == ["c", "b", "a"]
    assert await sessions(store, SessionFilter("acme", labels=(red, prod)), 1) == ["c", "a"]
    assert await sessions(store, SessionFilter("acme", "ann", (prod, red)), 1) == ["a"]
    assert await sessions(store, SessionFilter("acme", labels=(("red", "team"),))) == []


async def test_a_changed_row_is_found_by_its_new_people_and_labels_only(store: Store) -> None:
    await store.commit(Write(effects=(row("s1", 1, "ann", ("bob",), (("x", "1"),)),)))
    await store.commit(Write(effects=(row("s1", 1, "cid", ("dan",), (("x", "2"),)),)))
    for principal, expected in (("ann", []), ("bob", []), ("cid", ["s1"]), ("dan", ["s1"])):
        assert await sessions(store, SessionFilter("acme", principal)) == expected
    assert await sessions(store, SessionFilter("acme", labels=(("x", "1"),))) == []
    assert await sessions(store, SessionFilter("acme", labels=(("x", "2"),))) == ["s1"]
    assert await sessions(store) == ["s1"]


async def test_find_session_knows_tenant_and_id(store: Store) -> None:
    await store.commit(Write(effects=(row("s1", 1),)))
    assert await store.find_session(S) == b"s1"
    assert await store.find_session(SessionKey("umbra", "s1")) is None
    assert await store.find_session(SessionKey("acme", "s2")) is None


def opened(session: str, name: str, at: int, tenant: str = "acme") -> PutInteraction:
    return PutInteraction(SessionKey(tenant, session), name, at, name.encode())


async def test_the_inbox_lists_what_is_open_oldest_first(store: Store) -> None:
    """I5"""
    await store.commit(
        Write(
            effects=(
                opened("s1", "i3", 30),
                opened("s2", "i1", 10),
                opened("s1", "i2b", 20),
                opened("s2", "i2a", 20),
                opened("s1", "theirs", 1, tenant="umbra"),
            )
        )
    )
    for limit in (1, 2, 4, 100):
        assert await interactions(store, limit=limit) == ["i1", "i2a", "i2b", "i3"]


async def test_a_closed_interaction_leaves_the_inbox(store: Store) -> None:
    await store.commit(Write(effects=(opened("s1", "i1", 1), opened("s1", "i2", 2))))
    await store.commit(Write(effects=(DeleteInteraction(S, "i1"),)))
    assert await interactions(store) == ["i2"]
    await store.commit(Write(effects=(DeleteInteraction(S, "i1"),)))  # gone already: no error


async def test_an_interaction_row_can_be_replaced(store: Store) -> None:
    await store.commit(Write(effects=(opened("s1", "i1", 1), opened("s1", "i2", 2))))
    await store.commit(Write(effects=(PutInteraction(S, "i1", 1, b"i1, other branch"),)))
    assert await interactions(store) == ["i1, other branch", "i2"]


async def test_pages_of_the_inbox_are_stable_while_others_open_and_close(store: Store) -> None:
    await store.commit(Write(effects=tuple(opened("s1", f"i{n}", n) for n in range(6))))
    first = await store.list_interactions(ACME, None, 3)
    await store.commit(Write(effects=(opened("s1", "i9", 9), DeleteInteraction(S, "i2"))))
    assert first.next_after is not None
    second = await store.list_interactions(ACME, first.next_after, 9)
    assert second.rows == (b"i3", b"i4", b"i5", b"i9")


@pytest.mark.parametrize("limit", [1, 100])
async def test_the_inbox_is_cut_by_the_sessions_that_a_caller_may_see(
    store: Store, limit: int
) -> None:
    """I5, P1"""
    await store.commit(
        Write(
            effects=(
                row("s1", 1, "ann", ("bob",), (("team", "red"),)),
                row("s2", 2, "bob"),
                row("s1", 3, "ann", tenant="umbra"),
                row("s2", 3, "ann", (), (("team", "red"),), tenant="umbra"),
                opened("s1", "i1", 1),
                opened("s2", "i2", 2),
                opened("s1", "i3", 3),
                opened("s1", "theirs", 4, tenant="umbra"),
            )
        )
    )
    assert await interactions(store, SessionFilter("acme", "ann"), limit) == ["i1", "i3"]
    assert await interactions(store, SessionFilter("acme", "bob"), limit) == ["i1", "i2", "i3"]
    assert await interactions(store, SessionFilter("acme", "cid"), limit) == []
    red = SessionFilter("acme", "bob", (("team", "red"),))
    assert await interactions(store, red, limit) == ["i1", "i3"]


async def test_an_empty_page_is_refused(store: Store) -> None:
    with pytest.raises(ValueError, match="limit"):
        await store.list_sessions(ACME, None, 0)
    with pytest.raises(ValueError, match="limit"):
        await store.list_interactions(ACME, None, 0)
