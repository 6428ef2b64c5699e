"""`python -m broker_service.migrate`: what `turngate migrate` starts."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from broker_service.config import BrokerSettings
from broker_service.storage.open import migrate_store
from broker_service.storage.port import StoreError
from turngate_serving.exit import START_ERROR_CODE, StartError, print_start_error, run_service
from turngate_serving.flags import parse_settings

NAME = "turngate-migrate"


def main(arguments: Sequence[str] | None = None) -> int:
    """Bring the store of the broker's settings up to this version's schema; the exit code."""
    try:
        settings = parse_settings(
            BrokerSettings,
            sys.argv[1:] if arguments is None else arguments,
            program="turngate migrate",
            description="Brings a store up to this version's schema, or makes it. Takes the "
            "broker's settings; only --store counts.",
        )
    except StartError as error:
        print_start_error(NAME, error)
        return START_ERROR_CODE
    return run_service(NAME, lambda: _migrate(settings.store))


async def _migrate(store: str) -> int:
    try:
        version = await migrate_store(store)
    except StoreError as error:
        raise StartError(str(error)) from error
    print(f"the store has schema version {version}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
