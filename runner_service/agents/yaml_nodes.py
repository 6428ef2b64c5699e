"""YAML as plain data, with the place of everything: so that errors can name line and column."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from turngate_core.number import Number

# A float keeps its spelling if JSON knows it (T2); `.inf` and the like stay floats, to be refused.
Plain: TypeAlias = "bool | int | float | Number | str | Sequence[Plain] | dict[str, Plain] | None"
KeyPath: TypeAlias = tuple[str | int, ...]

MAX_DEPTH = 100

_JSON_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_TAG = "tag:yaml.org,2002:"


@dataclass(frozen=True, slots=True)
class Place:
    """Both count from 1."""

    line: int
    column: int


class YamlProblem(ValueError):
    """Text that is no YAML of the kind that is read here."""

    def __init__(self, problem: str, place: Place) -> None:
        super().__init__(problem)
        self.problem = problem
        self.place = place


@dataclass(frozen=True, slots=True)
class PlacedData:
    """`places`: of each entry the place of its key, of each item the place where it begins."""

    data: Plain
    places: dict[KeyPath, Place]

    def place_of(self, path: Sequence[str | int]) -> Place:
        """The place of what a path leads to, or of the nearest thing around it."""
        known: KeyPath = ()
        for key in path:
            if (*known, key) in self.places:
                known = (*known, key)
        return self.places.get(known, Place(1, 1))


def read_yaml(text: str) -> PlacedData:
    """The data of a YAML text. Raises `YamlProblem`."""
    yaml = YAML(typ="safe", pure=True)
    try:
        node = yaml.compose(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = Place(mark.line + 1, mark.column + 1) if mark else Place(1, 1)
        problem = error.problem or error.context or "not YAML"
        raise YamlProblem(" ".join(problem.split()), place) from error
    except YAMLError as error:
        problem = " ".join(str(error).split()) or "not YAML"
        raise YamlProblem(problem, Place(1, 1)) from error
    places: dict[KeyPath, Place] = {}
    if node is None:
        return PlacedData(None, {(): Place(1, 1)})
    places[()] = _place(node)
    return PlacedData(_plain(node, (), places), places)


def _place(node: Node) -> Place:
    return Place(node.start_mark.line + 1, node.start_mark.column + 1)


def _plain(node: Node, path: KeyPath, places: dict[KeyPath, Place]) -> Plain:
    if len(path) > MAX_DEPTH:  # an alias may lead back to itself
        raise YamlProblem(f"nested deeper than {MAX_DEPTH} levels", _place(node))
    if isinstance(node, MappingNode):
        mapping: dict[str, Plain] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, ScalarNode):
                raise YamlProblem("a key must be a text", _place(key_node))
            key = _joined_surrogates(key_node.value)
            if key in mapping:
                raise YamlProblem(f"the key {key!r} stands here twice", _place(key_node))
            places[*path, key] = _place(key_node)
            mapping[key] = _plain(value_node, (*path, key), places)
        return mapping
    if isinstance(node, SequenceNode):
        items: list[Plain] = []
        for index, item in enumerate(node.value):
            places[*path, index] = _place(item)
            items.append(_plain(item, (*path, index), places))
        return items
    if isinstance(node, ScalarNode):
        return _scalar(node)
    raise YamlProblem("is no mapping, list or scalar", _place(node))


def _scalar(node: ScalarNode) -> Plain:
    text: str = node.value
    tag = str(node.tag).removeprefix(_TAG)
    if tag == "null":
        return None
    if tag == "bool":
        return text.lower() == "true"
    if tag == "int":
        return int(text.replace("_", ""), 0) if not text.isdecimal() else int(text)
    if tag == "float":
        return Number(text) if _JSON_NUMBER.fullmatch(text) else float("nan")
    return _joined_surrogates(text)


def _joined_surrogates(text: str) -> str:
    """YAML escapes a character beyond U+FFFF as one; people write JSON's two halves."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
