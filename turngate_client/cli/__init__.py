"""The command `turngate`."""

from turngate_client.cli.app import app


def main() -> None:
    """The entry point of the installed command."""
    app(prog_name="turngate")
