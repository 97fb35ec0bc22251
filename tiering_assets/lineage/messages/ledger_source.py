"""`pulsar_ledgers`: messages that left the bookies, as a DataFrame.

    spark.dataSource.register(PulsarLedgers)
    spark.read.format("pulsar_ledgers").option("topic", "public/default/orders").load()

Owns: Spark plans with the settings of the process in which the driver plans, and a partition names
blocks: no credential is in a plan or in a partition. A worker finds its own settings. Each task has
blocks of one ledger, up to PARTITION_BYTES of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final, cast

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema

from tiering_assets.catalogue.view import Catalogue, least
from tiering_assets.ground.stack import open_stack
from tiering_assets.lineage.find import OF_BLOCKS, blocks_before
from tiering_assets.lineage.messages.earlier_pieces import Blocks
from tiering_assets.lineage.messages.options import ColdOptions, cold_options
from tiering_assets.lineage.messages.read_messages import GetBytes, read_messages
from tiering_assets.lineage.placed_block import PlacedBlock
from tiering_assets.records import keys
from tiering_assets.resources.arrow_columns import pc, scalar
from tiering_assets.resources.object_store.s3 import S3ObjectStore
from tiering_assets.resources.settings_sources import load_settings
from tiering_assets.resources.table_place import place_at
from tiering_assets.tasks.budget_record import read_budget
from tiering_assets.tasks.rates import Rates, parts_of

PARTITION_BYTES: Final = 128 * 1024 * 1024
_MS_MAX: Final = (2**63 - 1) // 1000


@dataclass
class LedgerPartition(InputPartition):
    """Blocks of one ledger. `tables` is where the catalogue's lie, and `budget` the key of what
    reading may take.
    """

    blocks: tuple[PlacedBlock, ...]
    tables: str
    budget: str


class PulsarLedgers(DataSource):
    """What docs/cold-messages.md says of each option and column."""

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        self._asked = cold_options(options)

    @classmethod
    def name(cls) -> str:
        return "pulsar_ledgers"

    def schema(self) -> Any:

        return from_arrow_schema(as_spark_takes(self._asked.schema.empty_table()).schema)

    def reader(self, schema: Any) -> DataSourceReader:
        return LedgersReader(self._asked.with_columns(schema.fieldNames()))


class LedgersReader(DataSourceReader):
    def __init__(self, asked: ColdOptions) -> None:
        self._asked = asked

    def partitions(self) -> list[LedgerPartition]:
        """One question to the catalogue, whatever is asked for."""
        with open_stack(load_settings().settings) as stack:
            catalogue = Catalogue.of(stack)
            tables = catalogue.opened(OF_BLOCKS)
            blocks = self._asked.blocks(tables, least(catalogue, tables))
            where = catalogue.place.root, stack.book.prefix + keys.BUDGET
            return [LedgerPartition(some, *where) for some in in_parts(blocks)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        ours = cast("LedgerPartition", partition)
        with _opened(ours) as (get, before):
            for _number, found in read_messages(
                get, ours.blocks, self._asked.messages, before=before
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
    """Times in microseconds; null where a producer wrote one that none of those can tell."""
    columns: list[Any] = []
    for field, column in zip(found.schema, found.columns, strict=True):
        if not pa.types.is_timestamp(field.type):
            columns.append(column)
            continue
        ms: Any = column.cast(pa.int64())
        told = pc.and_(pc.less(ms, scalar(_MS_MAX)), pc.greater(ms, scalar(-_MS_MAX)))
        us = pc.multiply(pc.if_else(told, ms, pa.scalar(None, pa.int64())), scalar(1000))
        columns.append(us.cast(pa.timestamp("us", "UTC")))
    return pa.table(columns, names=found.schema.names)


@contextmanager
def _opened(partition: LedgerPartition) -> Iterator[tuple[GetBytes, Blocks]]:
    """How bytes of objects are read, and which blocks lie before one: by this worker's settings."""
    settings = load_settings().settings
    rates = Rates(
        settings.budget,
        parts=lambda: parts_of(settings),
        read=lambda: read_budget(store, partition.budget),
    )
    store = S3ObjectStore(settings.store, meter=rates)

    def get(block: PlacedBlock, start: int, length: int) -> bytes:
        with rates.of_topic(block.topic):
            return store.get_range(
                block.data_key, start=start, length=length, version_id=block.version_id
            )

    def before(block: PlacedBlock) -> Iterator[PlacedBlock]:
        place = place_at(partition.tables, settings.store)
        yield from blocks_before(Catalogue(place).opened(OF_BLOCKS), block)

    with closing(store):
        yield get, before
