"""The messages in an entry, as its producer sent them: one, a batch, or a chunk of one.

Owns: any bytes give a DecodedEntry or a FormatError. An entry is decoded alone: chunks are not
joined, transactions not followed, and what is encrypted stays closed and is named so. What single
messages of a batch inherit from the entry is here. Bytes: Pulsar's Commands, MessageMetadata and
SingleMessageMetadata; reference is Pulsar 4.0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from struct import Struct
from typing import Final

from google_crc32c import value as crc32c

from tiering_assets.offload_format.message_codecs import MESSAGES_MAX, codec_name, inflate
from tiering_assets.offload_format.wire_fields import bytes_key, iter_fields, signed, varint_key
from tiering_assets.resources.errors import FormatError

_U16, _U32 = Struct(">H"), Struct(">I")
_BROKER_ENTRY_METADATA: Final = 0x0E02
_CHECKSUM: Final = 0x0E01
_NAME_AND_VALUE: Final = (bytes_key(1), bytes_key(2))

Numbers = Mapping[int, int]
Strings = Mapping[int, bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryMessage:
    """One message. `batch_index` is -1 where it is not of a batch, as in Pulsar's message id.

    `payload` of a chunk is a piece of what was compressed; of an encrypted entry all that is closed
    in it. `key` is None where there is none; a key of bytes is `key_is_base64` text.
    """

    batch_index: int
    payload: bytes = field(repr=False)
    key: str | None = None
    key_is_base64: bool = False
    ordering_key: bytes | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    event_time_ms: int | None = None
    sequence_id: int | None = None
    null_value: bool = False
    compacted_out: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodedEntry:
    """An entry. `batch_size` is None where it holds one message; then `messages` has that alone.

    `chunk` is (which, of how many, uuid), counted from 0. `checksum` says whether CRC32C fits;
    None where the entry has none. `marker` is the type of one that no consumer sees.
    """

    publish_time_ms: int
    producer: str
    messages: tuple[EntryMessage, ...]
    batch_size: int | None = None
    codec: str = "NONE"
    uncompressed_bytes: int | None = None  # as its producer says, of the whole payload
    encrypted: bool = False
    chunk: tuple[int, int, str] | None = None
    marker: int | None = None
    checksum: bool | None = None
    schema_version: bytes | None = None
    replicated_from: str | None = None
    transaction: tuple[int, int] | None = None  # most and least significant bits
    broker_time_ms: int | None = None
    broker_index: int | None = None


def decode_entry(entry: bytes | memoryview) -> DecodedEntry:
    """What an entry holds. FormatError for one that is none of Pulsar's, or is damaged."""
    rest = memoryview(entry).toreadonly()
    broker: Numbers = {}
    if _u16(rest) == _BROKER_ENTRY_METADATA:
        head, rest = _sized(rest[_U16.size :], "broker entry metadata")
        broker, _, _ = _fields(head, "broker entry metadata")
    checksum = None
    if _u16(rest) == _CHECKSUM:
        claimed, rest = _u32(rest[_U16.size :]), rest[_U16.size + _U32.size :]
        checksum = int(crc32c(bytes(rest))) == claimed
    head, payload = _sized(rest, "message metadata")
    numbers, strings, properties = _fields(head, "message metadata")
    if not {varint_key(3), varint_key(2)} <= {*numbers} or bytes_key(1) not in strings:
        raise FormatError("message metadata: no producer, sequence id or publish time")
    return _decoded(numbers, strings, properties, bytes(payload), broker=broker, checksum=checksum)


def _decoded(
    numbers: Numbers,
    strings: Strings,
    properties: Mapping[str, str],
    payload: bytes,
    *,
    broker: Numbers,
    checksum: bool | None,
) -> DecodedEntry:
    code, encrypted = numbers.get(varint_key(8), 0), bytes_key(13) in strings
    chunks = signed(numbers.get(varint_key(27), 1), 32)
    is_chunk = chunks > 1
    batch = _signed32(numbers.get(varint_key(11)))
    if not encrypted and not is_chunk:
        payload = inflate(payload, code=code, size=numbers.get(varint_key(9), 0))
    whole = _message(numbers, strings, properties, payload)
    return DecodedEntry(
        publish_time_ms=signed(numbers[varint_key(3)]),
        producer=_text(strings[bytes_key(1)]),
        messages=(whole,)
        if batch is None or encrypted or is_chunk
        else tuple(_singles(payload, batch, whole)),
        batch_size=batch,
        codec=codec_name(code),
        uncompressed_bytes=_optional_signed(numbers.get(varint_key(9))),
        encrypted=encrypted,
        chunk=(
            signed(numbers.get(varint_key(29), 0), 32),
            chunks,
            _text(strings.get(bytes_key(26), b"")),
        )
        if is_chunk
        else None,
        marker=_signed32(numbers.get(varint_key(20))),
        checksum=checksum,
        schema_version=strings.get(bytes_key(16)),
        replicated_from=_optional_text(strings.get(bytes_key(5))),
        transaction=(numbers[varint_key(23)], numbers[varint_key(22)])
        if {varint_key(22), varint_key(23)} <= {*numbers}
        else None,
        broker_time_ms=broker.get(varint_key(1)),
        broker_index=broker.get(varint_key(2)),
    )


