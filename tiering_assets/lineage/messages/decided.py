"""Messages of transactions that were committed; what became of one is told behind its messages.

Owns: a transaction that is not decided by the block that is read is looked for in those behind it,
LOOKED_MAX bytes on, each of which is looked through once. One that stays undecided is an error, or
a row that says so: nobody may take what is left for all that was sent.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import numpy as np
import pyarrow as pa

from tiering_assets.cold.decode import decode_lots
from tiering_assets.cold.gather import in_order
from tiering_assets.cold.plain_rows import Row, as_columns, as_rows
from tiering_assets.cold.transactions import OF_TRANSACTIONS, Txn, TxnRows, outcomes_in
from tiering_assets.lineage.messages.earlier_pieces import LOOKED_MAX, Blocks, Read
from tiering_assets.lineage.placed_block import PlacedBlock
from tiering_assets.resources.arrow_columns import places
from tiering_assets.resources.errors import CatalogueError


class Decided:
    """Of one partition of a topic. `after` tells the blocks behind one."""

    def __init__(self, after: Blocks, read: Read, *, on_error: str) -> None:
        self._after, self._read, self._on_error = after, read, on_error
        self._outcomes: dict[Txn, bool] = {}
        self._looked: set[tuple[int, int]] = set()

    def learn(self, found: pa.RecordBatch) -> None:
        """What markers among these rows tell."""
        self._outcomes |= outcomes_in(found)

    def committed(self, block: PlacedBlock, found: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of a block that are of no transaction, or of one that was committed.

        CatalogueError that names an undecided one, unless errors are rows.
        """
        rows = TxnRows(found)
        self._look_on(block, {one for one in rows.transactions if one not in self._outcomes})
        became = {one: self._outcomes.get(one) for one in rows.transactions}
        if all(became.values()):
            return found
        undecided = rows.rows_of({one for one, done in became.items() if done is None})
        aborted = rows.rows_of({one for one, done in became.items() if done is False})
        said = [_error(row) for row in as_rows(found.take(places(undecided)))]
        if said and self._on_error != "row":
            raise CatalogueError(
                f"ledger {said[0]['ledger_id']}, entry {said[0]['entry_id']}: {said[0]['error']}: "
                "--keep-going leaves its messages out, or ask for those of all transactions"
            )
        kept = np.ones(found.num_rows, bool)
        kept[undecided] = kept[aborted] = False
        at = np.flatnonzero(kept)
        parts = [found.take(places(at)), as_columns(said, found.schema)]
        return in_order(parts, np.concatenate([at, undecided]))

    def _look_on(self, block: PlacedBlock, missing: set[Txn]) -> None:
        looked = 0
        for one in chain([block], self._after(block)) if missing else ():
            looked += one.length
            if looked > LOOKED_MAX + block.length:
                return
            if (one.ledger_id, one.part) not in self._looked:
                self._looked.add((one.ledger_id, one.part))
                for heads in self._heads(one):
                    self.learn(heads)
            missing -= self._outcomes.keys()
            if not missing:
                return

    def _heads(self, block: PlacedBlock) -> Iterator[pa.RecordBatch]:
        """FormatError where a block behind cannot be read: a marker may be in it."""
        return decode_lots(self._read(block), OF_TRANSACTIONS, markers=True)


def _error(row: Row) -> Row:
    why = (
        f"transaction {row['txn_most']}:{row['txn_least']} is neither committed nor aborted in "
        f"what is known, or within {LOOKED_MAX >> 20} MiB"
    )
    return {"ledger_id": row["ledger_id"], "entry_id": row["entry_id"], "error": why}
