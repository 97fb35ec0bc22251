"""Which copies a scrub looks at next: those that rows say were not verified for the longest time.

Owns: a row nominates and permits nothing; a run judges each by what it reads itself. The order is
that of scrub/plan.py, by times that writers' clocks told where only these are in a row.

One question over all rows for each depth, one for what is broken, one for the figures.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from tiering_assets.catalogue.view import Tables, answer
from tiering_assets.resources.sql import sql_time
from tiering_assets.resources.tables import rows_in

_AHEAD: Final = timedelta(hours=1)
"""So far ahead of the store's a writer's clock may be; a look behind that was none."""
BROKEN_MAX: Final = 5000  # of one nomination
_DEEP: Final = (
    "greatest(deep_at, certified_at, case when verified_depth = 'deep' then verified_at end)"
)
_FAILED: Final = "greatest(quarantined_at, damaged_at)"
_OTHERS_BROKEN: Final = "(others like '%\"quarantined_at\"%' or others like '%\"damaged_at\"%')"
_SAID: Final = {
    "ledger_id": "ledger_id",
    "topic": "topic",
    "object_bytes": "coalesce(object_bytes, 0)",
    "published_at": "published_at",
    "certified": "certified_at is not null",
    "on_bookies": "bookie_copy <> 'deleted'",
    "replaced": f"coalesce({_OTHERS_BROKEN}, false)",
    "failed_at": _FAILED,
    "deep_at": _DEEP,
    "shallow_at": f"greatest(verified_at, {_DEEP})",
}
_COLUMNS: Final = ", ".join(f"{value} as {name}" for name, value in _SAID.items())
_TOLD: Final = f"select {_COLUMNS} from ledgers where offloaded_by is not null and topic > ''"  # noqa: S608
# Deep looks are told by the store's clock, findings by a writer's, which may be behind.
_FAILING: Final = (
    "failed_at is not null and (deep_at is null or deep_at <= failed_at + interval '1 hour')"
)
_COPIES: Final = f"select *, {_FAILING} as failing from ({_TOLD})"  # noqa: S608 - our columns


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyRow:
    """What a row says of the copy that brokers read. Times are None for what never was."""

    ledger_id: int
    topic: str
    object_bytes: int
    certified: bool
    on_bookies: bool
    published_at: datetime | None
    replaced: bool
    shallow_at: datetime | None
    deep_at: datetime | None
    failed_at: datetime | None
    failing: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyFigures:
    """`due` counts looks: a copy may be due for one of each depth."""

    copies: int
    broken: int
    never_deep: int
    oldest_deep_at: datetime | None
    due: int


def copy_figures(tables: Tables, *, now: datetime, shallow_s: float, deep_s: float) -> CopyFigures:
    """Of all copies that brokers read."""
    shallow, deep = (_due(one, now, s) for one, s in (("shallow", shallow_s), ("deep", deep_s)))
    counts = {
        "copies": "count(*)",
        "broken": "count(*) filter (where failing)",
        "never_deep": "count(*) filter (where deep_at is null)",
        "oldest_deep_at": "min(deep_at)",
        "due": " + ".join(f"count(*) filter (where {one})" for one in (shallow, deep)),
    }
    columns = ", ".join(f"{value} as {name}" for name, value in counts.items())
    [row] = _rows(tables, f"select {columns} from ({_COPIES})")  # noqa: S608 - our columns
    return CopyFigures(**row)


def copies_broken(tables: Tables, *, most: int = BROKEN_MAX) -> list[CopyRow]:
    """Copies that nobody read well since they were found broken, and those that took such a one's
    place: the longest published first.
    """
    return _copies(
        tables,
        f"select * from ({_COPIES}) where replaced or failing "  # noqa: S608 - our columns
        f"order by replaced, published_at nulls first, ledger_id limit {most}",
    )


def copies_due(
    tables: Tables, depth: str, *, now: datetime, every_s: float, most: int
) -> list[CopyRow]:
    """Those whose last look, at least so deep, was longest ago; first what nobody looked at.

    One that is to be healed is not looked at.
    """
    order = f"{_age(depth, now)} desc nulls first, not on_bookies, published_at nulls first"
    some = f"{_due(depth, now, every_s)} and not (on_bookies and failing)"
    return _copies(
        tables,
        f"select * from ({_COPIES}) where {some} "  # noqa: S608 - our columns
        f"order by {order}, ledger_id limit {most}",
    )


def _last(depth: str) -> str:
    return f"greatest({depth}_at, failed_at)"


def _age(depth: str, now: datetime) -> str:
    """Seconds. One in the future is of a clock that was wrong: so far off counts as old."""
    return f"abs(date_part('epoch', {sql_time(now)}) - date_part('epoch', {_last(depth)}))"


def _due(depth: str, now: datetime, every_s: float) -> str:
    last, before = _last(depth), now - timedelta(seconds=every_s)
    return f"({last} is null or {last} <= {sql_time(before)} or {last} > {sql_time(now + _AHEAD)})"


def _copies(tables: Tables, sql: str) -> list[CopyRow]:
    return [CopyRow(**row) for row in _rows(tables, sql)]


def _rows(tables: Tables, sql: str) -> list[dict[str, Any]]:
    return rows_in(answer(tables, sql))
