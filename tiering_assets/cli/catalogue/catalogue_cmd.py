"""`tierkeeper catalogue`: every record of every ledger as tables, for questions of any size."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tiering_assets.cli.grammar.command import ALWAYS, command
from tiering_assets.cli.grammar.quantities import duration_option
from tiering_assets.cli.shared.exit_codes import FINDINGS
from tiering_assets.cli.shared.output import (
    human_time,
    print_document,
    print_facts,
    print_line,
    print_table,
)
from tiering_assets.cli.shared.session import Session
from tiering_assets.cli.terminal.columns import Column, ValueKind
from tiering_assets.resources.errors import TierkeeperError

if TYPE_CHECKING:
    from tiering_assets.catalogue.view import AsOf, Catalogue
    from tiering_assets.ground.stack import Stack

app = typer.Typer(
    name="catalogue",
    help="Ask tables of all ledgers, records and blocks.",
    no_args_is_help=True,
)
_KINDS = {int: ValueKind.NUMBER, float: ValueKind.NUMBER, datetime: ValueKind.TIME}


@contextmanager
def opened(session: Session) -> Iterator[tuple[Stack, Catalogue]]:
    from tiering_assets.catalogue.view import Catalogue

    with session.stack() as stack:
        yield stack, Catalogue.of(stack)


@command(
    app,
    "post",
    examples=("tierkeeper catalogue post", "tierkeeper catalogue post --json"),
)
def post_pages(session: Session) -> None:
    """Put what is new of runs and topics into the tables.

    May be repeated, killed and run by several at once: each page of the day book is in the tables
    once. Of topics those are read that were written since. Schemas of those that were published
    are archived. Where openlineage.url is set, events of what is posted are sent, for 3 seconds at
    most. Nothing else waits for it.
    """
    from tiering_assets.catalogue.openlineage.tell import is_on, tell
    from tiering_assets.catalogue.post import post
    from tiering_assets.catalogue.scan.published import published_behind
    from tiering_assets.catalogue.scan.scan import scan
    from tiering_assets.catalogue.view import least
    from tiering_assets.schemas.topics import archive_published

    pages = records = doubts = 0
    with opened(session) as (stack, catalogue):
        while (done := post(stack, catalogue)).pages:
            pages, records = pages + done.pages, records + done.records
            doubts += done.damaged
            session.progress(f"posted up to page {done.mark}: {records} records")
        seen = scan(stack, catalogue)
        opened_now = catalogue.opened()
        as_of = least(catalogue, opened_now)
        events, failed = None, None
        if is_on(session.settings):
            try:
                events = tell(stack, catalogue, posted=done.mark)
            except TierkeeperError as error:  # told behind what was posted
                failed = error
        published = published_behind(stack, opened_now, done.mark - pages)
        archive_published(stack, published, has_time=lambda: True, tell=session.progress)
    if session.as_json:
        told = {
            "pages": pages,
            "records": records,
            "doubts": doubts,
            "topics": seen.topics,
            "topics_moved": seen.moved,
            "ledgers_seen": seen.ledgers,
            "openlineage": None if events is None else asdict(events),
            "as_of": document_of(as_of),
        }
        print_document("catalogue-post", told)
    else:
        print_line(
            f"{pages} pages with {records} records posted, {seen.moved} of {seen.topics} topics "
            f"read; {as_of}"
        )
        if doubts:
            print_line(f"{doubts} records are not what their page says: `tierkeeper audit verify`")
        if events is not None:
            print_line(str(events))
    if failed is not None:
        raise failed


@command(
    app,
    "status",
    examples=("tierkeeper catalogue status", "tierkeeper catalogue status --json"),
    reads_only=ALWAYS,
)
def show_status(session: Session) -> None:
    """Show how far the tables go, and what in them needs a look.

    Ends with 1 if a page named a record that was not there or had other bytes.
    """
    from tiering_assets.catalogue.openlineage.telling_state import telling_state
    from tiering_assets.catalogue.status import catalogue_status

    with opened(session) as (stack, catalogue):
        status = catalogue_status(stack, catalogue)
        events = telling_state(stack, posted=status.as_of.page)
    if session.as_json:
        told = {
            **_fields(status),
            "openlineage": None if events is None else asdict(events),
            "as_of": document_of(status.as_of),
        }
        print_document("catalogue-status", told)
    else:
        proven, scanned = status.as_of.proven_at, status.scanned_at
        print_facts(
            {
                "tables": status.root,
                "rows": ", ".join(f"{name} {n}" for name, n in status.rows.items()),
                "ledgers": ", ".join(f"{state} {n}" for state, n in status.ledgers.items()),
                "newest page": status.newest_page,
                "lag": f"{status.lag_s:.0f} s",
                "scanned": "never" if scanned is None else human_time(scanned),
                "wrong nominations": status.wrong_nominations,
                "proven": "never" if proven is None else human_time(proven),
                "doubts": ", ".join(f"{what} {n}" for what, n in status.doubts.items()) or "none",
                **({} if events is None else {"OpenLineage events": str(events)}),
            }
        )
        print_line(str(status.as_of))
    if status.doubts:
        raise typer.Exit(FINDINGS)


@command(
    app,
    "prove",
    examples=("tierkeeper catalogue prove", "tierkeeper catalogue prove --json"),
)
def prove_all(session: Session) -> None:
    """List every record: post what no page named, tell what is missing.

    Needed once on a bucket that older versions wrote, and after runs were killed; daily is good.
    Ends with 1 if a record that a page named is not there.
    """
    from tiering_assets.catalogue.prove import prove

    with opened(session) as (stack, catalogue):
        proof = prove(stack, catalogue)
    if session.as_json:
        print_document("catalogue-prove", {**_fields(proof), "as_of": document_of(proof.as_of)})
    else:
        for key in proof.first:
            print_line(f"missing: {key}")
        for run in proof.died:
            print_line(f"run {run} died with ledgers in work; they are closed")
        print_line(
            f"{proof.listed} records listed: {proof.late} were not posted before, "
            f"{proof.missing} are missing; {proof.as_of}"
        )
    if proof.missing:
        raise typer.Exit(FINDINGS)


@command(
    app,
    "sql",
    examples=(
        "tierkeeper catalogue sql 'select state, count(*) from ledgers group by state'",
        "tierkeeper catalogue sql 'select * from ledgers where ledger_id = 12345' --json",
        'tierkeeper catalogue sql "select * from blocks where uid is not null limit 10"',
    ),
    reads_only=ALWAYS,
)
def ask_sql(
    session: Session,
    *,
    question: Annotated[str, typer.Argument(metavar="SQL", help="One select.")],
    fresh: Annotated[
        float | None,
        duration_option("--fresh", help="Fail where rows are further behind, to some minutes."),
    ] = None,
) -> None:
    """Ask the tables one question.

    They are `ledgers` and `topics` (the newest row of each), `ledger_changes`, `topic_changes`,
    `blocks` and `events`. Their columns are in docs/catalogue.md. The last line says up to when the
    answer goes.
    """
    from tiering_assets.catalogue.status import require_fresh
    from tiering_assets.catalogue.view import answer, least

    with opened(session) as (stack, catalogue):
        tables = catalogue.opened()
        if fresh is not None:
            require_fresh(stack, catalogue, tables, seconds=fresh)
        found = answer(tables, question)
        as_of = least(catalogue, tables)
    rows = found.to_pylist()
    if session.as_json:
        print_document("catalogue-sql", {"rows": rows, "as_of": document_of(as_of)})
        return
    names = found.schema.names
    columns = [Column(name.upper(), _kind_of(name, rows)) for name in names]
    print_table(columns, [tuple(row[name] for name in names) for row in rows])
    print_line(f"{len(rows)} rows; {as_of}")


def _kind_of(name: str, rows: list[dict[str, Any]]) -> ValueKind:
    if name == "ledger_id":
        return ValueKind.ID
    value = next((row[name] for row in rows if row[name] is not None), None)
    return _KINDS.get(type(value), ValueKind.TEXT)


def _fields(found: Any) -> dict[str, Any]:
    return {name: value for name, value in asdict(found).items() if name != "as_of"}


def document_of(as_of: AsOf) -> dict[str, Any]:
    return {
        "page": as_of.page,
        "written_at": as_of.written_at,
        "proven_at": as_of.proven_at,
        "ledgers_in_work": sorted(as_of.in_work.ledgers),
    }
