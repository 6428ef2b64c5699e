"""`python -m broker_service`: a broker as a process of its own."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from broker_service.config import BrokerSettings
from broker_service.server import serve
from turngate_serving.exit import START_ERROR_CODE, StartError, print_start_error, run_service
from turngate_serving.flags import parse_settings
from turngate_serving.logs import configure_logs

NAME = "turngate-broker"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until a signal; the exit code: 2 for what keeps the service from starting."""
    try:
        settings = parse_settings(
            BrokerSettings,
            sys.argv[1:] if arguments is None else arguments,
            program="python -m broker_service",
            description="Owns sessions: the conversation, the queue, interactions, and watching.",
        )
    except StartError as error:
        print_start_error(NAME, error)
        return START_ERROR_CODE
    configure_logs("broker", settings.log_level)
    return run_service(NAME, lambda: serve(settings))


if __name__ == "__main__":
    sys.exit(main())
