"""Block boundaries of a data object, planned before any byte of it is written.

Owns: the plan's bytes are those of Pulsar's sequential writer (BlockAwareSegmentInputStreamImpl):

    block length = min(max, 12 * entries left + payload bytes left + 128)

A block ends where the next whole frame does not fit. One rule differs, on purpose: a block whose
first frame does not fit grows to hold exactly that entry, where a broker uploads an empty block,
stops and reports success. Readers use the index's offsets alone, so they do not care.

A stored entry carries the payload bytes of the ledger up to and including it, so boundaries are
searched with O(log n) such point reads a block instead of reading every entry.

The length in a ledger's metadata may be more than its entries hold: recovery takes it from the
highest entry that any bookie has, and closes before one that was never acknowledged. Writers
compute the last block with that length, as Pulsar's does; the difference is padding.

Refused, before anything is sent: a ledger without entries, lengths that contradict each other, and
more blocks than an object may have parts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tiering_assets.offload_format.block import (
    BLOCK_BYTES_LIMIT,
    ENTRY_BYTES_MAX,
    FRAME_BYTES,
    HEADER_BYTES,
    PARTS_MAX,
    encode_block_header,
)
from tiering_assets.resources.errors import IntegrityError, RefusedError

INDEX_BYTES_MAX = 1024 * 1024
"""More than any index object has: 1 MiB describes 50,000 blocks, and an object has 10,000 at most.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockPlan:
    """One block. Lengths and offset are bytes; `payload_bytes` counts payloads alone."""

    part_number: int
    first_entry_id: int
    last_entry_id: int
    offset: int
    block_length: int
    payload_bytes: int

    def __post_init__(self) -> None:
        if (
            self.part_number < 1
            or not 0 <= self.first_entry_id <= self.last_entry_id
            or self.offset < 0
            or self.payload_bytes < 0
            or self.padding_bytes < 0
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
        return encode_block_header(
            block_length=self.block_length, first_entry_id=self.first_entry_id
        )


def plan_layout(
    *,
    last_entry_id: int,
    ledger_length: int,
    block_bytes_max: int,
    cumulative_length: Callable[[int], int],
) -> tuple[BlockPlan, ...]:
    """Plan the blocks of entries 0 to `last_entry_id`.

    `ledger_length` is the metadata's, at least what the entries hold. `cumulative_length(e)` is the
    payload bytes of entries 0 to e, as entry e's own header has them.
    It is asked O(log n) times a block, and never twice for the same entry in a block's search.

    Raises:
        IntegrityError: no entries, or the lengths contradict the ledger metadata or each other.
        RefusedError: more than 10,000 blocks; names the block size that does.
        ValueError: a block size that no block can have.
    """
    if not HEADER_BYTES + FRAME_BYTES < block_bytes_max <= BLOCK_BYTES_LIMIT:
        raise ValueError(f"impossible block size {block_bytes_max}")
    if last_entry_id < 0:
        raise IntegrityError(f"no entries to lay out: last entry id is {last_entry_id}")
    summed = cumulative_length(last_entry_id)
    if summed > ledger_length:
        raise IntegrityError(
            f"ledger length: metadata says {ledger_length} payload bytes, last entry"
            f" {last_entry_id} says {summed}"
        )
    known = KnownLengths((-1, 0), (last_entry_id, summed), cumulative_length)
    blocks: list[BlockPlan] = []
    first, offset = 0, 0
    while first <= last_entry_id:
        if len(blocks) == PARTS_MAX:
            needed = block_bytes_for(ledger_length, last_entry_id + 1, block_bytes_max)
            raise RefusedError(
                f"more than {PARTS_MAX} parts with blocks of {block_bytes_max} bytes;"
                f" a block size of {needed} bytes does"
            )
        done = known.first_value
        last, payload_bytes = known.advance(block_bytes_max - HEADER_BYTES)
        if payload_bytes - done > ENTRY_BYTES_MAX:
            raise IntegrityError(
                f"entries {first} to {last} would hold {payload_bytes - done} payload bytes"
            )
        needed = (last_entry_id - first + 1) * FRAME_BYTES + (ledger_length - done) + HEADER_BYTES
        own = (last - first + 1) * FRAME_BYTES + (payload_bytes - done) + HEADER_BYTES
        block = BlockPlan(
            part_number=len(blocks) + 1,
            first_entry_id=first,
            last_entry_id=last,
            offset=offset,
            block_length=max(own, min(block_bytes_max, needed)),  # `own` wins when it had to grow
            payload_bytes=payload_bytes - done,
        )
        blocks.append(block)
        first, offset = last + 1, offset + block.block_length
    return tuple(blocks)


def block_bytes_for(ledger_length: int, entries: int, block_bytes_max: int) -> int:
    """The block size to plan with: `block_bytes_max`, raised if that could need too many parts.

    Holds for any entry sizes: two neighbouring blocks always hold more frame bytes together than
    one block has room for, or the second's first frame would have fitted the first.

    Raises:
        RefusedError: no block size can do it.
    """
    frames = ledger_length + FRAME_BYTES * entries
    room = -(-frames // (PARTS_MAX // 2))
    needed = max(block_bytes_max, HEADER_BYTES + room)
    if needed > BLOCK_BYTES_LIMIT:
        raise RefusedError(
            f"{frames} bytes of entries need blocks of {needed} bytes to stay within {PARTS_MAX}"
            f" parts; a block has at most {BLOCK_BYTES_LIMIT}"
        )
    return needed


class KnownLengths:
    """Cumulative lengths asked for so far, from the entry before the next block up to the last.

    Each new one is checked against its two known neighbours, so a source whose lengths go
    backwards is caught at the first probe that shows it.
    """

    def __init__(
        self, before: tuple[int, int], last: tuple[int, int], probe: Callable[[int], int]
    ) -> None:
        """Take the entry before all blocks and the last one, each with the payload bytes up to it.

        Raises:
            IntegrityError: the last one has fewer.
        """
        self._probe = probe
        self._ids = [before[0], last[0]]
        self._values = [before[1], last[1]]
        if last[1] < before[1]:
            raise IntegrityError(
                f"payload bytes up to entry {last[0]}: {last[1]}, but up to entry {before[0]}: "
                f"{before[1]}"
            )

    @property
    def first_value(self) -> int:
        """Payload bytes before the next block."""
        return self._values[0]

    def advance(self, room: int) -> tuple[int, int]:
        """Entry that ends the next block of `room` frame bytes, and the payload bytes up to it."""
        ids, values = self._ids, self._values
        limit = room + values[0] + FRAME_BYTES * ids[0]  # entry e fits: value + 12 * e <= limit
        over = next(
            (i for i in range(1, len(ids)) if values[i] + FRAME_BYTES * ids[i] > limit), len(ids)
        )
        if over == len(ids):
            last = over - 1
        else:
            turn, guess = 0, 0
            while ids[over] - ids[over - 1] > 1:
                low, high = ids[over - 1], ids[over]
                if turn == 1:  # even sizes were guessed right, and the neighbour shows it
                    guess = low + 1 if guess == low else high - 1
                elif turn % 2:  # every second step halves, so odd sizes cost no more than 2x
                    guess = (low + high) // 2
                else:
                    guess = self._guess(over, limit)
                turn += 1
                if self._ask(guess, over) + FRAME_BYTES * guess <= limit:
                    over += 1
            last = max(over - 1, 1)  # not even one entry fits: the block grows to hold it alone
        del ids[:last], values[:last]
        return ids[0], values[0]

    def _guess(self, over: int, limit: int) -> int:
        """Where the limit lies if sizes are even between the two known neighbours of `over`."""
        low, high = self._ids[over - 1], self._ids[over]
        used = self._values[over - 1] + FRAME_BYTES * low
        span = self._values[over] + FRAME_BYTES * high - used
        return min(max(low + (limit - used) * (high - low) // span, low + 1), high - 1)

    def _ask(self, entry_id: int, at: int) -> int:
        value = self._probe(entry_id)
        for neighbour in (at - 1, at):
            other, known = self._ids[neighbour], self._values[neighbour]
            if (value < known) if other < entry_id else (value > known):
                raise IntegrityError(
                    f"payload bytes up to entry {entry_id}: {value}, but up to entry {other}: {known}"
                )
        self._ids.insert(at, entry_id)
        self._values.insert(at, value)
        return value
