"""`tierkeeper config show`: every setting, its value, where it came from; secrets masked."""

from __future__ import annotations

from typing import Annotated

import typer

from tiering_assets.cli.grammar.command import ALWAYS, command
from tiering_assets.cli.shared.output import print_document, print_table
from tiering_assets.cli.shared.session import Session
from tiering_assets.cli.terminal.columns import Column, ValueKind

app = typer.Typer(name="config", help="The settings in force.", no_args_is_help=True)


@app.callback()
def config() -> None:
    """The settings in force."""


@command(
    app,
    "show",
    examples=(
        "tierkeeper config show",
        "tierkeeper config show --changed",
        "tierkeeper config show --set store.bucket=archive --json",
    ),
    reads_only=ALWAYS,
)
def show(
    session: Session,
    *,
    changed: Annotated[
        bool, typer.Option("--changed", help="Leave out what is at its default.")
    ] = False,
) -> None:
    """Print all settings with values and origins.

    Flags (--set) beat the environment, the environment beats the file, the file beats the default.
    """
    from tiering_assets.resources.settings_sources import DEFAULT_ORIGIN, describe

    rows = [
        row for row in describe(session.loaded()) if not changed or row.origin != DEFAULT_ORIGIN
    ]
    if session.as_json:
        print_document("config-show", {"settings": rows})
        return
    print_table(
        (
            Column("SETTING", ValueKind.ID),
            Column("VALUE", ValueKind.TEXT, 40),
            Column("ORIGIN", ValueKind.TEXT),
        ),
        [(row.name, row.value, row.origin) for row in rows],
    )
