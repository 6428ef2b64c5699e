"""Effects of scripted tools on files."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from runner_service.agents.effects import EffectError, Effects, append_line, count_up
from runner_service.agents.script_parts import Append, Count, Touch


async def test_relative_paths_lie_in_the_data_folder(tmp_path: Path) -> None:
    effects = Effects(tmp_path / "new")
    await effects.perform(
        Append(append="sub/log", line="${arguments}"), {"arguments": "hi"}, asyncio.Event()
    )
    assert (tmp_path / "new" / "sub" / "log").read_text() == "hi\n"


async def test_a_count_tells_the_new_number(tmp_path: Path) -> None:
    effects = Effects(tmp_path)
    numbers = [await effects.perform(Count(count="n"), {}, asyncio.Event()) for _ in range(3)]
    assert numbers == [1, 2, 3]


@pytest.mark.parametrize("name", ["../out", "/etc/out", "a/../../out"])
async def test_what_is_filled_in_cannot_lead_out_of_the_folder(tmp_path: Path, name: str) -> None:
    """A model's or a user's text is no path to anywhere."""
    effects = Effects(tmp_path / "data")
    with pytest.raises(EffectError, match="must stay in"):
        await effects.perform(Touch(touch="${arguments}"), {"arguments": name}, asyncio.Event())
    assert not (tmp_path / "out").exists()


async def test_a_path_that_is_written_out_may_lead_anywhere(tmp_path: Path) -> None:
    target = tmp_path / "elsewhere" / "file"
    await Effects(tmp_path / "data").perform(Touch(touch=str(target)), {}, asyncio.Event())
    assert target.exists()


async def test_a_file_that_cannot_be_used_is_told_without_its_path(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    effects = Effects(tmp_path)
    with pytest.raises(EffectError) as failed:
        await effects.perform(Count(count="folder"), {}, asyncio.Event())
    assert str(tmp_path) not in str(failed.value)
    (tmp_path / "text").write_text("no number")
    with pytest.raises(EffectError, match="holds no number"):
        await effects.perform(Count(count="text"), {}, asyncio.Event())


def test_counts_and_lines_of_many_at_once_are_all_there(tmp_path: Path) -> None:
    counter, log = tmp_path / "n", tmp_path / "log"
    with ThreadPoolExecutor(8) as pool:
        numbers = list(pool.map(lambda _: count_up(counter), range(200)))
        list(pool.map(lambda number: append_line(log, f"line {number}"), range(200)))
    assert sorted(numbers) == list(range(1, 201))
    assert sorted(log.read_text().splitlines()) == sorted(f"line {n}" for n in range(200))
