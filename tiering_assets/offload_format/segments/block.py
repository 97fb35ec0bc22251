"""Block of a streaming (PIP-76, V2) data object: like V1's, with the ledger's id in its header.

    header   0 magic int32   4 header length int64   12 block length int64   20 first entry id int64
             28 ledger id int64   36 reserved, zero, to byte 128

Owns: what is written never reads as an entry's frame. V2's magic is a positive number, so a reader
that goes on behind a block would take the next header for a frame. Each block of ours ends with
TAIL_BYTES of padding at least, where such a reader stops.
Source: PIP-76; Pulsar's StreamingDataBlockHeaderImpl.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from typing import Final

from tiering_assets.offload_format.block import (
    FRAME_BYTES,
    HEADER_BYTES,
    PAD_PATTERN,
    STREAMING_MAGIC,
)

TAIL_BYTES: Final = len(PAD_PATTERN)
_HEADER: Final = Struct(">Iqqqq92x")  # magic, header length, block length, first entry, ledger


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentBlock:
    """One block of a ledger. Lengths are bytes; `payload_bytes` counts payloads alone."""

    ledger_id: int
    part_number: int
    first_entry_id: int
    last_entry_id: int
    offset: int
    block_length: int
    payload_bytes: int

    def __post_init__(self) -> None:
        if (
            min(self.ledger_id, self.offset, self.payload_bytes, self.padding_bytes) < 0
            or self.part_number < 1
            or not 0 <= self.first_entry_id <= self.last_entry_id
        ):
            raise ValueError(f"impossible block: {self}")

    @property
    def entries(self) -> int:
        return self.last_entry_id - self.first_entry_id + 1

    @property
    def padding_bytes(self) -> int:
        return self.block_length - HEADER_BYTES - FRAME_BYTES * self.entries - self.payload_bytes

    def header(self) -> bytes:
        """The 128 bytes that begin it."""
        return _HEADER.pack(
            STREAMING_MAGIC,
            HEADER_BYTES,
            self.block_length,
            self.first_entry_id,
            self.ledger_id,
        )
