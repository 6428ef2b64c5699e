"""docs/rules.md tells the truth: each rule once, with code that is there and tests that cite it."""

import ast
import re
from collections.abc import Iterator
from functools import cache

import pytest

from tests.docs.pages import ROOT, name_of, page, rows

COUNTS = {
    "T": 5,
    "R": 7,
    "I": 5,
    "F": 10,
    "A": 5,
    "H": 4,
    "B": 2,
    "D": 3,
    "G": 5,
    "C": 5,
    "W": 5,
    "E": 4,
    "X": 7,
    "S": 2,
    "P": 3,
}
RULES = [f"{letter}{n}" for letter, count in COUNTS.items() for n in range(1, count + 1)]
NOT_YET = "not yet"

_RULE = re.compile(
    rf"(?<![A-Za-z0-9])(?P<letter>[{''.join(COUNTS)}])(?P<first>\d\d?)"
    r"(?:\s?(?:to|-)\s?(?P=letter)?(?P<last>\d\d?))?(?![A-Za-z0-9])"
)
_REFERENCE = re.compile(r"\[[^\]]*\]\(\.\./(?P<path>[^)]+)\)(?P<names>[^;\[]*)")


def cited(text: str) -> set[str]:
    """The rules that a text cites, alone or as `F2 to F4`."""
    found: set[str] = set()
    for match in _RULE.finditer(text):
        first = int(match["first"])
        last = int(match["last"] or first)
        found |= {f"{match['letter']}{n}" for n in range(first, last + 1)}
    return found


def cited_by_name(name: str) -> set[str]:
    """`test_F4_…` and `test_f4_…` cite F4."""
    return cited(name.replace("_", " ").upper())


def references(cell: str) -> Iterator[tuple[str, list[str]]]:
    """The files that a cell links to, with the names that follow each."""
    for match in _REFERENCE.finditer(cell):
        yield match["path"], re.findall(r"`([^`]+)`", match["names"])


@cache
def definitions(path: str) -> dict[str, ast.AST]:
    """What a module defines, methods as `Class.method`."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    found: dict[str, ast.AST] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found[node.name] = node
        if isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef):
                    found[f"{node.name}.{inner.name}"] = inner
        if isinstance(node, ast.Assign):
            found |= {t.id: node for t in node.targets if isinstance(t, ast.Name)}
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found[node.target.id] = node
    return found


@cache
def text_of(path: str, name: str) -> str:
    """A test's own text, and what its module says about all its tests."""
    source = (ROOT / path).read_text(encoding="utf-8")
    node = definitions(path)[name]
    module = ast.get_docstring(ast.parse(source)) or ""
    return f"{module}\n{ast.get_source_segment(source, node)}"


@cache
def citing_tests() -> dict[str, set[str]]:
    """For each rule, the tests whose name or docstring cites it."""
    found: dict[str, set[str]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            if node.name.startswith("test_"):
                for rule in cited_by_name(node.name) | cited(ast.get_docstring(node) or ""):
                    found.setdefault(rule, set()).add(f"{name_of(path)}::{node.name}")
    return found


TABLE = {
    cells[0].strip("*"): cells
    for cells in rows(page("docs/rules.md"))
    if re.fullmatch(r"\*\*[A-Z]\d+\*\*", cells[0])
}


def test_every_rule_stands_there_once_and_no_other() -> None:
    listed = re.findall(r"^\| \*\*([A-Z]\d+)\*\* \|", page("docs/rules.md"), re.M)
    assert listed == RULES


@pytest.mark.parametrize("rule", RULES)
def test_the_code_that_keeps_a_rule_is_there(rule: str) -> None:
    sentence, code = TABLE[rule][1:3]
    assert sentence.endswith((".", "*"))
    if code == NOT_YET:
        return
    found = list(references(code))
    assert found, f"{rule}: neither code nor '{NOT_YET}'"
    for path, names in found:
        assert (ROOT / path).is_file(), f"{rule}: {path}"
        assert not path.startswith("tests/"), f"{rule}: {path} keeps nothing"
        missing = [name for name in names if name not in definitions(path)]
        assert not missing, f"{rule}: {path} has no {missing}"


@pytest.mark.parametrize("rule", RULES)
def test_the_tests_that_show_a_rule_cite_it(rule: str) -> None:
    code, shown = TABLE[rule][2:4]
    if NOT_YET in (code, shown):
        assert shown == NOT_YET
        return
    found = [(path, name) for path, names in references(shown) for name in names]
    assert found, f"{rule}: no test shows it"
    for path, name in found:
        assert path.startswith("tests/"), f"{rule}: {path}"
        assert name in definitions(path), f"{rule}: {path} has no {name}"
        text = text_of(path, name)
        assert rule in cited(text) | cited_by_name(name), f"{rule}: {path}::{name} does not cite it"


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_that_tests_cite_is_not_called_missing(rule: str) -> None:
    if NOT_YET in TABLE[rule][2:4]:
        assert citing_tests().get(rule, set()) == set()


def test_citations_are_found_alone_in_ranges_and_in_names() -> None:
    assert cited("F4, (X1-X7) and W1, not UTF8 or a1") == {
        *{"F4", "W1"},
        *{f"X{n}" for n in range(1, 8)},
    }
    assert cited("F2 to F4") == {"F2", "F3", "F4"}
    assert cited_by_name("test_x2_peeking_uses_nothing_up") == {"X2"}
