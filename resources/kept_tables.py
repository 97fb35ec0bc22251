"""Tables that were opened before in this process, as long as nobody has written to them since.

Owns: what is kept is only read. Each time one small question tells whether it is still the newest
version: opening a table takes ten requests and more, and a sensor's tick opens eight. One that was
deleted, or made anew, is not what it was.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa

from tiering_assets.resources.last_used import LastUsed
from tiering_assets.resources.table_place import TablePlace
from tiering_assets.resources.tables import Table, find_table

_KEPT_MAX: Final = 64


@dataclass(frozen=True, slots=True)
class _KeptTable:
    place: TablePlace
    table: Table


class OpenedBefore:
    """By place and name, the ones that were asked for last. Any thread may ask."""

    def __init__(self) -> None:
        self._kept = LastUsed[tuple[str, str], _KeptTable](_KEPT_MAX)

    def open(self, place: TablePlace, name: str, schema: pa.Schema) -> Table:
        """As `find_table` does."""
        key = place.root if "://" in place.root else str(Path(place.root).absolute()), name
        kept = self._kept.get(key)
        if kept is not None and kept.place.options == place.options and kept.table.log.is_newest():
            return kept.table
        table = find_table(place, name, schema)
        if table.is_written:
            self._kept.keep(key, _KeptTable(place, table))
        else:
            self._kept.drop(key)
        return table

    def forget(self) -> None:
        self._kept.clear()


KEPT: Final = OpenedBefore()
"""Of this process."""
