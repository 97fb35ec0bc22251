"""What the entries of a block say of the messages in them: how many, and when they were published.

Owns: figures for people and catalogues. Nothing is decided by them, and no entry is refused: where
one is not a message of Pulsar's, or its metadata is damaged, all three are None for the block.

Only an entry's own MessageMetadata is read; payloads stay closed. So singles of a batch that
compaction has taken out count, and so does a last chunk whose message lacks others. Transactions
are not followed: messages of an aborted one count.

core.c has the same rules, and tests hold both equal. Bytes: Pulsar's Commands and MessageMetadata.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct, error
from typing import Final

_U16, _U32 = Struct(">H"), Struct(">I")
_BROKER_ENTRY_METADATA: Final = 0x0E02
_CHECKSUM: Final = 0x0E01
_SKIPPED: Final = 6  # magic and length of the first; magic and CRC32C of the second
_VARINT_BYTES_MAX: Final = 10
_TIME_MAX: Final = 2**63 - 1  # what a signed column holds; a producer's time above it is none
_FIXED: Final = {1: 8, 5: 4}  # wire types of so many bytes; groups Pulsar does not read

# Fields of MessageMetadata by their key: number and wire type. Another wire type is another field.
_PRODUCER_NAME: Final = 1 << 3 | 2
_SEQUENCE_ID: Final = 2 << 3
_PUBLISH_TIME: Final = 3 << 3
_COMPRESSION: Final = 8 << 3
_MESSAGES_IN_BATCH: Final = 11 << 3
_ENCRYPTION_KEYS: Final = 13 << 3 | 2
_MARKER_TYPE: Final = 20 << 3
_CHUNKS: Final = 27 << 3
_CHUNK_ID: Final = 29 << 3


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageFacts:
    """Messages in some entries, and their first and last publish time in ms since 1970.

    A batch counts as many as its metadata says, the last chunk of a message 1, chunks before it and
    markers 0. Times are of all entries but markers; None where all are. All three are None where
    an entry is not Pulsar's, or its time does not fit 63 bits.
    """

    messages: int | None = None
    publish_min_ms: int | None = None
    publish_max_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryHead:
    """What an entry's metadata says of it: when it was published, and whether brokers can show it.

    Over REST a broker decompresses what it shows. Of a piece of a compressed message, and of what
    is compressed and encrypted, it gives no answer.
    Source: Pulsar's PersistentTopicsBase.generateResponseWithEntry.
    """

    publish_time_ms: int
    can_be_shown: bool


def head_of(entry: bytes | memoryview) -> EntryHead | None:
    """None of one that is no message of Pulsar's."""
    try:
        fields = _fields(_metadata(entry))
        chunks = _int32(fields.get(_CHUNKS, 1))
        is_closed = _ENCRYPTION_KEYS in fields or chunks > 1
        return EntryHead(
            publish_time_ms=fields[_PUBLISH_TIME],
            can_be_shown=not (is_closed and fields.get(_COMPRESSION)),
        )
    except (LookupError, ValueError, error):
        return None


class MessageCount:
    """Give it the entries of a block; it never raises for what they hold."""

    __slots__ = ("_are_messages", "_earliest", "_latest", "_messages")

    def __init__(self) -> None:
        self._are_messages = True
        self._messages = 0
        self._earliest, self._latest = _TIME_MAX, -1

    def add(self, entry: bytes | memoryview) -> None:
        if not self._are_messages:
            return
        try:
            found = _read(entry)
        except (LookupError, ValueError, error):  # it ends too early, or lacks a field
            self._are_messages = False
            return
        if found is None:
            return
        messages, published = found
        self._messages += messages
        self._earliest = min(self._earliest, published)
        self._latest = max(self._latest, published)

    def facts(self) -> MessageFacts:
        if not self._are_messages:
            return MessageFacts()
        if self._latest < 0:
            return MessageFacts(messages=self._messages)
        return MessageFacts(
            messages=self._messages,
            publish_min_ms=self._earliest,
            publish_max_ms=self._latest,
        )


def _read(entry: bytes | memoryview) -> tuple[int, int] | None:
    """Messages and publish time of an entry; None for a marker.

    Raises:
        LookupError, ValueError, struct.error: it is not a message.
    """
    fields = _fields(_metadata(entry))
    published, _, _ = fields[_PUBLISH_TIME], fields[_SEQUENCE_ID], fields[_PRODUCER_NAME]
    batch = _int32(fields[_MESSAGES_IN_BATCH]) if _MESSAGES_IN_BATCH in fields else None
    if published > _TIME_MAX or (batch is not None and batch < 0):
        raise ValueError
    if _MARKER_TYPE in fields:
        return None
    if batch is not None:
        return batch, published
    chunks = _int32(fields[_CHUNKS]) if _CHUNKS in fields else 1
    is_whole = chunks <= 1 or _int32(fields.get(_CHUNK_ID, 0)) == chunks - 1
    return int(is_whole), published


def _metadata(entry: bytes | memoryview) -> bytes:
    at = 0
    if _U16.unpack_from(entry)[0] == _BROKER_ENTRY_METADATA:
        at = _SKIPPED + _U32.unpack_from(entry, 2)[0]
    if _U16.unpack_from(entry, at)[0] == _CHECKSUM:
        at += _SKIPPED
    start = at + _U32.size
    end = start + _U32.unpack_from(entry, at)[0]
    if end > len(entry):
        raise IndexError
    return bytes(entry[start:end])


def _fields(metadata: bytes) -> dict[int, int]:
    """By key, the last of each: the value of a varint, the length of a string."""
    fields: dict[int, int] = {}
    at, end = 0, len(metadata)
    while at < end:
        key = metadata[at]
        at += 1
        if key > 0x7F:
            key, at = _varint(metadata, at - 1)
        if not 8 <= key < 2**32:
            raise ValueError
        kind = key & 7
        if kind in (0, 2):
            value = metadata[at]
            at += 1
            if value > 0x7F:
                value, at = _varint(metadata, at - 1)
            fields[key] = value
            if kind:
                at += value
        else:
            at += _FIXED[kind]
    if at != end:
        raise IndexError
    return fields


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """The varint there and where it ends. Bits above the 64th are dropped, as Pulsar does."""
    value = shift = 0
    while shift < 7 * _VARINT_BYTES_MAX:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (2**64 - 1), at
        shift += 7
    raise ValueError


def _int32(value: int) -> int:
    """What of a varint an int32 field takes."""
    return ((value & (2**32 - 1)) ^ 2**31) - 2**31
