"""Block of a Pulsar V1 data object: header (128 bytes), frames, padding; all integers big-endian.

    header   0 magic int32   4 header length int64   12 block length int64   20 first entry id int64
             28 reserved, zero, to byte 128
    frame    0 payload length int32   4 entry id int64   12 payload as BookKeeper got it
    padding  FE DC DE AD repeated from the first padding byte, cut off where the block ends

Owns the constants of data and index objects, and the writing side of a block: block length counts
header and padding; a reader finds padding and the next header because both read as a negative
length. Layout: PIP-17; Pulsar's DataBlockHeaderImpl and BlockAwareSegmentInputStreamImpl.
The reading side is decoder.py, which takes nothing but the constants from here.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

MAGIC: Final = 0xFBDBABCB  # DataBlockHeaderImpl.MAGIC_WORD
HEADER_BYTES: Final = 128  # HEADER_MAX_SIZE
FRAME_BYTES: Final = 12  # ENTRY_HEADER_SIZE
PAD_PATTERN: Final = bytes.fromhex("fedcdead")  # BLOCK_END_PADDING
ENTRY_BYTES_MAX: Final = 2**31 - 1  # the length is a signed int32
BLOCK_BYTES_LIMIT: Final = 2**31 - 1  # the block size is a Java int
PARTS_MAX: Final = 10_000  # one block is one part; S3 takes no more

INDEX_MAGIC: Final = 0xDE47DE47  # OffloadIndexBlockImpl.INDEX_MAGIC_WORD
INDEX_HEADER_BYTES: Final = 32
INDEX_ENTRY_BYTES: Final = 20

# Streaming offload (PIP-76): parsed by brokers, written by none. Named only to be refused by name.
STREAMING_MAGIC: Final = 0x26A66D32
STREAMING_INDEX_MAGIC: Final = 0x3D1FB0BC

FRAME: Final = Struct(">iq")  # payload length, entry id
_HEADER: Final = Struct(">Iqqq100x")  # magic, header length, block length, first entry id, reserved

# Ready-made: building the pattern anew for each block once cost more than all the framing.
_PAD: Final = memoryview(PAD_PATTERN * (256 * 1024))


def encode_block_header(*, block_length: int, first_entry_id: int) -> bytes:
    """The 128 header bytes. Raises ValueError when the values describe no block."""
    if block_length <= HEADER_BYTES or first_entry_id < 0:
        raise ValueError(
            f"impossible block: length {block_length}, first entry id {first_entry_id}"
        )
    return _HEADER.pack(MAGIC, HEADER_BYTES, block_length, first_entry_id)


def write_padding(view: memoryview, offset: int, end: int) -> None:
    """Fill `view[offset:end]` with padding whose phase starts at `offset`."""
    while offset < end:
        n = min(end - offset, len(_PAD))
        view[offset : offset + n] = _PAD[:n]
        offset += n
