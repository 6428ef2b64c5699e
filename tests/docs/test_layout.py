"""CONTRIBUTING.md shows the folders that there are, and the targets that make has."""

import re

from tests.docs.pages import ROOT, blocks, page


def test_the_layout_names_what_is_there() -> None:
    [layout] = [b for b in blocks(ROOT / "CONTRIBUTING.md") if b.info == "text layout"]
    parent = ""
    for line in layout.body.splitlines():
        name = line.split()[0]
        if not line.startswith(" "):
            parent = name
            assert (ROOT / name).is_dir(), name
        else:
            assert (ROOT / parent / name).exists(), f"{parent}{name}"


def test_every_folder_of_ours_is_in_the_layout() -> None:
    [layout] = [b for b in blocks(ROOT / "CONTRIBUTING.md") if b.info == "text layout"]
    shown = {line.split("/")[0] for line in layout.body.splitlines() if not line.startswith(" ")}
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert packages <= shown
    assert {"protos", "gen", "tests", "docs"} <= shown


def test_targets_that_the_pages_name_are_in_the_makefile() -> None:
    targets = set(re.findall(r"^([a-z-]+):.*## ", page("Makefile"), re.M))
    named = set()
    for name in ("README.md", "CONTRIBUTING.md", "docs/rules.md", "docs/settings.md"):
        named |= set(re.findall(r"(?:^|`|\| |=1 )make ([a-z-]+)", page(name), re.M))
    assert named
    assert named <= targets
