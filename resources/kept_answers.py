"""Answers that are asked for again and again, as long as the tables that gave them are the newest.

Owns: an answer is kept with the very tables that were asked: with others of the same name the
question is asked anew. What is too large is not kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import pyarrow as pa

from tiering_assets.resources.last_used import LastUsed
from tiering_assets.resources.tables import Table

_KEPT_MAX: Final = 4
_BYTES_MAX: Final = 32 * 1024 * 1024
Versions = dict[str, tuple[Table, int]]


class KeptAnswers:
    """By question, the ones that were asked last. Any thread may ask."""

    def __init__(self) -> None:
        self._kept = LastUsed[str, tuple[Versions, pa.Table]](_KEPT_MAX)

    def answer(
        self, sql: str, tables: Mapping[str, Table], ask: Callable[[], pa.Table]
    ) -> pa.Table:
        """That of before, if these tables gave it as they are; else `ask`."""
        asked = {name: (table, table.version) for name, table in tables.items()}
        kept = self._kept.get(sql)
        if kept is not None and kept[0] == asked:
            return kept[1]
        found = ask()
        if found.nbytes <= _BYTES_MAX:
            self._kept.keep(sql, (asked, found))
        else:
            self._kept.drop(sql)
        return found


ANSWERS: Final = KeptAnswers()
"""Of this process."""
