"""The index object of a segment, and what it says of each ledger. Blocks: BlockEncoder.

    header   0 magic int32   4 index length int32   8 data object length int64
             16 block header length int64
    group    ledger id int64   number of blocks int32   length of LedgerInfo int32   LedgerInfo
             blocks: first entry id int64, part number int32, offset int64

Owns: an index says what this object holds. `entries` and `size` of a LedgerInfo are those up to the
last entry here: a reader looks for more than is here without an end.
Source: PIP-76; Pulsar's OffloadIndexBlockV2Impl.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from struct import Struct
from typing import Final

from tiering_assets.offload_format.block import HEADER_BYTES, STREAMING_INDEX_MAGIC
from tiering_assets.offload_format.segments.block import SegmentBlock
from tiering_assets.offload_format.segments.layout import LedgerSlice
from tiering_assets.resources._proto import MLDataFormats_pb2 as ml_pb2
from tiering_assets.resources.errors import IntegrityError

_HEADER: Final = Struct(">Iiqq")  # magic, index length, data object length, block header length
_GROUP: Final = Struct(">qii")  # ledger id, number of blocks, length of LedgerInfo
_BLOCK: Final = Struct(">qiq")  # first entry id, part number, offset


def held_ledger_info(held: LedgerSlice, *, closed_at_ms: int | None) -> bytes:
    """LedgerInfo of the entries up to the last one here; 0 is the time of an open ledger."""
    info = ml_pb2.ManagedLedgerInfo.LedgerInfo(
        ledgerId=held.ledger_id,
        entries=held.last_entry_id + 1,
        size=held.bytes_upto,
        timestamp=0 if closed_at_ms is None else closed_at_ms,
    )
    return info.SerializeToString(deterministic=True)


def encode_segment_index(
    blocks: Sequence[SegmentBlock], ledger_infos: Mapping[int, bytes], data_object_length: int
) -> bytes:
    """The index of these blocks, with the LedgerInfo of each ledger.

    Raises:
        IntegrityError: blocks do not follow each other up to the end of a data object of that
            length, or not those are told of that have blocks.
    """
    _require_blocks_follow(blocks, data_object_length)
    groups = {ledger_id: [*some] for ledger_id, some in groupby(blocks, lambda b: b.ledger_id)}
    if groups.keys() != ledger_infos.keys():
        raise IntegrityError(
            f"LedgerInfo of ledgers: expected {sorted(groups)}, found {sorted(ledger_infos)}"
        )
    parts: list[bytes] = []
    for ledger_id, some in groups.items():
        info = ledger_infos[ledger_id]
        parts += [_GROUP.pack(ledger_id, len(some), len(info)), info]
        parts += [_BLOCK.pack(b.first_entry_id, b.part_number, b.offset) for b in some]
    length = _HEADER.size + sum(map(len, parts))
    header = _HEADER.pack(STREAMING_INDEX_MAGIC, length, data_object_length, HEADER_BYTES)
    return b"".join([header, *parts])


def _require_blocks_follow(blocks: Sequence[SegmentBlock], data_object_length: int) -> None:
    if not blocks:
        raise IntegrityError("blocks of a segment: expected some, found none")
    offset, before = blocks[0].offset, None
    for number, block in enumerate(blocks, start=1):
        expected: tuple[int, ...] = (number, offset)
        found: tuple[int, ...] = (block.part_number, block.offset)
        if before is not None and before.ledger_id == block.ledger_id:
            expected += (before.last_entry_id + 1,)
            found += (block.first_entry_id,)
        if found != expected or (before is not None and block.ledger_id < before.ledger_id):
            raise IntegrityError(
                f"block of ledger {block.ledger_id} (part, offset, first entry): expected "
                f"{expected}, found {found}"
            )
        before, offset = block, offset + block.block_length
    if offset != data_object_length:
        raise IntegrityError(
            f"blocks of a segment end at byte {offset}, its data object at {data_object_length}"
        )
