"""Streaming segments of entries that are all known, as no real ledger's are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate

from tests.support.golden_segments import Entries
from tiering_assets.offload_format.block import PAD_PATTERN
from tiering_assets.offload_format.encoder import BlockEncoder
from tiering_assets.offload_format.segments.block import SegmentBlock
from tiering_assets.offload_format.segments.layout import LedgerSlice, plan_segment

BEFORE = 10  # payload bytes of each entry that lies before those of a segment


def plan_from_entries(
    entries: Entries, ranges: Iterable[tuple[int, int, int]], *, block_bytes_max: int
) -> tuple[list[LedgerSlice], tuple[SegmentBlock, ...]]:
    """What (ledger, first, last) hold, and their blocks. Errors as `plan_segment`."""
    slices, lengths = [], dict[tuple[int, int], int]()
    for ledger_id, first, last in ranges:
        before, ids = first * BEFORE, range(first, last + 1)
        summed = accumulate(len(entries[ledger_id, entry_id]) for entry_id in ids)
        lengths |= {(ledger_id, i): before + n for i, n in zip(ids, summed, strict=True)}
        slices.append(
            LedgerSlice(
                ledger_id=ledger_id,
                first_entry_id=first,
                last_entry_id=last,
                bytes_before=before,
                bytes_upto=lengths[ledger_id, last],
            )
        )
    blocks = plan_segment(
        slices,
        block_bytes_max=block_bytes_max,
        cumulative_length=lambda ledger_id, entry_id: lengths[ledger_id, entry_id],
    )
    return slices, blocks


def data_of(blocks: Sequence[SegmentBlock], entries: Entries, *, prefix: int = 0) -> bytes:
    """The data object of these blocks, behind so much padding."""
    encoder, data = BlockEncoder(1024), bytearray(PAD_PATTERN[:prefix])
    for block in blocks:
        encoder.begin(block)
        ids = range(block.first_entry_id, block.last_entry_id + 1)
        encoder.add_many(block.first_entry_id, [entries[block.ledger_id, i] for i in ids])
        data += encoder.finish()
    return bytes(data)
