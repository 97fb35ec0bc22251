"""Figures of topics, whose settled ledgers are counted once somebody asks for one of them.

Owns: they are of the tables that the total was counted by, so that both add up. To count settled
ledgers of 100,000 topics by topic takes 200 MB; most who ask want the total, and what lags.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from typing import Any, Final

import pyarrow as pa

from tiering_assets.catalogue.view import Tables, answer
from tiering_assets.explain.figures.count_figures import (
    CountedTopics,
    lagging_topics,
    nothing_counted,
)
from tiering_assets.explain.figures.lag_figures import Figures, FiguresByTopic
from tiering_assets.fleet.questions import (
    FleetQuestion,
    largest_topics,
    of_topics,
    settled_counts,
    topics_counted,
)
from tiering_assets.look.ledger.states import LedgerState
from tiering_assets.look.topic.topic_evidence import topic_of
from tiering_assets.resources.arrow_columns import pc, texts
from tiering_assets.resources.metastore.topic_names import parse_topic_name
from tiering_assets.resources.tables import without_views

_NAMED_MAX: Final = 1000
"""Topics that a question names; more are counted among all."""


class TopicsOfRows(FiguresByTopic):
    """`settled` and `rest` are like COUNTED: settled ledgers by namespace, all others by topic.

    `count` is that of settled ledgers by topic.
    """

    def __init__(
        self,
        tables: Tables,
        asked: FleetQuestion,
        *,
        settled: pa.Table,
        rest: list[pa.Table],
        count: Callable[[pa.Table], pa.Table],
        now: datetime,
    ) -> None:
        self._tables, self._asked = tables, asked
        self._settled = settled
        self._rest = pa.concat_tables([nothing_counted(), *rest])
        self._count, self._now = count, now

    def __len__(self) -> int:
        return self._number

    def __iter__(self) -> Iterator[str]:
        return iter(self._every)

    def __getitem__(self, name: str) -> Figures:
        return self._every[name]

    def lagging(self) -> Iterator[tuple[str, Figures]]:
        yield from self._lagging

    def largest(self, count: int, state: LedgerState | None = None) -> list[tuple[str, Figures]]:
        by_rows = None if state is None else state.value
        found = answer(self._tables, largest_topics(self._asked, most=count, state=by_rows))
        ml_names: list[Any] = found["topic"].to_pylist()
        return self._some(ml_names).largest(count, state)

    @cached_property
    def _number(self) -> int:
        found: int = answer(self._tables, topics_counted(self._asked))["topics"][0].as_py()
        return found

    @cached_property
    def _lagging(self) -> list[tuple[str, Figures]]:
        names = pc.unique(lagging_topics(self._rest))
        if len(lagging_topics(self._settled)) or len(names) > _NAMED_MAX:
            return [*self._every.lagging()]
        if not len(names):
            return []
        ml_names = [parse_topic_name(one).managed_ledger_name for one in names.to_pylist()]
        return [*self._some(ml_names).lagging()]

    @cached_property
    def _every(self) -> CountedTopics:
        return self._with_settled(None)

    def _some(self, ml_names: list[str]) -> CountedTopics:
        names = texts([topic_of(one) for one in ml_names])
        return self._with_settled(of_topics(ml_names)).among(names)

    def _with_settled(self, some: str | None) -> CountedTopics:
        """With settled ledgers of some topics, of all without."""
        asked = self._asked
        if some is not None:
            asked = replace(asked, some=f"{asked.some} and {some}")
        settled: Any = self._count(without_views(answer(self._tables, settled_counts(asked))))
        return CountedTopics(pa.concat_tables([settled, self._rest]), self._now)
