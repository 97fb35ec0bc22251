"""Pieces of a message that lie in blocks before the one that is read.

Owns: blocks are looked through backwards, to the first piece of the message and not further than
LOOKED_MAX bytes. What is kept of a block are its pieces alone. Where one may lie that was not read,
that is said: only a piece that is known to be missing makes a message none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

import numpy as np

from tiering_assets.cold.chunks import OF_CONTENT, OF_PIECES, Begun, begun_by
from tiering_assets.cold.decode import Entries, decode_lots
from tiering_assets.cold.joined import Unfound
from tiering_assets.cold.plain_rows import Row, as_rows
from tiering_assets.lineage.placed_block import PlacedBlock
from tiering_assets.resources.arrow_columns import numpy_of, pc
from tiering_assets.resources.errors import (
    FormatError,
    ObjectArchivedError,
    ObjectNotFoundError,
)

LOOKED_MAX: Final = 256 * 1024 * 1024
"""Bytes of blocks."""
Blocks = Callable[[PlacedBlock], Iterator[PlacedBlock]]
"""Those of a topic before one of it, the nearest first."""
Read = Callable[[PlacedBlock], Entries]
"""The entries of one. FormatError where they cannot be told apart."""
CANNOT_BE_READ: Final = (FormatError, ObjectNotFoundError, ObjectArchivedError)
"""What is so of a block as long as nobody changes it; other errors may be gone the next time."""


@dataclass(frozen=True, slots=True)
class Pieces:
    """Of a block. `unread` says what of it cannot be read, where pieces may be as well."""

    rows: Sequence[Row]
    unread: str = ""


class EarlierPieces:
    """Of one partition of a topic."""

    def __init__(self, blocks: Blocks, read: Read, *, content: bool) -> None:
        self._blocks, self._read = blocks, read
        self._names = [*OF_PIECES, *(OF_CONTENT if content else ())]
        self._kept: dict[PlacedBlock, Pieces] = {}

    def before(self, block: PlacedBlock, piece: Row) -> Begun | Unfound | None:
        """What pieces before one in a block have come to; None where one of them is missing."""
        place, looked, unread = (piece["ledger_id"], piece["entry_id"]), 0, ""
        found: list[Row] = []
        for one in chain([block], self._blocks(block)):
            looked += one.length
            if looked > LOOKED_MAX:
                return Unfound(f"the first is not within {LOOKED_MAX >> 20} MiB before it")
            pieces = self._pieces(one)
            unread = unread or pieces.unread
            here = [row for row in pieces.rows if row["chunk_uuid"] == piece["chunk_uuid"]]
            found = [row for row in here if (row["ledger_id"], row["entry_id"]) < place] + found
            if any(row["chunk"] == 0 for row in found):
                begun = begun_by(found)
                whole = begun is not None and begun.last >= piece["chunk"] - 1
                return Unfound(unread) if unread and not whole else begun
        return Unfound(unread or "the first is in no block of the topic that is known")

    def _pieces(self, block: PlacedBlock) -> Pieces:
        if block not in self._kept:
            try:
                self._kept[block] = pieces_in(self._read(block), self._names)
            except CANNOT_BE_READ as error:
                self._kept[block] = Pieces([], str(error))
            self._forget()
        return self._kept[block]

    def _forget(self) -> None:
        while sum(one.length for one in self._kept) > LOOKED_MAX and len(self._kept) > 1:
            del self._kept[next(iter(self._kept))]


def pieces_in(entries: Entries, names: list[str]) -> Pieces:
    """Rows of the entries that are pieces; of no other entry the payload is looked at."""
    unread, ids = "", []
    for heads in decode_lots(entries, [*OF_PIECES, "error"], on_error="row"):
        damaged = heads.filter(pc.is_valid(heads.column("error"))).slice(length=1)
        for row in () if unread else as_rows(damaged):
            unread = f"ledger {row['ledger_id']}, entry {row['entry_id']}: {row['error']}"
        ids.append(numpy_of(heads.filter(pc.is_valid(heads.column("chunks"))).column("entry_id")))
    some = entries.some(np.isin(entries.ids, np.concatenate(ids)))
    rows = [row for found in decode_lots(some, names, on_error="row") for row in as_rows(found)]
    return Pieces(rows, unread)
