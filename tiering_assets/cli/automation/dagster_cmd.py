"""`tierkeeper dagster`: the view of the ledgers rebuilt when DAGSTER_HOME is lost, and old runs
pruned.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from tiering_assets.cli.automation.code_location import loaded_settings
from tiering_assets.cli.grammar.command import command
from tiering_assets.cli.grammar.consent import Consent, consent_options
from tiering_assets.cli.shared.exit_codes import worst
from tiering_assets.cli.shared.output import print_document, print_error, print_line, print_table
from tiering_assets.cli.shared.session import Session
from tiering_assets.cli.terminal.columns import Column, ValueKind
from tiering_assets.resources.errors import SettingsError

if TYPE_CHECKING:
    from tiering_assets.defs.prune import OldRuns
    from tiering_assets.defs.rebuild import Rebuilt

CONSENT = consent_options(does="Delete the runs that the plan lists.")
app = typer.Typer(name="dagster", help="What Dagster shows of the ledgers.", no_args_is_help=True)

_OLDEST = timedelta(days=36525)


@app.callback()
def dagster() -> None:
    """What Dagster shows of the ledgers."""


@command(
    app,
    "rebuild",
    examples=(
        "tierkeeper dagster rebuild --plan",
        "tierkeeper dagster rebuild",
    ),
    reads_only="with --plan",
)
def rebuild(
    session: Session,
    *,
    plan: Annotated[
        bool, typer.Option("--plan", help="Print what would be added, and end with 0.")
    ] = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Although the instance has unfinished runs, because they are dead."
        ),
    ] = False,
) -> None:
    """Restore Dagster's view from the bucket's records.

    For the instance in DAGSTER_HOME, after it was lost or dagster.partition_by was changed. What it
    has already stays, so that a second run adds nothing. Ledgers that were tried get a partition,
    unless they were released long ago; with days, each day that ledgers were closed on is counted.
    Reads the cluster and the bucket and changes nothing there. docs/dagster-rebuild.md says more.
    """
    from tiering_assets.defs.shared.instance import find_home, open_instance

    home = find_home()
    with session.stack() as stack:
        from tiering_assets.defs.rebuild import rebuild
        from tiering_assets.defs.shared.names import ClusterNames

        loaded = loaded_settings()
        cluster = ClusterNames.of(loaded.dagster, console_url=loaded.store.console_url)
        with open_instance(home) as instance:
            found = rebuild(stack, instance, cluster, dry_run=plan, force=force)
    if session.as_json:
        print_document("dagster-rebuild", {"executed": not plan, "home": home, **_document(found)})
    else:
        _print(found, dry_run=plan)
    if found.unreadable:
        for error in found.unreadable.values():
            if not session.as_json:
                print_error(error)
        raise typer.Exit(worst(found.unreadable.values()))


@command(
    app,
    "prune",
    examples=(
        "tierkeeper dagster prune --older-than 30d --plan",
        "tierkeeper dagster prune --older-than 30d --execute",
    ),
    reads_only="with --plan",
)
def prune(
    session: Session,
    *,
    older_than: Annotated[
        str, typer.Option("--older-than", metavar="AGE", help="A day or more: 30d, 36h, 2 weeks.")
    ],
    consent: Annotated[Consent, CONSENT],
) -> None:
    """Delete old runs from the instance in DAGSTER_HOME.

    A run stays, however old, while it told the newest event of a live partition or of a roll-up.
    Runs of one batch go together, once the whole batch is old. Touches neither the cluster nor the
    bucket.
    """
    from tiering_assets.defs.shared.instance import find_home, open_instance

    age, home = _age(older_than), find_home()
    from tiering_assets.defs.prune import delete_runs, find_old_runs
    from tiering_assets.defs.shared.names import ClusterNames

    cluster = ClusterNames.of(loaded_settings().dagster)
    with open_instance(home) as instance:
        found = find_old_runs(instance, cluster, before=datetime.now(UTC) - age)

        def show(*, executed: bool = False) -> None:
            if session.as_json:
                counts = {"telling": found.telling, "of_batches": found.of_batches}
                runs = {"home": home, "runs": list(found.going), "stay": counts}
                print_document("dagster-prune", {"executed": executed, **runs})
            else:
                done = "deleted" if executed else f"may go{consent.nothing_done}"
                print_line(f"{len(found.going)} runs older than {older_than} {done}")
                _print_staying(found)

        question = f"Delete {len(found.going)} runs?" if found.going else ""
        if consent.given(session, show=show, question=question):
            delete_runs(instance, found)
            show(executed=True)


def _print_staying(found: OldRuns) -> None:
    if found.telling or found.of_batches:
        print_line(
            f"{found.telling} as old stay for what they told of live partitions and roll-ups, "
            f"{found.of_batches} with the other runs of their batch"
        )


def _age(text: str) -> timedelta:
    """`30d` or `36h`; a day at least, because sensors count the tries of the last hours in runs."""
    from tiering_assets.resources.quantity import QuantityError, parse_duration

    try:
        age = timedelta(seconds=parse_duration(text))
    except (QuantityError, OverflowError):
        age = timedelta.max
    if age > _OLDEST:
        raise SettingsError(
            f"--older-than {text}: expected days or hours, such as 30d or 36h, a century at most"
        ) from None
    if age < timedelta(days=1):
        raise SettingsError(
            f"--older-than {text}: expected a day or more, because sensors count the tries of a "
            "ledger in the runs of the last hours"
        )
    return age


def _document(found: Rebuilt) -> dict[str, object]:
    return {
        "ledgers": found.ledgers,
        "partitions_added": found.partitions_added,
        "partitions_removed": found.partitions_removed,
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
        print_table(
            (
                Column("KIND"),
                Column("NAME", ValueKind.ID),
                Column("TO ADD" if dry_run else "ADDED", ValueKind.NUMBER),
            ),
            rows,
        )
    events = sum(n for _kind, _name, n in rows)
    verb = "would be added" if dry_run else "added"
    print_line(
        f"{found.ledgers} ledgers: {found.partitions_added} partitions and {events} events {verb}"
    )
    if found.partitions_removed:
        print_line(
            f"{found.partitions_removed} keys that no asset has any more "
            + ("would go" if dry_run else "removed")
            + "; what was told of them stays"
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
