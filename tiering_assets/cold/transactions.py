"""What became of transactions, by the markers that brokers write behind their messages. Pure.

Owns: a message is of one transaction or of none, as its entry says. A marker of a commit or of an
abort has the ids of its transaction, and stands behind all of its messages in a topic.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

import numpy as np
import pyarrow as pa

from tiering_assets.cold.lockstep import Array
from tiering_assets.resources.arrow_columns import numpy_of, pc, places, scalar

OF_TRANSACTIONS: Final = ("ledger_id", "entry_id", "marker", "txn_most", "txn_least")
"""Columns that tell it."""
COMMIT, ABORT = 21, 22
Txn = tuple[int, int]
"""The ids of a transaction: its coordinator's, and its own."""


def outcomes_in(found: pa.RecordBatch) -> dict[Txn, bool]:
    """Which transactions markers say to be committed, and which to be aborted."""
    marker: Any = found.column("marker")
    kinds = numpy_of(pc.fill_null(marker.cast(pa.int64()), scalar(-1)))
    some = found.take(places(np.flatnonzero((kinds == COMMIT) | (kinds == ABORT))))
    columns = (some.column(name).to_pylist() for name in ("marker", "txn_most", "txn_least"))
    return {
        (most, least): kind == COMMIT
        for kind, most, least in zip(*columns, strict=True)
        if most is not None and least is not None
    }


class TxnRows:
    """Rows of which some are of transactions. What brokers wrote is of none."""

    def __init__(self, found: pa.RecordBatch) -> None:
        columns: list[Any] = [found.column(name) for name in ("txn_most", "txn_least")]
        is_message = pc.is_null(found.column("marker"))
        told = pc.and_(pc.is_valid(columns[0]), pc.is_valid(columns[1]))
        self._at = np.flatnonzero(numpy_of(pc.and_(told, is_message)))
        pairs = [numpy_of(column.take(places(self._at))) for column in columns]
        ids, which = np.unique(np.stack(pairs, axis=1), axis=0, return_inverse=True)
        self._which: Array = which.reshape(-1)
        self.transactions: list[Txn] = [(int(most), int(least)) for most, least in ids]

    def rows_of(self, some: Collection[Txn]) -> Array:
        """Places of their rows, in order."""
        chosen = np.array([one in some for one in self.transactions], bool)
        return self._at[chosen[self._which]] if len(self._at) else self._at
