"""Pieces of a message that lie in blocks before the one that is read.

Owns: blocks are looked through backwards, to the first piece of the message and not further than
LOOKED_MAX bytes. What is kept of a block are its pieces alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Final

import numpy as np

from tiering_assets.cold.chunks import OF_CONTENT, OF_PIECES, Begun, begun_by
from tiering_assets.cold.decode import Entries, decode_entries, decode_lots
from tiering_assets.cold.plain_rows import Row, as_rows
from tiering_assets.lineage.placed_block import PlacedBlock
from tiering_assets.resources.arrow_columns import numpy_of, pc
from tiering_assets.resources.errors import FormatError

LOOKED_MAX: Final = 256 * 1024 * 1024
"""Bytes of blocks."""
Blocks = Callable[[PlacedBlock], Iterator[PlacedBlock]]
"""Those of a topic before one of it, the nearest first."""
Read = Callable[[PlacedBlock], Entries]
"""The entries of one. FormatError where they cannot be told apart."""


class EarlierPieces:
    """Of one partition of a topic."""

    def __init__(self, blocks: Blocks, read: Read, *, content: bool) -> None:
        self._blocks, self._read = blocks, read
        self._names = [*OF_PIECES, *(OF_CONTENT if content else ())]
        self._kept: dict[PlacedBlock, list[Row]] = {}

    def before(self, block: PlacedBlock, piece: Row) -> Begun | None:
        """What pieces before one in a block have come to; None where the first is not found."""
        place, looked = (piece["ledger_id"], piece["entry_id"]), 0
        found: list[Row] = []
        for one in chain([block], self._blocks(block)):
            looked += one.length
            if looked > LOOKED_MAX:
                break
            here = [row for row in self._pieces(one) if row["chunk_uuid"] == piece["chunk_uuid"]]
            found = [row for row in here if (row["ledger_id"], row["entry_id"]) < place] + found
            if any(row["chunk"] == 0 for row in found):
                return begun_by(found)
        return None

    def _pieces(self, block: PlacedBlock) -> list[Row]:
        """One that cannot be read has none: its entries are not the asked ones."""
        if block not in self._kept:
            try:
                self._kept[block] = pieces_in(self._read(block), self._names)
            except FormatError:
                self._kept[block] = []
            self._forget()
        return self._kept[block]

    def _forget(self) -> None:
        while sum(one.length for one in self._kept) > LOOKED_MAX and len(self._kept) > 1:
            del self._kept[next(iter(self._kept))]


def pieces_in(entries: Entries, names: list[str]) -> list[Row]:
    """Rows of the entries that are pieces; of no other entry the payload is looked at."""
    heads = decode_entries(entries, OF_PIECES, on_error="row")
    ids = numpy_of(heads.filter(pc.is_valid(heads.column("chunks"))).column("entry_id"))
    some = entries.some(np.isin(entries.ids, ids))
    return [row for found in decode_lots(some, names, on_error="row") for row in as_rows(found)]
