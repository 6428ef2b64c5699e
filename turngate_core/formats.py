"""Formats of strings in forms: their canonical names, and what fits them (B1)."""

from __future__ import annotations

import re
from enum import StrEnum

import jsonschema_rs

from turngate_core.json_text import JsonValue


class Format(StrEnum):
    """The formats that a form knows; all others are dropped."""

    EMAIL = "email"
    URI = "uri"
    DATE = "date"
    DATE_TIME = "date-time"
    TIME = "time"
    MULTILINE = "multiline"
    CRON = "cron"


_ALIASES = {
    "e-mail": Format.EMAIL,
    "mail": Format.EMAIL,
    "url": Format.URI,
    "link": Format.URI,
    "datetime": Format.DATE_TIME,
    "date_time": Format.DATE_TIME,
    "datetime-local": Format.DATE_TIME,
    "timestamp": Format.DATE_TIME,
    "textarea": Format.MULTILINE,
    "text-area": Format.MULTILINE,
    "multi-line": Format.MULTILINE,
    "multi_line": Format.MULTILINE,
    "crontab": Format.CRON,
    "cron-expression": Format.CRON,
}
_BY_NAME = {**{format.value: format for format in Format}, **_ALIASES}

# The formats of JSON Schema itself are judged by its library (RFC 3339, 3986, 5321).
_VALIDATORS = {
    format: jsonschema_rs.validator_for(
        {"type": "string", "format": format.value}, validate_formats=True, offline=True
    )
    for format in (Format.EMAIL, Format.URI, Format.DATE, Format.DATE_TIME, Format.TIME)
}

# Five fields, or six with seconds first; names of months and days, or one of the short forms.
_CRON = re.compile(r"@[a-z]+|[0-9A-Za-z*?/,#-]+(?:[ \t]+[0-9A-Za-z*?/,#-]+){4,5}")


def canonical_format(value: JsonValue) -> Format | None:
    """The format that a name or alias means, in any spelling; `None` for all others."""
    return _BY_NAME.get(value.strip().lower()) if isinstance(value, str) else None


def fits_format(text: str, format: Format) -> bool:
    """True if the text is of the format; any text is `multiline`."""
    if format is Format.MULTILINE:
        return True
    if format is Format.CRON:
        return _CRON.fullmatch(text.strip()) is not None
    return _VALIDATORS[format].is_valid(text)
