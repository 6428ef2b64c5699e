"""The state machine of the core for as long as one likes: `make fuzz`.

`TURNGATE_FUZZ_SECONDS` (default: an hour) is the time budget. Prints how many conversations and
commands there were, and how many different states. A failure ends it, with the program that
repeats it.
"""

from __future__ import annotations

import os
import time

from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from tests.unit.broker.side_by_side import COUNTS, STATES
from tests.unit.broker.test_core_machine import MACHINE, Clients

ROUND = settings(MACHINE, max_examples=40, stateful_step_count=80, deadline=None, database=None)


def main() -> None:
    budget = float(os.environ.get("TURNGATE_FUZZ_SECONDS", "3600"))
    begin = time.monotonic()
    print(f"the core against the naive model, for {budget:.0f} s", flush=True)
    while time.monotonic() - begin < budget:
        run_state_machine_as_test(Clients, settings=ROUND)
        print(
            f"{time.monotonic() - begin:6.0f} s  {COUNTS['conversations']:,} conversations  "
            f"{COUNTS['commands']:,} commands ({COUNTS['refused']:,} refused)  "
            f"{len(STATES):,} different states",
            flush=True,
        )
    print("no disagreement")


if __name__ == "__main__":
    main()
