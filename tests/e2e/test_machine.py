"""The state machine of the core, on the real service: the same commands, the same naive model.

Clients of three people and a runner that is told what to do give every command in random order to a
broker process over gRPC; after each one its answer, tree, inbox, queue, transcript, grants and all
watchers agree with the model and with the log. `tests/unit/broker/test_core_machine.py` has the
commands.

A failure tells its seed; `TURNGATE_SEED=… make test ARGS=tests/e2e/test_machine.py` repeats it.
`make fuzz-service` goes on for long.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.e2e.machine_clients import AtOnce, OnTheService
from tests.e2e.machine_services import Services, services
from tests.unit.broker.side_by_side import COUNTS, LIMITS, STATES
from tests.unit.broker.test_core_machine import MACHINE

FUZZ_SECONDS = float(os.environ.get("TURNGATE_FUZZ_SECONDS", "0"))
SEED = os.environ.get("TURNGATE_SEED", "")
ROUND = settings(
    MACHINE,
    max_examples=20 if FUZZ_SECONDS else 4,
    database=None,
    phases=(Phase.generate,),
)


def machine(at: Services, number: int) -> type[OnTheService]:
    """With this seed. Only the long form gives two commands at once, since which one is first is
    up to chance, and no seed repeats it.
    """

    @seed(number)
    class Short(OnTheService):
        def __init__(self) -> None:
            super().__init__(at, long=False)

    @seed(number)
    class Long(AtOnce):
        def __init__(self) -> None:
            super().__init__(at, long=True)

    return Long if FUZZ_SECONDS else Short


def play(at: Services, number: int) -> None:
    """One round with this seed. A failure tells it."""
    try:
        run_state_machine_as_test(machine(at, number), settings=ROUND)
    except BaseException as error:
        long = "TURNGATE_FUZZ_SECONDS=1 " if FUZZ_SECONDS else ""
        error.add_note(f"{long}TURNGATE_SEED={number} repeats this")
        raise


def seeds() -> Iterator[int]:
    """The one to repeat; some from chance on as long as there is time; else two that get far."""
    if SEED:
        yield int(SEED)
    elif FUZZ_SECONDS:
        begin = time.monotonic()
        number = random.randrange(2**32)
        while time.monotonic() - begin < FUZZ_SECONDS:
            yield number
            number += 1
    else:
        yield from (12, 13)


@pytest.mark.timeout(FUZZ_SECONDS + 300)
def test_the_service_agrees_with_the_naive_model_after_every_command(
    tmp_path: Path, store_url: Callable[[Path], str]
) -> None:
    """R1-R6, F1-F8, A1-A3, G1-G4, C1-C5, I1-I5, D1-D3, S1, W1, E1."""
    with services(tmp_path, store_url(tmp_path), LIMITS) as at:
        for number in seeds():
            play(at, number)
            print(
                f"seed {number}: now {COUNTS['conversations']:,} conversations, "
                f"{COUNTS['commands']:,} commands ({COUNTS['refused']:,} refused), "
                f"{len(STATES):,} different states",
                flush=True,
            )
