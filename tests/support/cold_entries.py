"""Entries with batches, codecs, keys and properties, sound and damaged; and blocks of them."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Sequence
from struct import pack

import cramjam
import lz4.block
import numpy as np
import zstandard

from tests.support.pulsar_entries import (
    CHUNK_ID,
    CHUNKS,
    EVENT_TIME,
    MARKER_TYPE,
    MESSAGES_IN_BATCH,
    PROPERTIES,
    UNCOMPRESSED_SIZE,
    UUID,
    Field,
    any_entry,
    encoded,
    message,
)
from tiering_assets.cold.decode import Entries
from tiering_assets.resources.native.core import Core
from tiering_assets.resources.native.loader import this_loop

LIBRARY = this_loop().core
LOOPS = {"library": LIBRARY, "python": None}
"""The ways that messages are read."""

TIME = 1_795_247_080_670
_COMPRESSION, _TEXTS = 8, (b"", b"k", b"name", "n\u00e4".encode(), b"\xff\xfe", b"v" * 200)
_COMMON: tuple[tuple[int, tuple[int | bytes, ...]], ...] = (
    (5, (b"us-east",)),  # replicated from
    (6, (b"", b"key", b"\xff")),
    (EVENT_TIME, (0, 1, TIME, 2**63 - 1, 2**64 - 1)),
    (13, (b"\x0a\x01k",)),  # an encryption key
    (16, (b"\0" * 7 + b"\1", b"")),
    (17, (0, 1)),  # whether the key is base64
    (18, (b"", b"order")),
    (22, (0, 7, 2**64 - 1)),  # a transaction
    (23, (0, 1)),
    (25, (0, 1)),  # a null value
    (MARKER_TYPE, (0, 21)),
    (CHUNKS, (1, 2)),
    (CHUNK_ID, (0, 1)),
    (UUID, (b"p-1",)),
)
_OF_SINGLE: tuple[tuple[int, tuple[int | bytes, ...]], ...] = (
    (2, (b"", b"key", b"\xff")),
    (4, (0, 1)),
    (5, (0, TIME, 2**64 - 1)),
    (6, (0, 1)),
    (7, (b"", b"order")),
    (8, (0, 9, 2**64 - 1)),
    (9, (0, 1)),
    (31, (b"later",)),
)


def java_zlib(data: bytes) -> bytes:
    """Flushed and never finished."""
    squeeze = zlib.compressobj()
    return squeeze.compress(data) + squeeze.flush(zlib.Z_SYNC_FLUSH)


CODECS: dict[str, tuple[int, Callable[[bytes], bytes]]] = {
    "NONE": (0, bytes),
    "LZ4": (1, lambda data: lz4.block.compress(data, store_size=False)),
    "ZLIB": (2, java_zlib),
    "ZSTD": (3, zstandard.ZstdCompressor().compress),
    "SNAPPY": (4, lambda data: bytes(cramjam.snappy.compress_raw(data))),
}


def single(payload: bytes, *more: Field) -> bytes:
    """One message of a batch, as it lies in the payload."""
    head = encoded([*more, (3, len(payload))])
    return pack(">I", len(head)) + head + payload


def any_messages(source: random.Random) -> bytes:
    """An entry of one message or of a batch; of three one has a fault."""
    fields = _some(source, _COMMON, 0.1)
    if source.random() < 0.5:
        fields += _properties(source, PROPERTIES)
    body, faulty = source.randbytes(source.choice((0, 1, 100))), source.random() < 0.3
    if source.random() < 0.7:
        count = source.choice((1, 2, 3, 17))
        body = b"".join(_any_single(source) for _ in range(count))
        claimed = source.choice((0, -1, count + 1, 2**30)) if faulty else count
        fields.append((MESSAGES_IN_BATCH, claimed))
    code, squeeze = source.choice([*CODECS.values()])
    stored, size = squeeze(body), len(body)
    if faulty:
        match source.randrange(4):
            case 0:
                size += source.choice((-1, 1, 2**32))
            case 1:
                stored = stored[: source.randrange(len(stored) + 1)]
            case 2 if stored:
                at = source.randrange(len(stored))
                stored = stored[:at] + bytes([stored[at] ^ 1]) + stored[at + 1 :]
            case _:
                code = 9
    if code or source.random() < 0.5:
        fields += [(_COMPRESSION, code), (UNCOMPRESSED_SIZE, size)]
    if source.random() < 0.2:
        source.shuffle(fields)
    broker = source.choice((None, None, b"", b"\x08\x01\x10\x05", b"\x10\x07"))
    made = message(TIME, *fields, payload=stored, checksum=source.random() < 0.8, broker=broker)
    return any_entry(source, stored) if source.random() < 0.1 else made


def _any_single(source: random.Random) -> bytes:
    fields = _some(source, _OF_SINGLE, 0.15)
    if source.random() < 0.4:
        fields = _properties(source, 1) + fields
    made = single(source.randbytes(source.choice((0, 1, 50))), *fields)
    if source.random() < 0.01:
        at = source.randrange(len(made))
        made = made[:at] + bytes([made[at] ^ 1 << source.randrange(8)]) + made[at + 1 :]
    return made


def _some(
    source: random.Random, kinds: Sequence[tuple[int, Sequence[int | bytes]]], share: float
) -> list[Field]:
    return [(n, source.choice(values)) for n, values in kinds if source.random() < share]


def _properties(source: random.Random, number: int) -> list[Field]:
    found: list[Field] = []
    for _ in range(source.choice((1, 2, 3))):
        pair: list[Field] = [(1, source.choice(_TEXTS)), (2, source.choice(_TEXTS))]
        if source.random() < 0.1:
            del pair[source.randrange(2)]
        if source.random() < 0.05:
            pair.append((5, 1))
        found.append((number, encoded(pair)))
    return found


def entries_of(
    made: Sequence[bytes], *, ledger_id: int = 7, first: int = 0, core: Core | None = LIBRARY
) -> Entries:
    """As they lie in a block, with something between them; read by the library, or without it."""
    pieces, starts, at = [], [], 0
    for one in made:
        pieces += [b"\xee" * 12, one]
        starts.append(at + 12)
        at += 12 + len(one)
    begins = np.array(starts, np.int64)
    return Entries(
        ledger_id=ledger_id,
        data=np.frombuffer(b"".join(pieces) or b"\0", np.uint8),
        ids=np.arange(first, first + len(made)),
        starts=begins,
        ends=begins + np.array([len(one) for one in made], np.int64),
        core=core,
    )
