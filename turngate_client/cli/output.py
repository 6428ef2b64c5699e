"""What every command shares: colours, errors, exit codes and the options for a broker.

Exit codes: 0 done; 1 refused or failed; 2 wrong use, or a service could not start; 130 interrupted.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Coroutine
from enum import IntEnum
from typing import Annotated

import grpc
import typer
from google.protobuf.json_format import MessageToJson
from google.protobuf.message import Message
from rich.console import Console
from rich.text import Text

from turngate_client.client import TurngateClient
from turngate_client.connection import DEFAULT_ADDRESS
from turngate_client.errors import TurngateError, WaitTimedOut
from turngate_client.retries import RetryPolicy


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Not rich's own way, which ends the process from within a task."""
        raise BrokenPipeError("nobody reads the output any more")


# rich colours only terminals, and none if NO_COLOR is set. No soft line breaks of its own: what is
# piped to another program stays one line.
out = _Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
err = _Console(highlight=False, markup=False, emoji=False, soft_wrap=True, stderr=True)


class ExitCode(IntEnum):
    """What the command ends with."""

    OK = 0
    FAILED = 1
    USAGE = 2
    INTERRUPTED = 130


Broker = Annotated[
    str,
    typer.Option("--broker", envvar="TURNGATE_ADDRESS", help="The broker's address, HOST:PORT."),
]
User = Annotated[
    str,
    typer.Option("--user", envvar="TURNGATE_USER", help="Whom to act as; empty: the broker's own."),
]
AsJson = Annotated[
    bool, typer.Option("--json", help="One JSON value a line, for programs; no colours.")
]
BROKER_DEFAULT = DEFAULT_ADDRESS

# How long a person waits for a broker that may just be starting again, in seconds.
PATIENCE = 5.0


class CommandFailed(Exception):
    """Why a command ends, in one line, and with which code."""

    def __init__(self, message: str, code: ExitCode = ExitCode.FAILED) -> None:
        super().__init__(message)
        self.code = code


def client_for(broker: str, user: str) -> TurngateClient:
    """A client that says who it is."""
    try:
        return TurngateClient(
            broker, user=user, client_name="turngate-cli", retry=RetryPolicy(timeout=PATIENCE)
        )
    except ValueError as error:
        raise CommandFailed(str(error), ExitCode.USAGE) from error


def run(command: Coroutine[None, None, None]) -> None:
    """Run a command to its end; errors become a line on standard error and the exit code."""
    try:
        asyncio.run(command)
    except BrokenPipeError:  # as after `| head`; nothing more can be said there
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(ExitCode.FAILED) from None
    except TurngateError as error:
        print_error(error)
        raise typer.Exit(ExitCode.FAILED) from None
    except (WaitTimedOut, ConnectionError) as error:
        err.print(plain(f"turngate: {error}", "red"))
        raise typer.Exit(ExitCode.FAILED) from None
    except CommandFailed as error:
        err.print(plain(f"turngate: {error}", "red"))
        raise typer.Exit(error.code) from None
    except KeyboardInterrupt:
        raise typer.Exit(ExitCode.INTERRUPTED) from None


def print_error(error: TurngateError) -> None:
    """An error of the service, with its violations, on standard error."""
    if error.code is grpc.StatusCode.UNAVAILABLE and not error.reason:
        err.print(plain(f"turngate: cannot reach the broker: {error.message}", "red"))
        return
    err.print(plain(f"turngate: {error}", "red"))
    for violation in error.violations:
        err.print(plain(f"  {violation.field}: {violation.description}", "red"))


def print_json(message: Message) -> None:
    """One line of JSON, as in the protocol."""
    print(MessageToJson(message, indent=None, preserving_proto_field_name=True))


def visible(text: str) -> str:
    """The text without what would steer a terminal: control characters become their pictures."""
    return "".join(
        char if char in "\n\t" or char.isprintable() or char == "\u200d" else _picture(char)
        for char in text
    )


def _picture(char: str) -> str:
    code = ord(char)
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else "\ufffd"


def plain(text: str, style: str = "") -> Text:
    """Text for the terminal in a style; nothing in it is taken for markup."""
    return Text(visible(text), style=style)
