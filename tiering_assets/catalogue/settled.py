"""Tables of newest rows: which table of changes each has absorbed, and SQL that adds the rest.

Owns: what is asked is the settled rows without those that the tail has newer, and the newest rows
of the tail. The tail is what came by later turns than were absorbed. A settled row that is newer
than its mark says changes nothing: its row is in the tail as well.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tiering_assets.resources.sql import rows_among

ABSORBED: Final = "absorbed"
"""Mark of a settled table: the turn of its changes up to which it has all of them."""
CUT: Final = "cut"
"""Mark of a table of changes: the turn up to which rows were taken away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """The table of newest rows of a table of changes, by a column of both."""

    changes: str
    key: str


SETTLED: Final[Mapping[str, Settled]] = {
    "ledgers": Settled(changes="ledger_changes", key="ledger_id"),
    "topics": Settled(changes="topic_changes", key="topic"),
}


_NEVER: Final = "arrow_cast(nullif(turn, turn), 'Timestamp(Microsecond, Some(\"UTC\"))')"
"""A time that is null in every row: all columns that were added are times.

A plain null is taken for a constant, and a filter on it lets rows through that it must not.
"""
Columns = Mapping[str, Collection[str]]


def beside(name: str) -> str:
    """What a settled table is called in SQL: its own name is that of the view."""
    return f"settled_{name}"


def current(
    name: str,
    absorbed: int | None,
    columns: Sequence[str],
    has: Columns,
    *,
    among: Collection[int] | Collection[str] | None = None,
) -> str:
    """SQL for the newest row of each key, from the settled table and the tail. None is `absorbed`
    where there is no tail: then no key need be read.

    `has` are the columns that each of the two has, by its name: one of an older version may not
    have them all, and has nulls there. Rows of keys that are not `among` these are not looked at:
    asked for behind the view, the tail's newest rows would all be found first.
    """
    one, settled = SETTLED[name], beside(name)
    old, new = settled, one.changes
    if among is not None:
        old, new = (rows_among(table, one.key, among) for table in (old, new))
    rows = f"select {_listed(columns, has[settled])} from {old} s"  # noqa: S608 - our names
    if absorbed is None:
        return rows
    newer = f"select distinct {one.key} from {one.changes} where turn > {absorbed}"  # noqa: S608
    unmoved = f"{rows} left anti join ({newer}) t on s.{one.key} = t.{one.key}"
    ranked = (
        f"select *, row_number() over (partition by {one.key} order by turn desc) as nth "  # noqa: S608
        f"from {new} where turn > {absorbed}"
    )
    newest = f"select {_listed(columns, has[one.changes])} from ({ranked}) where nth = 1"  # noqa: S608
    return f"{unmoved} union all {newest}"


def ever(name: str, absorbed: int, column: str, values: Collection[str]) -> str:
    """SQL for the keys of which any row that still counts, or did, has one of these values."""
    one = SETTLED[name]
    old, new = (rows_among(table, column, values) for table in (beside(name), one.changes))
    return (
        f"select {one.key} from {old} "  # noqa: S608 - our names
        f"union all select {one.key} from {new} where turn > {absorbed}"
    )


def _listed(columns: Sequence[str], has: Collection[str]) -> str:
    return ", ".join(f'"{name}"' if name in has else f'{_NEVER} as "{name}"' for name in columns)
