"""One entry out of a block, by ranged GETs from where the block begins.

A block has no list of its entries: its frames are walked from the first on. So a read costs at most
what lies before the entry in its block. The first request is made so large, by the block's own
figures, that there is seldom a second. Nothing is kept of what lies before the entry.

What is read is not compared with the block's SHA-256, which is of the whole block: frames are
checked one by one, and an entry of Pulsar's has a checksum of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from tiering_assets.ground.stack import Stack
from tiering_assets.lineage.placed_block import PlacedBlock
from tiering_assets.lineage.shown_entry import EntryInObject
from tiering_assets.offload_format.block import FRAME_BYTES, HEADER_BYTES
from tiering_assets.offload_format.walker import BlockWalker
from tiering_assets.resources.errors import FormatError, ObjectNotFoundError

_MORE: Final = 64 * 1024  # beside what is expected
_NEXT: Final = 4 * 1024 * 1024
PIECE_MAX: Final = 64 * 1024 * 1024


def read_entry(stack: Stack, block: PlacedBlock, entry_id: int) -> EntryInObject:
    """That entry, which the block has. FormatError for a block whose frames say otherwise."""
    before = entry_id - block.first_entry_id + 1
    expected = HEADER_BYTES + _frame_bytes(block) * before // block.entries
    for frame in _frames(stack, block, expected + expected // 8):
        if frame.entry_id == entry_id:
            return frame.kept()
    raise FormatError(f"{block.data_key}: part {block.part} does not have entry {entry_id}")


def read_at(stack: Stack, block: PlacedBlock, offset: int) -> EntryInObject | str:
    """The entry that has this byte of the object, or what else the byte belongs to."""
    if offset < block.offset + HEADER_BYTES:
        return "header"
    expected = offset - block.offset + 2 * (_frame_bytes(block) // block.entries)
    for frame in _frames(stack, block, expected):
        if offset < frame.offset + FRAME_BYTES + len(frame.payload):
            return frame.kept()
    return "padding"


class _Frame(NamedTuple):
    """`payload` is valid until the next frame."""

    entry_id: int
    offset: int
    payload: memoryview
    requests: int
    bytes_read: int

    def kept(self) -> EntryInObject:
        return EntryInObject(
            entry_id=self.entry_id,
            offset=self.offset,
            payload=bytes(self.payload),
            requests=self.requests,
            bytes_read=self.bytes_read,
        )


def _frame_bytes(block: PlacedBlock) -> int:
    return block.payload_bytes + FRAME_BYTES * block.entries


def _frames(stack: Stack, block: PlacedBlock, expected: int) -> Iterator[_Frame]:
    """From the first on. A FormatError tells if the entries are not those of the row."""
    walker = BlockWalker(
        block_length=block.length,
        first_entry_id=block.first_entry_id,
        entries_expected=block.entries,
        offset=block.offset,
    )
    at, requests, read = block.offset + HEADER_BYTES, 0, 0
    wanted = expected + _MORE
    while read < block.length:
        length = min(wanted, block.length - read, PIECE_MAX)
        piece = get_bytes(stack, block, block.offset + read, length)
        requests, read, wanted = requests + 1, read + length, _NEXT
        for entry_id, payload in walker.feed(piece):
            yield _Frame(entry_id, at, payload, requests, read)
            at += FRAME_BYTES + len(payload)
    walker.finish()


def get_bytes(stack: Stack, block: PlacedBlock, start: int, length: int) -> bytes:
    """Bytes of the object that has the block, of its version, within the budgets of its topic."""
    try:
        with stack.spending_for(block.topic):
            return stack.objects.get_range(
                block.data_key, start=start, length=length, version_id=block.version_id
            )
    except ObjectNotFoundError as error:
        raise ObjectNotFoundError(
            f"{error}; the catalogue has the ledger as {block.state}: `tierkeeper ledger show "
            f"{block.ledger_id}` tells what is so now"
        ) from error
