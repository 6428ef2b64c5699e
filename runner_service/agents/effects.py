"""What scripted agents and their tools do for real: files, counters, gates, sudden death.

Relative paths lie in the runner's data folder. A path with placeholders must stay in there, since
what is filled in may come from a user or a model; a path that is written out may lead anywhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

from runner_service.agents.placeholders import Scope, fill_text, has_placeholder
from runner_service.agents.script_parts import (
    Append,
    Count,
    Die,
    Effect,
    Touch,
    Wait,
    WaitForFile,
)

_P = ParamSpec("_P")
_R = TypeVar("_R")

# How often a gate is looked at.
GATE_POLL_SECONDS = 0.005


class EffectError(Exception):
    """An effect that cannot be had; the text is for people and for the model."""


async def pause(seconds: float, until: asyncio.Event) -> bool:
    """Let time pass, or until the event; whether the event came."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await until.wait()
    return until.is_set()


async def wait_for_file(path: Path, until: asyncio.Event) -> bool:
    """Wait until a file is there, or until the event; whether the file is there."""
    while not is_there(path):
        if await pause(GATE_POLL_SECONDS, until):
            return is_there(path)
    return True


def is_there(path: Path) -> bool:
    """Whether the file is there."""
    return path.exists()


class Effects:
    """The effects of one runner. `data_dir`: its folder, made when it is first needed."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir

    def path(self, template: str, scope: Scope) -> Path:
        """The file that a template names. Raises `EffectError` if it leads out of the folder."""
        named = Path(fill_text(template, scope))
        path = self._data_dir / named
        if has_placeholder(template) and not _is_within(path, self._data_dir):
            raise EffectError("a path with placeholders must stay in the runner's data folder")
        return path

    async def perform(self, effect: Effect, scope: Scope, until: asyncio.Event) -> int | None:
        """One effect; the new number, if it counts. Waiting ends early at the event.

        Raises `EffectError`, `PlaceholderError`.
        """
        match effect:
            case Wait(wait=seconds):
                await pause(seconds, until)
            case WaitForFile(wait_for_file=template):
                await wait_for_file(self.path(template, scope), until)
            case Touch(touch=template):
                await asyncio.to_thread(_attempted, touch, self.path(template, scope))
            case Append(append=template, line=line):
                text = fill_text(line, scope)
                await asyncio.to_thread(_attempted, append_line, self.path(template, scope), text)
            case Count(count=template):
                return await asyncio.to_thread(_attempted, count_up, self.path(template, scope))
            case Die(once=None):
                die()
            case Die(once=str(template)):
                await asyncio.to_thread(_attempted, die_once, self.path(template, scope))
        return None


def touch(path: Path) -> None:
    """Make an empty file, if there is none."""
    path.touch()


def append_line(path: Path, line: str) -> None:
    """Append a line in one write, so that processes do not mix theirs."""
    with path.open("ab", buffering=0) as file:
        file.write(line.encode() + b"\n")


def count_up(path: Path) -> int:
    """Add one to the number in a file, alone among all processes; the new number."""
    with path.open("a+b", buffering=0) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        text = file.read().strip()
        if text and not text.isdigit():
            raise EffectError(f"{path.name} holds no number to count up")
        number = int(text or b"0") + 1
        file.truncate(0)
        file.write(str(number).encode())
        return number


def die() -> None:
    """End this process as `kill -9` does: nothing is flushed, nobody is told."""
    os.kill(os.getpid(), signal.SIGKILL)


def die_once(marker: Path) -> None:
    """Die, unless the marker is there already."""
    try:
        marker.touch(exist_ok=False)
    except FileExistsError:
        return
    die()


def _attempted(do: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
    path = args[0]
    try:
        if isinstance(path, Path):
            path.parent.mkdir(parents=True, exist_ok=True)
        return do(*args, **kwargs)
    except OSError as error:
        raise EffectError(f"a file cannot be used: {error.strerror}") from error


def _is_within(path: Path, folder: Path) -> bool:
    return path.resolve().is_relative_to(folder.resolve())
