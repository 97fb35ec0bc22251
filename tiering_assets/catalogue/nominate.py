"""Which topics a sensor looks at: those of which rows say that something may be due there.

Owns: a row nominates and permits nothing. Sensors judge each topic by its node, read anew, and runs
judge again. One question for a fleet of any size; nobody's policy is asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from tiering_assets.catalogue.scans_told import ScansTold
from tiering_assets.catalogue.view import Catalogue, Tables, answer, least
from tiering_assets.ground.moments import moment
from tiering_assets.resources.errors import CatalogueError
from tiering_assets.resources.sql import sql_text, sql_time

STALE: Final = timedelta(minutes=30)
LEDGERS_MAX: Final = 5000  # of one nomination
_OURS: Final = "offloaded_by = 'tierkeeper'"
_UNCONFIRMED: Final = "listed_as = 'offloaded' and published_at is null"
_TOUCHED: Final = "czxid is not null and left_alone is null"
_MAY_BE_DUE: Final = "why is not null or on_bookies > 0 or terminated"
_SOUND: Final = "quarantined_at is null and damaged_at is null and held is null"


def nominating(catalogue: Catalogue, *, now: datetime) -> Tables | None:
    """Its tables, or None where nobody has proven yet that everything is in them.

    CatalogueError where the last whole scan is too long ago: what is due may not be in them.
    """
    tables = catalogue.opened()
    scanned = ScansTold.by(tables["topic_changes"]).scanned_at
    if scanned is None or least(catalogue, tables).proven_at is None:
        return None
    if now - scanned > STALE:
        raise CatalogueError(
            f"{catalogue.place.root}: the last whole scan of topics began {moment(scanned)}: what is "
            "due is not known. Look at the sensor `catalogue`, or run `tierkeeper catalogue post`"
        )
    return tables


def topics_to_offload(tables: Tables) -> dict[str, int]:
    """Topics with ledgers on bookies alone, or with publications of ours that are not confirmed.

    By name the mzxid of the node that rows tell of.
    """
    unconfirmed = f"topic in (select topic from ledgers where {_UNCONFIRMED})"  # noqa: S608
    some = f"{_TOUCHED} and ({_MAY_BE_DUE} or {unconfirmed})"
    rows = answer(tables, f"select * from topics where {some}")  # noqa: S608
    return {row["topic"]: row["mzxid"] for row in rows.to_pylist()}


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
