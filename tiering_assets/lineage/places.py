"""Where frames of a block stand, so that an entry is read without those before it.

Owns: frames between two neighbouring places have no more than a step of bytes, or are a single one.
So whatever sizes entries have, one is found among a step of bytes or in its own. What is read from
a file is a hint: who reads by it judges each frame, and that the last one ends at the next place.

    file   0 magic, 8 bytes    8 name of the block, 32 bytes
           40 places: entry uint32, byte uint32, both counted from where the block begins
           then SHA-256 of all that lies before it; integers are big-endian
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise
from struct import Struct
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tiering_assets.lineage.placed_block import PlacedBlock
from tiering_assets.offload_format.block import BLOCK_BYTES_LIMIT, FRAME_BYTES, HEADER_BYTES
from tiering_assets.resources.errors import FormatError

STEP: Final = 256 * 1024
_STEPS: Final = 1024  # of a larger block, so that its file stays small
_MAGIC: Final = b"tkplace1"
_HEAD: Final = Struct(">8s32s")
_PLACE: Final = Struct(">II")
_DIGEST_BYTES: Final = 32


class FramePlace(NamedTuple):
    """The frame of an entry and its first byte, both counted from where the block begins."""

    entry: int
    byte: int


BEGINNING: Final = FramePlace(0, HEADER_BYTES)


class Stretch(NamedTuple):
    """Frames from a place up to another one."""

    first: FramePlace
    end: FramePlace


@dataclass(frozen=True, slots=True)
class Places:
    """In their order, from the block's first frame on. The last is where what is known ends."""

    places: tuple[FramePlace, ...]

    @property
    def end(self) -> FramePlace:
        return self.places[-1]

    def of_entry(self, entry: int) -> Stretch | None:
        """Frames of which one is that entry's; None where that is not known."""
        return self._stretch(bisect_right(self.places, entry, key=lambda one: one.entry))

    def of_byte(self, byte: int) -> Stretch | None:
        """Frames of which one has that byte of the block; None where that is not known."""
        return self._stretch(bisect_right(self.places, byte, key=lambda one: one.byte))

    def _stretch(self, behind: int) -> Stretch | None:
        if 0 < behind < len(self.places):
            return Stretch(self.places[behind - 1], self.places[behind])
        return None


class NotedPlaces:
    """Places that are noted while frames go by, one after the other."""

    def __init__(self, block_length: int, known: Places | None = None) -> None:
        """From the first frame on, or from where what is known ends."""
        self._step = _step(block_length)
        self._places = [BEGINNING] if known is None else [*known.places[:-1]]
        self._entry, self._byte = BEGINNING if known is None else known.end
        self._from = self._places[-1].byte

    def note(self, end: int) -> None:
        """The next frame, which ends before that byte of the block."""
        if end - self._from > self._step and self._byte > self._from:
            self._places.append(FramePlace(self._entry, self._byte))
            self._from = self._byte
        self._entry += 1
        self._byte = end

    def places(self) -> Places | None:
        """None where no frame went by."""
        end = FramePlace(self._entry, self._byte)
        return None if end == BEGINNING else Places((*self._places, end))


def places_of_frames(ends: NDArray[np.int64], block_length: int) -> Places:
    """Those that `NotedPlaces` has of a whole block, by where its frames end, in their order."""
    step, places = _step(block_length), [BEGINNING]
    while True:
        entry, byte = places[-1]
        first_beyond = max(int(ends.searchsorted(byte + step, side="right")), entry + 1)
        if first_beyond >= len(ends):
            return Places((*places, FramePlace(len(ends), int(ends[-1]))))
        places.append(FramePlace(first_beyond, int(ends[first_beyond - 1])))


def _step(block_length: int) -> int:
    return max(STEP, block_length // _STEPS)


def block_name(block: PlacedBlock) -> str:
    """SHA-256, in hex, of all that says which bytes are meant: no other block has the name."""
    said = [
        block.sha256,
        block.bucket,
        block.data_key,
        block.version_id,
        block.offset,
        block.length,
        block.first_entry_id,
        block.last_entry_id,
    ]
    return sha256(_MAGIC + json.dumps(said).encode()).hexdigest()


def may_have_places(block: PlacedBlock) -> bool:
    """Whether their numbers fit."""
    return block.length <= BLOCK_BYTES_LIMIT


def encode_places(places: Places, block: PlacedBlock) -> bytes:
    head = _HEAD.pack(_MAGIC, bytes.fromhex(block_name(block)))
    body = head + b"".join(_PLACE.pack(*one) for one in places.places)
    return body + sha256(body).digest()


def decode_places(data: bytes, block: PlacedBlock) -> Places:
    """FormatError for whatever is not exactly what was encoded for that block."""
    body, digest = data[:-_DIGEST_BYTES], data[-_DIGEST_BYTES:]
    if len(body) < _HEAD.size or sha256(body).digest() != digest:
        raise FormatError("places: not what was written")
    magic, name = _HEAD.unpack_from(body)
    if magic != _MAGIC or name.hex() != block_name(block):
        raise FormatError("places: of another block")
    if (len(body) - _HEAD.size) % _PLACE.size:
        raise FormatError(f"places: {len(body)} bytes are no whole number of them")
    places = tuple(map(FramePlace._make, _PLACE.iter_unpack(body[_HEAD.size :])))
    _require_order(places, block)
    return Places(places)


def _require_order(places: Sequence[FramePlace], block: PlacedBlock) -> None:
    """From the first frame on, with room for each frame between two of them and behind the last."""
    rest = FramePlace(block.entries, block.length)
    if len(places) < 2 or places[0] != BEGINNING or places[-1].entry > rest.entry:
        raise FormatError("places: not those of a block")
    for one, other in pairwise((*places, rest)):
        frames = other.entry - one.entry
        if (frames < 1 and other is not rest) or other.byte - one.byte < frames * FRAME_BYTES:
            raise FormatError(f"places: {other} cannot be behind {one}")
