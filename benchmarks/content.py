"""What is offloaded: kinds of ledgers, their seeded messages, and the hash that must come back.

Owns: message number n of a kind is the same bytes in every topic, round and run, and the hash of a
topic depends on every byte, length and the order of its messages. How a Pulsar entry holds
messages: PIP-90 (broker entry metadata), Commands.java (checksum, metadata, payload) and, for
batches, SingleMessageMetadata. Compressed or encrypted payloads are not made here and not
understood.
"""

from __future__ import annotations

import os
import random
import struct
from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from struct import Struct

import numpy as np
from numpy.typing import NDArray

from tiering_assets.resources.errors import BrokerError, FormatError

KIB = 1024
BATCH_MESSAGES = 500
_BLOB_BYTES = 8 * KIB * KIB
_STEP = 104_729  # prime: neighbouring messages start far apart in the blob
_CHECKSUM_MAGIC = 0x0E01
_BROKER_METADATA_MAGIC = 0x0E02
_U16, _U32, _HEAD = Struct(">H"), Struct(">I"), Struct(">HII")
_NOT_CRC = np.array([0, 1, 6, 7, 8, 9])  # bytes of a head: magic, and the metadata's length
_PAYLOAD_SIZE = 3  # field of SingleMessageMetadata
_SIZE_KEY = _PAYLOAD_SIZE << 3
_MANY_BYTES = 0x80
_HEAD_BYTES = 6  # of a message in a batch: its metadata's length, and the size where that is first


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What a cell is made of: one size of entries in some ledgers of some topics.

    `messages` is how many a full-size run sends to a topic, `least` how many make its ledgers as
    large as its figures need: 50 MB at least, and more where that takes less than a second, so that
    what a ledger costs once is not most of it. Messages of kinds of the same `made_as` are the
    same.
    """

    name: str
    message_bytes: int
    messages: int
    least: int = 0
    batched: bool = False
    topics: int = 1
    ledgers: int = 1  # of a topic
    made_as: str = ""

    def scaled(self, share: float, *, least: bool = False) -> int:
        """Messages of a smaller run: whole batches, and enough for an entry or two a ledger.

        With `least` there are never fewer than those.
        """
        unit = BATCH_MESSAGES if self.batched else self.ledgers
        wanted = max(self.messages * share, self.least if least else 0)
        return max(4 * unit, int(wanted) // unit * unit)


KINDS = (
    Kind(name="100 B", message_bytes=100, messages=400_000, least=380_000),
    Kind(name="1 KiB", message_bytes=KIB, messages=100_000, least=96_000),
    Kind(name="10 KiB", message_bytes=10 * KIB, messages=20_000, least=19_600),
    Kind(name="100 KiB", message_bytes=100 * KIB, messages=2_000, least=1_960),
    Kind(name="100 B batched", message_bytes=100, messages=800_000, least=800_000, batched=True),
)
LEDGERS = Kind(
    name="10 KiB, 20 ledgers",
    message_bytes=10 * KIB,
    messages=20 * 4_900,
    least=20 * 4_900,
    ledgers=20,
    made_as="10 KiB",
)
TOPICS = Kind(
    name="10 KiB, 20 topics", message_bytes=10 * KIB, messages=500, topics=20, made_as="10 KiB"
)


@dataclass(frozen=True, slots=True)
class Content:
    """What a reader found, or a producer sent."""

    messages: int
    sha256: str


class ContentHash:
    """Feed it messages in order."""

    __slots__ = ("_lengths", "_sha256", "add_length", "update")

    def __init__(self) -> None:
        self._sha256 = sha256()
        self._lengths = array("I")
        self.update = self._sha256.update
        self.add_length = self._lengths.append

    def add(self, payload: bytes | memoryview) -> None:
        self.add_length(len(payload))
        self.update(payload)

    def feeder(self, *, batched: bool) -> Callable[[memoryview], None]:
        """Return what takes the messages of an entry; FormatError for other bytes."""
        return self._add_batch if batched else self._add_single

    def add_even(self, entries: NDArray[np.uint8]) -> bool:
        """Take entries of one message each, a row each; or none, if they are not as alike."""
        if (even := even_singles(entries)) is None:
            return False
        self._add_run(*even)
        return True

    def _add_run(self, count: int, size: int, joined: bytes) -> None:
        """Messages of one size, one after the other."""
        self._lengths.extend(array("I", (size,)) * count)
        self.update(joined)

    def _add_single(self, entry: memoryview) -> None:
        payload = single_payload(entry)
        self.add_length(len(payload))
        self.update(payload)

    def _add_batch(self, entry: memoryview) -> None:
        """Its messages are short: they are joined, as a call of the hash for each takes longer."""
        if (even := even_batch(entry)) is not None:
            self._add_run(*even)
        else:
            payloads = split_batch(entry)
            self._lengths.extend(map(len, payloads))
            self.update(b"".join(payloads))

    def content(self) -> Content:
        lengths = sha256(b"".join(map(_U32.pack, self._lengths))).digest()
        whole = sha256(self._sha256.digest() + lengths).hexdigest()
        return Content(len(self._lengths), whole)


def iter_payloads(kind: Kind, messages: int, first: int = 0) -> Iterator[bytes]:
    """Yield so many messages of a kind, from the one with that number on."""
    source = random.Random(f"{kind.made_as or kind.name}:1")
    blob = source.randbytes(_BLOB_BYTES + kind.message_bytes)
    for number in range(first, first + messages):
        start = number * _STEP % _BLOB_BYTES
        yield blob[start : start + kind.message_bytes]


def content_of(payloads: Iterable[bytes]) -> Content:
    found = ContentHash()
    for payload in payloads:
        found.add(payload)
    return found.content()


def single_payload(entry: memoryview) -> memoryview:
    """The payload of an entry that is one message; FormatError for other bytes."""
    return entry[_payload_at(entry) :]


def even_singles(entries: NDArray[np.uint8]) -> tuple[int, int, bytes] | None:
    """Number and size of the entries' messages and their bytes, if all have as long a metadata.

    `entries` are of one length, a row each. None if one has another head than the first one, its
    checksum left out, or one that only a closer look understands.
    """
    count, length = entries.shape
    if length < _HEAD.size:
        return None
    magic, _crc, metadata = _HEAD.unpack_from(entries[0], 0)
    size = length - _HEAD.size - metadata
    heads = entries[:, : _HEAD.size]
    differs = heads != heads[0]
    if magic != _CHECKSUM_MAGIC or size < 0 or differs[:, _NOT_CRC].any():
        return None
    return count, size, entries[:, length - size :].tobytes()


def even_batch(entry: memoryview) -> tuple[int, int, bytes] | None:
    """Number and size of a batch's messages and their bytes, if all are as long as the first one.

    A message ends where its metadata's length and the size in it say. So where these bytes are the
    first one's, at each place that its length leads to, all begin there. None if one differs.
    """
    at, end = _payload_at(entry), len(entry)
    if end - at < _HEAD_BYTES or entry[at + 4] != _SIZE_KEY or entry[at + 5] >= _MANY_BYTES:
        return None
    metadata, size = int(_U32.unpack_from(entry, at)[0]), entry[at + 5]
    stride = _U32.size + metadata + size
    if metadata < 2 or (end - at) % stride:
        return None
    messages = np.frombuffer(entry, dtype=np.uint8, offset=at).reshape(-1, stride)
    if (messages[:, :_HEAD_BYTES] != messages[0, :_HEAD_BYTES]).any():
        return None
    return len(messages), size, messages[:, stride - size :].tobytes()


def split_batch(entry: memoryview) -> list[memoryview]:
    """The payloads of a batch's messages, in order; FormatError for other bytes."""
    at, end = _payload_at(entry), len(entry)
    found = []
    unpack = _U32.unpack_from
    while at < end:
        if end - at < _U32.size:
            raise FormatError(f"a batch ends with {end - at} bytes that are no message")
        metadata_at = at + _U32.size
        payload_at = min(end, metadata_at + int(unpack(entry, at)[0]))
        if (
            payload_at - metadata_at > 1
            and entry[metadata_at] == _SIZE_KEY
            and entry[metadata_at + 1] < _MANY_BYTES
        ):
            size = entry[metadata_at + 1]  # it comes first, and is one byte where it is small
        else:
            size = _varint_field(entry, metadata_at, payload_at, _PAYLOAD_SIZE)
        at = payload_at + size
        if at > end:
            raise FormatError(f"a batch of {end} bytes with a message that ends at {at}")
        found.append(entry[payload_at:at])
    return found


