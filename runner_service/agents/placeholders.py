"""Placeholders of a script: `${results.form.content.city|nowhere}`.

`${path}` stands for the value at a path of the scope; after `|` a default follows, for when nothing
is there. A path is a name, then `.key`, `[2]` or `["any key"]`. `$${` is a plain `${`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from turngate_core.json_text import JsonValue, dump

# A root is a value, or a function for what is costly or known late.
Scope: TypeAlias = Mapping[str, "JsonValue | Callable[[], JsonValue]"]

_PLACEHOLDER = re.compile(r"\$\$\{|\$\{([^}]*)\}|\$\{")
_STEP = re.compile(r"""\.([^.\[\]|}"]+)|\[(-?[0-9]+)\]|\["([^"\]]*)"\]""")
_ROOT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class PlaceholderError(ValueError):
    """A placeholder that cannot be read, or that nothing stands for."""


@dataclass(frozen=True, slots=True)
class Path:
    """`keys`: texts of objects, numbers of arrays."""

    text: str
    root: str
    keys: tuple[str | int, ...]


def parse_path(text: str) -> Path:
    """A path such as `results.form.content["first name"]`. Raises `PlaceholderError`."""
    root = _ROOT.match(text)
    if root is None:
        raise PlaceholderError(f"{text!r} is no path like results.form.content.city")
    keys: list[str | int] = []
    offset = root.end()
    while offset < len(text):
        step = _STEP.match(text, offset)
        if step is None:
            raise PlaceholderError(f"{text!r} is no path: cannot read {text[offset:]!r}")
        key, index, quoted = step.groups()
        keys.append(int(index) if index is not None else key if key is not None else quoted)
        offset = step.end()
    return Path(text, root.group(), tuple(keys))


def paths_in(template: str) -> Iterator[Path]:
    """The paths of all placeholders. Raises `PlaceholderError` for one that cannot be read."""
    for match in _PLACEHOLDER.finditer(template):
        if match.group() == "$${":
            continue
        if match.group(1) is None:
            raise PlaceholderError("a placeholder ${ is not closed with }")
        yield parse_path(match.group(1).partition("|")[0].strip())


def look_up(path: Path, scope: Scope) -> tuple[bool, JsonValue]:
    """Whether something stands at the path, and what."""
    if path.root not in scope:
        return False, None
    found = scope[path.root]
    value: JsonValue = found() if callable(found) else found
    for key in path.keys:
        if isinstance(value, dict) and str(key) in value:
            value = value[str(key)]
        elif isinstance(value, list) and isinstance(index := _index(key), int):
            if not -len(value) <= index < len(value):
                return False, None
            value = value[index]
        else:
            return False, None
    return True, value


def fill_text(template: str, scope: Scope) -> str:
    """The text with its placeholders filled in: texts as they are, other values as JSON.

    Raises `PlaceholderError` where nothing stands and no default is given.
    """

    def filled(match: re.Match[str]) -> str:
        if match.group() == "$${":
            return "${"
        value = _value(match.group(1) or "", scope)
        return value if isinstance(value, str) else dump(value)

    return _PLACEHOLDER.sub(filled, template)


def fill_value(template: JsonValue, scope: Scope) -> JsonValue:
    """The value with the placeholders of its texts and keys filled in, at every depth.

    A text that is nothing but one placeholder becomes the value itself, numbers digit for digit.
    """
    if isinstance(template, str):
        whole = _PLACEHOLDER.fullmatch(template)
        if whole is not None and whole.group(1) is not None:
            return _value(whole.group(1), scope)
        return fill_text(template, scope)
    if isinstance(template, list):
        return [fill_value(item, scope) for item in template]
    if isinstance(template, dict):
        return {fill_text(k, scope): fill_value(v, scope) for k, v in template.items()}
    return template


def has_placeholder(template: str) -> bool:
    """True if something would be filled in."""
    return any(match.group() != "$${" for match in _PLACEHOLDER.finditer(template))


def _value(inner: str, scope: Scope) -> JsonValue:
    path_text, bar, default = inner.partition("|")
    found, value = look_up(parse_path(path_text.strip()), scope)
    if found:
        return value
    if bar:
        return default
    raise PlaceholderError(
        f"nothing stands at ${{{inner}}}; a default can follow: ${{{path_text.strip()}|a default}}"
    )


def _index(key: str | int) -> int | None:
    if isinstance(key, int):
        return key
    return int(key) if key.isdecimal() and key.isascii() else None
