"""The runner's settings: flags, variables `TURNGATE_RUNNER_*`, table `[runner]` of a file."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import ClassVar

from turngate_serving.settings import ServingSettings, TextList, setting


class RunnerSettings(ServingSettings):
    """What can be set on a runner."""

    section: ClassVar[str] = "runner"

    listen: str = setting(
        "127.0.0.1:50052", "Where the service listens: host:port, [v6]:port or unix:/path."
    )
    ready_file: str = setting(
        "", 'A file that gets {"address": ...} as JSON once the service takes calls.'
    )
    script: TextList = setting(
        (), "A file with scripted agents; beside them there is always the agent demo."
    )
    agent: TextList = setting(
        (),
        "The agents that are served: names of scripted ones, or package.module:attribute for one"
        " in Python; without it all scripted ones.",
    )
    model: str = setting(
        "", "A model as provider:name, such as openai:gpt-5: a plain assistant is served on it."
    )
    data_dir: str = setting(
        "", "Where tools of scripted agents keep files; without it a folder for temporary files."
    )
    max_concurrent_runs: int = setting(
        64,
        "How many runs are executed at once; a broker that has more tries elsewhere. 0: no limit.",
        least=0,
        greatest=100_000,
    )
    max_steps: int = setting(
        200, "How many model calls a run may make before it fails.", least=1, greatest=100_000
    )
    tool_timeout: float = setting(
        600.0,
        "How long one server tool may take; then the model is told so. 0: no limit.",
        unit="s",
        least=0,
        greatest=86_400,
    )
    cancel_grace: float = setting(
        8.0,
        "How long tools may go on after a cancel; keep it below the broker's own grace.",
        unit="s",
        least=0,
        greatest=600,
    )

    @property
    def data_path(self) -> Path:
        """The folder of scripted tools; not made here."""
        if self.data_dir:
            return Path(self.data_dir)
        return Path(tempfile.gettempdir()) / f"turngate-{os.getuid()}"
