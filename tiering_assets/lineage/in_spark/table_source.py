"""`tierkeeper_table`: tables of the catalogue, as DataFrames.

    register(spark)  # registered.py
    spark.read.format("tierkeeper_table").load("ledgers")

Owns: all tasks of a query read the tables at the versions that were the newest when it was planned.
Each reads a part of the keys, and asks the engine of the catalogue for it: rows are the same as
those of `tierkeeper catalogue sql`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema

from tiering_assets.catalogue.columns import TABLES
from tiering_assets.catalogue.settled import SETTLED
from tiering_assets.catalogue.view import OF_LEDGERS, Catalogue, Tables, answer
from tiering_assets.ground.stack import open_stack
from tiering_assets.lineage.in_spark.spark_filters import pushed
from tiering_assets.lineage.in_spark.table_spans import TablePart, key_spans
from tiering_assets.lineage.messages.pushed import Pushed, sql_filter
from tiering_assets.resources.arrow_columns import chosen
from tiering_assets.resources.settings_of_workers import (
    PlainSettings,
    plain_settings,
    worker_settings,
)
from tiering_assets.resources.settings_sources import load_settings
from tiering_assets.resources.table_place import place_at
from tiering_assets.resources.tables import without_views

ROWS: Final = 250_000
_KEYS: Final = {
    **{name: one.key for name, one in SETTLED.items()},
    "blocks": "ledger_id",
    "events": "page",
}
_OPTIONS: Final = ("table", "path", "columns", "filters")


@dataclass
class TablePartition(InputPartition):
    """Keys of a table. `root` is where tables lie, and `versions` which of each are meant.

    `settings` are the driver's.
    """

    root: str
    versions: Mapping[str, int | None]
    settings: PlainSettings
    span: TablePart


class CatalogueTable(DataSource):
    """What docs/catalogue.md says of each table and column."""

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        given = {name.lower(): value for name, value in options.items()}
        unknown = given.keys() - {*_OPTIONS}
        if unknown:
            raise ValueError(
                f"no option: {', '.join(sorted(unknown))}; there are {', '.join(_OPTIONS)}"
            )
        self._table = given.get("table") or given.get("path", "")
        if self._table not in _KEYS:
            raise ValueError(f"no table {self._table!r}: there are {', '.join(_KEYS)}")
        if given.get("filters", "false") not in ("true", "false"):
            raise ValueError(f"filters is {given['filters']!r}: expected true or false")
        self._filters = given.get("filters", "false") == "true"
        names = given.get("columns", "all")
        self._columns = None if names == "all" else [one.strip() for one in names.split(",")]

    @classmethod
    def name(cls) -> str:
        return "tierkeeper_table"

    def schema(self) -> Any:
        return from_arrow_schema(schema_of_table(self._table, self._columns))

    def reader(self, schema: Any) -> DataSourceReader:
        kind = PruningTableReader if self._filters else TableReader
        return kind(self._table, schema_of_table(self._table, schema.fieldNames()))


def schema_of_table(table: str, columns: list[str] | None) -> pa.Schema:
    """Those columns of it, or all. ValueError for one that it does not have."""
    every = TABLES[SETTLED[table].changes if table in SETTLED else table]
    return every if columns is None else chosen(every, columns, f"table {table} has no column")


class TableReader(DataSourceReader):
    def __init__(self, table: str, schema: pa.Schema) -> None:
        self._table, self._schema = table, schema
        self._filters: tuple[Pushed, ...] = ()

    def partitions(self) -> list[TablePartition]:
        with open_stack(load_settings().settings) as stack:
            catalogue = Catalogue.of(stack)
            tables = catalogue.opened(_needed(self._table))
            files = _files(tables, self._table)
            where = catalogue.place.root, tables.versions, plain_settings(stack.settings)
        return [TablePartition(*where, span) for span in key_spans(files, rows=ROWS)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        ours = cast("TablePartition", partition)
        place = place_at(ours.root, worker_settings(ours.settings).store)
        tables = Catalogue(place).at_versions(ours.versions)
        names = ", ".join(f'"{name}"' for name in self._schema.names)
        asked = (sql_filter(one) for one in self._filters)
        where = " and ".join([ours.span.sql(_KEYS[self._table]), *filter(None, asked)])
        found = answer(tables, f"select {names} from {self._table} where {where}")  # noqa: S608 - ours
        yield from without_views(found).cast(self._schema).to_batches()


class PruningTableReader(TableReader):
    """Spark refuses one whose session does not say which filters there are."""

    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:  # noqa: N802 - Spark's name
        """All of them are Spark's to judge as well."""
        self._filters = pushed(filters)
        return filters


def _needed(table: str) -> tuple[str, ...]:
    return OF_LEDGERS if table in SETTLED else (table, *OF_LEDGERS)


def _files(tables: Tables, table: str) -> Iterable[Any]:
    of = tables.settled[table] if table in SETTLED else tables[table]
    return of.files(_KEYS[table])
