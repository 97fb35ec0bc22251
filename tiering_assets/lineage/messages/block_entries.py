"""The entries of a block, from its object."""

from __future__ import annotations

from collections.abc import Callable

from tiering_assets.cold.decode import Entries
from tiering_assets.cold.frames import entries_of_block
from tiering_assets.lineage.placed_block import PlacedBlock
from tiering_assets.lineage.read_entry import PIECE_MAX
from tiering_assets.resources.native.loader import core

GetBytes = Callable[[PlacedBlock, int, int], bytes]
"""Bytes of the object that has a block: where they begin, and how many."""


def entries_in_object(get: GetBytes, block: PlacedBlock) -> Entries:
    """All of them, read whole. FormatError where frames say otherwise than the catalogue."""
    pieces = [
        get(block, block.offset + at, min(PIECE_MAX, block.length - at))
        for at in range(0, block.length, PIECE_MAX)
    ]
    return entries_of_block(
        pieces[0] if len(pieces) == 1 else b"".join(pieces),
        ledger_id=block.ledger_id,
        first_entry_id=block.first_entry_id,
        count=block.entries,
        core=core(),
    )
