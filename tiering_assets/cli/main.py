"""The `tierkeeper` command: mounts the sub-commands and turns errors into exit codes."""

from __future__ import annotations

import sys

import typer

from resources.errors import TierkeeperError
from tiering_assets.cli import stack_cmd

app = typer.Typer(help="Tier sealed Pulsar ledgers to an object store.", no_args_is_help=True)
app.add_typer(stack_cmd.app, name="stack")


def main() -> None:
    """Run the command line; an expected error is one line on standard error and its exit code."""
    try:
        app()
    except TierkeeperError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(error.exit_code)
