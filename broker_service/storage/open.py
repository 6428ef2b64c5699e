"""From the address of a store, as it stands in the settings, to the store."""

from __future__ import annotations

from broker_service.storage.port import Store, UnsupportedStore
from broker_service.storage.sqlite import open_sqlite


def open_store(url: str) -> Store:
    """Open the store at `url`: `sqlite:PATH`. To be called on the event loop that it will serve.

    Raises UnsupportedStore for an address of another kind (its text repeats the scheme only, since
    the rest may hold a password), and what `open_sqlite` raises.
    """
    scheme, colon, rest = url.partition(":")
    if not colon or not scheme.isalnum():
        raise UnsupportedStore("a store's address starts with its kind, as in sqlite:turngate.db")
    match scheme:
        case "sqlite":
            if not rest or (rest.startswith("//") and not rest.startswith("///")):
                raise UnsupportedStore("sqlite: is followed by a path, as in sqlite:turngate.db")
            return open_sqlite(rest)
        case "postgresql" | "postgres":
            raise UnsupportedStore("stores on PostgreSQL (postgresql:) are not built yet")
        case _:
            raise UnsupportedStore(f"there is no store of the kind {scheme}: (known: sqlite:)")
