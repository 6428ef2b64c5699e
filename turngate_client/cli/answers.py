"""Where a person's answers come from: a terminal, or standard input line by line."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Protocol

import questionary
from prompt_toolkit.document import Document
from questionary import ValidationError, Validator

from turngate_client.cli.output import CommandFailed, ExitCode, out, plain

Check = Callable[[str], str | None]
"""What is wrong with a text, for people; None if nothing."""

TRIES = 3


class NoAnswer(Exception):
    """The person gave no answer: the input has ended, or every try was refused."""


class Answers(Protocol):
    """Asks a person for one text at a time."""

    async def ask(self, question: str, check: Check, options: Sequence[str] = ()) -> str:
        """An answer in which `check` finds nothing wrong. Raises NoAnswer."""
        ...


class _Checked(Validator):
    def __init__(self, check: Check) -> None:
        self._check = check

    def validate(self, document: Document) -> None:
        problem = self._check(document.text.strip())
        if problem is not None:
            raise ValidationError(message=problem, cursor_position=len(document.text))


class TerminalAnswers:
    """Asks at the prompt; what does not fit is said under the line, and asked again there."""

    async def ask(self, question: str, check: Check, options: Sequence[str] = ()) -> str:
        shown = f"{_with_options(question, options)}:"
        try:
            if options:
                asked = questionary.autocomplete(
                    shown, choices=list(options), validate=_Checked(check)
                )
            else:
                asked = questionary.text(shown, validate=_Checked(check))
            # Ctrl-C is a key here; the prompt's own signal handler would replace the command's.
            answer: object = await asked.application.run_async(handle_sigint=False)
        except EOFError:
            raise NoAnswer("the input has ended") from None
        except KeyboardInterrupt:
            raise CommandFailed("interrupted", ExitCode.INTERRUPTED) from None
        return str(answer).strip()


class LineAnswers:
    """Takes the next line of a stream for each question, and another one for each second try."""

    def __init__(self, file_descriptor: int) -> None:
        self._descriptor = file_descriptor
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self._thread: threading.Thread | None = None
        self._ended = False

    async def ask(self, question: str, check: Check, options: Sequence[str] = ()) -> str:
        shown = _with_options(question, options)
        for _ in range(TRIES):
            line = await self._next_line()
            out.print(plain(f"? {shown}: ", "bold").append_text(plain(line)))
            if (problem := check(line)) is None:
                return line
            out.print(plain(f"  {problem}", "yellow"))
        raise NoAnswer(f"{TRIES} answers in a row did not fit")

    async def _next_line(self) -> str:
        if self._thread is None:
            self._thread = self._begin_to_read()
        line = None if self._ended else await self._lines.get()
        if line is None:
            self._ended = True
            raise NoAnswer("the input has ended")
        return line.strip()

    def _begin_to_read(self) -> threading.Thread:
        """A thread, since files, pipes and devices all differ in how they could be awaited.

        It reads the descriptor itself: a buffered reader that is blocked when Python ends aborts
        the process.
        """
        loop = asyncio.get_running_loop()
        # Its own, for as long as it reads: the number of a closed one may be another file's soon.
        own = os.dup(self._descriptor)

        def give(line: str | None) -> None:
            with contextlib.suppress(RuntimeError):  # the loop has closed: nobody asks any more
                loop.call_soon_threadsafe(self._lines.put_nowait, line)

        def read() -> None:
            rest = b""
            while block := _read_block(own):
                *lines, rest = (rest + block).split(b"\n")
                for line in lines:
                    give(line.decode(errors="replace"))
            if rest:
                give(rest.decode(errors="replace"))
            give(None)
            os.close(own)

        thread = threading.Thread(target=read, name="standard input", daemon=True)
        thread.start()
        return thread


def _read_block(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65_536)
    except OSError:  # a terminal that was closed, for one: the input has ended
        return b""


def _with_options(question: str, options: Sequence[str]) -> str:
    return f"{question} ({' | '.join(options)})" if options else question


def answers_from_input() -> Answers:
    """The person at the terminal, or the lines that were piped in."""
    if sys.stdin.isatty() and sys.stdout.isatty():
        return TerminalAnswers()
    return LineAnswers(sys.stdin.fileno())
