"""The command `turngate`."""

import io
import sys

from turngate_client.cli.app import app


def main() -> None:
    """The entry point of the installed command."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Whoever reads it through a pipe gets each line at once, as a person at a terminal does.
        sys.stdout.reconfigure(line_buffering=True)
    app(prog_name="turngate")