def _message(
    numbers: Numbers, strings: Strings, properties: Mapping[str, str], payload: bytes
) -> EntryMessage:
    """One that is not of a batch; or what its singles inherit."""
    return EntryMessage(
        batch_index=-1,
        payload=payload,
        key=_optional_text(strings.get(bytes_key(6))),
        key_is_base64=bool(numbers.get(varint_key(17))),
        ordering_key=strings.get(bytes_key(18)),
        properties=properties,
        event_time_ms=_optional_signed(numbers.get(varint_key(12))),
        sequence_id=signed(numbers[varint_key(2)]),
        null_value=bool(numbers.get(varint_key(25))),
    )


def _singles(payload: bytes, count: int, entry: EntryMessage) -> Iterator[EntryMessage]:
    """Each with its own key, ordering key and properties; time and null value are inherited.

    FormatError where there are fewer than the batch says, or bytes that no message has: then there
    may be more.
    """
    rest = memoryview(payload)
    if count < 0:
        raise FormatError(f"a batch of {count} messages")
    for index in range(count):
        if index == MESSAGES_MAX:
            raise FormatError(f"a batch of {count} messages, at most {MESSAGES_MAX}")
        what = f"message {index} of a batch of {count}"
        head, rest = _sized(rest, what)
        numbers, strings, properties = _fields(head, what)
        size = signed(numbers.get(varint_key(3), 0), 32)
        if not 0 <= size <= len(rest):
            raise FormatError(f"{what}: payload of {size} bytes, {len(rest)} are there")
        yield EntryMessage(
            batch_index=index,
            payload=bytes(rest[:size]),
            key=_optional_text(strings.get(bytes_key(2))),
            key_is_base64=bool(numbers.get(varint_key(6))),
            ordering_key=strings.get(bytes_key(7)),
            properties=properties,
            event_time_ms=_optional_signed(numbers.get(varint_key(5)), entry.event_time_ms),
            sequence_id=_optional_signed(numbers.get(varint_key(8))),
            null_value=bool(numbers.get(varint_key(9), entry.null_value)),
            compacted_out=bool(numbers.get(varint_key(4))),
        )
        rest = rest[size:]
    if rest:
        raise FormatError(f"a batch of {count}: {len(rest)} bytes are behind its last message")


def _fields(data: memoryview, what: str) -> tuple[Numbers, Strings, Mapping[str, str]]:
    """Numbers and strings by key, the last of each; and the properties, of one name the last.

    In all three messages properties have a field of their own, 4 or 1, of name and value.
    """
    numbers: dict[int, int] = {}
    strings: dict[int, bytes] = {}
    properties: dict[str, str] = {}
    property_key = bytes_key(4) if what == "message metadata" else bytes_key(1)
    for key, number, content in iter_fields(data, what):
        if key & 7 == 0:
            numbers[key] = number
        elif key == property_key:
            pair = {k: bytes(c) for k, _, c in iter_fields(content, f"{what}: a property")}
            name, value = (_text(pair.get(one, b"")) for one in _NAME_AND_VALUE)
            properties[name] = value
        else:
            strings[key] = bytes(content)
    return numbers, strings, properties


def _sized(data: memoryview, what: str) -> tuple[memoryview, memoryview]:
    """What a length stands before, and the rest."""
    end = _U32.size + _u32(data)
    if end > len(data):
        raise FormatError(f"{what}: {end} bytes, {len(data)} are there")
    return data[_U32.size : end], data[end:]


def _u16(data: memoryview) -> int:
    return 0 if len(data) < _U16.size else int(_U16.unpack_from(data)[0])


def _u32(data: memoryview) -> int:
    if len(data) < _U32.size:
        raise FormatError(f"an entry of Pulsar goes on here, {len(data)} bytes are there")
    return int(_U32.unpack_from(data)[0])


def _text(data: bytes) -> str:
    """As clients show what is not UTF-8."""
    return data.decode("utf-8", errors="replace")


def _optional_text(data: bytes | None) -> str | None:
    return None if data is None else _text(data)


def _optional_signed(value: int | None, inherited: int | None = None) -> int | None:
    return inherited if value is None else signed(value)


def _signed32(value: int | None) -> int | None:
    return None if value is None else signed(value, 32)
