"""The index object of a streaming segment (PIP-76), back to ledgers and blocks.

Owns: where a block begins and ends is what the index says, and is never found by looking for a
header. What decodes describes blocks that follow each other up to the end of the data object, those
of one ledger side by side, ledgers ascending. Whether a data object is so its blocks say: each by
BlockWalker, with the ledger's id.

Stricter than Pulsar's reader, which ignores lengths and then reads without an end. Written apart
from the encoder: it shares the constants of block.py. Any bytes decode or raise FormatError.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from struct import Struct
from typing import Final, NamedTuple

from google.protobuf.message import DecodeError

from tiering_assets.offload_format.block import (
    FRAME_BYTES,
    HEADER_BYTES,
    INDEX_ENTRY_BYTES,
    INDEX_MAGIC,
    PAD_PATTERN,
    STREAMING_INDEX_MAGIC,
)
from tiering_assets.offload_format.walker import BlockWalker, format_error
from tiering_assets.resources._proto import MLDataFormats_pb2 as ml_pb2

_HEAD: Final = Struct(">Iiqq")
_GROUP: Final = Struct(">qii")
_ENTRY: Final = Struct(">qiq")
_LEAST: Final = HEADER_BYTES + FRAME_BYTES


class BlockPlace(NamedTuple):
    """Where one block lies. `last_entry_id` is None for the last one of a ledger: its index does
    not say where that ends.
    """

    ledger_id: int
    part_number: int
    first_entry_id: int
    last_entry_id: int | None
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class SegmentLedger:
    """What an index says of one ledger: LedgerInfo as written, entries and bytes that it states."""

    ledger_id: int
    info: bytes
    entries: int
    size: int
    blocks: tuple[BlockPlace, ...]


@dataclass(frozen=True, slots=True)
class SegmentIndex:
    """A decoded index. `prefix_bytes` stand before the first block: padding, of which readers of
    Pulsar's need some.
    """

    data_object_length: int
    prefix_bytes: int
    ledgers: tuple[SegmentLedger, ...]

    @property
    def blocks(self) -> Iterator[BlockPlace]:
        """In the order of the object."""
        return (block for ledger in self.ledgers for block in ledger.blocks)


def decode_segment_index(data: bytes) -> SegmentIndex:
    """Decode a whole index object. Raises FormatError for anything but one that adds up."""
    if len(data) < _HEAD.size:
        raise format_error("segment index", 0, f"{_HEAD.size} bytes", len(data))
    magic, index_length, data_length, header_length = _HEAD.unpack_from(data)
    if magic == INDEX_MAGIC:
        raise format_error("segment index", 0, "a streaming (PIP-76) index", "a V1 index")
    if magic != STREAMING_INDEX_MAGIC:
        raise format_error(
            "segment index magic", 0, f"{STREAMING_INDEX_MAGIC:#010x}", f"{magic:#010x}"
        )
    if index_length != len(data):
        raise format_error("index length", 4, len(data), index_length)
    if header_length != HEADER_BYTES:
        raise format_error("block header length", 16, HEADER_BYTES, header_length)
    groups = _groups(data)
    rows = [(ledger_id, at, *row) for ledger_id, _info, some in groups for at, row in some]
    _require_blocks_follow(rows, data_length)
    ends = [*(row[-1] for row in rows[1:]), data_length]
    places = iter(zip(rows, ends, strict=True))
    ledgers = []
    for ledger_id, info, some in groups:
        firsts = [row[0] for _at, row in some]
        lasts = [*(first - 1 for first in firsts[1:]), None]
        blocks = []
        for last in lasts:
            (_ledger, _at, first, part, offset), end = next(places)
            blocks.append(BlockPlace(ledger_id, part, first, last, offset, end - offset))
        ledgers.append(_ledger_of(ledger_id, info, tuple(blocks)))
    return SegmentIndex(data_length, rows[0][-1], tuple(ledgers))


def walker_of(block: BlockPlace, *, entries_expected: int | None = None) -> BlockWalker:
    """Decodes this block. The number of entries is that of the index, where that has one."""
    if block.last_entry_id is not None:
        entries_expected = block.last_entry_id - block.first_entry_id + 1
    return BlockWalker(
        block_length=block.length,
        first_entry_id=block.first_entry_id,
        entries_expected=entries_expected,
        offset=block.offset,
        ledger_id=block.ledger_id,
    )


_Group = tuple[int, tuple[int, bytes], list[tuple[int, tuple[int, int, int]]]]


def _groups(data: bytes) -> list[_Group]:
    """Ledger id, (place, LedgerInfo) and (place, block) of each."""
    found: list[_Group] = []
    at, before = _HEAD.size, -1
    while at < len(data):
        if len(data) - at < _GROUP.size:
            raise format_error("group of a ledger", at, f"{_GROUP.size} bytes", len(data) - at)
        ledger_id, count, info_length = _GROUP.unpack_from(data, at)
        if ledger_id <= before:
            raise format_error("ledger id", at, f"above {before}", ledger_id)
        if count < 1:
            raise format_error("number of blocks", at + 8, "at least 1", count)
        if info_length < 0:
            raise format_error("length of LedgerInfo", at + 12, "at least 0", info_length)
        info_at = at + _GROUP.size
        end = info_at + info_length + INDEX_ENTRY_BYTES * count
        if end > len(data):
            raise format_error(
                f"group of ledger {ledger_id} with {count} blocks", at, f"{end} bytes", len(data)
            )
        blocks_at = info_at + info_length
        rows = _ENTRY.iter_unpack(data[blocks_at:end])
        places = range(blocks_at, end, INDEX_ENTRY_BYTES)
        some = [
            (place, (int(a), int(b), int(c))) for place, (a, b, c) in zip(places, rows, strict=True)
        ]
        found.append((ledger_id, (info_at, bytes(data[info_at:blocks_at])), some))
        at, before = end, ledger_id
    if not found:
        raise format_error("segment index", at, "at least one ledger", "none")
    return found


def _require_blocks_follow(rows: list[tuple[int, int, int, int, int]], data_length: int) -> None:
    """Each row: ledger, its place in the index, first entry, part number, offset."""
    ledger_id, at, first, part, offset = rows[0]
    if part != 1 or first < 0 or offset not in (0, len(PAD_PATTERN)):
        raise format_error(
            f"first block (entry, part, offset) of ledger {ledger_id}",
            at,
            f"an entry, 1, 0 or {len(PAD_PATTERN)}",
            (first, part, offset),
        )
    for (ledger, _, first, part, offset), (now, at, next_first, next_part, next_offset) in pairwise(
        rows
    ):
        if next_part != part + 1:
            raise format_error("part number", at + 8, part + 1, next_part)
        held = next_first - first if now == ledger else 1
        if held < 1 or next_first < 0:
            raise format_error("first entry id", at, f"above {first}", next_first)
        least = offset + HEADER_BYTES + FRAME_BYTES * held
        if next_offset < least:
            raise format_error(
                f"offset of part {next_part}", at + 12, f"at least {least}", next_offset
            )
    if rows[-1][-1] + _LEAST > data_length:
        raise format_error(
            "data object length", 8, f"at least {rows[-1][-1] + _LEAST}", data_length
        )


def _ledger_of(
    ledger_id: int, info: tuple[int, bytes], blocks: tuple[BlockPlace, ...]
) -> SegmentLedger:
    at, written = info
    message = ml_pb2.ManagedLedgerInfo.LedgerInfo()
    try:
        message.ParseFromString(written)
    except DecodeError as error:
        raise format_error("LedgerInfo", at, "one", str(error)) from error
    if message.ledgerId != ledger_id:
        raise format_error("ledger id of LedgerInfo", at, ledger_id, message.ledgerId)
    if message.entries <= blocks[-1].first_entry_id:
        raise format_error(
            f"entries of ledger {ledger_id}",
            at,
            f"more than {blocks[-1].first_entry_id}, where its last block begins",
            message.entries,
        )
    return SegmentLedger(ledger_id, written, message.entries, message.size, blocks)
