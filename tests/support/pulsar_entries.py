"""Entries as producers and brokers write them, sound and damaged, made without any code of ours.

Owns: the numbers of MessageMetadata's fields as PulsarApi.proto has them.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from struct import pack

PRODUCER_NAME, SEQUENCE_ID, PUBLISH_TIME, PROPERTIES = 1, 2, 3, 4
UNCOMPRESSED_SIZE, MESSAGES_IN_BATCH, EVENT_TIME, MARKER_TYPE = 9, 11, 12, 20
COMPRESSION, ENCRYPTION_KEYS = 8, 13
UUID, CHUNKS, CHUNKED_BYTES, CHUNK_ID = 26, 27, 28, 29

Field = tuple[int, int | bytes]
_TIMES = (0, 1, 127, 128, 1_795_247_080_670, 1_795_247_080_671, 2**63 - 1)
_SOMETIMES: tuple[tuple[int, tuple[int | bytes, ...]], ...] = (
    (PROPERTIES, (b"", b"\x0a\x01k\x12\x01v")),
    (UNCOMPRESSED_SIZE, (100,)),
    (MESSAGES_IN_BATCH, (0, 1, 2, 127, 128, 1000, 2**31 - 1, 2**32, 2**32 + 3)),
    (EVENT_TIME, (0, 2**63 - 1)),
    (MARKER_TYPE, (0, 21, 99, -1)),
    (UUID, (b"p-1-7",)),
    (CHUNKS, (0, 1, 2, 3, -1, 2**31)),
    (CHUNK_ID, (0, 1, 2, -1)),
)
_ABSURD = (
    (PUBLISH_TIME, (2**63, 2**64 - 1)),
    (MESSAGES_IN_BATCH, (2**31, 2**32 - 1, 2**64 - 1)),
)


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def encoded(fields: Iterable[Field]) -> bytes:
    """Fields in their order: varints, and strings of bytes."""
    out = bytearray()
    for number, value in fields:
        if isinstance(value, int):
            out += varint(number << 3) + varint(value % 2**64)
        else:
            out += varint(number << 3 | 2) + varint(len(value)) + value
    return bytes(out)


def entry(
    metadata: bytes, payload: bytes = b"", *, checksum: bool = True, broker: bytes | None = None
) -> bytes:
    """An entry. `broker` is the BrokerEntryMetadata before it; the checksum is none that fits."""
    head = b"" if broker is None else b"\x0e\x02" + pack(">I", len(broker)) + broker
    head += b"\x0e\x01\xde\xad\xbe\xef" if checksum else b""
    return head + pack(">I", len(metadata)) + metadata + payload


def message(
    published: int,
    *more: Field,
    payload: bytes = b"x",
    checksum: bool = True,
    broker: bytes | None = None,
) -> bytes:
    """One entry of a producer, with further fields of its metadata."""
    metadata = encoded(
        [(PRODUCER_NAME, b"p-1"), (SEQUENCE_ID, 7), (PUBLISH_TIME, published), *more]
    )
    return entry(metadata, payload, checksum=checksum, broker=broker)


def any_entry(source: random.Random, payload: bytes) -> bytes:
    """A message of any sort that occurs; or one with one trouble; or nothing of Pulsar's."""
    trouble = source.randrange(9) if source.random() < 0.4 else None
    if trouble == 0:
        return payload
    fields = _fields(source)
    if trouble == 1:
        number, values = source.choice(_ABSURD)
        fields.append((number, source.choice(values)))
    elif trouble == 2:
        del fields[source.randrange(3)]  # one that every message has
    if source.random() < 0.2:
        source.shuffle(fields)
    metadata = bytearray(encoded(fields))
    if trouble == 3:
        metadata[source.randrange(len(metadata))] ^= 1 << source.randrange(8)
    elif trouble == 4:
        del metadata[source.randrange(len(metadata)) :]
    elif trouble in (5, 6):
        metadata += source.choice(_WILD)
    broker = source.choice((None, None, b"", b"\x08\x01\x10\x02"))
    made = bytearray(entry(bytes(metadata), payload, checksum=source.random() < 0.8, broker=broker))
    if trouble == 7:
        made[source.randrange(min(len(made), 30))] ^= 1 << source.randrange(8)
    elif trouble == 8:
        del made[source.randrange(len(made)) :]
    return bytes(made)


def _fields(source: random.Random) -> list[Field]:
    fields: list[Field] = [
        (PRODUCER_NAME, source.randbytes(source.choice((0, 1, 9, 130)))),
        (SEQUENCE_ID, source.choice((0, 5, 300, 2**64 - 1))),
        (PUBLISH_TIME, source.choice(_TIMES)),
    ]
    later = source.choice((31, 33, 2000, 2**29 - 1))
    for number, values in (*_SOMETIMES, (later, (1, b"later"))):
        if source.random() < 0.2:
            fields.append((number, source.choice(values)))
    if source.random() < 0.1:
        fields.append(source.choice(fields))  # of two the last counts
    return fields


_WILD = (
    b"\x09" + bytes(8),  # 64 bits
    b"\x0d" + bytes(4),  # 32 bits
    b"\x09" + bytes(7),  # too few of them
    b"\x0d" + bytes(3),
    b"\x0b",  # a group begins
    b"\x0c",  # and ends
    b"\x0e",  # wire types that there are not
    b"\x0f",
    b"\x00\x01",  # field 0
    b"\x80\x00\x01",  # the same, spelled longer
    b"\x98\x00\x05",  # a publish time, its key spelled longer
    b"\x18" + b"\x80" * 9 + b"\x7f",  # bits above the 64th
    b"\x18" + b"\xff" * 9 + b"\x01",
    b"\x18" + b"\x80" * 10 + b"\x00",  # eleven bytes
    b"\x18" + b"\x80" * 12,
    b"\xff\xff\xff\xff\x1f\x01",  # the highest of keys, of no wire type
    b"\xf8\xff\xff\xff\x0f\x01",  # the highest of keys
    b"\xf8\xff\xff\xff\x1f\x01",  # higher still
    b"\x22\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",  # a length beyond all bounds
    b"\x22\xff\xff\xff\xff\x0f",
    b"\x22\x01",  # a length by one too far
    b"\x22",
    b"\x80",
    b"\x1d" + bytes(4),  # a known field of another wire type
    b"\xa2\x01\x01\x01",  # a marker's, which is none
    b"\x5a\x01\x05",
)
