"""Commands for a session by hand: new, sessions, send, watch, tree, and the inbox."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from turngate.v1 import broker_pb2 as pb
from turngate.v1.interaction_pb2 import INTERACTION_KIND_APPROVAL, Interaction
from turngate.v1.session_pb2 import SessionConfig
from turngate_client.cli.narration import Narrator
from turngate_client.cli.output import (
    BROKER_DEFAULT,
    AsJson,
    Broker,
    User,
    client_for,
    out,
    plain,
    print_json,
    run,
)
from turngate_client.cli.text import held_line, question_line, tree_of
from turngate_client.folding import apply_event
from turngate_client.session_view import SessionView
from turngate_core.json_text import JsonTextError, check

SessionId = Annotated[str, typer.Argument(help="The session's id.", show_default=False)]
InteractionId = Annotated[str, typer.Argument(help="The question's id, as the inbox shows it.")]
Reason = Annotated[str, typer.Option(help="Why, for the model.")]


def new(
    session_id: Annotated[str, typer.Argument(help="Its id; without one it is minted.")] = "",
    agent: Annotated[str, typer.Option(help="The agent that replies.")] = "",
    title: Annotated[str, typer.Option(help="A title to show.")] = "",
    broker: Broker = BROKER_DEFAULT,
    user: User = "",
) -> None:
    """Create a session and print its id.

    Example: turngate new trip --agent demo
    """

    async def command() -> None:
        async with client_for(broker, user) as client:
            config = SessionConfig(agent=agent, title=title)
            session = await client.create_session(session_id, config=config)
            out.print(session.id)

    run(command())


def sessions(
    waiting: Annotated[
        bool, typer.Option("--waiting", help="Only those in which a question is open.")
    ] = False,
    as_json: AsJson = False,
    broker: Broker = BROKER_DEFAULT,
    user: User = "",
) -> None:
    """List the sessions that you may see, newest first."""

    async def command() -> None:
        table = Table("session", "owner", "agent", "open", "held", "title", box=None)
        async with client_for(broker, user) as client:
            async for one in client.sessions(only_waiting=waiting):
                if as_json:
                    print_json(one)
                    continue
                open_held = (str(one.open_interaction_count), str(one.held_message_count))
                row = (one.id, one.owner, one.config.agent, *open_held, one.config.title)
                table.add_row(*(plain(cell) for cell in row))
        if not as_json:
            out.print(table, soft_wrap=False)

    run(command())


def send(
    session_id: SessionId,
    text: Annotated[str, typer.Argument(help="The message.", show_default=False)],
    as_json: AsJson = False,
    broker: Broker = BROKER_DEFAULT,
    user: User = "",
) -> None:
    """Send a message; it starts a run, or it is held.

    Example: turngate send trip "I would like to go on a trip"
    """

    async def command() -> None:
        async with client_for(broker, user) as client:
            sent = await client.session(session_id).send(text)
        if as_json:
            print_json(sent)
        elif sent.outcome == pb.SEND_OUTCOME_HELD:
            out.print(plain(f"{sent.message_id}  {held_line(sent.held)}"))
        else:
            out.print(plain(f"{sent.message_id}  STARTED run {sent.run_id}"))

    run(command())


def watch(
    session_id: SessionId,
    as_json: AsJson = False,
    once: Annotated[
        bool, typer.Option("--once", help="Stop at the present instead of going on live.")
    ] = False,
    broker: Broker = BROKER_DEFAULT,
    user: User = "",
) -> None:
    """Show a session from its start, then live, until Ctrl-C.

    Example: turngate watch trip --json | jq .position
    """

    async def command() -> None:
        narrator = Narrator()
        async with client_for(broker, user) as client:
            session = client.session(session_id)
            await session.get()  # soon says if there is no such session, or no broker
            async with session.watch() as watching:
                async for frame in watching.frames():
                    for event in frame.events:
                        if as_json:
                            print_json(event)
                        else:
                            narrator.tell(event)
                    if once and frame.live:
                        return

    run(command())


def tree(
    session_id: SessionId,
    as_json: AsJson = False,
    broker: Broker = BROKER_DEFAULT,
    user: User = "",
) -> None:
    """Show the conversation tree of a session.

    ● marks the selected branch. With --json: the nodes, oldest first.
    """

    async def command() -> None:
        async with client_for(broker, user) as client:
            session = client.session(session_id)
            if as_json:
                for node in await session.tree(include_superseded=True):
                    print_json(node)
                return
            await session.get()  # soon says if there is no such session, or no broker
            view = SessionView()
            async with session.watch() as watching:
                async for frame in watching.frames():
                    for event in frame.events:
                        apply_event(view, event)
                    if frame.live:
                        break
            out.print(tree_of(view), soft_wrap=False)

    run(command())


def inbox(
    session_id: Annotated[str, typer.Option("--session", help="Only of this session.")] = "",
    as_json: AsJson = False,
    broker: Broker = BROKER_DEFAULT,
    user: User = "",
) -> None:
    """List the questions that are open, oldest first."""

    async def command() -> None:
        async with client_for(broker, user) as client:
            where = pb.InteractionFilter(session_id=session_id)
            async for one in client.interactions(where):
                if as_json:
                    print_json(one)
                    continue
                out.print(plain(f"{one.session_id}  {question_line(one)}", "bold"))
                out.print(plain(f"  {one.arguments_json}"))
                out.print(plain(f"  {_how_to_close(one)}", "dim"))

    run(command())


def _how_to_close(interaction: Interaction) -> str:
    names = f"{interaction.session_id} {interaction.id}"
    if interaction.kind == INTERACTION_KIND_APPROVAL:
        return f"turngate approve {names}    or    turngate deny {names}"
    return f"turngate answer {names} JSON"


def answer(
    session_id: SessionId,
    interaction_id: InteractionId,
    output: Annotated[str, typer.Argument(help="The output, as JSON.", show_default=False)] = "",
    error: Annotated[str, typer.Option(help="An error for the model instead of an output.")] = "",
    as_json: AsJson = False,
    broker: Broker = BROKER_DEFAULT,
    user: User = "",
) -> None:
    """Answer a call of a client tool, with an output or an error.

    Example: turngate answer trip INTERACTION '{"action":"accept","content":{"city":"Visby"}}'
    """
    if bool(output) == bool(error):
        raise typer.BadParameter("give an output or --error, one of them")
    if output:
        try:
            check(output)
        except JsonTextError as problem:
            raise typer.BadParameter(f"the output is no JSON: {problem}") from None

    async def command() -> None:
        async with client_for(broker, user) as client:
            session = client.session(session_id)
            if error:
                settled = await session.settle_error(interaction_id, error)
            else:
                settled = await session.settle_json(interaction_id, output)
        if as_json:
            print_json(settled)
            return
        fork = "opened" if settled.fork_opened else "collected by"
        out.print(plain(f"taken; fork {fork} {settled.run_id}"))

    run(command())


def approve(
    session_id: SessionId,
    interaction_id: InteractionId,
    reason: Reason = "",
    as_json: AsJson = False,
    broker: Broker = BROKER_DEFAULT,
    user: User = "",
) -> None:
    """Approve the start of a server tool."""
    run(_decide((broker, user), session_id, interaction_id, reason, as_json, approved=True))


def deny(
    session_id: SessionId,
    interaction_id: InteractionId,
    reason: Reason = "",
    as_json: AsJson = False,
    broker: Broker = BROKER_DEFAULT,
    user: User = "",
) -> None:
    """Deny the start of a server tool; the run goes on without it."""
    run(_decide((broker, user), session_id, interaction_id, reason, as_json, approved=False))


async def _decide(
    broker_and_user: tuple[str, str],
    session_id: str,
    interaction_id: str,
    reason: str,
    as_json: bool,
    *,
    approved: bool,
) -> None:
    async with client_for(*broker_and_user) as client:
        session = client.session(session_id)
        decide = session.approve if approved else session.deny
        decided = await decide(interaction_id, reason=reason)
    if as_json:
        print_json(decided)
    else:
        waits = ", ".join(decided.waits_for_interaction_ids)
        goes_on = f"the run still waits for {waits}" if waits else "the run goes on"
        out.print(plain(f"{'approved' if approved else 'denied'}; {goes_on}"))
