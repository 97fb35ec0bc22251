"""`tierkeeper config show|check`: every setting, where it came from, and what is wrong with it."""

from __future__ import annotations

from typing import Annotated

import typer

from tiering_assets.cli.grammar.command import ALWAYS, command
from tiering_assets.cli.shared.output import print_document, print_line, print_table
from tiering_assets.cli.shared.session import Session
from tiering_assets.cli.terminal.columns import Column, ValueKind
from tiering_assets.resources.errors import SettingsError

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


@command(
    app,
    "check",
    examples=(
        "tierkeeper config check",
        "tierkeeper config check --config /etc/tierkeeper/tierkeeper.toml",
        "tierkeeper config check --json",
    ),
    reads_only=ALWAYS,
)
def check(session: Session) -> None:
    """Tell all that is wrong with the settings at once.

    An unknown name comes with the nearest known one, a wrong value with its origin and what was
    expected. Asks no server. Ends with 0, or with the exit code of SettingsError.
    """
    from tiering_assets.resources.settings_sources import DEFAULT_ORIGIN, read_settings

    loaded, problems = read_settings(session.flags, file=session.config)
    origins = [] if loaded is None else loaded.origins.values()
    given = [origin for origin in origins if origin != DEFAULT_ORIGIN]
    places = sorted({"environment" if o.startswith("environment ") else o for o in given})
    if session.as_json:
        number = None if problems else len(given)
        said = {"sound": not problems, "set": number, "from": places, "problems": problems}
        print_document("config-check", said)
    else:
        for problem in problems:
            print_line(problem)
        if not problems:
            where = f"from {', '.join(places)}" if places else "all is at its default"
            print_line(f"settings are sound: {len(given)} set, {where}")
    if problems:
        raise typer.Exit(SettingsError.exit_code)
