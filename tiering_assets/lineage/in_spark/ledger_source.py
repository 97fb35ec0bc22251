"""`pulsar_ledgers`: messages that left the bookies, as a DataFrame.

    register(spark)  # registered.py
    spark.read.format("pulsar_ledgers").option("topic", "public/default/orders").load()
    spark.readStream.format("pulsar_ledgers").option("topic", "public/default/orders").load()

Owns: Spark plans with the settings of the process in which the driver plans. No credential is in a
plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.pandas.types import from_arrow_schema

from tiering_assets.ground.stack import open_stack
from tiering_assets.lineage.in_spark.ledger_parts import (
    LedgerPartition,
    as_spark_takes,
    partitions_of,
    read_partition,
)
from tiering_assets.lineage.in_spark.ledger_stream import LedgersStream
from tiering_assets.lineage.in_spark.spark_filters import pushed
from tiering_assets.lineage.messages.options import ColdOptions, cold_options
from tiering_assets.lineage.messages.plan import plan_messages
from tiering_assets.lineage.messages.pushed import Pushed
from tiering_assets.lineage.messages.topic_schemas import with_schemas
from tiering_assets.resources.settings_sources import load_settings


class PulsarLedgers(DataSource):
    """What docs/cold-messages.md says of each option and column."""

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        self._asked = cold_options(options)

    @classmethod
    def name(cls) -> str:
        return "pulsar_ledgers"

    def schema(self) -> Any:
        self._learn_schemas()
        return from_arrow_schema(as_spark_takes(self._asked.schema.empty_table()).schema)

    def _learn_schemas(self) -> None:
        """Once: the type of values is that of the tasks, too."""
        if self._asked.messages.with_values and not self._asked.messages.schemas:
            with open_stack(load_settings().settings) as stack:
                self._asked = with_schemas(stack, self._asked)

    def reader(self, schema: Any) -> DataSourceReader:
        self._learn_schemas()
        asked = self._asked.with_columns(schema.fieldNames())
        return PruningReader(asked) if asked.filters else LedgersReader(asked)

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        return LedgersStream(self._asked.with_columns(schema.fieldNames()))


class LedgersReader(DataSourceReader):
    def __init__(self, asked: ColdOptions) -> None:
        self._asked = asked
        self._filters: tuple[Pushed, ...] = ()

    def partitions(self) -> list[LedgerPartition]:
        with open_stack(load_settings().settings) as stack:
            return partitions_of(stack, plan_messages(stack, self._asked, self._filters))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_partition(partition, self._asked.messages)


class PruningReader(LedgersReader):
    """Spark refuses one whose session does not say which filters there are."""

    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:  # noqa: N802 - Spark's name
        """All of them are Spark's to judge as well."""
        self._filters = pushed(filters)
        return filters
