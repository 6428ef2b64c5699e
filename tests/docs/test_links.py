"""Every link of the pages leads somewhere, and none to a machine of one's own."""

import re

import pytest

from tests.docs.pages import PAGES, ROOT, anchors, links, name_of, page, without_code

LINKS = [
    pytest.param(path, target, id=f"{name_of(path)} -> {target}")
    for path in PAGES
    for _, target in dict.fromkeys(links(without_code(path.read_text(encoding="utf-8"))))
    if not target.startswith(("https://", "mailto:"))
]


@pytest.mark.parametrize(("path", "target"), LINKS)
def test_a_link_leads_somewhere(path: object, target: str) -> None:
    here = ROOT / str(path)
    file, _, anchor = target.partition("#")
    there = (here.parent / file).resolve() if file else here
    assert there.is_relative_to(ROOT), "it leads out of the checkout"
    assert there.exists()
    if anchor:
        assert anchor in anchors(there.read_text(encoding="utf-8"))


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached = set()
    todo = [ROOT / "README.md"]
    while todo:
        here = todo.pop()
        if here in reached:
            continue
        reached.add(here)
        for _, target in links(without_code(here.read_text(encoding="utf-8"))):
            there = (here.parent / target.partition("#")[0]).resolve()
            if there.suffix == ".md" and there.is_file():
                todo.append(there)
    assert [name_of(path) for path in PAGES if path not in reached] == []


@pytest.mark.parametrize("path", [pytest.param(p, id=name_of(p)) for p in PAGES])
def test_no_page_names_a_machine(path: object) -> None:
    text = page(name_of(ROOT / str(path)))
    assert re.findall(r"/(?:work|root|home|tmp)/\S+|\.\./shared", text) == []
