"""`turngate demo`: a conversation with the two real services, over real ports."""

from __future__ import annotations

import asyncio
import secrets
import tempfile
from collections import deque
from collections.abc import Coroutine
from pathlib import Path
from typing import Annotated

import typer

from turngate.v1.session_pb2 import SessionConfig
from turngate_client.cli.answers import answers_from_input
from turngate_client.cli.conversation import Conversation
from turngate_client.cli.grpcurl_lines import grpcurl_lines
from turngate_client.cli.output import (
    CommandFailed,
    ExitCode,
    User,
    client_for,
    err,
    out,
    plain,
    run,
)
from turngate_client.cli.services import Pair, running_pair
from turngate_client.cli.starting import (
    BROKER_LISTEN,
    stop_signals,
    until_one_ends,
    until_stopped,
)
from turngate_client.cli.text import tree_of
from turngate_client.errors import TurngateError, WaitTimedOut

FIRST_TEXT = "I would like to go on a trip to the sea."
SECOND_TEXT = "Is breakfast included?"


def demo(
    broker: Annotated[
        str, typer.Option(help="Talk to this running broker instead of starting a pair.")
    ] = "",
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave the pair running at the end, until Ctrl-C.")
    ] = False,
    text: Annotated[str, typer.Option(help="The first message.")] = FIRST_TEXT,
    second_text: Annotated[
        str, typer.Option(help="The message that is sent while the form is open.")
    ] = SECOND_TEXT,
    user: User = "",
) -> None:
    """Hold a conversation that parks on a form, and go on with your answer.

    Starts a broker and a runner on free ports with the built-in agent `demo`. Text streams, a form
    is parked, a message that is sent meanwhile is held, you fill the form in, the run resumes, you
    approve a booking, the held message enters, and the session's tree is shown.

    When standard input is no terminal, the answers are its lines, in this order: each field of the
    form (city, nights, room, newsletter), y or n for the approval, the reason. An empty line takes
    the default; after a line that does not fit, the next one is the second try. At the end of the
    input the form is declined, and the approval is denied.

    Examples:

      turngate demo

      printf 'Visby\\n3\\ndouble\\nn\\ny\\nlooks good\\n' | turngate demo
    """
    if broker and keep:
        raise typer.BadParameter("--keep is for a pair that the demo starts itself")
    run(_demo(broker, keep, text, second_text, user))


async def _demo(broker: str, keep: bool, text: str, second_text: str, user: str) -> None:
    said = asyncio.Event()  # the conversation is over
    with stop_signals() as stopped:
        if broker:
            talking = asyncio.create_task(_converse(broker, text, second_text, user))
        else:
            talking = asyncio.create_task(_with_pair(keep, text, second_text, user, said))
        await until_stopped(talking, stopped)
        if talking.cancelled() and not said.is_set():
            raise CommandFailed("interrupted", ExitCode.INTERRUPTED)


async def _with_pair(
    keep: bool, text: str, second_text: str, user: str, said: asyncio.Event
) -> None:
    log: deque[str] = deque(maxlen=60)

    def remember(name: str, line: str) -> None:
        log.append(f"{name} | {line}")

    listen = ("--listen", "127.0.0.1:0")
    with tempfile.TemporaryDirectory(prefix="turngate-demo-") as folder:
        store = f"sqlite:{Path(folder) / 'sessions.db'}"
        tools = str(Path(folder) / "tools")
        try:
            async with running_pair(
                Path(folder),
                remember,
                broker_flags=[*listen, "--store", store],
                runner_flags=[*listen, "--agent", "demo", "--data-dir", tools],
            ) as pair:
                address = pair.broker.address
                out.print(plain(f"broker {address}, runner {pair.runner.address}", "dim"))
                await _while_both_run(pair, _converse(address, text, second_text, user, keep))
                said.set()
                if keep:
                    out.print(plain("\nBoth services go on until Ctrl-C.", "bold"))
                    await until_one_ends(pair)
        except (CommandFailed, TurngateError, WaitTimedOut) as error:
            if not (isinstance(error, CommandFailed) and error.code == ExitCode.INTERRUPTED):
                for line in log:
                    err.print(plain(line, "dim"))
            raise


async def _while_both_run(pair: Pair, conversation: Coroutine[None, None, None]) -> None:
    """The conversation to its end, or CommandFailed as soon as a service ends."""
    talking = asyncio.create_task(conversation)
    dying = asyncio.create_task(until_one_ends(pair))
    try:
        done, _ = await asyncio.wait({talking, dying}, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        talking.cancel()
        dying.cancel()
        await asyncio.wait({talking, dying})


async def _converse(
    address: str, text: str, second_text: str, user: str, running_on: bool = True
) -> None:
    async with client_for(address, user) as client:
        session = await client.create_session(
            f"demo-{secrets.token_hex(4)}",
            config=SessionConfig(agent="demo", title="The demo's trip"),
        )
        conversation = Conversation(session, answers_from_input(), second_text)
        await conversation.hold(text)
    out.print()
    out.print(tree_of(conversation.view), soft_wrap=False)
    where = address if running_on else BROKER_LISTEN
    out.print(plain(f"\nThe same by hand, with a broker at {where}", "bold"))
    if not running_on:
        out.print(plain("(that is `turngate up`; or `turngate demo --keep` leaves this pair)"))
    by_hand = f"by-hand-{secrets.token_hex(4)}"
    for line in grpcurl_lines(where, by_hand, text, second_text, conversation.answer_json):
        out.print(line)
