"""What is known of a table's files, and how large one should be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

FILE_BYTES: Final = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFile:
    """A file of a table; `first` and `last` are of the column that was asked for."""

    first: Any
    last: Any
    rows: int
    bytes: int
