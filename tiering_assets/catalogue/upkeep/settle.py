"""The newest rows of a tail go into their settled table; then the tail is cut behind them.

Contract: each span of keys is one commit, and the last one has the mark up to which everything is
absorbed. Killed between two of them, the rows are there early, which changes no answer, and the
next settlement writes only what is left. No error of a commit is believed: marks are read again. Of
two at once one is faster, and the other looks again. Posting goes on beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import pyarrow as pa

from tiering_assets.catalogue.columns import TABLES
from tiering_assets.catalogue.settled import ABSORBED, CUT, SETTLED, beside
from tiering_assets.catalogue.upkeep.settlements import Settlements
from tiering_assets.catalogue.upkeep.spans import KeySpan, spans_to_write
from tiering_assets.catalogue.view import Catalogue, Tables, carried
from tiering_assets.resources.table_upkeep import cut_where, replace_where
from tiering_assets.resources.tables import ask

TAIL_MAX: Final = 200_000
"""Rows of a tail that questions do not feel; below it a settlement costs more than it saves."""
_TRIES: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Absorbed:
    """`tail` rows were found behind the mark, of which `rows` went into `spans`; `turn` is the
    mark.
    """

    tail: int
    rows: int
    spans: int
    turn: int


def settle(
    catalogue: Catalogue,
    name: str,
    *,
    at: datetime,
    tail_max: int = TAIL_MAX,
    tell: Callable[[str], None] = lambda _line: None,
) -> Absorbed:
    """Absorb the tail of a settled table, if it has more rows than that. `at` is the time."""
    rows = spans = 0
    for _ in range(_TRIES):
        tables = catalogue.opened(make=True)
        mark, upto = tables.settled[name].marked(ABSORBED), tables[SETTLED[name].changes].turn
        tail = _count(tables, name)
        if tail <= tail_max or mark >= upto:
            return Absorbed(tail=tail, rows=rows, spans=spans, turn=mark)
        todo, done = _todo(tables, name), True
        for n, span in enumerate(todo):
            made = _rows(tables, name, span)
            done = _write(tables, name, span, made, last=n == len(todo) - 1, at=at)
            if not done:
                break
            rows, spans = rows + made.num_rows, spans + 1
            tell(f"{name}: {n + 1} of {len(todo)} files written")
        if done:
            return Absorbed(tail=tail, rows=rows, spans=spans, turn=upto)
    raise catalogue.busy(_TRIES)


def _count(tables: Tables, name: str) -> int:
    one, mark = SETTLED[name], tables.settled[name].marked(ABSORBED)
    found = ask(
        f"select count(*) as n from {one.changes} where turn > {mark}",  # noqa: S608 - our names
        {one.changes: tables[one.changes]},
    )
    return int(found["n"][0].as_py())


def _todo(tables: Tables, name: str) -> list[KeySpan]:
    """Where keys lie whose row in the tail is newer than the settled one; one span at least."""
    one, mark = SETTLED[name], tables.settled[name].marked(ABSORBED)
    changed = (
        f"select {one.key}, max(turn) as turn from {one.changes} "  # noqa: S608 - our names
        f"where turn > {mark} group by {one.key}"
    )
    found = ask(
        f"select t.{one.key} as key from ({changed}) t left join {beside(name)} s "  # noqa: S608
        f"on s.{one.key} = t.{one.key} " + "where s.turn is null or s.turn < t.turn order by 1",
        tables.registered,
    )["key"]
    keys: Any = found.to_numpy() if pa.types.is_integer(found.type) else found.to_pylist()
    files = tables.settled[name].files(one.key)
    return spans_to_write(files, keys) if len(keys) else [KeySpan(None, None, empty=True)]


def _rows(tables: Tables, name: str, span: KeySpan) -> pa.Table:
    """The rows of a span as they are now, in key order."""
    one, schema = SETTLED[name], TABLES[SETTLED[name].changes]
    if span.empty:
        return schema.empty_table()
    found = ask(
        f"select * from ({tables.view(name)}) where {span.sql(one.key)} order by {one.key}",  # noqa: S608
        tables.registered,
    )
    return found.cast(schema)


def _write(
    tables: Tables, name: str, span: KeySpan, rows: pa.Table, *, last: bool, at: datetime
) -> bool:
    one, table = SETTLED[name], tables.settled[name]
    upto = tables[one.changes].turn
    before = Settlements.told_by(table.newest_with("settled"))
    told = before.having(upto, at=at) if last else before
    return replace_where(
        table,
        span.sql(one.key),
        rows,
        marks={ABSORBED: upto} if last else {},
        told=told.told(),
    )


def cut(catalogue: Catalogue, name: str, *, now: datetime) -> int:
    """Take away rows of the tail that were absorbed a day ago; up to which turn, 0 if none."""
    one = SETTLED[name]
    for _ in range(_TRIES):
        tables = catalogue.opened(make=True)
        settled, changes = tables.settled[name], tables[one.changes]
        upto = Settlements.told_by(settled.newest_with("settled")).may_go(now)
        if upto <= changes.marked(CUT):
            return 0
        told = carried(changes)
        if cut_where(changes, f"turn <= {upto}", marks={CUT: upto}, told=told):
            return upto
    raise catalogue.busy(_TRIES)
