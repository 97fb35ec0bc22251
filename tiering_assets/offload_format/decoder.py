"""The way back: index object to values; walker.py takes the blocks apart and is named here, too.

Owns: what decodes describes whole blocks that follow each other from entry 0 and byte 0 and end
with the data object. Stricter than a broker, which ignores the index length, part numbers and the
block headers, because this is what proves a copy before its source may go.

Written from PIP-17 apart from the encoder: it shares the constants of block.py, not its code, so
that one mistake cannot hide in both. Any bytes decode or raise FormatError naming offset, expected
and found. Streaming (PIP-76) objects are refused by name.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from typing import Final, NamedTuple

from tiering_assets.offload_format.block import (
    FRAME_BYTES,
    HEADER_BYTES,
    INDEX_ENTRY_BYTES,
    INDEX_HEADER_BYTES,
    INDEX_MAGIC,
    STREAMING_INDEX_MAGIC,
)
from tiering_assets.offload_format.walker import BlockWalker, format_error, iter_block_entries

__all__ = [
    "BlockRange",
    "BlockWalker",
    "Index",
    "IndexEntry",
    "block_lengths",
    "decode_index",
    "decode_index_fields",
    "iter_block_entries",
]

_MAGIC: Final = Struct(">I")
_INDEX_HEADER: Final = Struct(">IIqqii")
_INDEX_ENTRY: Final = Struct(">qiq")
_BLOCK_BYTES_MIN: Final = HEADER_BYTES + FRAME_BYTES  # one empty entry


class IndexEntry(NamedTuple):
    """Where one block begins: `offset` is that of its header in the data object."""

    first_entry_id: int
    part_number: int
    offset: int


class BlockRange(NamedTuple):
    """Bytes and entries of one block; the index does not say where the last block's entries end."""

    offset: int
    length: int
    first_entry_id: int
    last_entry_id: int | None


@dataclass(frozen=True, slots=True)
class Index:
    """An index object. `ledger_metadata` is BookKeeper's protobuf, not decoded here."""

    data_object_length: int
    ledger_metadata: bytes
    entries: tuple[IndexEntry, ...]


def decode_index(data: bytes) -> Index:
    """Decode a whole index object. Raises FormatError for anything but a V1 index that adds up."""
    index = decode_index_fields(data)
    entries_at = INDEX_HEADER_BYTES + len(index.ledger_metadata)
    _require_blocks_follow(index.entries, index.data_object_length, entries_at)
    return index


def decode_index_fields(data: bytes) -> Index:
    """Decode an index whose blocks may not add up, to tell what of a damaged copy can be read.

    Raises FormatError where the fields themselves cannot be told apart. Proves nothing.
    """
    if len(data) >= _MAGIC.size and _MAGIC.unpack_from(data)[0] == STREAMING_INDEX_MAGIC:
        raise format_error("index", 0, "a V1 index", "a streaming (PIP-76) index, not supported")
    if len(data) < INDEX_HEADER_BYTES:
        raise format_error("index header", 0, f"{INDEX_HEADER_BYTES} bytes", len(data))
    magic, index_length, data_length, header_length, count, metadata_length = (
        _INDEX_HEADER.unpack_from(data)
    )
    if magic != INDEX_MAGIC:
        raise format_error("index magic", 0, f"{INDEX_MAGIC:#010x}", f"{magic:#010x}")
    if index_length != len(data):
        raise format_error("index length", 4, len(data), index_length)
    if header_length != HEADER_BYTES:
        raise format_error("block header length", 16, HEADER_BYTES, header_length)
    if count < 1:
        raise format_error("number of blocks", 24, "at least 1", count)
    if metadata_length < 0:
        raise format_error("metadata length", 28, "at least 0", metadata_length)
    needed = INDEX_HEADER_BYTES + metadata_length + INDEX_ENTRY_BYTES * count
    if needed != len(data):
        raise format_error(
            f"index of {count} blocks and {metadata_length} bytes of metadata",
            24,
            f"{needed} bytes",
            len(data),
        )
    entries_at = INDEX_HEADER_BYTES + metadata_length
    entries = tuple(IndexEntry(*row) for row in _INDEX_ENTRY.iter_unpack(data[entries_at:]))
    return Index(data_length, bytes(data[INDEX_HEADER_BYTES:entries_at]), entries)


def _require_blocks_follow(
    entries: tuple[IndexEntry, ...], data_length: int, entries_at: int
) -> None:
    if entries[0] != (0, 1, 0):
        raise format_error("first index entry", entries_at, (0, 1, 0), tuple(entries[0]))
    before = entries[0]
    for position, entry in enumerate(entries[1:], start=1):
        at = entries_at + INDEX_ENTRY_BYTES * position
        if entry.part_number != before.part_number + 1:
            raise format_error("part number", at + 8, before.part_number + 1, entry.part_number)
        held = entry.first_entry_id - before.first_entry_id
        if held < 1:
            raise format_error(
                "first entry id", at, f"above {before.first_entry_id}", entry.first_entry_id
            )
        least = before.offset + HEADER_BYTES + FRAME_BYTES * held
        if entry.offset < least:
            raise format_error(
                f"offset of part {entry.part_number}", at + 12, f"at least {least}", entry.offset
            )
        before = entry
    if before.offset == data_length:
        # Signature of a broker that met an entry larger than its block: it stopped there, uploaded
        # an empty block, left that out of the length and reported success.
        raise format_error(
            "data object length",
            8,
            f"more than {before.offset}, where part {before.part_number} begins",
            f"{data_length}: its writer stopped before entry {before.first_entry_id}, the object"
            " lacks that entry and all that follow",
        )
    if before.offset + _BLOCK_BYTES_MIN > data_length:
        raise format_error(
            "data object length", 8, f"at least {before.offset + _BLOCK_BYTES_MIN}", data_length
        )


def block_lengths(index: Index) -> list[BlockRange]:
    """The blocks of a decoded index, in order; their lengths sum up to the data object."""
    ranges = []
    for entry, after in zip(index.entries, [*index.entries[1:], None], strict=True):
        end = index.data_object_length if after is None else after.offset
        last = None if after is None else after.first_entry_id - 1
        ranges.append(BlockRange(entry.offset, end - entry.offset, entry.first_entry_id, last))
    return ranges
