"""`python -m runner_service`: a runner as a process of its own."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from runner_service.config import RunnerSettings
from runner_service.server import serve
from turngate_serving.exit import START_ERROR_CODE, StartError, print_start_error, run_service
from turngate_serving.flags import parse_settings
from turngate_serving.logs import configure_logs

NAME = "turngate-runner"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until a signal; the exit code: 2 for what keeps the service from starting."""
    try:
        settings = parse_settings(
            RunnerSettings,
            sys.argv[1:] if arguments is None else arguments,
            program="python -m runner_service",
            description="Executes runs of agents for a Turngate broker.",
        )
    except StartError as error:
        print_start_error(NAME, error)
        return START_ERROR_CODE
    configure_logs("runner", settings.log_level)
    return run_service(NAME, lambda: serve(settings))


if __name__ == "__main__":
    sys.exit(main())
