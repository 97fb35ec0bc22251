"""Entries to the bytes of one block, and blocks to the index object.

Owns: what `finish` returns holds exactly the plan's entries, each once, in order, padded to the
planned length. A block is written into a buffer that is used again for the next one, because fresh
memory for each block costs several times the copying.

Refuses entries out of order, beyond the plan or missing from it, and payload bytes other than
planned (IntegrityError). It computes no digest of a block: see digests.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Final, Protocol

from tiering_assets.offload_format.block import (
    FRAME,
    FRAME_BYTES,
    HEADER_BYTES,
    INDEX_ENTRY_BYTES,
    INDEX_HEADER_BYTES,
    INDEX_MAGIC,
    write_padding,
)
from tiering_assets.offload_format.layout import BlockPlan
from tiering_assets.resources.errors import IntegrityError
from tiering_assets.resources.native.core import Core

_INDEX_HEADER: Final = Struct(
    ">IiqqII"
)  # magic, index length, data object length, header length, N, M
_INDEX_ENTRY: Final = Struct(">qiq")  # first entry id, part number, offset


class PlannedBlock(Protocol):
    """One block of V1, or of a streaming segment."""

    @property
    def part_number(self) -> int: ...
    @property
    def first_entry_id(self) -> int: ...
    @property
    def last_entry_id(self) -> int: ...
    @property
    def block_length(self) -> int: ...
    @property
    def payload_bytes(self) -> int: ...
    @property
    def entries(self) -> int: ...
    def header(self) -> bytes:
        """The 128 bytes that begin it."""


class BlockEncoder:
    """Writes one planned block at a time: `begin`, `add` or `add_many` until full, `finish`."""

    def __init__(self, buffer: int | bytearray | memoryview) -> None:
        """Take a buffer, or a size in bytes to make one. A block that grew gets a larger buffer."""
        self._view = memoryview(bytearray(buffer) if isinstance(buffer, int) else buffer)
        self._plan: PlannedBlock | None = None
        self._position = 0
        self._end = 0
        self._next_id = 0

    def begin(self, plan: PlannedBlock) -> None:
        """Start a block; one left unfinished is dropped. The last `finish` result becomes
        invalid.
        """
        if plan.block_length > len(self._view):
            self._view = memoryview(bytearray(plan.block_length))
        self._view[:HEADER_BYTES] = plan.header()
        self._plan = plan
        self._position = HEADER_BYTES
        self._next_id = plan.first_entry_id

    def add(self, entry_id: int, payload: bytes | bytearray | memoryview) -> None:
        """Write one entry. Raises IntegrityError when the plan has no such entry next."""
        self.add_many(entry_id, (payload,))

    def add_many(
        self, first_entry_id: int, payloads: Sequence[bytes | bytearray | memoryview]
    ) -> None:
        """Write consecutive entries that begin with `first_entry_id`; all or none of them.

        Raises:
            IntegrityError: the plan has other entries next, or less room for them.
        """
        plan = self._require_plan()
        last = first_entry_id + len(payloads) - 1
        if first_entry_id != self._next_id or last > plan.last_entry_id:
            raise IntegrityError(
                f"part {plan.part_number}: expected entries {self._next_id} to"
                f" {plan.last_entry_id}, found {first_entry_id} to {last}"
            )
        position = self._position
        end = position + FRAME_BYTES * len(payloads) + sum(map(len, payloads))
        if end > plan.block_length:
            raise IntegrityError(
                f"part {plan.part_number}: entries {first_entry_id} to {last} end at byte {end}"
                f" of a block of {plan.block_length}"
            )
        # The hot loop: everything it needs is local, everything it could get wrong is checked
        # above.
        view, pack_into, frame_bytes, entry_id = (
            self._view,
            FRAME.pack_into,
            FRAME_BYTES,
            first_entry_id,
        )
        for payload in payloads:
            length = len(payload)
            pack_into(view, position, length, entry_id)
            position += frame_bytes
            view[position : position + length] = payload
            position += length
            entry_id += 1
        self._position = position
        self._next_id = entry_id

    def add_stored(
        self, core: Core, records: memoryview, *, first_entry_id: int, entries: int
    ) -> memoryview | None:
        """Write consecutive entries from their records, each checked by its digest where it lies.

        Returns:
            Their frames; None, and nothing was written, where the library declines: they are other
            entries than the plan has next, do not fit, or one does not have its digest. `add_many`
            says what is wrong.
        """
        plan = self._require_plan()
        if first_entry_id != self._next_id or entries > plan.last_entry_id + 1 - self._next_id:
            return None
        room = self._view[self._position : plan.block_length]
        written = core.frame(records, count=entries, first_entry_id=first_entry_id, out=room)
        if written is None:
            return None
        self._position += written
        self._next_id += entries
        return room[:written]

    @property
    def padding(self) -> memoryview:
        """What follows the entries of a finished block, to its planned end."""
        return self._view[self._position : self._end].toreadonly()

    def finish(self) -> memoryview:
        """Pad and return the block, read-only, valid until the next `begin`.

        Raises:
            IntegrityError: entries are missing, or they held other payload bytes than planned.
        """
        plan = self._require_plan()
        if self._next_id != plan.last_entry_id + 1:
            raise IntegrityError(
                f"part {plan.part_number}: expected entries up to {plan.last_entry_id},"
                f" found up to {self._next_id - 1}"
            )
        payload_bytes = self._position - HEADER_BYTES - FRAME_BYTES * plan.entries
        if payload_bytes != plan.payload_bytes:
            raise IntegrityError(
                f"part {plan.part_number}: expected {plan.payload_bytes} payload bytes in entries"
                f" {plan.first_entry_id} to {plan.last_entry_id}, found {payload_bytes}"
            )
        write_padding(self._view, self._position, plan.block_length)
        self._plan, self._end = None, plan.block_length
        return self._view[: plan.block_length].toreadonly()

    def _require_plan(self) -> PlannedBlock:
        if self._plan is None:
            raise ValueError("no block begun")
        return self._plan


def encode_index(
    blocks: Sequence[BlockPlan], ledger_metadata: bytes, data_object_length: int
) -> bytes:
    """The index object of `blocks` with the ledger's metadata as BookKeeper protobuf bytes.

    Raises:
        IntegrityError: the blocks do not follow each other from entry 0 and byte 0 to the end of a
            data object of that length.
    """
    part_number, entry_id, offset = 1, 0, 0
    for block in blocks:
        expected = (part_number, entry_id, offset)
        found = (block.part_number, block.first_entry_id, block.offset)
        if found != expected:
            raise IntegrityError(
                f"block (part, first entry, offset): expected {expected}, found {found}"
            )
        part_number += 1
        entry_id = block.last_entry_id + 1
        offset += block.block_length
    if not blocks or offset != data_object_length:
        raise IntegrityError(
            f"{len(blocks)} blocks hold {offset} bytes, the data object {data_object_length}"
        )
    index_length = INDEX_HEADER_BYTES + len(ledger_metadata) + INDEX_ENTRY_BYTES * len(blocks)
    header = _INDEX_HEADER.pack(
        INDEX_MAGIC,
        index_length,
        data_object_length,
        HEADER_BYTES,
        len(blocks),
        len(ledger_metadata),
    )
    entries = [_INDEX_ENTRY.pack(b.first_entry_id, b.part_number, b.offset) for b in blocks]
    return b"".join([header, ledger_metadata, *entries])
