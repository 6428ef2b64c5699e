"""Commands that move or remove a session as a whole: export, import, delete."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from turngate_client.cli.by_hand import SessionId
from turngate_client.cli.output import (
    BROKER_DEFAULT,
    Broker,
    CommandFailed,
    User,
    client_for,
    out,
    plain,
    run,
)
from turngate_client.files import PIECE_BYTES


def export(
    session_id: SessionId,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file; without it: standard output.")
    ] = None,
    broker: Broker = BROKER_DEFAULT,
    user: User = "",
) -> None:
    """Write a session as newline-delimited JSON.

    Example: turngate export trip -o trip.ndjson
    """

    async def command() -> None:
        async with client_for(broker, user) as client:
            pieces = client.session(session_id).export()
            if output is None:
                async for piece in pieces:
                    sys.stdout.buffer.write(piece)
                sys.stdout.buffer.flush()
                return
            whole = [piece async for piece in pieces]  # a file that is there is a whole one
        try:
            output.write_bytes(b"".join(whole))
        except OSError as error:
            raise CommandFailed(f"cannot write {output}: {error.strerror}") from error

    run(command())


def import_(
    file: Annotated[str, typer.Argument(help="The file; -: standard input.", show_default=False)],
    session_id: Annotated[
        str, typer.Option("--as", help="Another id for the session; empty: the one in the file.")
    ] = "",
    broker: Broker = BROKER_DEFAULT,
    user: User = "",
) -> None:
    """Make a session of an exported file and print its id. Needs the scope admin.

    Parked runs can be answered; nothing starts by itself.

    Example: turngate import trip.ndjson --as trip-2
    """

    async def command() -> None:
        async with client_for(broker, user) as client:
            imported = await client.import_session(_pieces(file), session_id=session_id)
            out.print(imported.id)

    run(command())


def _pieces(file: str) -> list[bytes]:
    try:
        if file == "-":
            return _read(sys.stdin.buffer)
        with open(file, "rb") as opened:
            return _read(opened)
    except OSError as error:
        raise CommandFailed(f"cannot read {file}: {error.strerror}") from error


def _read(opened: BinaryIO) -> list[bytes]:
    return list(iter(lambda: opened.read(PIECE_BYTES), b""))


def delete(
    session_id: SessionId,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    broker: Broker = BROKER_DEFAULT,
    user: User = "",
) -> None:
    """Delete a session for good: what is open is cancelled, its content is gone."""
    if not yes:
        typer.confirm(f"Delete the session {session_id} for good?", abort=True)

    async def command() -> None:
        async with client_for(broker, user) as client:
            await client.session(session_id).delete()
            out.print(plain(f"deleted {session_id}"))

    run(command())
