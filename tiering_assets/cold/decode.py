"""Messages of many entries at once, as columns; no object of Python is made for a message.

Owns: entries that lockstep refuses go through the plain decoder (plain_rows.py), in their place. So
rows are those of the plain decoder, whoever made them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from tiering_assets.cold.build import column
from tiering_assets.cold.columns import schema_of
from tiering_assets.cold.gather import in_order
from tiering_assets.cold.lockstep import Array
from tiering_assets.cold.opened import TooMuchAtOnceError
from tiering_assets.cold.plain_rows import as_columns, rows_of_entry
from tiering_assets.cold.usual import read_usual
from tiering_assets.resources.native.core import Core


@dataclass(frozen=True, slots=True, kw_only=True)
class Entries:
    """Entries of one ledger, each from `starts` to `ends` in `data`.

    `core` is the library that reads them, None for Python's way, which is the same.
    """

    ledger_id: int
    data: Array
    ids: Array
    starts: Array
    ends: Array
    core: Core | None = None

    def some(self, which: slice | Array) -> Entries:
        return replace(self, ids=self.ids[which], starts=self.starts[which], ends=self.ends[which])


def decode_lots(
    entries: Entries,
    names: Sequence[str],
    *,
    markers: bool = False,
    verify: bool = False,
    on_error: str = "fail",
) -> Iterator[pa.RecordBatch]:
    """The same as decode_entries, in as many batches as memory wants: one, seldom more."""
    half = len(entries.ids) // 2
    try:
        found = decode_entries(entries, names, markers=markers, verify=verify, on_error=on_error)
    except TooMuchAtOnceError:
        for which in (slice(0, half), slice(half, None)):
            yield from decode_lots(
                entries.some(which), names, markers=markers, verify=verify, on_error=on_error
            )
    else:
        yield found


def decode_entries(
    entries: Entries,
    names: Sequence[str],
    *,
    markers: bool = False,
    verify: bool = False,
    on_error: str = "fail",
) -> pa.RecordBatch:
    """Columns by these names of the messages in these entries, in their order.

    Args:
        entries: of one ledger, in any number.
        names: of columns.COLUMNS.
        markers: also what no consumer sees, as brokers wrote it.
        verify: judge the CRC32C of each entry that has one.
        on_error: "fail", or "row" for a row that says what is wrong.

    Raises:
        FormatError: an entry is none of Pulsar's, or damaged. It is named. Of a batch of which no
            more is asked than its size the payload is not looked into.
        TooMuchAtOnceError: decode_lots takes fewer.
    """
    schema = schema_of(names)
    usual = read_usual(
        entries.data,
        entries.starts,
        entries.ends,
        names,
        markers=markers,
        verify=verify,
        core=entries.core,
    )
    odd = usual.odd
    columns = [column(usual, one, ledger_id=entries.ledger_id, ids=entries.ids) for one in names]
    found = pa.RecordBatch.from_arrays(columns, schema=schema)
    if not odd.any():
        return found
    order, parts = [usual.entry], [found]
    for n in np.flatnonzero(odd).tolist():
        rows = rows_of_entry(
            entries.data[entries.starts[n] : entries.ends[n]].tobytes(),
            ledger_id=entries.ledger_id,
            entry_id=int(entries.ids[n]),
            markers=markers,
            verify=verify,
            on_error=on_error,
        )
        parts.append(as_columns(rows, schema))
        order.append(np.full(len(parts[-1]), n))
    return in_order(parts, np.concatenate(order))
