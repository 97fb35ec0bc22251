"""Which files of a settled table are written again for keys that changed.

Owns: files stay in key order, each key in one of them, so that a question for a key reads one. A
span is written again as a whole; what is not changed is left as it lies.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tiering_assets.resources.sql import sql_text
from tiering_assets.resources.table_files import FILE_BYTES, TableFile

ROWS_MAX = 600_000
"""Of one span, which lies in memory: about one file of ledgers."""


@dataclass(frozen=True, slots=True)
class KeySpan:
    """Keys from `first` on, to before `behind`; None is no bound. One that is `empty` has none."""

    first: Any
    behind: Any
    empty: bool = False

    def sql(self, key: str) -> str:
        """The condition for a key to lie in it."""
        bounds = ["false"] if self.empty else []
        if self.first is not None:
            bounds.append(f"{key} >= {_literal(self.first)}")
        if self.behind is not None:
            bounds.append(f"{key} < {_literal(self.behind)}")
        return " and ".join(bounds) or "true"


@dataclass(frozen=True, slots=True)
class Shard:
    """Ledgers from `first` on, to before `behind`; None is no bound."""

    first: int | None
    behind: int | None

    @property
    def sql(self) -> str:
        return f"ledger_id is not null and {KeySpan(self.first, self.behind).sql('ledger_id')}"

    def has(self, ledger_id: int) -> bool:
        return (self.first is None or self.first <= ledger_id) and (
            self.behind is None or ledger_id < self.behind
        )


def _literal(key: Any) -> str:
    return sql_text(key) if isinstance(key, str) else str(key)


def joined(
    files: Sequence[TableFile], *, rows_max: int = ROWS_MAX, bytes_max: int = FILE_BYTES
) -> list[TableFile]:
    """Files in key order, those as one that overlap, or that fit in one file together.

    So many that overlap that they have too many rows stay as they are, as memory is short.
    """
    found: list[TableFile] = []
    for file in files:
        before = found[-1] if found else None
        if (
            before is None
            or before.rows + file.rows > 2 * rows_max
            or (before.last < file.first and before.bytes + file.bytes > bytes_max)
        ):
            found.append(file)
            continue
        found[-1] = replace(
            before,
            last=max(before.last, file.last),
            rows=before.rows + file.rows,
            bytes=before.bytes + file.bytes,
        )
    return found


def spans_to_write(
    files: Sequence[TableFile],
    changed: Sequence[Any],
    *,
    rows_max: int = ROWS_MAX,
    bytes_max: int = FILE_BYTES,
) -> list[KeySpan]:
    """Spans in key order that have every changed key; `changed` is in order, each key once.

    A span has at most about so many rows, where the keys of no file are cut through for it.
    """
    groups = joined(files, rows_max=rows_max, bytes_max=bytes_max)
    if not groups:
        return [*_in_lots(changed, None, 0, None, rows_max)]
    found: list[KeySpan] = []
    for n, group in enumerate(groups):
        begin = 0 if n == 0 else bisect_left(changed, group.first)
        behind = groups[n + 1].first if n + 1 < len(groups) else None
        end = len(changed) if behind is None else bisect_left(changed, behind)
        own = changed[begin:end]
        if not len(own):
            continue
        within = bisect_right(own, group.last)
        full = group.bytes >= bytes_max * 3 // 4
        if within or not full:
            first = None if n == 0 else group.first
            found += _in_lots(own, first, group.rows, behind, rows_max, within=within)
        else:
            found += _in_lots(own, own[0], 0, behind, rows_max)
    return found


def _in_lots(
    keys: Sequence[Any], first: Any, rows: int, behind: Any, rows_max: int, *, within: int = 0
) -> Iterator[KeySpan]:
    """One span from `first` to `behind`, cut where it has too many rows, behind `within` keys."""
    at = max(within, rows_max - rows, 1)
    while at < len(keys):
        yield KeySpan(first, keys[at])
        first, at = keys[at], at + rows_max
    yield KeySpan(first, behind)
