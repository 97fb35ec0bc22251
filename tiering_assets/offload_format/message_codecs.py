"""The codecs in which producers compress the payload of an entry.

Owns: the size that metadata claims bounds what is inflated, and bytes that do not give exactly that
size are refused. Codes are PulsarApi's CompressionType. Java's ZLIB streams are flushed and never
finished; an empty payload is no bytes at all there. Source: Pulsar's CompressionCodec*.
"""

from __future__ import annotations

import zlib
from typing import Any, Final

import cramjam
import lz4.block
import zstandard

from tiering_assets.resources.errors import FormatError

CODECS: Final = {0: "NONE", 1: "LZ4", 2: "ZLIB", 3: "ZSTD", 4: "SNAPPY"}
CODES: Final = {name: code for code, name in CODECS.items()}
_LZ4: Final = CODES["LZ4"]
BYTES_MAX: Final = 256 * 1024 * 1024  # a broker takes 5 MiB, unless it is told to take more
MESSAGES_MAX: Final = 2 * 1024 * 1024  # of one batch; clients send a thousand


def codec_name(code: int) -> str:
    return CODECS.get(code, f"unknown ({code})")


def inflate(data: bytes, *, code: int, size: int) -> bytes:
    """The payload that was compressed. FormatError for what does not give `size` bytes."""
    name = codec_name(code)
    if code == 0:
        return data
    if not 0 <= size <= BYTES_MAX:
        raise FormatError(f"payload ({name}): claims {size} bytes, at most {BYTES_MAX}")
    try:
        found = _inflated(data, code, size)
    except (
        lz4.block.LZ4BlockError,
        zlib.error,
        zstandard.ZstdError,
        cramjam.DecompressionError,
    ) as error:
        raise FormatError(f"payload ({name}): does not decompress: {error}") from error
    if len(found) != size:
        raise FormatError(f"payload ({name}): expected {size} bytes, found {len(found)}")
    return found


def inflate_into(data: memoryview, out: Any, *, code: int) -> None:
    """Fill `out`, a view that may be written, with the payload. FormatError as from `inflate`."""
    size = len(out)
    if code == _LZ4 and size:
        try:
            found = cramjam.lz4.decompress_block_into(data, out)
        except cramjam.DecompressionError as error:
            raise FormatError(f"payload (LZ4): does not decompress: {error}") from error
        if found != size:
            raise FormatError(f"payload (LZ4): expected {size} bytes, found {found}")
        return
    out[:] = memoryview(inflate(bytes(data), code=code, size=size))


def _inflated(data: bytes, code: int, size: int) -> bytes:
    """At most one byte more than `size`, so that too much is seen without inflating it all."""
    match code:
        case 1:
            return bytes(lz4.block.decompress(data, uncompressed_size=size))
        case 2:
            return zlib.decompressobj().decompress(data, size + 1) if data else b""
        case 3:
            with zstandard.ZstdDecompressor().stream_reader(data) as reader:
                return bytes(reader.read(size + 1))
        case 4:
            return _snappy(data, size)
        case _:
            raise FormatError(f"payload: its codec is {codec_name(code)}")


def _snappy(data: bytes, size: int) -> bytes:
    """Its own length comes first; one that lies would have it allocated."""
    claimed = shift = 0
    for byte in data[:5]:
        claimed |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    if claimed != size:
        raise FormatError(f"payload (SNAPPY): expected {size} bytes, it claims {claimed}")
    return bytes(cramjam.snappy.decompress_raw(data))
