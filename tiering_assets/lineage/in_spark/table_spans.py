"""Parts of a table by its key, each read by a task of its own. Pure.

Owns: each key is in one part, whatever files overlap, and whatever was written meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any, NamedTuple

from tiering_assets.resources.sql import sql_value
from tiering_assets.resources.table_files import TableFile


class TablePart(NamedTuple):
    """Keys from `first` on, and before `behind`; None is from the least, and to the greatest."""

    first: Any = None
    behind: Any = None

    def sql(self, key: str) -> str:
        """As a condition. Keys that are null are in the part that begins with the least."""
        said = []
        if self.first is not None:
            said.append(f"{key} >= {sql_value(self.first)}")
        if self.behind is not None:
            before = f"{key} < {sql_value(self.behind)}"
            said.append(before if said else f"({before} or {key} is null)")
        return " and ".join(said) or "true"


def key_spans(files: Iterable[TableFile], *, rows: int) -> list[TablePart]:
    """Parts of about so many rows, or of one file."""
    bounds: list[Any] = []
    count = 0
    for file in sorted(files, key=lambda one: one.first):
        if count >= rows and (not bounds or file.first > bounds[-1]):
            bounds.append(file.first)
            count = 0
        count += file.rows
    return [TablePart(*edges) for edges in pairwise([None, *bounds, None])]
