"""The same as a stream: ledgers in the order in which they were posted, each once for ever.

Owns: an offset is a page of the day book and the ledgers that are owed (arrivals.py). A query that
is started again plans the same lot as before, from rows as they are then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxFiles, SupportsTriggerAvailableNow

from tiering_assets.catalogue.view import Catalogue, Tables, least
from tiering_assets.ground.stack import Stack, open_stack
from tiering_assets.lineage.find import OF_BLOCKS
from tiering_assets.lineage.in_spark.ledger_parts import (
    LedgerPartition,
    partitions_of,
    read_partition,
)
from tiering_assets.lineage.messages.arrivals import StreamPosition, due, next_position
from tiering_assets.lineage.messages.arrived import blocks_that_came, first_pages, readable
from tiering_assets.lineage.messages.options import ColdOptions
from tiering_assets.lineage.messages.plan import ReadingPlan
from tiering_assets.lineage.messages.pushed import may_have
from tiering_assets.resources.settings_sources import load_settings


@dataclass(frozen=True, slots=True)
class _Look:
    """The catalogue as it is now, and the last page of it."""

    stack: Stack
    catalogue: Catalogue
    tables: Tables
    page: int


class LedgersStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Spark calls the names that it has; what each means stands there."""

    def __init__(self, asked: ColdOptions) -> None:
        if asked.ledgers or asked.include_hot:
            raise ValueError(
                "a stream is of ledgers of a topic as they are posted: no `ledger` ids, no `include_hot`"
            )
        if asked.messages.with_values:
            raise ValueError("a stream has no `value`: its type may change with a later schema")
        self._asked = asked
        self._until: int | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        if self._asked.start == "oldest":
            return StreamPosition().told()
        with _look() as now:
            return StreamPosition(now.page).told()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        with _look() as now:
            self._until = now.page

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Spark has no limit in ledgers; a ledger has one object."""
        return ReadMaxFiles(self._asked.ledgers_per_batch)

    def latestOffset(self, start: Mapping[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        position = StreamPosition.of(start)
        most = limit.max_files if isinstance(limit, ReadMaxFiles) else None
        with _look() as now:
            until = now.page if self._until is None else min(now.page, self._until)
            came = first_pages(now.tables, self._asked.topic)
            some = readable(now.tables, position, came, until=until, most=most)
            return next_position(position, came, some, until=until, most=most).told()

    def partitions(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> list[LedgerPartition]:
        with _look() as now:
            came = first_pages(now.tables, self._asked.topic)
            ids = due(StreamPosition.of(start), StreamPosition.of(end), came)
            blocks = blocks_that_came(now.tables, ids, came)
            some = [block for block in blocks if may_have(block, self._asked.of_time)]
            plan = ReadingPlan(
                blocks=some, tables=now.tables, as_of=None, root=now.catalogue.place.root
            )
            return partitions_of(now.stack, plan)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_partition(partition, self._asked.messages)


@contextmanager
def _look() -> Iterator[_Look]:
    with open_stack(load_settings().settings) as stack:
        catalogue = Catalogue.of(stack)
        tables = catalogue.opened(OF_BLOCKS)
        yield _Look(stack, catalogue, tables, least(catalogue, tables).page)
