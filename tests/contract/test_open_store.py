"""From an address in the settings to a store."""

from pathlib import Path

import pytest

from broker_service.storage.open import open_store
from broker_service.storage.port import StoreUnusable, UnsupportedStore
from tests.contract.samples import S, event, write


async def test_sqlite_opens_the_file_at_a_path(tmp_path: Path) -> None:
    path = tmp_path / "a store.db"
    store = open_store(f"sqlite:{path}")
    await store.commit(write(event()))
    await store.close()
    store = open_store(f"sqlite://{path}")  # with an empty host, as others write it
    assert await store.last_position(S) == 1
    await store.close()


async def test_a_relative_path_is_taken_from_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    await open_store("sqlite:here.db").close()
    assert (tmp_path / "here.db").is_file()


async def test_postgresql_is_announced_as_not_built(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedStore, match=r"PostgreSQL .* not built yet"):
        open_store("postgresql://ann:hush@db/turngate")


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
        open_store(url)
    assert "hush" not in str(refused.value)


async def test_what_the_file_refuses_is_passed_on(tmp_path: Path) -> None:
    with pytest.raises(StoreUnusable, match="does not exist"):
        open_store(f"sqlite:{tmp_path}/none/store.db")
