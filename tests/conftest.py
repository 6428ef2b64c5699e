"""What every test shares: hypothesis profiles and the outside tools that some tests need."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import Phase, settings

ROOT = Path(__file__).parent.parent

# No deadline: the machine of a test may be busy. CI tries the same examples each time, so that a
# red run is the change's own; laptops try new ones.
settings.register_profile("laptop", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
# In `make mutants`: that an example fails is enough, the smallest one is nobody's wish.
settings.register_profile(
    "mutants",
    deadline=None,
    derandomize=True,
    max_examples=50,
    phases=[Phase.explicit, Phase.generate],
)
settings.load_profile("ci" if os.environ.get("CI") else "laptop")


@pytest.fixture(scope="session")
def grpcurl() -> str:
    """The path of grpcurl. Where it cannot be had, the test is skipped by name; in CI it fails."""
    if found := shutil.which("grpcurl"):
        return found
    built = subprocess.run(
        [ROOT / "tools" / "grpcurl.sh"], capture_output=True, text=True, timeout=600, check=False
    )
    if built.returncode == 0:
        return built.stdout.strip()
    if os.environ.get("CI"):
        pytest.fail(f"needs grpcurl: {built.stderr.strip()}")
    pytest.skip(f"needs grpcurl: {built.stderr.strip().splitlines()[-1]}")
