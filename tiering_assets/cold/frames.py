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
from tiering_assets.resources.native.core import Core


def entries_of_block(
    block: bytes | bytearray | memoryview,
    *,
    ledger_id: int,
    first_entry_id: int,
    count: int,
    core: Core | None = None,
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
    data = np.frombuffer(b"".join([view, PADDING]), np.uint8)
    of_each = np.zeros(count, np.int64)
    frames = data[: len(view)]
    if core is None or core.frames(frames, first_entry_id=first_entry_id, lengths=of_each) < count:
        of_each = np.array(_lengths(view, ledger_id, first_entry_id, count), np.int64)
    ends = HEADER_BYTES + np.cumsum(of_each + FRAME_BYTES)
    return Entries(
        ledger_id=ledger_id,
        data=data,
        ids=np.arange(first_entry_id, first_entry_id + count),
        starts=ends - of_each,
        ends=ends,
        core=core,
    )


def _lengths(view: memoryview, ledger_id: int, first_entry_id: int, count: int) -> list[int]:
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
    return lengths
