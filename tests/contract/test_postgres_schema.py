"""PostgreSQL's own: migrations, and what is refused when it is opened."""

import asyncio

import pytest

from broker_service.storage import postgres_schema
from broker_service.storage.port import StoreUnavailable, StoreUnusable
from broker_service.storage.postgres import migrate, open_postgres
from tests.contract.postgres_server import PostgresServer, ask
from tests.contract.samples import S, event, write


@pytest.fixture
def url(postgres: PostgresServer) -> str:
    return postgres.new_schema()


def tables(url: str) -> list[str]:
    return [
        name
        for (name,) in ask(
            url, "SELECT tablename FROM pg_tables WHERE schemaname = current_schema() ORDER BY 1"
        )
    ]


async def test_brokers_that_migrate_at_once_do_it_once(url: str) -> None:
    """Replicas start together, each with the setting that says so."""
    versions = await asyncio.gather(*(migrate(url) for _ in range(5)))
    assert versions == [postgres_schema.VERSION] * 5
    assert await migrate(url) == postgres_schema.VERSION  # once more is no error
    store = await open_postgres(url)
    await store.commit(write(event()))
    await store.close()


async def test_a_migrated_store_keeps_what_it_has(url: str) -> None:
    store = await open_postgres(url, migrate=True)
    await store.commit(write(event()))
    await store.close()
    await migrate(url)
    store = await open_postgres(url, migrate=True)
    assert await store.last_position(S) == 1
    await store.close()


async def test_an_older_schema_is_served_only_after_a_migration(url: str) -> None:
    with pytest.raises(StoreUnusable, match=r"version 0, .* needs version 1: run `turngate migr"):
        await open_postgres(url)
    assert tables(url) == []


async def test_a_newer_schema_is_refused_by_its_version(url: str) -> None:
    await migrate(url)
    ask(url, "UPDATE turngate_schema SET version = 99")
    why = f"version 99, this broker knows versions up to {postgres_schema.VERSION}"
    for wanted in (True, False):
        with pytest.raises(StoreUnusable, match=why):
            await open_postgres(url, migrate=wanted)
    with pytest.raises(StoreUnusable, match=why):
        await migrate(url)


async def test_the_tables_of_another_program_are_not_touched(url: str) -> None:
    ask(url, "CREATE TABLE sessions (id integer)")
    with pytest.raises(StoreUnusable, match=r"a table sessions of another program.*search_path"):
        await open_postgres(url, migrate=True)
    assert tables(url) == ["sessions"]


async def test_a_migration_that_fails_leaves_nothing(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is one transaction."""
    broken = (*postgres_schema.STEPS, ("CREATE TABLE new (id integer)", "no SQL at all"))
    with monkeypatch.context() as patched:
        patched.setattr(postgres_schema, "STEPS", broken)
        patched.setattr(postgres_schema, "VERSION", 2)
        with pytest.raises(StoreUnavailable, match="42601"):
            await migrate(url)
    assert tables(url) == []
    assert await migrate(url) == postgres_schema.VERSION


async def test_a_schema_that_is_not_there_is_named_as_that(postgres: PostgresServer) -> None:
    with pytest.raises(StoreUnusable, match="search_path names does not exist"):
        await open_postgres(f"{postgres.url}&search_path=nowhere", migrate=True)


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("postgresql://zoe:hush@127.0.0.1:1/turngate", r"//127\.0\.0\.1:1/turngate: .*reached"),
        ("postgresql://zoe:hush@127.0.0.1:x/turngate", "not understood"),
        ("postgresql://zoe:hush@/turngate?host=/nowhere", "//nowhere/turngate: .*reached"),
    ],
)
async def test_what_cannot_be_reached_is_named_without_credentials(url: str, why: str) -> None:
    with pytest.raises(StoreUnavailable, match=why) as refused:
        await open_postgres(url)
    assert "hush" not in str(refused.value)
    assert "zoe" not in str(refused.value)


async def test_a_database_that_is_not_there_is_named(postgres: PostgresServer) -> None:
    with pytest.raises(StoreUnavailable, match=r"/nobodys: .* the database does not exist"):
        await open_postgres(postgres.url.replace("/postgres?", "/nobodys?"))


async def test_commits_are_durable_whatever_the_default_is(url: str) -> None:
    """E4: a cluster may be set to acknowledge before it has written."""
    await migrate(url)
    lazy = f"{url}&synchronous_commit=off"
    assert ask(lazy, "SHOW synchronous_commit")[0][0] == "off"
    store = await open_postgres(lazy)
    assert await store._writer._connection.fetchval("SHOW synchronous_commit") == "on"
    await store.close()
