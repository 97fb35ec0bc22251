"""Heads of many entries of Pulsar side by side: broker metadata, checksum, message metadata.

Owns: where metadata and payload of each entry lie. What is unusual is odd, and left to the plain
decoder (offload_format/message_decoder.py).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

import numpy as np
from google_crc32c import value as crc32c

from tiering_assets.cold.lockstep import Array, Fields, Numbers, big_endian
from tiering_assets.offload_format.wire_fields import bytes_key, varint_key
from tiering_assets.resources.native.core import Core

_BROKER_ENTRY_METADATA: Final = 0x0E02
_CHECKSUM: Final = 0x0E01
_TAG_BYTES: Final = 2
_LENGTH_BYTES: Final = 4
SEQUENCE, PUBLISHED, PRODUCER = varint_key(2), varint_key(3), bytes_key(1)
CODEC, SIZE, BATCH, CHUNKS = varint_key(8), varint_key(9), varint_key(11), varint_key(27)
ENCRYPTION, PROPERTIES = bytes_key(13), bytes_key(4)
BROKER_TIME, BROKER_INDEX = varint_key(1), varint_key(2)
_ALWAYS: Final = (SEQUENCE, PUBLISHED, CODEC, SIZE, BATCH, CHUNKS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Heads:
    """Of each entry: fields of its metadata, of its broker, and where its payload begins."""

    fields: Fields
    broker: Fields
    payloads: Array
    checksums: Array  # where that of an entry lies, -1 where it has none

    @property
    def odd(self) -> Array:
        return self.fields.odd

    def number(self, key: int) -> Numbers:
        return self.fields.numbers[key]

    @property
    def encrypted(self) -> Array:
        return self.fields.slices[ENCRYPTION].present

    @property
    def chunked(self) -> Array:
        """Entries that are a piece of a message."""
        chunks = self.number(CHUNKS)
        return chunks.present & (signed32(chunks.values) > 1)

    @property
    def is_open(self) -> Array:
        """Entries whose payload is whole, and not encrypted."""
        return ~self.encrypted & ~self.chunked

    @property
    def in_batch(self) -> Array:
        """Entries whose payload holds messages, each with a head of its own."""
        return self.number(BATCH).present & self.is_open


def read_heads(
    data: Array,
    starts: Array,
    ends: Array,
    *,
    numbers: Collection[int] = (),
    slices: Collection[int] = (),
    properties: bool = False,
    broker: bool = False,
    core: Core | None = None,
) -> Heads:
    """Heads of the entries at these places, with the fields that are wanted beside those that every
    entry has.
    """
    count = len(starts)
    fields = Fields(
        count,
        numbers={*_ALWAYS, *numbers},
        slices={PRODUCER, ENCRYPTION, *slices},
        repeated=PROPERTIES if properties else None,
        core=core,
    )
    of_broker = Fields(count, numbers=(BROKER_TIME, BROKER_INDEX) if broker else (), core=core)
    rows, at = np.arange(count), starts.copy()

    there = _tagged(data, at, ends, _BROKER_ENTRY_METADATA)
    first, end, sound = _sized(data, at[there] + _TAG_BYTES, ends[there])
    fields.odd[rows[there][~sound]] = True
    of_broker.walk(data, rows[there][sound], first[sound], end[sound])
    at[there] = end
    fields.odd |= of_broker.odd

    there = ~fields.odd & _tagged(data, at, ends, _CHECKSUM)
    checksums = np.where(there, at + _TAG_BYTES, -1)
    at[there] += _TAG_BYTES + _LENGTH_BYTES

    first, end, sound = _sized(data, at, ends)
    fields.odd[~sound] = True
    usual = ~fields.odd
    fields.walk(data, rows[usual], first[usual], end[usual])
    for known in (fields.numbers[SEQUENCE], fields.numbers[PUBLISHED], fields.slices[PRODUCER]):
        fields.odd |= ~known.present
    return Heads(
        fields=fields,
        broker=of_broker,
        payloads=end,
        checksums=checksums,
    )


def misfits(data: Array, ends: Array, heads: Heads) -> Array:
    """Entries whose CRC32C does not fit their bytes."""
    found, view = np.zeros(len(ends), bool), memoryview(data)
    claimed = big_endian(data, np.maximum(heads.checksums, 0) + _TAG_BYTES, _LENGTH_BYTES)
    for n in np.flatnonzero(heads.checksums >= 0).tolist():
        begins = int(heads.checksums[n]) + _TAG_BYTES + _LENGTH_BYTES
        found[n] = crc32c(bytes(view[begins : ends[n]])) != claimed[n]
    return found


def signed32(values: Array) -> Array:
    return values.astype(np.int32)  # drops what is above


def _tagged(data: Array, at: Array, ends: Array, tag: int) -> Array:
    return (ends - at >= _TAG_BYTES) & (big_endian(data, at, _TAG_BYTES) == tag)


def _sized(data: Array, at: Array, ends: Array) -> tuple[Array, Array, Array]:
    """Where begins and ends what a length stands before, and whether all of it is there."""
    first = at + _LENGTH_BYTES
    end = first + big_endian(data, at, _LENGTH_BYTES)
    sound = end <= ends
    return first, np.where(sound, end, ends), sound
