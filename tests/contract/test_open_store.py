"""From an address in the settings to a store."""

from pathlib import Path

import pytest

from broker_service.storage import open as open_module
from broker_service.storage import postgres_schema, sqlite_schema
from broker_service.storage.open import connect_store, migrate_store
from broker_service.storage.port import StoreUnusable, UnsupportedStore, Write
from tests.contract.postgres_server import PostgresServer
from tests.contract.samples import S, event, row, write


async def test_sqlite_opens_the_file_at_a_path(tmp_path: Path) -> None:
    path = tmp_path / "a store.db"
    store = await connect_store(f"sqlite:{path}")
    await store.commit(write(event()))
    await store.close()
    store = await connect_store(f"sqlite://{path}")  # with an empty host, as others write it
    assert await store.last_position(S) == 1
    await store.close()


async def test_a_relative_path_is_taken_from_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    await (await connect_store("sqlite:here.db")).close()
    assert (tmp_path / "here.db").is_file()


async def test_postgresql_opens_the_database_at_an_address(postgres: PostgresServer) -> None:
    url = postgres.new_schema()
    assert await migrate_store(url) == postgres_schema.VERSION
    for address in (url, url.replace("postgresql:", "postgres:", 1)):
        store = await connect_store(address)
        await store.commit(Write(effects=(row("s1", 1),)))
        assert await store.find_session(S) == b"s1"
        await store.close()


async def test_postgresql_is_migrated_at_start_only_if_that_is_wanted(
    postgres: PostgresServer,
) -> None:
    url = postgres.new_schema()
    with pytest.raises(StoreUnusable, match="run `turngate migrate`"):
        await connect_store(url)
    await (await connect_store(url, migrate=True)).close()
    await (await connect_store(url)).close()


async def test_without_the_driver_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_module, "find_spec", lambda _: None)
    with pytest.raises(UnsupportedStore, match=r"pip install 'turngate\[postgres\]'"):
        await connect_store("postgresql://ann:hush@db/turngate")


async def test_sqlite_is_migrated_by_opening_it(tmp_path: Path) -> None:
    assert await migrate_store(f"sqlite:{tmp_path}/x.db") == sqlite_schema.VERSION
    assert (tmp_path / "x.db").is_file()


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("mysql://ann:hush@db/turngate", "no store of the kind mysql"),
        ("turngate.db", "starts with its kind"),
        ("", "starts with its kind"),
        ("/var/hush:x.db", "starts with its kind"),
        ("sqlite:", "followed by a path"),
        ("sqlite://turngate.db", "followed by a path"),
    ],
)
async def test_an_address_of_no_store_is_refused_by_name(url: str, why: str) -> None:
    with pytest.raises(UnsupportedStore, match=why) as refused:
        await connect_store(url)
    assert "hush" not in str(refused.value)


async def test_what_the_file_refuses_is_passed_on(tmp_path: Path) -> None:
    with pytest.raises(StoreUnusable, match="does not exist"):
        await connect_store(f"sqlite:{tmp_path}/none/store.db")
