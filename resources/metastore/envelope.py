"""The compression envelope around managed-ledger and cursor info.

Owns: what was compressed is written back in the same form. Layout: magic 47 78, int32 size K, K
bytes of metadata {1 compression type, 2 uncompressed size}, compressed message. Codecs are raw and
one shot; Java's ZLIB streams are flushed but never finished. Source: Pulsar MetaStoreImpl and
CompressionCodec*. Output is bounded by `UNCOMPRESSED_BYTES_MAX` before anything is inflated.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from enum import Enum
from struct import Struct
from typing import TypeVar

import cramjam
import lz4.block
import zstandard
from google.protobuf.message import DecodeError

from tiering_assets.resources._proto.MLDataFormats_pb2 import ManagedLedgerInfoMetadata
from tiering_assets.resources.errors import FormatError

MAGIC = b"\x47\x78"  # MetaStoreImpl.MAGIC_MANAGED_INFO_METADATA; no protobuf message starts so
UNCOMPRESSED_BYTES_MAX = 64 * 1024 * 1024  # a node holds 1 MiB; this is generous for its content
_SIZE = Struct(">i")
_METADATA_AT = len(MAGIC) + _SIZE.size

T = TypeVar("T")


class Compression(Enum):
    """Values are those of MLDataFormats.CompressionType; NONE means no envelope at all."""

    NONE = 0
    LZ4 = 1
    ZLIB = 2
    ZSTD = 3
    SNAPPY = 4


def is_compressed(data: bytes) -> bool:
    """Whether bytes begin as an envelope does; what is in it they need not tell."""
    return data.startswith(MAGIC)


def decode_enveloped(data: bytes, parse: Callable[[bytes], T]) -> tuple[T, Compression]:
    """Parse the message inside an envelope, or the bare one. `parse` raises FormatError.

    As in the broker, bytes whose envelope does not decode are tried as a bare message; if that
    fails as well, the envelope's error is the one to know.
    """
    if not is_compressed(data):
        return parse(data), Compression.NONE
    try:
        message_bytes, compression = _open(data)
        return parse(message_bytes), compression
    except FormatError as envelope_error:
        try:
            return parse(data), Compression.NONE
        except FormatError:
            raise envelope_error from None


def encode_enveloped(message_bytes: bytes, compression: Compression) -> bytes:
    """Wrap an encoded message; NONE leaves it bare."""
    if compression is Compression.NONE:
        return message_bytes
    metadata = ManagedLedgerInfoMetadata(
        compressionType=compression.name,
        uncompressedSize=len(message_bytes),
    ).SerializeToString()
    body = _compress(message_bytes, compression)
    return MAGIC + _SIZE.pack(len(metadata)) + metadata + body


def _open(data: bytes) -> tuple[bytes, Compression]:
    if len(data) < _METADATA_AT:
        raise FormatError(f"compression envelope: cut after {len(data)} bytes")
    (size,) = _SIZE.unpack_from(data, len(MAGIC))
    if not 0 <= size <= len(data) - _METADATA_AT:
        raise FormatError(f"compression envelope: {size} bytes of metadata in {len(data)} bytes")
    metadata = ManagedLedgerInfoMetadata()
    try:
        metadata.ParseFromString(data[_METADATA_AT : _METADATA_AT + size])
    except DecodeError as error:
        raise FormatError("compression envelope: its metadata does not parse") from error
    if not metadata.IsInitialized():
        raise FormatError("compression envelope: no known compression type or no size")
    compression = Compression(metadata.compressionType)
    expected = metadata.uncompressedSize
    if not 0 <= expected <= UNCOMPRESSED_BYTES_MAX:
        raise FormatError(
            f"compression envelope: {expected} uncompressed bytes, at most {UNCOMPRESSED_BYTES_MAX}"
        )
    message_bytes = _decompress(data[_METADATA_AT + size :], compression, expected)
    if len(message_bytes) != expected:
        raise FormatError(
            f"compression envelope ({compression.name}): expected {expected} bytes, "
            f"found {len(message_bytes)}"
        )
    return message_bytes, compression


def _compress(data: bytes, compression: Compression) -> bytes:
    match compression:
        case Compression.NONE:
            return data
        case Compression.LZ4:
            return bytes(lz4.block.compress(data, store_size=False))
        case Compression.ZLIB:
            return zlib.compress(data)
        case Compression.ZSTD:
            return bytes(zstandard.ZstdCompressor().compress(data))
        case Compression.SNAPPY:
            return bytes(cramjam.snappy.compress_raw(data))


def _decompress(data: bytes, compression: Compression, expected: int) -> bytes:
    """At most one byte more than `expected`, so that too much is seen without inflating it all."""
    try:
        match compression:
            case Compression.NONE:
                return data
            case Compression.LZ4:
                return bytes(lz4.block.decompress(data, uncompressed_size=expected))
            case Compression.ZLIB:
                return zlib.decompressobj().decompress(data, expected + 1)
            case Compression.ZSTD:
                with zstandard.ZstdDecompressor().stream_reader(data) as reader:
                    return bytes(reader.read(expected + 1))
            case Compression.SNAPPY:
                if _snappy_length(data) != expected:
                    raise FormatError("compression envelope (SNAPPY): its own length differs")
                return bytes(cramjam.snappy.decompress_raw(data))
    except (
        lz4.block.LZ4BlockError,
        zlib.error,
        zstandard.ZstdError,
        cramjam.DecompressionError,
        ValueError,
    ) as error:
        raise FormatError(f"compression envelope: {compression.name} does not decode") from error


def _snappy_length(data: bytes) -> int:
    """The uncompressed length that a raw snappy block starts with, as a varint."""
    length = 0
    for position, byte in enumerate(data[:5]):
        length |= (byte & 0x7F) << (7 * position)
        if byte < 0x80:
            return length
    return -1
