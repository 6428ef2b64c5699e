"""Makes the golden set of a schema: `make golden NAME=0.2.0`. Never changes one that is there."""

from __future__ import annotations

import sys

from tests.golden.conversations import ALL
from tests.golden.folded import folded
from tests.golden.logs import HERE, write
from tests.unit.broker.conversation import fold_log


def main() -> int:
    if len(sys.argv) != 2 or not sys.argv[1].replace(".", "").isdigit():
        print("make golden NAME=0.2.0: the version whose schema it is", file=sys.stderr)
        return 2
    folder = HERE / sys.argv[1]
    try:
        folder.mkdir()
    except FileExistsError:
        print(f"{folder.name} is there: a golden set is never changed", file=sys.stderr)
        return 1
    for name, play in ALL.items():
        log = play().stored()
        write(folder / f"{name}.log", log)
        events = log.events()
        (folder / f"{name}.txt").write_text(folded(fold_log(events), events))
    return 0


if __name__ == "__main__":
    sys.exit(main())
