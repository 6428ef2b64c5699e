"""`turngate broker`, `turngate runner` and `turngate up`."""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Annotated

import typer

from turngate_client.cli.output import CommandFailed, err, out, plain, run
from turngate_client.cli.services import Pair, running_pair, service_command

PASS_THROUGH = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}

BROKER_LISTEN = "127.0.0.1:50051"
RUNNER_LISTEN = "127.0.0.1:50052"


def broker(context: typer.Context) -> None:
    """Start the broker; all flags are its own: turngate broker --help"""
    _become("broker", context.args)


def runner(context: typer.Context) -> None:
    """Start the runner; all flags are its own: turngate runner --help"""
    _become("runner", context.args)


def migrate(context: typer.Context) -> None:
    """Bring a store up to this version's schema: turngate migrate --store postgresql://…"""
    _become("broker", context.args, "migrate")


def _become(name: str, flags: list[str], module: str = "") -> None:
    """Replace this process: signals, exit code and output are then the service's own."""
    command = [*service_command(name, module), *flags]
    os.execv(command[0], command)


def up(
    listen: Annotated[str, typer.Option(help="Where the broker listens.")] = BROKER_LISTEN,
    runner_listen: Annotated[str, typer.Option(help="Where the runner listens.")] = RUNNER_LISTEN,
    store: Annotated[str, typer.Option(help="Where sessions are kept.")] = "sqlite:turngate.db",
    script: Annotated[
        list[Path] | None,
        typer.Option(help="A scenario of the scripted agent; may be repeated. Default: demo."),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="A TOML file with the settings of both services.")
    ] = None,
) -> None:
    """Start broker and runner as two processes; Ctrl-C stops both.

    Other settings come from --config and from the environment (TURNGATE_BROKER_…,
    TURNGATE_RUNNER_…), see: turngate broker --help

    Example: turngate up --store sqlite:/var/lib/turngate/sessions.db
    """
    shared = ["--config", str(config)] if config else []
    scripts = [flag for path in script or () for flag in ("--script", str(path))]
    run(
        _up(
            ["--listen", listen, "--store", store, *shared],
            ["--listen", runner_listen, *scripts, *shared],
            store,
        )
    )


async def _up(broker_flags: list[str], runner_flags: list[str], store: str) -> None:
    with stop_signals() as stopped:
        serving = asyncio.create_task(_serve(broker_flags, runner_flags, store))
        await until_stopped(serving, stopped)


async def _serve(broker_flags: list[str], runner_flags: list[str], store: str) -> None:
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="turngate-"))
        pair = await stack.enter_async_context(
            running_pair(
                Path(folder), print_log_line, broker_flags=broker_flags, runner_flags=runner_flags
            )
        )
        out.print(plain(f"broker  {pair.broker.address}  store {store}", "bold"))
        out.print(plain(f"runner  {pair.runner.address}", "bold"))
        out.print(plain(f"try     turngate demo --broker {pair.broker.address}"))
        await until_one_ends(pair)


async def until_one_ends(pair: Pair) -> None:
    """Wait for ever, or raise CommandFailed when a service ends by itself."""
    services = {pair.broker.ended: "broker", pair.runner.ended: "runner"}
    done, _ = await asyncio.wait(services, return_when=asyncio.FIRST_COMPLETED)
    ended = done.pop()
    raise CommandFailed(
        f"the {services[ended]} has ended with exit code {ended.result()}; the other one is stopped"
    )


async def until_stopped(task: asyncio.Task[None], stopped: asyncio.Event) -> None:
    """Wait for the task, or cancel it when `stopped` is set, and let it clean up."""
    stopping = asyncio.create_task(stopped.wait())
    try:
        await asyncio.wait({task, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            err.print(plain("stopping", "dim"))
            task.cancel()
            await asyncio.wait({task})
    finally:
        stopping.cancel()
    if not task.cancelled():
        task.result()


def print_log_line(name: str, line: str) -> None:
    """A service's line with its name in front, on standard error."""
    style = "cyan" if name == "broker" else "magenta"
    err.print(plain(f"{name} | ", style).append_text(plain(line)))


@contextmanager
def stop_signals() -> Iterator[asyncio.Event]:
    """An event that Ctrl-C, SIGTERM and a closed terminal set, instead of ending the process."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    for number in signals:
        loop.add_signal_handler(number, stopped.set)
    try:
        yield stopped
    finally:
        for number in signals:
            loop.remove_signal_handler(number)
