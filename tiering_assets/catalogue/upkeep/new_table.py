"""A table that nobody else writes, filled in lots of rows; the last one has its marks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyarrow as pa

from tiering_assets.resources.errors import CatalogueError
from tiering_assets.resources.table_upkeep import add_in_order
from tiering_assets.resources.tables import Table

LOT: Final = 500_000
"""Rows that lie in memory."""


class NewTable:
    """`told` goes with every commit."""

    def __init__(self, table: Table, schema: pa.Schema, told: Mapping[str, str]) -> None:
        self._table, self._schema, self._told = table, schema, told
        self._waiting: list[pa.Table] = []
        self.rows = 0

    def add(self, rows: pa.Table) -> None:
        """Rows that come behind those of before."""
        self._waiting.append(rows)
        self.rows += rows.num_rows
        if sum(one.num_rows for one in self._waiting) >= LOT:
            self._write({})

    def end(self, marks: Mapping[str, int]) -> None:
        """The rest, with these marks: only now the table is one that goes so far."""
        self._write(marks)

    def _write(self, marks: Mapping[str, int]) -> None:
        turn = self._table.turn + 1
        rows = pa.concat_tables([self._schema.empty_table(), *self._waiting])
        add_in_order(self._table, rows, marks=marks, told=self._told)
        self._table = self._table.again()
        if self._table.turn != turn:  # whatever was answered
            raise CatalogueError(
                f"table {self._table.name}: somebody else writes it while it is made; nothing "
                "else waits for it, repeat"
            )
        self._waiting = []
