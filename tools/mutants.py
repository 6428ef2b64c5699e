"""Mutation testing of the core (`make mutants`): which changes of the code does no test notice?

mutmut makes the mutants in the folder mutants/, tries each with the tests that reach it, and keeps
the verdicts there, so that a run that was stopped goes on where it was. A mutant that was killed is
done until its function changes; every other is tried again, since a test may have been added.

Arguments: patterns of the names of the mutants to try, all by default. `turngate_core.gate.*` is a
module; mutants are numbered in each function, so that `*__mutmut_*7` is a tenth of all of them.
`--table` before them only prints what is known of these.
"""

from __future__ import annotations

import fnmatch
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from mutmut.mutation.data import SourceFileMutationData
from mutmut.stats import status_by_exit_code
from mutmut.utils.file_utils import walk_mutatable_files

PROCESSES = os.environ.get("MUTANTS_PROCESSES", str(os.cpu_count() or 1))
KILLED = ("killed", "timeout")
NOT_TRIED = ("not checked", "skipped")
SKIPPED = 34  # mutmut's exit code


def verdicts() -> dict[Path, SourceFileMutationData]:
    """What is known of each module that has mutants."""
    known = {}
    for path in sorted(walk_mutatable_files()):
        data = SourceFileMutationData(path=path)
        data.load()
        if data.exit_code_by_key:
            known[path] = data
    return known


def wanted(mutant: str, patterns: Sequence[str]) -> bool:
    return not patterns or any(fnmatch.fnmatch(mutant, pattern) for pattern in patterns)


def choose(patterns: Sequence[str]) -> list[str]:
    """Marks what is to be tried; answers the patterns that mutmut still has to be told.

    Tried again are survivors, and what only time ended: the machine may have been busy. mutmut
    itself would try killed ones again, too, if it were told what to try.
    """
    known = verdicts()
    for data in known.values():
        for mutant, code in data.exit_code_by_key.items():
            if status_by_exit_code[code] == "killed":
                continue
            if wanted(mutant, patterns):
                data.exit_code_by_key[mutant] = None
            elif code is None:
                data.exit_code_by_key[mutant] = SKIPPED  # others keep their verdict
        data.save()
    return [] if known else list(patterns)


def line(name: str, found: Counter[str]) -> str:
    tried = found.total() - sum(found[status] for status in NOT_TRIED)
    killed = sum(found[status] for status in KILLED)
    score = f"{100 * killed / tried:6.1f} %" if tried else "       -"
    return f"{name:44}{found.total():9}{tried:8}{killed:8}{tried - killed:10}{score}"


def print_table(patterns: Sequence[str]) -> None:
    """One line a module and one a package. A mutant that never ends counts as killed."""
    print(f"{'':44}{'mutants':>9}{'tried':>8}{'killed':>8}{'survived':>10}{'score':>8}")
    packages: dict[str, Counter[str]] = {}
    for path, data in verdicts().items():
        found = Counter(
            status_by_exit_code[code]
            for mutant, code in data.exit_code_by_key.items()
            if wanted(mutant, patterns)
        )
        packages.setdefault(str(path.parent), Counter()).update(found)
        print(line(str(path), found))
    for package, found in packages.items():
        print(line(f"{package} in all", found))


def main() -> int:
    patterns = [argument for argument in sys.argv[1:] if argument != "--table"]
    if "--table" in sys.argv:
        print_table(patterns)
        return 0
    # Which tests reach which function is looked up anew: mutmut itself notices new tests only.
    Path("mutants/mutmut-stats.json").unlink(missing_ok=True)
    mutmut = Path(sys.executable).parent / "mutmut"
    run = subprocess.run(
        [mutmut, "run", "--max-children", PROCESSES, *choose(patterns)],
        env={**os.environ, "PYTHONHASHSEED": "0"},
        check=False,
    )
    print_table(patterns)
    return run.returncode


if __name__ == "__main__":
    sys.exit(main())
