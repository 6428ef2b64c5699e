"""Settings by flag, environment and file, under the same names.

A setting `cancel_grace` of the broker is the flag `--cancel-grace`, the variable
`TURNGATE_BROKER_CANCEL_GRACE`, and the key `cancel_grace` in the table `[broker]` of the TOML file
that `--config` or `TURNGATE_CONFIG` names. The first of these that is given counts; else the
default.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal, TypeVar

from pydantic import BeforeValidator, Field, ValidationError
from pydantic.fields import FieldInfo
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

from turngate_serving.exit import StartError
from turngate_serving.settings_file import place_in_file, read_table

CONFIG_VARIABLE = "TURNGATE_CONFIG"

_T = TypeVar("_T")
_S = TypeVar("_S", bound="Settings")

FlagValue = str | bool | Sequence[str]


def _split(value: object) -> object:
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return value


# Several texts: a repeated flag, an array in the file, or separated by commas in a variable.
TextList = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split)]


def setting(
    default: _T,
    meaning: str,
    *,
    unit: str = "",
    least: float | None = None,
    greatest: float | None = None,
) -> _T:
    """A setting with its default, its bounds (inclusive) and a sentence for help and docs."""
    field: _T = Field(
        default=default,
        ge=least,
        le=greatest,
        description=meaning,
        json_schema_extra={"unit": unit, "least": least, "greatest": greatest},
    )
    return field


class Settings(BaseSettings):
    """The base of a service's settings. `section` is its name: `broker` or `runner`."""

    model_config = SettingsConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
    section: ClassVar[str]

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Only what `load_settings` hands in: it knows from where each value came."""
        return (init_settings,)


class ServingSettings(Settings):
    """What every service has."""

    log_level: Literal["debug", "info", "warning", "error"] = setting(
        "info", "The least severe log lines that are written: debug, info, warning or error."
    )
    drain_timeout: float = setting(
        10.0,
        "How long each step of a stop may take to end its streams or hand over its runs.",
        unit="s",
        least=0.1,
        greatest=600,
    )
    drain_grace: float = setting(
        5.0, "How long open calls may go on after that.", unit="s", least=0, greatest=600
    )
    keepalive_time: float = setting(
        30.0,
        "A connection that is silent for so long is asked whether its client is still there.",
        unit="s",
        least=1,
        greatest=3600,
    )
    keepalive_timeout: float = setting(
        20.0, "A client that does not answer for so long is gone.", unit="s", least=1, greatest=600
    )


@dataclass(frozen=True, slots=True)
class SettingInfo:
    """One row of the settings table; numbers and defaults as text, empty where there is none."""

    name: str
    flag: str
    variable: str
    default: str
    least: str
    greatest: str
    unit: str
    meaning: str
    is_switch: bool
    is_list: bool


def describe(settings: type[Settings]) -> list[SettingInfo]:
    """All settings of a class, in its order."""
    return [_info(settings, name, field) for name, field in settings.model_fields.items()]


def settings_table(settings: type[Settings]) -> str:
    """The settings as a Markdown table."""
    lines = [
        "| setting | variable | default | least | greatest | unit | meaning |",
        "|---|---|---|---|---|---|---|",
    ]
    for info in describe(settings):
        default = f"`{info.default}`" if info.default else ""
        meaning = info.meaning.replace("|", "\\|")
        lines.append(
            f"| `{info.name}` | `{info.variable}` | {default} | {info.least} | {info.greatest}"
            f" | {info.unit} | {meaning} |"
        )
    return "\n".join(lines) + "\n"


def load_settings(
    settings: type[_S], flags: Mapping[str, FlagValue], config: Path | None = None
) -> _S:
    """The settings from flags (by setting name), the environment and the file, in that order.

    `config` goes before `TURNGATE_CONFIG`. Raises `StartError`: a file that cannot be read, an
    unknown name in it, values that do not fit, each with its place.
    """
    if config is None and (named := os.environ.get(CONFIG_VARIABLE)):
        config = Path(named)
    names = list(settings.model_fields)
    table = read_table(config, settings.section, names) if config else {}
    source = EnvSettingsSource(settings, env_prefix=_variable(settings, ""), env_ignore_empty=True)
    try:
        environment = source()
    except SettingsError as error:
        raise StartError(str(error)) from error
    try:
        return settings(**{**table, **environment, **flags})
    except ValidationError as error:
        problems = []
        for problem in error.errors(include_input=False, include_url=False):
            name = str(problem["loc"][0])
            if name in flags:
                place = f"flag {_flag(name)}"
            elif name in environment:
                place = f"variable {_variable(settings, name)}"
            elif config is not None and name in table:
                place = f"{place_in_file(config, settings.section, name)}: {name}"
            else:
                place = name
            problems.append(f"{place}: {problem['msg']}")
        raise StartError("; ".join(problems)) from error


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _variable(settings: type[Settings], name: str) -> str:
    # Other variables with this prefix are nobody's mistake: Kubernetes sets TURNGATE_BROKER_PORT
    # and such for a service of that name. So no setting may be called port, host or service_*.
    return f"TURNGATE_{settings.section}_{name}".upper()


def _info(settings: type[Settings], name: str, field: FieldInfo) -> SettingInfo:
    extra = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
    return SettingInfo(
        name=name,
        flag=_flag(name),
        variable=_variable(settings, name),
        default=_shown(field.default),
        least=_shown(extra.get("least")),
        greatest=_shown(extra.get("greatest")),
        unit=str(extra.get("unit", "")),
        meaning=field.description or "",
        is_switch=isinstance(field.default, bool),
        is_list=isinstance(field.default, tuple),
    )


def _shown(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:g}" if abs(value) < 1e6 else f"{value:.0f}"
    if isinstance(value, tuple):
        return ",".join(str(part) for part in value)
    return str(value)