def _payload_at(entry: memoryview) -> int:
    at = 0
    try:
        magic, _crc, metadata = _HEAD.unpack_from(entry, 0)
        if magic == _CHECKSUM_MAGIC and _HEAD.size + metadata <= len(entry):
            return _HEAD.size + int(metadata)
    except struct.error:
        pass  # too short for that: looked at piece by piece
    try:
        if _U16.unpack_from(entry, at)[0] == _BROKER_METADATA_MAGIC:
            at += _U16.size + _U32.size + _U32.unpack_from(entry, at + _U16.size)[0]
        if _U16.unpack_from(entry, at)[0] == _CHECKSUM_MAGIC:
            at += _U16.size + _U32.size
        at += _U32.size + int(_U32.unpack_from(entry, at)[0])
    except struct.error as error:
        raise FormatError(f"no Pulsar entry: {len(entry)} bytes") from error
    if at > len(entry):
        raise FormatError(f"no Pulsar entry: metadata up to byte {at} of {len(entry)}")
    return at


def _varint_field(data: memoryview, at: int, end: int, wanted: int) -> int:
    """The varint field of a protobuf message that ends at `end`."""
    while at < end:
        key, at = _varint(data, at, end)
        field, wire = key >> 3, key & 7
        if wire == 0:
            value, at = _varint(data, at, end)
            if field == wanted:
                return value
        elif wire == 2:
            length, at = _varint(data, at, end)
            at += length
        elif wire in (1, 5):
            at += 8 if wire == 1 else 4
        else:
            break
    raise FormatError(f"a message's metadata has no field {wanted}")


