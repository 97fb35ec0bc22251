"""Ledgers summed up to figures, in columns: those of a topic that are alike are one row.

Owns: every ledger is counted once, in its topic; namespaces and the total are sums of these rows.
Figures of a single topic are made when somebody asks for them: of 100,000 topics few people read.

Grows with the topics: some four rows of 100 bytes each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import cached_property
from itertools import islice
from typing import Any, Final

import pyarrow as pa
from pyarrow import compute

from tiering_assets.explain.figures.lag_figures import (
    Counted,
    Figures,
    FiguresByTopic,
    FigureSum,
    FleetFigures,
    is_lagging,
)
from tiering_assets.explain.reasons.backlog_reason import BacklogReason
from tiering_assets.look.ledger.states import LedgerState
from tiering_assets.look.topic.topic_evidence import topic_of
from tiering_assets.records.keys import namespace_of
from tiering_assets.resources.tables import each_row

pc: Any = compute  # its stubs know fewer types than it does
_US: Any = pa.timestamp("us", "UTC")
COUNTED: Final = pa.schema(
    [
        ("topic", pa.string()),
        ("namespace", pa.string()),
        ("reason", pa.string()),
        ("state", pa.string()),
        ("certified", pa.bool_()),
        ("damaged", pa.bool_()),
        ("ledgers", pa.int64()),
        ("bytes", pa.int64()),
        ("closed_at", _US),
        ("due_at", _US),
    ]
)
"""Columns are the fields of Counted."""
_ALIKE: Final = ("reason", "state", "certified", "damaged")
_SUMS: Final = {"ledgers": "sum", "bytes": "sum", "closed_at": "min", "due_at": "min"}
_LOT: Final = 50_000


def count_figures(
    ledgers: Iterable[Counted], *, disturbances_last_hour: int, now: datetime
) -> FleetFigures:
    """Figures of ledgers that come one by one. Ledgers are not kept."""
    return count_tables(in_columns(ledgers), disturbances_last_hour=disturbances_last_hour, now=now)


def in_columns(ledgers: Iterable[Counted]) -> Iterator[pa.Table]:
    """The same as tables like COUNTED. Only some are objects at a time, and what is alike in a
    topic becomes one row: ledgers of a topic come one after the other.
    """
    left = iter(ledgers)
    while lot := [*islice(left, _LOT)]:
        columns = {name: [getattr(one, name) for one in lot] for name in COUNTED.names}
        for name in ("reason", "state"):
            columns[name] = [one.value for one in columns[name]]
        lot_of_rows = pa.Table.from_pydict(columns, schema=COUNTED)
        yield _summed(lot_of_rows, "topic", "namespace").select(COUNTED.names)


def count_tables(
    tables: Iterable[pa.Table], *, disturbances_last_hour: int, now: datetime
) -> FleetFigures:
    """Figures of tables like COUNTED, each row of which is of ledgers that are alike."""
    rows = pa.concat_tables([COUNTED.empty_table(), *tables])
    namespaces, total = dict[str, FigureSum](), FigureSum()
    for one in _each(_summed(rows, "namespace")):
        namespaces.setdefault(one.namespace, FigureSum()).add(one)
    for found in namespaces.values():
        total.merge(found)
    return FleetFigures(
        total=total.figures(now),
        namespaces={name: found.figures(now) for name, found in sorted(namespaces.items())},
        topics=CountedTopics(rows, now),
        disturbances_last_hour=disturbances_last_hour,
        taken_at=now,
    )


class CountedTopics(FiguresByTopic):
    """Figures of topics by their rows, which are put in order once somebody asks for one."""

    def __init__(self, rows: pa.Table, now: datetime) -> None:
        self._rows: Any = rows
        self._now = now

    def __len__(self) -> int:
        count: int = pc.count_distinct(self._rows["topic"]).as_py()
        return count

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __getitem__(self, name: str) -> Figures:
        start, stop = self._places[name]
        found = FigureSum()
        for one in _each(self._ordered.slice(start, stop - start)):
            found.add(one)
        return found.figures(self._now)

    def lagging(self) -> Iterator[tuple[str, Figures]]:
        kinds = _each(_summed(self._rows))
        pairs = {(one.reason, one.state) for one in kinds if is_lagging(one)}
        yield from self._of(_where(self._rows, pairs)["topic"]).items()

    def largest(self, count: int, state: LedgerState | None = None) -> list[tuple[str, Figures]]:
        rows = self._rows
        if state is not None:
            rows = rows.filter(pc.equal(rows["state"], pa.scalar(state.value)))
        sums = rows.group_by("topic").aggregate([("bytes", "sum")])
        most = sums.sort_by([("bytes_sum", "descending"), ("topic", "ascending")])["topic"][:count]
        figures = self._of(most)
        return [(name, figures[name]) for name in most.to_pylist()]

    def _of(self, names: Any) -> CountedTopics:
        among = pc.is_in(self._rows["topic"], names.combine_chunks())
        return CountedTopics(self._rows.filter(among), self._now)

    @cached_property
    def _ordered(self) -> Any:
        return self._rows.sort_by("topic")

    @cached_property
    def _places(self) -> dict[str, tuple[int, int]]:
        """By topic its rows among the ordered ones."""
        places = dict[str, tuple[int, int]]()
        for row, name in enumerate(self._ordered["topic"].to_pylist()):
            places[name] = places.get(name, (row, row))[0], row + 1
        return places


def full_names(topics: Any) -> Any:
    """Of managed ledgers the names of their topics."""
    names = [topic_of(one) for one in topics.dictionary.to_pylist()]
    return pa.array(names, pa.string()).take(topics.indices)


def namespaces(topics: Any) -> Any:
    """Of managed ledgers their namespaces."""
    names = [namespace_of(one) for one in topics.dictionary.to_pylist()]
    return pa.array(names, pa.string()).take(topics.indices)


def _summed(rows: Any, *by: str) -> Any:
    """Rows that are alike as one, with the columns of COUNTED that are left."""
    keys = [*by, *_ALIKE]
    found = rows.group_by(keys).aggregate([*_SUMS.items()])
    summed = [f"{one}_{how}" for one, how in _SUMS.items()]
    return found.select([*keys, *summed]).rename_columns([*keys, *_SUMS])


def _where(rows: Any, pairs: set[tuple[BacklogReason, LedgerState]]) -> Any:
    """Rows with one of these reasons and states."""
    texts = [f"{reason.value}/{state.value}" for reason, state in pairs]
    both = pc.binary_join_element_wise(rows["reason"], rows["state"], "/")
    return rows.filter(pc.is_in(both, pa.array(texts, pa.string())))


def _each(rows: pa.Table) -> Iterator[Counted]:
    for row in each_row(rows):
        reason, state = BacklogReason(row["reason"]), LedgerState(row["state"])
        topic, namespace = row.get("topic", ""), row.get("namespace", "")
        yield Counted(
            **{**row, "topic": topic, "namespace": namespace, "reason": reason, "state": state}
        )
