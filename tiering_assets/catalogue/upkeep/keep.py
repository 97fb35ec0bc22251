"""Small files joined and old ones deleted, of every table of the catalogue.

Owns: a table keeps what replaced files had for 7 days and its log for 30, by what it was made with.
Files are deleted only while this process's clock and the store's agree: their age is by both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from tiering_assets.catalogue.upkeep.settlements import Settlements
from tiering_assets.catalogue.view import OF_LEDGERS, Catalogue, Tables, carried
from tiering_assets.resources.table_files import FILE_BYTES
from tiering_assets.resources.table_upkeep import delete_old, join_small
from tiering_assets.resources.tables import Table

SMALL_MAX: Final = 50
"""Small files of a table that questions do not feel: a posting adds one to each."""
APART_MAX: Final = timedelta(minutes=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptTables:
    """Which tables' small files were joined, and how many old files went; None: clocks differ."""

    joined: tuple[str, ...]
    deleted: int | None


def keep(catalogue: Catalogue, *, store_now: datetime, now: datetime) -> KeptTables:
    """Join where there are many small files, and delete what no reader needs any more."""
    joined = join_files(catalogue, catalogue.opened())
    if abs(store_now - now) > APART_MAX:
        return KeptTables(joined=joined, deleted=None)
    tables = catalogue.opened(make=True)
    deleted = sum(delete_old(table, told=carried(table)) for table in tables.values())
    deleted += sum(delete_old(table, told=_settled(table)) for table in tables.settled.values())
    return KeptTables(joined=joined, deleted=deleted)


def join_files(catalogue: Catalogue, seen: Tables) -> tuple[str, ...]:
    """Join the small files of tables that have many, as was seen; which ones. Posting goes on
    beside it.
    """
    many = [name for name, table in seen.items() if many_small(table.sizes)]
    if not many:
        return ()
    own = catalogue.opened({*many, *OF_LEDGERS}, make=True)
    return tuple(name for name in many if join_small(own[name], told=carried(own[name])))


def many_small(sizes: Sequence[int]) -> bool:
    """Whether a table has so many files that are much smaller than they should be."""
    return sum(one < FILE_BYTES // 2 for one in sizes) > SMALL_MAX


def _settled(table: Table) -> dict[str, str]:
    return Settlements.told_by(table.newest_with("settled")).told()
