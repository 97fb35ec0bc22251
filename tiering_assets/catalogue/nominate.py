"""Which topics a sensor looks at: those of which rows say that something may be due there.

Owns: a row nominates and permits nothing. Sensors judge each topic by its node, read anew, and runs
judge again. One question for a fleet of any size; nobody's policy is asked.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from tiering_assets.catalogue.scans_told import ScansTold
from tiering_assets.catalogue.view import (
    OF_LEDGERS,
    AsOf,
    Catalogue,
    Tables,
    answer,
    answer_kept,
    least,
)
from tiering_assets.ground.moments import moment
from tiering_assets.resources.errors import CatalogueError
from tiering_assets.resources.sql import rows_among, sql_text, sql_time
from tiering_assets.resources.tables import each_row

STALE: Final = timedelta(minutes=30)
LEDGERS_MAX: Final = 5000  # of one nomination
_OURS: Final = "offloaded_by = 'tierkeeper'"
_UNCONFIRMED: Final = "listed_as = 'offloaded' and published_at is null"
_OF_TOPIC: Final = ("topic", "mzxid")
_TOUCHED: Final = "czxid is not null and left_alone is null"
_MAY_BE_DUE: Final = "why is not null or on_bookies > 0 or terminated"
_SOUND: Final = "quarantined_at is null and damaged_at is null and held is null"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvenTables:
    """Tables that somebody has proven to have everything. `scanned_at` is when the last whole scan
    of topics began.
    """

    tables: Tables
    as_of: AsOf
    scanned_at: datetime


def proven(catalogue: Catalogue) -> ProvenTables | None:
    """Its tables of ledgers and topics, or None where nobody has proven yet that everything is in
    them.
    """
    tables = catalogue.opened(OF_LEDGERS)
    scanned = ScansTold.by(tables["topic_changes"]).scanned_at
    as_of = least(catalogue, tables)
    if scanned is None or as_of.proven_at is None:
        return None
    return ProvenTables(tables=tables, as_of=as_of, scanned_at=scanned)


def nominating(catalogue: Catalogue, *, now: datetime) -> Tables | None:
    """Its tables, or None where nobody has proven yet that everything is in them.

    CatalogueError where the last whole scan is too long ago: what is due may not be in them.
    """
    found = proven(catalogue)
    if found is None:
        return None
    if now - found.scanned_at > STALE:
        raise CatalogueError(
            f"{catalogue.place.root}: the last whole scan of topics began "
            f"{moment(found.scanned_at)}: what is due is not known. Look at the sensor `catalogue`, "
            "or run `tierkeeper catalogue post`"
        )
    return found.tables


def topics_to_offload(tables: Tables, unconfirmed: Collection[str]) -> dict[str, int]:
    """Topics with ledgers on bookies alone, and `unconfirmed` ones.

    By name the mzxid of the node that rows tell of.
    """
    columns = f"select {', '.join(_OF_TOPIC)} from"
    named = rows_among("topics", "topic", unconfirmed)
    rows = answer(
        tables,
        f"{columns} topics where {_TOUCHED} and ({_MAY_BE_DUE}) "
        f"union {columns} {named} where {_TOUCHED}",
    )
    return {row["topic"]: row["mzxid"] for row in rows.to_pylist()}


def closing_times(tables: Tables) -> Iterator[dict[str, Any]]:
    """Of every topic that lists ledgers, in name order: when they were closed, if one is open."""
    times = "min(closed_at) as oldest, max(closed_at) as newest"
    some = "listed_as <> 'gone' and namespace is not null"
    rows = answer_kept(
        tables,
        f"select topic, namespace, {times}, bool_or(listed_as = 'open') as has_open "  # noqa: S608
        f"from ledgers where {some} group by topic, namespace order by topic",
    )
    yield from each_row(rows)


def topics_unconfirmed(tables: Tables) -> frozenset[str]:
    """Of these topics rows know publications of which nobody said that brokers took them up."""
    rows = answer(tables, f"select distinct topic from ledgers where {_UNCONFIRMED}")  # noqa: S608
    return frozenset(row["topic"] for row in rows.to_pylist())


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedLedger:
    """A ledger that its topic has closed, as the catalogue has it."""

    ledger_id: int
    topic: str
    entries: int | None
    bytes: int | None
    closed_at: datetime


def closed_since(
    tables: Tables, *, since: datetime, behind: int, told: Iterable[int], most: int
) -> list[ClosedLedger]:
    """Ledgers closed since then, of rows that came by turns `behind` that one, as they came.

    None of those `told` before.
    """
    known = ", ".join(map(str, told)) or "-1"
    some = f"turn > {behind} and closed_at > {sql_time(since)} and listed_as <> 'gone'"
    rows = answer(
        tables,
        "select ledger_id, topic, entries, bytes, closed_at from ledgers "  # noqa: S608
        f"where {some} and ledger_id not in ({known}) order by turn, ledger_id limit {most}",
    )
    return [ClosedLedger(**row) for row in rows.to_pylist()]


def ledgers_that_left(
    tables: Tables, ledger_ids: Collection[int], *, released_before: datetime
) -> list[int]:
    """Of these, in id order, those that were released before then or that no topic lists.

    One without a row is among them: nobody knows it.
    """
    if not ledger_ids:
        return []
    named, least_id, last = ", ".join(map(str, ledger_ids)), min(ledger_ids), max(ledger_ids)
    left = (
        f"released_at <= {sql_time(released_before)} or state = 'expired' "
        "or (bookie_copy = 'deleted' and released_at is null)"
    )
    rows = answer(
        tables,
        f"select ledger_id from ledgers where ledger_id in ({named}) "  # noqa: S608
        f"and ledger_id between {least_id} and {last} and not coalesce({left}, false)",
    )
    return sorted({*ledger_ids}.difference(row["ledger_id"] for row in rows.to_pylist()))


@dataclass(frozen=True, slots=True, kw_only=True)
class DueForRelease:
    """Nominated ledgers by topic, in name order. `cut` is whether there are more behind them."""

    ledgers: Mapping[str, set[int]]
    cut: bool


def ledgers_to_release(
    tables: Tables,
    *,
    published_before: datetime,
    after: str | None = None,
    most: int = LEDGERS_MAX,
) -> DueForRelease:
    """Ledgers whose lag is over, or whose release was begun, of the topics behind `after`."""
    over = f"published_at <= {sql_time(published_before)}"
    due = f"state = 'releasing' or (state = 'published' and {_SOUND} and {over})"
    some = f"{_OURS} and topic > {sql_text(after or '')} and ({due})"
    rows = answer(
        tables,
        f"select topic, ledger_id from ledgers where {some} "  # noqa: S608
        f"order by topic, ledger_id limit {most}",
    ).to_pylist()
    found: dict[str, set[int]] = {}
    for row in rows:
        found.setdefault(row["topic"], set()).add(row["ledger_id"])
    return DueForRelease(ledgers=found, cut=len(rows) == most)
