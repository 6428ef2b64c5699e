"""A service's command line: one flag a setting; `--help` teaches defaults, bounds, variables."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn, TypeVar

from turngate_serving.exit import StartError
from turngate_serving.settings import (
    CONFIG_VARIABLE,
    SettingInfo,
    Settings,
    describe,
    load_settings,
)

_S = TypeVar("_S", bound=Settings)


def parse_settings(
    settings: type[_S], arguments: Sequence[str], *, program: str, description: str
) -> _S:
    """The settings for these command-line arguments, the environment and the file.

    Raises `StartError` for what does not fit; `--help` prints and exits as `argparse` does.
    """
    parser = _Parser(
        prog=program,
        description=description,
        epilog="The first that is given counts: flag, variable, file, default.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help=f"TOML file with settings in its table [{settings.section}] [{CONFIG_VARIABLE}]",
    )
    for info in describe(settings):
        _add_flag(parser, info)
    given = vars(parser.parse_args(arguments))
    config = given.pop("config")
    return load_settings(settings, {k: v for k, v in given.items() if v is not None}, config)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """One line, by the same way as all start-up errors."""
        raise StartError(f"{message} (see {self.prog} --help)")


def _add_flag(parser: argparse.ArgumentParser, info: SettingInfo) -> None:
    said = _help(info).replace("%", "%%")
    if info.is_switch:
        parser.add_argument(info.flag, action=argparse.BooleanOptionalAction, help=said)
    elif info.is_list:
        parser.add_argument(info.flag, action="append", metavar="TEXT", help=f"{said} (repeatable)")
    else:
        parser.add_argument(info.flag, metavar=info.unit.upper() or "VALUE", help=said)


def _help(info: SettingInfo) -> str:
    unit = f" {info.unit}" if info.unit else ""
    parts = [info.meaning]
    if info.default:
        parts.append(f"Default {info.default}{unit}")
        if info.least or info.greatest:
            parts[-1] += f", {info.least or '...'} to {info.greatest or '...'}"
        parts[-1] += "."
    parts.append(f"[{info.variable}]")
    return " ".join(parts)
