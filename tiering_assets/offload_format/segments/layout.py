"""Blocks of a segment, planned before any byte of it is written.

Owns: a block holds entries of one ledger. It ends where the next whole frame and the tail do not
fit; one whose first frame does not fit grows to hold exactly that entry. Its length is what it
holds: stated, real, and the difference of offsets are one number.

Boundaries are searched by the payload bytes that entries carry, with O(log n) reads a block.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tiering_assets.offload_format.block import (
    BLOCK_BYTES_LIMIT,
    ENTRY_BYTES_MAX,
    FRAME_BYTES,
    HEADER_BYTES,
    PARTS_MAX,
)
from tiering_assets.offload_format.layout import KnownLengths
from tiering_assets.offload_format.segments.block import TAIL_BYTES, SegmentBlock
from tiering_assets.resources.errors import IntegrityError, RefusedError


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerSlice:
    """Entries of one ledger that a segment holds.

    `bytes_before` are payload bytes of all entries before the first, `bytes_upto` those with the
    last one.
    """

    ledger_id: int
    first_entry_id: int
    last_entry_id: int
    bytes_before: int
    bytes_upto: int

    def __post_init__(self) -> None:
        if not (
            self.ledger_id >= 0
            and 0 <= self.first_entry_id <= self.last_entry_id
            and self.bytes_before >= 0
        ):
            raise ValueError(f"impossible entries of a ledger: {self}")


def plan_segment(
    slices: Sequence[LedgerSlice],
    *,
    block_bytes_max: int,
    cumulative_length: Callable[[int, int], int],
) -> tuple[SegmentBlock, ...]:
    """Plan the blocks of these entries, ledger by ledger.

    `cumulative_length(ledger, e)` is the payload bytes of its entries 0 to e, as entry e's own
    header has them.

    Raises:
        IntegrityError: no entries, ledgers that do not ascend, or lengths that contradict each
            other.
        RefusedError: more than 10,000 blocks.
        ValueError: a block size that no block can have.
    """
    room = block_bytes_max - HEADER_BYTES - TAIL_BYTES
    if not room > FRAME_BYTES or block_bytes_max > BLOCK_BYTES_LIMIT:
        raise ValueError(f"impossible block size {block_bytes_max}")
    ids = [one.ledger_id for one in slices]
    if not ids or ids != sorted(set(ids)):
        raise IntegrityError(f"ledgers of a segment: expected some, ascending, found {ids}")
    blocks: list[SegmentBlock] = []
    offset = 0
    for one in slices:
        known = KnownLengths(
            (one.first_entry_id - 1, one.bytes_before),
            (one.last_entry_id, one.bytes_upto),
            _of(cumulative_length, one.ledger_id),
        )
        first = one.first_entry_id
        while first <= one.last_entry_id:
            if len(blocks) == PARTS_MAX:
                raise RefusedError(
                    f"a segment that begins in ledger {ids[0]} has more than {PARTS_MAX} blocks of "
                    f"{block_bytes_max} bytes: cut it smaller, or raise the block size"
                )
            done = known.first_value
            last, upto = known.advance(room)
            if upto - done > ENTRY_BYTES_MAX:
                raise IntegrityError(
                    f"ledger {one.ledger_id}: entries {first} to {last} would hold {upto - done} "
                    "payload bytes"
                )
            block = SegmentBlock(
                ledger_id=one.ledger_id,
                part_number=len(blocks) + 1,
                first_entry_id=first,
                last_entry_id=last,
                offset=offset,
                block_length=(
                    HEADER_BYTES + FRAME_BYTES * (last - first + 1) + (upto - done) + TAIL_BYTES
                ),
                payload_bytes=upto - done,
            )
            blocks.append(block)
            first, offset = last + 1, offset + block.block_length
    return tuple(blocks)


def _of(cumulative_length: Callable[[int, int], int], ledger_id: int) -> Callable[[int], int]:
    return lambda entry_id: cumulative_length(ledger_id, entry_id)
