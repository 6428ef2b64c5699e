"""Builds the clients of other languages: once for each content of stubs and client.

What is built lies outside of the checkout. Dependencies are locked, and come from where the tool of
each language gets them.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
BUILD_SECONDS = 600.0
KEPT_DAYS = 7


@dataclass(frozen=True)
class Language:
    """How a client of one language is built.

    `needs`: programs on PATH. `build`: in a folder with copies of `gen/NAME` and
    `tests/clients/NAME`. `command`: what runs the client that was built in such a folder.
    """

    name: str
    needs: tuple[str, ...]
    build: Callable[[Path], None]
    command: Callable[[Path], list[str]]

    @property
    def missing(self) -> list[str]:
        """The programs that this machine lacks."""
        return [program for program in self.needs if shutil.which(program) is None]

    def built(self) -> list[str]:
        """The command of the client, which is built first if it is not there yet."""
        sources = [Path("gen", self.name), Path("tests", "clients", self.name)]
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        folder = cache / "turngate" / "clients" / f"{self.name}-{content_hash(sources)}"
        if not folder.exists():
            folder.parent.mkdir(parents=True, exist_ok=True)
            forget_old_builds(folder.parent)
            with tempfile.TemporaryDirectory(dir=folder.parent) as parent:
                fresh = Path(parent, "build")
                for source in sources:
                    shutil.copytree(ROOT / source, fresh / source)
                self.build(fresh)
                fresh.rename(folder)
        return self.command(folder)


def forget_old_builds(folder: Path) -> None:
    """Remove what was built more than `KEPT_DAYS` ago."""
    for build in folder.iterdir():
        if time.time() - build.stat().st_mtime > KEPT_DAYS * 24 * 3600:
            shutil.rmtree(build, ignore_errors=True)


def content_hash(folders: list[Path]) -> str:
    """A hash of all files in these folders of the checkout, names and contents."""
    digest = hashlib.sha256()
    for folder in folders:
        for file in sorted(path for path in (ROOT / folder).rglob("*") if path.is_file()):
            name = str(file.relative_to(ROOT)).encode()
            content = file.read_bytes()
            digest.update(b"%d %s %d " % (len(name), name, len(content)) + content)
    return digest.hexdigest()[:16]


def run(folder: Path, *command: str, more: Mapping[str, str] | None = None) -> None:
    """Run a step of a build. Raises `AssertionError` with all that it printed if it fails."""
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **(more or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=BUILD_SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}"


def build_go(folder: Path) -> None:
    """`go.sum` locks the dependencies."""
    run(folder / "tests/clients/go", "go", "build", "-o", "client", ".")


def build_ts(folder: Path) -> None:
    """`package-lock.json` locks the dependencies; tsc checks the stubs' types, too."""
    source = folder / "tests/clients/ts"
    run(source, "npm", "ci", "--prefer-offline", "--no-audit", "--no-fund", "--ignore-scripts")
    run(source, "node_modules/.bin/tsc")


def build_java(folder: Path) -> None:
    """The poms name each version; checksums are kept to. A short build is not worth optimising."""
    given = os.environ.get("MAVEN_OPTS", "")
    run(
        folder / "tests/clients/java",
        "mvn",
        "--batch-mode",
        "--strict-checksums",
        "compile",
        "dependency:copy-dependencies",
        "-DoutputDirectory=lib",
        "-DexcludeGroupIds=dev.turngate",
        more={"MAVEN_OPTS": f"{given} -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"},
    )


def java_command(folder: Path) -> list[str]:
    """The client's classes, the stubs', and what both need."""
    client = folder / "tests/clients/java/client"
    parts = (client / "target/classes", folder / "gen/java/target/classes", client / "lib/*")
    return ["java", "-XX:TieredStopAtLevel=1", "-cp", os.pathsep.join(map(str, parts)), "Client"]


LANGUAGES = (
    Language("go", ("go",), build_go, lambda folder: [str(folder / "tests/clients/go/client")]),
    Language(
        "ts",
        ("node", "npm"),
        build_ts,
        lambda folder: ["node", str(folder / "tests/clients/ts/client.js")],
    ),
    Language("java", ("java", "javac", "mvn"), build_java, java_command),
)
