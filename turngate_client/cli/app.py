"""The commands of `turngate` and their help."""

from __future__ import annotations

import typer

from turngate_client.cli import by_hand, demo, files, starting

app = typer.Typer(
    help="""Conversations with agents that park on a question and go on with the answer.

Start here:

  turngate demo          a whole conversation in this terminal, nothing needed beforehand

  turngate up            broker and runner, until Ctrl-C

Then, from another terminal:

  turngate new trip --agent demo

  turngate send trip "I would like to go on a trip"

  turngate watch trip

  turngate inbox

Exit codes: 0 done; 1 refused or failed; 2 wrong use, or a service could not start; 130 interrupted.
""",
    rich_markup_mode="markdown",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

SERVICES = "Services"
SESSIONS = "A session by hand"

app.command(rich_help_panel=SERVICES)(demo.demo)
app.command(rich_help_panel=SERVICES)(starting.up)
for service in (starting.broker, starting.runner, starting.migrate):
    app.command(rich_help_panel=SERVICES, context_settings=starting.PASS_THROUGH)(service)
for command in (
    by_hand.new,
    by_hand.sessions,
    by_hand.send,
    by_hand.watch,
    by_hand.tree,
    by_hand.inbox,
    by_hand.answer,
    by_hand.approve,
    by_hand.deny,
    files.export,
    files.delete,
):
    app.command(rich_help_panel=SESSIONS)(command)
app.command("import", rich_help_panel=SESSIONS)(files.import_)