def _varint(data: memoryview, at: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while at < end:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise FormatError("a message's metadata ends within a number")


def produce(service_url: str, topic: str, kind: Kind, messages: int, first: int = 0) -> None:
    """Send the messages and wait until all are stored. BrokerError when one is not."""
    import pulsar

    refused: list[str] = []

    def on_answer(result: object, _message_id: object) -> None:
        if result != pulsar.Result.Ok:
            refused.append(str(result))

    client = pulsar.Client(
        service_url, logger=pulsar.FileLogger(pulsar.LoggerLevel.Error, os.devnull)
    )
    try:
        producer = client.create_producer(
            f"persistent://{topic}",
            batching_enabled=kind.batched,
            batching_max_messages=BATCH_MESSAGES,  # by count alone, so that all topics are cut alike
            batching_max_allowed_size_in_bytes=4 * KIB * KIB,
            batching_max_publish_delay_ms=60_000,
            max_pending_messages=_pending_of(kind),
            block_if_queue_full=True,
            send_timeout_millis=120_000,
        )
        for payload in iter_payloads(kind, messages, first):
            producer.send_async(payload, on_answer)
        producer.flush()
        producer.close()
    except pulsar.PulsarException as error:
        raise BrokerError(f"{topic}: producing: {error}") from error
    finally:
        client.close()
    if refused:
        raise BrokerError(f"{topic}: {len(refused)} messages were refused, first {refused[0]}")


def _pending_of(kind: Kind) -> int:
    """How many messages may wait for their answer.

    Bookies with little direct memory die under thousands of large unanswered entries. Of small ones
    20,000 double the pace of 1,000.
    """
    if kind.batched or kind.message_bytes < KIB:
        return 20_000
    return 5_000 if kind.message_bytes == KIB else 100
