"""What a task of Spark reads: blocks of one ledger, as rows that Spark takes.

Owns: a partition names blocks and settings, and no credential is in it: a worker finds its own.
Each task has blocks of one ledger, up to PARTITION_BYTES of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from itertools import groupby
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from tiering_assets.catalogue.view import Catalogue, Tables
from tiering_assets.ground.stack import Stack
from tiering_assets.lineage.find import OF_BLOCKS, blocks_after, blocks_before
from tiering_assets.lineage.in_spark.value_types import value_for_spark
from tiering_assets.lineage.messages.earlier_pieces import Blocks, Read
from tiering_assets.lineage.messages.hot_entries import reads_of_blocks
from tiering_assets.lineage.messages.plan import ReadingPlan
from tiering_assets.lineage.messages.read_messages import MessagesAsked, read_messages
from tiering_assets.lineage.messages.topic_columns import OF_VALUE
from tiering_assets.lineage.placed_block import PlacedBlock
from tiering_assets.resources.arrow_columns import pc, scalar
from tiering_assets.resources.object_store.s3 import S3ObjectStore
from tiering_assets.resources.settings_of_workers import (
    PlainSettings,
    plain_settings,
    worker_settings,
)
from tiering_assets.resources.table_place import place_at
from tiering_assets.tasks.budget_record import read_budget
from tiering_assets.tasks.descriptors import LedgerSource
from tiering_assets.tasks.point_reads import stored_points
from tiering_assets.tasks.rates import Rates, parts_of

PARTITION_BYTES: Final = 128 * 1024 * 1024
_MS_MAX: Final = (2**63 - 1) // 1000


class LedgerPartition(InputPartition):
    """Blocks of one ledger, whose entries are at `source` where it has no copy.

    `earlier` and `later` are those of its topic before and behind them, the nearest first; None
    where the catalogue knows, whose tables are at `tables`. `budget` is the key of what reading may
    take, and `settings` are the driver's.
    """

    def __init__(
        self,
        *,
        blocks: tuple[PlacedBlock, ...],
        earlier: tuple[PlacedBlock, ...] | None,
        later: tuple[PlacedBlock, ...] | None,
        source: LedgerSource | None,
        tables: str,
        budget: str,
        settings: PlainSettings,
    ) -> None:
        self.blocks, self.earlier, self.later = blocks, earlier, later
        self.source, self.tables, self.budget, self.settings = source, tables, budget, settings


def partitions_of(stack: Stack, plan: ReadingPlan) -> list[LedgerPartition]:
    """In the order of the blocks."""
    plain = plain_settings(stack.settings)
    return [
        LedgerPartition(
            blocks=some,
            earlier=(*plan.earlier(some[0]),) if plan.known else None,
            later=(*plan.later(some[-1]),) if plan.known else None,
            source=plan.sources.get(some[0].ledger_id),
            tables=plan.root,
            budget=stack.budget_key,
            settings=plain,
        )
        for some in in_parts(plan.blocks)
    ]


def read_partition(partition: InputPartition, wanted: MessagesAsked) -> Iterator[pa.RecordBatch]:
    """In a worker: its messages. Where a plan has no partition Spark makes one of its own."""
    if not isinstance(partition, LedgerPartition):
        return
    with _opened(partition) as (read, before, after):
        for _number, found in read_messages(
            read, partition.blocks, wanted, before=before, after=after
        ):
            yield from as_spark_takes(pa.Table.from_batches([found])).to_batches()


def in_parts(blocks: Iterable[PlacedBlock]) -> Iterator[tuple[PlacedBlock, ...]]:
    """In their order; of one ledger each, and of PARTITION_BYTES or one block."""
    for _ledger, some in groupby(blocks, key=lambda one: (one.topic, one.ledger_id)):
        part: list[PlacedBlock] = []
        for block in some:
            if part and sum(one.length for one in part) + block.length > PARTITION_BYTES:
                yield tuple(part)
                part = []
            part.append(block)
        yield tuple(part)


def as_spark_takes(found: pa.Table) -> pa.Table:
    """Times in microseconds; null where a producer wrote one that none of those can tell.

    Values have the types that Spark knows.
    """
    columns: list[Any] = []
    for field, column in zip(found.schema, found.columns, strict=True):
        if field.name == OF_VALUE[0]:
            columns.append(value_for_spark(column))
            continue
        if not pa.types.is_timestamp(field.type):
            columns.append(column)
            continue
        ms: Any = column.cast(pa.int64())
        told = pc.and_(pc.less(ms, scalar(_MS_MAX)), pc.greater(ms, scalar(-_MS_MAX)))
        us = pc.multiply(pc.if_else(told, ms, pa.scalar(None, pa.int64())), scalar(1000))
        columns.append(us.cast(pa.timestamp("us", "UTC")))
    return pa.table(columns, names=found.schema.names)


@contextmanager
def _opened(partition: LedgerPartition) -> Iterator[tuple[Read, Blocks, Blocks]]:
    """How entries of blocks are read, and which blocks lie before and behind one."""
    settings = worker_settings(partition.settings)
    rates = Rates(
        settings.budget,
        parts=lambda: parts_of(settings),
        read=lambda: read_budget(store, partition.budget),
    )
    store = S3ObjectStore(settings.store, meter=rates)
    hot = {} if partition.source is None else {partition.source.ledger_id: partition.source}

    def get(block: PlacedBlock, start: int, length: int) -> bytes:
        with rates.of_topic(block.topic):
            return store.get_range(
                block.data_key, start=start, length=length, version_id=block.version_id
            )

    def before(block: PlacedBlock) -> Iterator[PlacedBlock]:
        if partition.earlier is not None:
            yield from earlier_of(partition, block)
            return
        yield from blocks_before(tables(), block)

    def after(block: PlacedBlock) -> Iterator[PlacedBlock]:
        if partition.later is not None:
            yield from later_of(partition, block)
            return
        yield from blocks_after(tables(), block)

    def tables() -> Tables:
        return Catalogue(place_at(partition.tables, settings.store)).opened(OF_BLOCKS)

    bookies = partial(stored_points, settings.bookies, meter=rates)
    with closing(store), reads_of_blocks(get, hot, bookies, rates.of_topic) as read:
        yield read, before, after


def earlier_of(partition: LedgerPartition, block: PlacedBlock) -> Iterator[PlacedBlock]:
    """Of its own blocks, then of those before all of them."""
    here = [one for one in partition.blocks if one.part < block.part]
    yield from reversed(here)
    yield from partition.earlier or ()


def later_of(partition: LedgerPartition, block: PlacedBlock) -> Iterator[PlacedBlock]:
    """The same behind it."""
    yield from (one for one in partition.blocks if one.part > block.part)
    yield from partition.later or ()
