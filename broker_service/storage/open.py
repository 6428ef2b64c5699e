"""From the address of a store, as it stands in the settings, to the store."""

from __future__ import annotations

from importlib.util import find_spec

from broker_service.storage import sqlite_schema
from broker_service.storage.port import Store, UnsupportedStore
from broker_service.storage.sqlite import SqliteStore, open_sqlite


async def connect_store(url: str, *, migrate: bool = False) -> Store:
    """Open the store at `url`: `sqlite:PATH` or `postgresql://…`. It serves the event loop that
    this runs on.

    With `migrate`, a PostgreSQL database of an older schema is brought up to this version first;
    without, it is refused. A SQLite file belongs to one broker, which always does that.

    Raises UnsupportedStore for an address of another kind (its text repeats the scheme only, since
    the rest may hold a password), and what `open_sqlite` and `open_postgres` raise.
    """
    if _scheme(url) == "sqlite":
        return open_store(url)
    _check_driver()
    from broker_service.storage.postgres import open_postgres

    return await open_postgres(url, migrate=migrate)


async def migrate_store(url: str) -> int:
    """Bring the schema of the store at `url` up to this version, and make it if there is none;
    answers the version. Raises what `connect_store` raises.
    """
    if _scheme(url) == "sqlite":
        await open_store(url).close()
        return sqlite_schema.VERSION
    _check_driver()
    from broker_service.storage.postgres import migrate

    return await migrate(url)


def open_store(url: str) -> SqliteStore:
    """Open the store at `sqlite:PATH`, to be called on the event loop that it will serve: the part
    of `connect_store` that waits for nothing.

    Raises UnsupportedStore for an address of another kind, and what `open_sqlite` raises.
    """
    if _scheme(url) != "sqlite":
        raise UnsupportedStore("a store on PostgreSQL has to be waited for (connect_store)")
    rest = url.partition(":")[2]
    if not rest or (rest.startswith("//") and not rest.startswith("///")):
        raise UnsupportedStore("sqlite: is followed by a path, as in sqlite:turngate.db")
    return open_sqlite(rest)


def _scheme(url: str) -> str:
    """The kind of a store; `postgres:` is another name of `postgresql:`."""
    scheme, colon, _ = url.partition(":")
    if not colon or not scheme.isalnum():
        raise UnsupportedStore("a store's address starts with its kind, as in sqlite:turngate.db")
    match scheme:
        case "sqlite" | "postgresql":
            return scheme
        case "postgres":
            return "postgresql"
        case _:
            raise UnsupportedStore(
                f"there is no store of the kind {scheme}: (known: sqlite:, postgresql:)"
            )


def _check_driver() -> None:
    """The driver is an extra, imported only where it is needed."""
    if find_spec("asyncpg") is None:
        raise UnsupportedStore(
            "stores on PostgreSQL need asyncpg: pip install 'turngate[postgres]'"
        )
