"""What a fake provider was sent, and how it reads in a golden file."""

import io
import re
from dataclasses import dataclass
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.nodes import ScalarNode
from ruamel.yaml.representer import SafeRepresenter

from tests.providers.script import Wire
from turngate_core.json_text import JsonValue
from turngate_core.number import Number


@dataclass(slots=True)
class Exchange:
    """A request and what became of it.

    `body` keeps numbers as written; None if it is no JSON. `refusal` is the provider's message
    where the request was refused, and None where the script decided the answer, errors included.
    """

    wire: Wire
    text: str
    body: JsonValue
    status: int = 200
    refusal: str | None = None


# Ids of the providers and of their client libraries, in the order in which they are tried.
_VOLATILE = re.compile(
    r"\b(?P<kind>toolu|call|fc|rs|msg|resp|chatcmpl|req|pyd_ai)[_-][A-Za-z0-9_-]{8,}"
    r"|(?P<uuid>\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b)"
    r"|(?P<time>\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d))"
)
# Fields that are volatile as a whole: what only the provider can read.
_SEALED = {"signature": "signature", "encrypted_content": "sealed", "data": "sealed"}


class Names:
    """Stable names for volatile values: the same value has the same name in all of a recording."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._counts: dict[str, int] = {}

    def of(self, kind: str, value: str) -> str:
        if value not in self._names:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._names[value] = f"<{kind} {self._counts[kind]}>"
        return self._names[value]

    def normalised(self, value: JsonValue, key: str = "") -> JsonValue:
        """The value with names in place of ids, signatures, sealed contents and times."""
        match value:
            case dict():
                return {k: self.normalised(v, k) for k, v in value.items()}
            case list():
                return [self.normalised(v, key) for v in value]
            case str() if value and key in _SEALED:
                return self.of(_SEALED[key], value)
            case str():
                return _VOLATILE.sub(self._name, value)
            case _:
                return value

    def _name(self, found: re.Match[str]) -> str:
        kind = found.lastgroup if found["kind"] is None else found["kind"]
        return self.of("time" if found["time"] else str(kind), found.group())


def dump(exchanges: list[Exchange]) -> str:
    """All exchanges as YAML documents, for golden files that a person reads."""
    names = Names()
    out = io.StringIO()
    yaml = _yaml()
    for number, exchange in enumerate(exchanges, 1):
        out.write(f"--- # {number}: {exchange.wire}, {exchange.status}\n")
        if exchange.refusal is not None:
            out.write(f"# refused: {exchange.refusal}\n")
        yaml.dump(names.normalised(exchange.body), out)
    return out.getvalue()


class _Representer(SafeRepresenter):
    """Numbers as they were written, texts of several lines as blocks."""


def _number(representer: SafeRepresenter, number: Number) -> ScalarNode:
    kind = "int" if re.fullmatch(r"-?\d+", number.literal) else "float"
    return _scalar(representer, kind, number.literal, "")


def _text(representer: SafeRepresenter, text: str) -> ScalarNode:
    # YAML has no block for a text whose lines end in spaces, or that begins with one.
    block = "\n" in text and not re.search(r"[ \t]\n|\A\s|[^\n -~\u00a0-\uffff]", text)
    return _scalar(representer, "str", text, "|" if block else "")


def _scalar(representer: SafeRepresenter, kind: str, text: str, style: str) -> ScalarNode:
    node = representer.represent_scalar(f"tag:yaml.org,2002:{kind}", text, style=style or None)
    assert isinstance(node, ScalarNode)
    return node


_Representer.add_representer(Number, _number)
_Representer.add_representer(str, _text)


def _yaml() -> YAML:
    yaml: Any = YAML(typ="safe", pure=True)  # its settings are attributes without right types
    yaml.Representer = _Representer
    yaml.default_flow_style = False
    yaml.sort_base_mapping_type_on_output = False
    yaml.width = 100
    yaml.allow_unicode = True
    assert isinstance(yaml, YAML)
    return yaml
