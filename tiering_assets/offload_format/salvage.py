"""What can still be read of a damaged block, entry by entry. Proves nothing; tells what is lost.

A broker finds a block by the index and then goes from frame to frame without looking at the block's
header, so that is what is done here: an entry that no chain of frames leads to is lost. A payload
is judged by Pulsar's own checksum where it carries one (magic 0x0e01, CRC32C over all that follows;
broker entry metadata, magic 0x0e02, may come before it).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from struct import Struct
from typing import Final

from google_crc32c import value

from tiering_assets.offload_format.block import FRAME_BYTES, HEADER_BYTES

_FRAME: Final = Struct(">iq")
_CHECKSUM: Final = Struct(">HI")  # magic, CRC32C
_BROKER_METADATA: Final = Struct(">HI")  # magic, length of what follows it
_MAGIC_CHECKSUM: Final = 0x0E01
_MAGIC_BROKER_METADATA: Final = 0x0E02


@dataclass(frozen=True, slots=True)
class BlockSight:
    """Entry ids by what the block still gives: checksum right, checksum wrong, none to judge by.

    Entries of the block in none of the three cannot be reached any more.
    """

    sound: tuple[int, ...]
    wrong: tuple[int, ...]
    unjudged: tuple[int, ...]

    def missing(self, first_entry_id: int, last_entry_id: int) -> list[int]:
        there = {*self.sound, *self.wrong, *self.unjudged}
        return [i for i in range(first_entry_id, last_entry_id + 1) if i not in there]


def look_into_block(
    block: bytes | memoryview, *, first_entry_id: int, last_entry_id: int
) -> BlockSight:
    """Follow the frames from the block's first entry as far as they go. Never raises."""
    view = memoryview(block)
    by_verdict: dict[bool | None, list[int]] = {True: [], False: [], None: []}
    at, entry_id = HEADER_BYTES, first_entry_id
    while entry_id <= last_entry_id and at + FRAME_BYTES <= len(view):
        length, found_id = _FRAME.unpack_from(view, at)
        end = at + FRAME_BYTES + length
        if found_id != entry_id or length < 0 or end > len(view):
            break
        by_verdict[payload_checksum_holds(view[at + FRAME_BYTES : end])].append(entry_id)
        at, entry_id = end, entry_id + 1
    return BlockSight(tuple(by_verdict[True]), tuple(by_verdict[False]), tuple(by_verdict[None]))


def payload_checksum_holds(payload: bytes | memoryview) -> bool | None:
    """Whether a Pulsar message equals its own checksum; None where it carries none."""
    view = memoryview(payload)
    if len(view) >= _BROKER_METADATA.size:
        magic, length = _BROKER_METADATA.unpack_from(view)
        if magic == _MAGIC_BROKER_METADATA and length <= len(view) - _BROKER_METADATA.size:
            view = view[_BROKER_METADATA.size + length :]
    if len(view) < _CHECKSUM.size:
        return None
    magic, expected = _CHECKSUM.unpack_from(view)
    if magic != _MAGIC_CHECKSUM:
        return None
    return bool(value(bytes(view[_CHECKSUM.size :])) == expected)


def ranges_of(entry_ids: Iterable[int]) -> list[tuple[int, int]]:
    """Runs of consecutive ids as (first, last), ascending."""
    runs: list[tuple[int, int]] = []
    for entry_id in sorted(set(entry_ids)):
        if runs and runs[-1][1] == entry_id - 1:
            runs[-1] = (runs[-1][0], entry_id)
        else:
            runs.append((entry_id, entry_id))
    return runs
