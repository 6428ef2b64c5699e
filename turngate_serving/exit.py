"""How a service process ends: a start-up error is one line and exit code 2."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine

START_ERROR_CODE = 2
_INTERRUPTED_CODE = 130


class StartError(Exception):
    """Why a service cannot start, in one line for the person who started it."""


def run_service(name: str, main: Callable[[], Coroutine[object, object, int]]) -> int:
    """Run a service's `main` on an event loop of its own; returns the exit code.

    A `StartError` is printed as one line; anything else unexpected leaves with its traceback.
    uvloop is used where it is installed.
    """
    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            return runner.run(main())
    except StartError as error:
        print_start_error(name, error)
        return START_ERROR_CODE
    except KeyboardInterrupt:
        return _INTERRUPTED_CODE


def print_start_error(name: str, error: StartError) -> None:
    """One line on standard error, whatever the text was."""
    print(f"{name}: {' '.join(str(error).split())}", file=sys.stderr, flush=True)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
