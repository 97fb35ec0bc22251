"""`tierkeeper catalogue settle` and `rebuild`: tables that stay fast to ask, or are made anew."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import Annotated

import typer

from tiering_assets.cli.catalogue.catalogue_cmd import app, document_of, opened
from tiering_assets.cli.grammar.command import command
from tiering_assets.cli.shared.exit_codes import FINDINGS
from tiering_assets.cli.shared.output import print_document, print_line
from tiering_assets.cli.shared.session import Session


@command(
    app,
    "settle",
    examples=(
        "tierkeeper catalogue settle",
        "tierkeeper catalogue settle --all",
        "tierkeeper catalogue settle --json",
    ),
)
def settle_tables(
    session: Session,
    *,
    every: Annotated[
        bool, typer.Option("--all", help="Settle also a few rows, as before a long pause.")
    ] = False,
) -> None:
    """Keep the tables fast: newest rows together, old files deleted.

    Nightly is good, hourly does no harm: a few changes are left to the next time. Changes go a day
    after they were settled, files 7 days after they were replaced. May be repeated, killed and run
    beside any other command.
    """
    from tiering_assets.catalogue.upkeep.upkeep import keep_up

    with opened(session) as (stack, catalogue):
        done = keep_up(stack, catalogue, all_rows=every, tell=session.progress)
    if session.as_json:
        print_document("catalogue-settle", asdict(done))
        return
    for name, one in done.settled.items():
        if one.spans:
            print_line(f"{name}: {one.tail} changes settled, {one.rows} rows written")
        else:
            print_line(f"{name}: {one.tail} changes are too few to settle")
    for name, turn in done.cut.items():
        print_line(f"{name}: changes up to turn {turn} were settled a day ago, and are gone")
    for name in done.joined:
        print_line(f"{name}: small files were joined")
    if done.deleted is None:
        print_line("no file was deleted: the clocks of this computer and of the store differ")
    else:
        print_line(f"{done.deleted} files that were replaced 7 days ago are deleted")
    if done.old:
        print_line(f"{done.old} objects of tables of before a rebuild are deleted")


@command(
    app,
    "rebuild",
    examples=("tierkeeper catalogue rebuild", "tierkeeper catalogue rebuild --json"),
)
def rebuild_tables(session: Session) -> None:
    """Make all tables anew from the records, and ask those.

    It heals damaged ones. Reads one or two records of each ledger, and each topic's node. From
    20,000 ledgers on Spark reads them (spark.master). The old tables serve until the new ones are
    whole. Ends with 1 if a record that a page named is not there.
    """
    from tiering_assets.catalogue.scan.scan import scan
    from tiering_assets.catalogue.upkeep.rebuild import rebuild
    from tiering_assets.catalogue.view import Catalogue
    from tiering_assets.spark.lots import open_lots

    with session.stack() as stack:
        carried = partial(open_lots, session.settings)
        done = rebuild(stack, carried=carried, tell=session.progress)
        session.progress("reading what topics list")
        scan(stack, Catalogue.of(stack))
    if session.as_json:
        fields = {name: value for name, value in asdict(done).items() if name != "proof"}
        proof = {**asdict(done.proof), "as_of": document_of(done.proof.as_of)}
        print_document("catalogue-rebuild", {**fields, "proof": proof})
    else:
        for key in done.proof.first:
            print_line(f"missing: {key}")
        print_line(
            f"{done.ledgers} ledgers, {done.blocks} blocks and {done.events} events from "
            f"{done.pages} pages; {done.proof.late} records were on no page; {done.proof.as_of}"
        )
        if done.moved:
            print_line(f"the new tables are asked from now on: {done.folder}")
        else:
            print_line("another rebuild was faster: its tables are asked")
    if done.proof.missing:
        raise typer.Exit(FINDINGS)
