"""What the tests of the documentation read: pages, their tables, links and blocks of code."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent

PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]

_LINK = re.compile(r"\[(?P<text>[^\]\[]*)\]\((?P<target>[^)\s]+)\)")
_FENCE = re.compile(
    r"^(?P<indent> *)```(?P<info>[^\n`]*)\n(?P<body>.*?)^(?P=indent)```$", re.M | re.S
)


@dataclass(frozen=True)
class Block:
    """A fenced block of code; `info`: what stands after the fence; `line`: where it begins."""

    page: Path
    line: int
    info: str
    body: str

    @property
    def place(self) -> str:
        return f"{name_of(self.page)}:{self.line}"


def page(name: str) -> str:
    """The text of a page, named from the root of the checkout."""
    return (ROOT / name).read_text(encoding="utf-8")


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def without_code(text: str) -> str:
    """The prose alone: links and headings in code are none."""
    return re.sub(r"`[^`\n]*`", "", _FENCE.sub("", text))


def blocks(path: Path, info: str = "") -> Iterator[Block]:
    """Blocks of code whose info begins with this word; without one, all."""
    text = path.read_text(encoding="utf-8")
    for match in _FENCE.finditer(text):
        if not info or match["info"].split(" ")[0] == info:
            indent = len(match["indent"])
            body = "".join(line[indent:] for line in match["body"].splitlines(keepends=True))
            yield Block(path, text.count("\n", 0, match.start()) + 1, match["info"].strip(), body)


def links(text: str) -> list[tuple[str, str]]:
    """Text and target of each link."""
    return [(match["text"], match["target"]) for match in _LINK.finditer(text)]


def rows(text: str) -> Iterator[list[str]]:
    """The cells of each row of all tables, without headings."""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        follows = lines[number + 1] if number + 1 < len(lines) else ""
        is_heading = set(follows) <= set("|-: ") and "-" in follows
        if line.startswith("|") and not is_heading and set(line) - set("|-: "):
            yield [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]


def anchors(text: str) -> set[str]:
    """The anchors that a page's headings make, as GitHub makes them."""
    headings = re.findall(r"^#+ +(.+?)\s*$", _FENCE.sub("", text), re.M)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}
