"""How far the catalogue goes, what was done up to there, and what somebody should look at.

Owns: what was done is told by the newest commit of `ledger_changes`, and no row is read for it.
Tables of an older version, or made anew, tell nothing: the first posting counts their rows once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import pyarrow as pa

from tiering_assets.catalogue.facts.work_done import WorkDone, all_rows_sql, of_all_rows
from tiering_assets.catalogue.pages import newest_page
from tiering_assets.catalogue.scans_told import ScansTold
from tiering_assets.catalogue.view import (
    WORK_DONE,
    AsOf,
    Catalogue,
    Tables,
    answer,
    least,
)
from tiering_assets.ground.stack import Stack
from tiering_assets.resources.errors import CatalogueError

_POST: Final = "run `tierkeeper catalogue post`, or look at the sensor `catalogue`"


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """`lag_s` is since the last posted page was written, 0 where it is the newest one.

    `scanned_at` is when the last whole scan of topics began, to some minutes. Of so many ledgers a
    row said that they were due, and they were not (`wrong_nominations`).
    `doubts` counts names on pages by what was found instead: other bytes, nothing, an unreadable
    page. `ledgers` counts by state.
    """

    root: str
    as_of: AsOf
    newest_page: int
    lag_s: float
    scanned_at: datetime | None
    wrong_nominations: int
    rows: Mapping[str, int]
    ledgers: Mapping[str, int]
    doubts: Mapping[str, int]


def catalogue_status(stack: Stack, catalogue: Catalogue) -> Status:
    """From the tables, one listing of one key and the store's clock."""
    newest = newest_page(stack)
    tables = catalogue.opened()
    as_of = least(catalogue, tables)
    scans = ScansTold.by(tables["topic_changes"])
    counted = {
        name: answer(tables, f"select count(*) as n from {name}").to_pylist()[0]["n"]  # noqa: S608
        for name in tables
    }
    return Status(
        root=catalogue.place.root,
        as_of=as_of,
        newest_page=newest,
        lag_s=lag_of(stack, as_of, newest=newest),
        scanned_at=scans.scanned_at,
        wrong_nominations=scans.wrong,
        rows=counted,
        ledgers=_counts(
            answer(tables, "select state as what, count(*) as n from ledgers group by state")
        ),
        doubts=_counts(
            answer(
                tables,
                "select what, count(*) as n from events where what not in ('written', 'gone') "
                "group by what",
            )
        ),
    )


def work_done(tables: Tables) -> WorkDone | None:
    """Up to the page that the table goes to; None where no posting has told yet."""
    text = tables["ledger_changes"].told().get(WORK_DONE)
    return None if text is None else WorkDone.from_text(text)


def work_done_before(tables: Tables) -> WorkDone:
    """The same, counted from rows where nothing tells."""
    told = work_done(tables)
    if told is not None:
        return told
    [row] = answer(tables, all_rows_sql()).to_pylist()
    return of_all_rows(row)


def lag_of(stack: Stack, as_of: AsOf, *, newest: int) -> float:
    """Seconds since the last posted page was written, 0 where it is the newest one."""
    if as_of.page >= newest or as_of.written_at is None:
        return 0.0
    return max(0.0, (stack.objects.server_time() - as_of.written_at).total_seconds())


def require_fresh(stack: Stack, catalogue: Catalogue, tables: Tables, *, seconds: float) -> None:
    """CatalogueError where what runs wrote, or what topics list, is in no row for so long."""
    newest, now = newest_page(stack), stack.now()
    scanned = ScansTold.by(tables["topic_changes"]).scanned_at
    as_of = least(catalogue, tables)
    if newest and not as_of.page:
        raise CatalogueError(f"{catalogue.place.root}: nothing is posted: {_POST}")
    if scanned is None:
        raise CatalogueError(f"{catalogue.place.root}: topics were never scanned: {_POST}")
    ages = {
        "pages are behind": lag_of(stack, as_of, newest=newest),
        "the last whole scan of topics is old": (now - scanned).total_seconds(),
    }
    for what, age in ages.items():
        if age > seconds:
            raise CatalogueError(
                f"{catalogue.place.root}: {what}: {age:.0f} s, at most {seconds:.0f} s are wanted: "
                f"{_POST}"
            )


def _counts(rows: pa.Table) -> dict[str, int]:
    return {row["what"]: row["n"] for row in sorted(rows.to_pylist(), key=lambda row: row["what"])}
