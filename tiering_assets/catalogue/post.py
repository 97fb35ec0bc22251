"""From pages of the day book to rows of the catalogue's tables: each page exactly once.

Contract: a table's rows and its mark are one commit. The tables are written one after the other,
each from its own mark on, so a posting that was killed anywhere goes on where it stopped, and
several posters at once do no harm. Nothing else waits for a posting or fails by it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from tiering_assets.catalogue.bulk import in_bulk
from tiering_assets.catalogue.columns import POSTED, TABLES
from tiering_assets.catalogue.facts.changes import changed_rows, changes_of
from tiering_assets.catalogue.facts.read_pages import FoundRecord, ReadPage, ReadPages
from tiering_assets.catalogue.facts.rows import block_rows, event_rows
from tiering_assets.catalogue.facts.work_done import WorkDone, done_between
from tiering_assets.catalogue.named import named_in, read_record, to_read
from tiering_assets.catalogue.pages import newest_page, read_pages
from tiering_assets.catalogue.status import work_done_before
from tiering_assets.catalogue.view import (
    OF_LEDGERS,
    WORK_DONE,
    AsOf,
    Catalogue,
    Tables,
    as_of_told,
    rows_of,
)
from tiering_assets.ground.stack import Stack
from tiering_assets.records.bucket_models import NamedRecord
from tiering_assets.resources.tables import Table

_TRIES = 20
BULK_FROM = 50
"""So many records cost as much as a client for many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Posted:
    """What one posting did. `mark` is the page that all tables go to; `tables` are those of
    before, those behind `ledgers` and `topics` alone where no page was posted.
    """

    mark: int
    pages: int
    records: int
    rows: Mapping[str, int]
    damaged: int
    tables: Tables = field(compare=False, repr=False)


def post(stack: Stack, catalogue: Catalogue) -> Posted:
    """Post the pages that no table has yet, so many at a time; nothing if there are none."""
    seen = catalogue.opened(OF_LEDGERS)
    since = seen[POSTED[-1]].mark  # the others are written before it
    if newest_page(stack) <= since:
        return Posted(mark=since, pages=0, records=0, rows={}, damaged=0, tables=seen)
    for _ in range(_TRIES):
        every = catalogue.opened(make=True)
        tables = every.posted
        since = min(table.mark for table in tables.values())
        pages = read_pages(stack, since)
        if not pages:
            return Posted(mark=since, pages=0, records=0, rows={}, damaged=0, tables=every)
        batch = ReadPages(pages, read_named(stack, pages))
        mark = pages[-1].number
        told = _told(catalogue, tables, batch, since)
        rows: dict[str, int] = {}
        for name, table in tables.items():
            if table.mark >= mark:
                continue
            made, done = _rows(name, batch.behind(table.mark), every)
            says = told if done is None else {**told, WORK_DONE: done.as_text()}
            if not table.append(
                pa.Table.from_pylist(made, schema=TABLES[name]), mark=mark, told=says
            ):
                break  # another poster came to another page: from its mark on
            rows[name] = len(made)
        else:
            return Posted(
                mark=mark,
                pages=len(pages),
                records=sum(len(page.records) for page in batch.readable),
                rows=rows,
                damaged=sum(one.why is not None for one in batch.found.values()),
                tables=every,
            )
    raise catalogue.busy(_TRIES)


def read_named(stack: Stack, pages: Sequence[ReadPage]) -> Mapping[str, FoundRecord]:
    """The records by key."""
    named = named_in(pages)
    return read_records(stack, [named[key] for key in to_read(named)])


def read_records(stack: Stack, named: Sequence[NamedRecord]) -> Mapping[str, FoundRecord]:
    """What lies where these names say, by key: a request for each."""
    book = in_bulk(stack).book if len(named) > BULK_FROM else stack.book
    found = stack.in_parallel(lambda one: read_record(book, one), named)
    return dict(zip((one.key for one in named), found, strict=True))


def _told(
    catalogue: Catalogue, tables: Mapping[str, Table], batch: ReadPages, since: int
) -> dict[str, str]:
    first = next(table for table in tables.values() if table.mark == since)
    return told_behind(catalogue.as_of(first), batch)


def told_behind(before: AsOf, batch: ReadPages) -> dict[str, str]:
    """What readers want to know of the last page: it is in each commit."""
    written, proven = before.written_at, before.proven_at
    for page in batch.readable:
        written = page.written_at
        if page.phase == "proof" and not page.records:
            proven = page.written_at
    return {
        "page": str(batch.pages[-1].number),
        "written_at": "" if written is None else written.isoformat(),
        "proven_at": "" if proven is None else proven.isoformat(),
        "in_work": before.in_work.behind(batch.pages).as_text(),
    }


def _rows(
    name: str, batch: ReadPages, tables: Tables
) -> tuple[list[dict[str, Any]], WorkDone | None]:
    """The rows of a table, and with those of ledgers what was done so far."""
    if name == "blocks":
        return [*block_rows(batch)], None
    if name == "events":
        return [*event_rows(batch)], None
    changes = [*changes_of(batch)]
    before = rows_of(tables, sorted({one.ledger_id for one in changes}))
    table = tables[name]
    made = [{**row, "turn": table.turn + 1} for row in changed_rows(changes, before)]
    runs = WorkDone(
        failed_runs=sum(page.failed for page in batch.readable),
        died_runs=as_of_told(table.mark, table.told()).in_work.died(batch.pages),
    )
    return made, work_done_before(tables).plus(done_between(before, made)).plus(runs)
