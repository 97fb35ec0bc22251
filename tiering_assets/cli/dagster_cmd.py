"""`tierkeeper dagster rebuild`: Dagster's view of the ledgers again, when DAGSTER_HOME is lost."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from tiering_assets.cli.command import command
from tiering_assets.cli.exit_codes import worst
from tiering_assets.cli.output import print_document, print_line, print_table
from tiering_assets.cli.session import Session

if TYPE_CHECKING:
    from tiering_assets.defs.rebuild import Rebuilt

app = typer.Typer(name="dagster", help="What Dagster shows of the ledgers.", no_args_is_help=True)


@app.callback()
def dagster() -> None:
    """What Dagster shows of the ledgers."""


@command(
    app,
    "rebuild",
    examples=(
        "tierkeeper dagster rebuild --dry-run",
        "tierkeeper dagster rebuild",
    ),
)
def rebuild(
    session: Session,
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only print what would be added.")
    ] = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Although the instance has unfinished runs, because they are dead."
        ),
    ] = False,
) -> None:
    """Restore partitions, materializations and check evaluations from the bucket's records.

    For the instance in DAGSTER_HOME, after it was lost: what it has already stays, so that a second
    run adds nothing. Ledgers released long ago and ledgers that were never tried get no partition.
    Reads the cluster and the bucket and changes nothing there. docs/dagster-rebuild.md says more.
    """
    from tiering_assets.defs.instance import find_home, open_instance

    home = find_home()
    with session.stack() as stack:
        from tiering_assets.defs.rebuild import rebuild

        with open_instance(home) as instance:
            found = rebuild(stack, instance, dry_run=dry_run, force=force)
    if session.as_json:
        print_document("dagster-rebuild", {"dry_run": dry_run, "home": home, **_document(found)})
    else:
        _print(found, dry_run=dry_run)
    if found.unreadable:
        for error in found.unreadable.values():
            if not session.as_json:
                sys.stderr.write(f"error: {error}\n")
        raise typer.Exit(worst(found.unreadable.values()))


def _document(found: Rebuilt) -> dict[str, object]:
    return {
        "ledgers": found.ledgers,
        "partitions_added": found.partitions_added,
        "left_out": found.left_out,
        "untried": found.untried,
        "retired": found.retired,
        "materializations": found.materializations,
        "evaluations": found.evaluations,
        "unreadable": [
            {"ledger_id": i, "error": error} for i, error in sorted(found.unreadable.items())
        ],
    }


def _print(found: Rebuilt, *, dry_run: bool) -> None:
    rows = [("asset", name, n) for name, n in found.materializations.items()]
    rows += [("check", name, n) for name, n in found.evaluations.items()]
    if rows:
        print_table(("KIND", "NAME", "TO ADD" if dry_run else "ADDED"), rows)
    events = sum(n for _kind, _name, n in rows)
    verb = "would be added" if dry_run else "added"
    print_line(
        f"{found.ledgers} ledgers: {found.partitions_added} partitions and {events} events {verb}"
    )
    if found.left_out:
        print_line(
            f"{found.left_out} older ledgers left out: no partition is free "
            "(dagster.partitions_max)"
        )
    if found.retired:
        print_line(f"{found.retired} ledgers released long ago need none (auto.retire_after_s)")
    if found.untried:
        print_line(f"{found.untried} closed ledgers were never tried: a batch admits them")
    if found.unreadable:
        print_line(f"{len(found.unreadable)} ledgers have a record that cannot be read")
