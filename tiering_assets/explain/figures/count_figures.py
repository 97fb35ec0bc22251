"""Ledgers summed up to figures, in columns: those of a topic that are alike are one row.

Owns: every ledger is counted once, in its topic; namespaces and the total are sums of these rows.
Figures of a single topic are made when somebody asks for them: of 100,000 topics few people read.

Grows with the topics: some four rows of 100 bytes each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from heapq import nsmallest
from itertools import islice
from typing import Any, Final

import numpy as np
import pyarrow as pa

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
from tiering_assets.resources.arrow_columns import (
    MOMENT,
    combined,
    filled,
    flags,
    moments,
    numbers,
    numpy_of,
    pc,
    places,
    scalar,
    texts,
    whole,
)
from tiering_assets.resources.tables import each_row

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
        ("closed_at", MOMENT),
        ("due_at", MOMENT),
    ]
)
"""Columns are the fields of Counted."""


@dataclass(frozen=True, slots=True)
class _Sums:
    """How numbers are summed up; `without` stands for one that is not there."""

    of: Any
    without: int


_ALIKE: Final = ("reason", "state", "certified", "damaged")
_NEVER: Final = 2**63 - 1
_SUMS: Final = {
    "ledgers": _Sums(np.add, 0),
    "bytes": _Sums(np.add, 0),
    "closed_at": _Sums(np.minimum, _NEVER),
    "due_at": _Sums(np.minimum, _NEVER),
}
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
        columns = [
            texts([one.topic for one in lot]),
            texts([one.namespace for one in lot]),
            texts([one.reason.value for one in lot]),
            texts([one.state.value for one in lot]),
            flags([one.certified for one in lot]),
            flags([one.damaged for one in lot]),
            numbers([one.ledgers for one in lot]),
            numbers([one.bytes for one in lot]),
            moments([one.closed_at for one in lot]),
            moments([one.due_at for one in lot]),
        ]
        rows = pa.Table.from_arrays(columns, schema=COUNTED)
        yield _summed(rows, "topic", "namespace").select(COUNTED.names)


def nothing_counted() -> pa.Table:
    """No rows. `empty_table` of the schema would import pandas."""
    return pa.Table.from_batches([], schema=COUNTED)


def count_tables(
    tables: Iterable[pa.Table],
    *,
    disturbances_last_hour: int,
    now: datetime,
    topics: FiguresByTopic | None = None,
) -> FleetFigures:
    """Figures of tables like COUNTED, each row of which is of ledgers that are alike.

    Who has counted some of them by namespace alone brings `topics`.
    """
    rows = pa.concat_tables([nothing_counted(), *tables])
    namespaces, total = dict[str, FigureSum](), FigureSum()
    for one in _each(_summed(rows, "namespace")):
        namespaces.setdefault(one.namespace, FigureSum()).add(one)
    for found in namespaces.values():
        total.merge(found)
    return FleetFigures(
        total=total.figures(now),
        namespaces={name: found.figures(now) for name, found in sorted(namespaces.items())},
        topics=CountedTopics(rows, now) if topics is None else topics,
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
        yield from self.among(lagging_topics(self._rows)).items()

    def largest(self, count: int, state: LedgerState | None = None) -> list[tuple[str, Figures]]:
        rows = self._rows
        if state is not None:
            rows = rows.filter(pc.equal(rows["state"], scalar(state.value)))
        coded = whole(rows["topic"]).dictionary_encode()
        sizes = np.zeros(len(coded.dictionary), np.int64)
        np.add.at(sizes, numpy_of(coded.indices), numpy_of(rows["bytes"]))
        named = zip(coded.dictionary.to_pylist(), sizes.tolist(), strict=True)
        most = [name for name, _size in nsmallest(count, named, key=lambda one: (-one[1], one[0]))]
        figures = self.among(texts(most))
        return [(name, figures[name]) for name in most]

    def among(self, names: Any) -> CountedTopics:
        """Some of them; names in an array of Arrow."""
        among = pc.is_in(self._rows["topic"], names)
        return CountedTopics(self._rows.filter(among), self._now)

    @cached_property
    def _ordered(self) -> Any:
        return self._rows.take(pc.sort_indices(self._rows["topic"]))

    @cached_property
    def _places(self) -> dict[str, tuple[int, int]]:
        """By topic its rows among the ordered ones."""
        found = dict[str, tuple[int, int]]()
        for row, name in enumerate(self._ordered["topic"].to_pylist()):
            found[name] = found.get(name, (row, row))[0], row + 1
        return found


def lagging_topics(rows: Any) -> Any:
    """Of rows like COUNTED an array with the topics of those in a lag or stuck, some repeatedly."""
    kinds = _each(_summed(rows))
    pairs = {(one.reason, one.state) for one in kinds if is_lagging(one)}
    return whole(_where(rows, pairs)["topic"])


def full_names(topics: Any) -> Any:
    """Of managed ledgers the names of their topics."""
    names = [topic_of(one) for one in topics.dictionary.to_pylist()]
    return texts(names).take(topics.indices)


def namespaces(topics: Any) -> Any:
    """Of managed ledgers their namespaces."""
    names = [namespace_of(one) for one in topics.dictionary.to_pylist()]
    return texts(names).take(topics.indices)


def _summed(rows: Any, *by: str) -> Any:
    """Rows that are alike as one, with the columns of COUNTED that are left.

    By numpy: Arrow's own groups are in a module that imports pandas.
    """
    keys = [*by, *_ALIKE]
    rows = rows.select([*keys, *_SUMS]).combine_chunks()
    if not len(rows):
        return rows
    kinds = combined(rows, keys)
    order = np.argsort(kinds, kind="stable")
    starts = np.flatnonzero(np.diff(kinds[order], prepend=-1))
    found = [rows[name].take(places(order[starts])) for name in keys]
    for name, sums in _SUMS.items():
        values = numpy_of(filled(rows[name].cast(pa.int64()), sums.without))[order]
        total = sums.of.reduceat(values, starts)
        kind = COUNTED.field(name).type
        if sums.without:
            total = [None if one == sums.without else one for one in total.tolist()]
            found.append(numbers(total, kind))
        else:
            found.append(places(total))
    return pa.Table.from_arrays(found, names=[*keys, *_SUMS])


def _where(rows: Any, pairs: set[tuple[BacklogReason, LedgerState]]) -> Any:
    """Rows with one of these reasons and states."""
    wanted = texts([f"{reason.value}/{state.value}" for reason, state in pairs])
    both = pc.binary_join_element_wise(rows["reason"], rows["state"], scalar("/"))
    return rows.filter(pc.is_in(both, wanted))


def _each(rows: pa.Table) -> Iterator[Counted]:
    for row in each_row(rows):
        reason, state = BacklogReason(row["reason"]), LedgerState(row["state"])
        topic, namespace = row.get("topic", ""), row.get("namespace", "")
        yield Counted(
            **{**row, "topic": topic, "namespace": namespace, "reason": reason, "state": state}
        )
