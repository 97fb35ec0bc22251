"""What pages say, on local disk while tables are made anew: each name on a page, in page order.

Owns: of a key the last page that names it counts, and what a page said to go is not read. Records
that name no ledger by their key, such as publications, are filed by the ledgers that they tell of.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate, groupby, pairwise
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, Final

import pyarrow as pa

from tiering_assets.catalogue.columns import EVENTS
from tiering_assets.catalogue.facts.record_facts import TYPES
from tiering_assets.catalogue.upkeep.shard_bytes import DOUBTS
from tiering_assets.catalogue.upkeep.spans import Shard
from tiering_assets.resources.table_place import TablePlace
from tiering_assets.resources.tables import Table, ask, open_table

_WIDE: Final = pa.schema([EVENTS.field("ledger_id"), EVENTS.field("key")])
_LAST: Final = (
    "*, max(page) filter (where what = 'gone') over (partition by key) as went, "
    "max(page) filter (where what = 'written') over (partition by key) as came"
)
"""Beside each name the last pages that said of its key that it was written, and that it went."""
_GONE: Final = "select key, max(page) as went from events where what = 'gone' group by key"


class Spool:
    """Its files go with it."""

    def __init__(self) -> None:
        self._folder = TemporaryDirectory(prefix="tierkeeper-rebuild-")
        place = TablePlace(root=self._folder.name, options={})
        self._events = open_table(place, "events", EVENTS, make=True)
        self._wide = open_table(place, "wide", _WIDE, make=True)
        self._doubts = open_table(place, "doubts", DOUBTS, make=True)

    def __enter__(self) -> Spool:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._folder.cleanup()

    def add_events(self, rows: Sequence[dict[str, Any]]) -> None:
        _add(self._events, rows, EVENTS)

    def add_wide(self, rows: Sequence[dict[str, Any]]) -> None:
        """Ledgers that a record tells of, of which its key says nothing."""
        _add(self._wide, rows, _WIDE)

    def add_doubts(self, rows: Sequence[dict[str, Any]]) -> None:
        """Records that were read and are not what a page says."""
        _add(self._doubts, rows, DOUBTS)

    def named(self, where: str) -> pa.Table:
        """Names of written records whose content counts, in page order."""
        kinds = ", ".join(f"'{kind}'" for kind in TYPES)
        return self._ask(
            f"select * from (select {_LAST} from events where {where} and kind in ({kinds})) "  # noqa: S608
            "where what = 'written' order by page, key"
        )

    def of(self, shard: Shard) -> pa.Table:
        return self.named(shard.sql)

    def wide(self) -> pa.Table:
        """Those that name no ledger by their key."""
        return self.named("ledger_id is null")

    def wide_of(self, shard: Shard) -> pa.Table:
        """Of them, those that tell of these ledgers."""
        return self.named(
            f"key in (select distinct key from wide where {shard.sql})"  # noqa: S608 - numbers
        )

    def shards(self, ledgers: int) -> list[Shard]:
        """All ledgers, at most so many in each."""
        found = self._ask(
            "select distinct ledger_id from (select ledger_id from events union all "
            "select ledger_id from wide) where ledger_id is not null order by ledger_id"
        )["ledger_id"]
        cuts: list[Any] = [None, *found[ledgers::ledgers].to_pylist(), None]
        return [Shard(first, behind) for first, behind in pairwise(cuts)]

    def events(self, lot: int) -> Iterable[pa.Table]:
        """Every name as tables have it, in page order, some pages at a time."""
        pages = self._ask(
            "select page, count(*) as n from events group by page order by page"
        ).to_pylist()
        after = 0
        until = accumulate(row["n"] for row in pages)
        lots = groupby(zip(pages, until, strict=True), key=lambda one: one[1] // lot)
        for _lot, some in lots:
            upto = [row["page"] for row, _until in some][-1]
            yield self._told(after, upto)
            after = upto

    def _told(self, after: int, upto: int) -> pa.Table:
        columns = ", ".join(
            f"case when d.key is null then e.{name} else d.{name} end as {name}"
            if name in ("what", "why")
            else f"e.{name}"
            for name in EVENTS.names
        )
        pages = f"e.page > {after} and e.page <= {upto}"
        told = f"{pages} order by e.page, e.key"
        counts = "e.what = 'written' and (g.went is null or e.page > g.went)"
        joined = f"events e left join ({_GONE}) g on e.key = g.key left join doubts d on"
        return self._ask(
            f"select {columns} from {joined} e.key = d.key and {counts} where {told}"  # noqa: S608
        ).cast(EVENTS)

    def _ask(self, sql: str) -> pa.Table:
        tables = {"events": self._events, "wide": self._wide, "doubts": self._doubts}
        return ask(sql, tables)


def _add(table: Table, rows: Sequence[dict[str, Any]], schema: pa.Schema) -> None:
    table.append(pa.Table.from_pylist([*rows], schema=schema), told={})
