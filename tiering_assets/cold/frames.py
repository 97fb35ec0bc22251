"""Where the entries of a block lie.

Owns: a block is looked through by its frames alone; header, ids and count must be those that its
index says. Padding is judged by who proves a copy, not by who reads it.
"""

from __future__ import annotations

import numpy as np

from tiering_assets.cold.decode import Entries
from tiering_assets.cold.lockstep import PADDING
from tiering_assets.offload_format.block import FRAME, FRAME_BYTES, HEADER_BYTES
from tiering_assets.offload_format.walker import format_error, require_header


def entries_of_block(
    block: bytes | bytearray | memoryview, *, ledger_id: int, first_entry_id: int, count: int
) -> Entries:
    """Entries `first_entry_id` and so many behind it. FormatError where they are not there."""
    view = memoryview(block)
    if len(view) < HEADER_BYTES:
        raise format_error(f"ledger {ledger_id}: block", 0, f"{HEADER_BYTES} bytes", len(view))
    require_header(
        bytes(view[:HEADER_BYTES]),
        block_length=len(view),
        first_entry_id=first_entry_id,
        offset=0,
    )
    unpack_from, size, at = FRAME.unpack_from, len(view), HEADER_BYTES
    lengths: list[int] = []
    for wanted in range(first_entry_id, first_entry_id + count):
        length, entry_id = unpack_from(view, at) if at + FRAME_BYTES <= size else (-1, -1)
        if entry_id != wanted or length < 0 or length > size - at - FRAME_BYTES:
            raise format_error(
                f"ledger {ledger_id}: frame of its block", at, f"entry {wanted}", f"{entry_id}"
            )
        lengths.append(length)
        at += FRAME_BYTES + length
    of_each = np.array(lengths, np.int64)
    ends = HEADER_BYTES + np.cumsum(of_each + FRAME_BYTES)
    return Entries(
        ledger_id=ledger_id,
        data=np.frombuffer(b"".join([view, PADDING]), np.uint8),
        ids=np.arange(first_entry_id, first_entry_id + count),
        starts=ends - of_each,
        ends=ends,
    )
