import random
import zlib

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from tiering_assets.resources.errors import FormatError
from tiering_assets.resources.metastore.envelope import (
    MAGIC,
    UNCOMPRESSED_BYTES_MAX,
    Compression,
    decode_enveloped,
    encode_enveloped,
)

ENVELOPES = [kind for kind in Compression if kind is not Compression.NONE]
TEXT = b"managed ledger " * 20


def opaque(data):
    """A message format that takes anything but our magic, as protobuf does."""
    if data.startswith(MAGIC):
        raise FormatError("the bare message does not parse")
    return data


def envelope(kind, size, body):
    varint = bytearray()
    while size >= 0x80:
        varint.append(size & 0x7F | 0x80)
        size >>= 7
    metadata = bytes([0x08, kind, 0x10, *varint, size])
    return MAGIC + len(metadata).to_bytes(4, "big") + metadata + body


@given(st.binary(max_size=2000), st.sampled_from(Compression))
def test_what_is_wrapped_comes_back_with_its_compression(data, kind):
    if data.startswith(MAGIC):
        return
    assert decode_enveloped(encode_enveloped(data, kind), opaque) == (data, kind)


def test_no_compression_means_no_envelope():
    assert encode_enveloped(TEXT, Compression.NONE) == TEXT
    assert decode_enveloped(b"", opaque) == (b"", Compression.NONE)


def test_unfinished_zlib_streams_are_read():
    stream = zlib.compressobj()
    body = stream.compress(TEXT) + stream.flush(zlib.Z_SYNC_FLUSH)  # as Java leaves it
    data = envelope(2, len(TEXT), body)
    assert decode_enveloped(data, opaque) == (TEXT, Compression.ZLIB)


def test_zstd_frames_without_a_content_size_are_read():
    body = zstandard.ZstdCompressor(write_content_size=False).compress(TEXT)
    assert decode_enveloped(envelope(3, len(TEXT), body), opaque) == (TEXT, Compression.ZSTD)


def test_an_envelope_that_compresses_nothing_is_read():
    assert decode_enveloped(envelope(0, len(TEXT), TEXT), opaque) == (TEXT, Compression.NONE)


def test_a_damaged_envelope_is_tried_as_a_bare_message():
    data = MAGIC + b"\x00"
    assert decode_enveloped(data, bytes.lower) == (data.lower(), Compression.NONE)


@pytest.mark.parametrize("kind", ENVELOPES)
@pytest.mark.parametrize("difference", [-1, 1])
def test_a_wrong_size_is_refused(kind, difference):
    good = encode_enveloped(TEXT, kind)
    body = good[6 + good[5] :]
    with pytest.raises(FormatError, match="compression envelope"):
        decode_enveloped(envelope(kind.value, len(TEXT) + difference, body), opaque)


@pytest.mark.parametrize("kind", ENVELOPES)
def test_a_cut_body_is_refused(kind):
    noise = random.Random(1).randbytes(500)
    good = encode_enveloped(noise, kind)
    with pytest.raises(FormatError, match="compression envelope"):
        decode_enveloped(good[:-20], opaque)


@pytest.mark.parametrize("kind", ENVELOPES)
def test_a_bomb_is_not_inflated(kind):
    zeros = bytes(UNCOMPRESSED_BYTES_MAX // 4)
    good = encode_enveloped(zeros, kind)
    body = good[6 + good[5] :]
    with pytest.raises(FormatError):
        decode_enveloped(envelope(kind.value, 100, body), opaque)
    with pytest.raises(FormatError, match="at most"):
        decode_enveloped(envelope(kind.value, UNCOMPRESSED_BYTES_MAX + 1, body), opaque)


@pytest.mark.parametrize(
    "data",
    [
        MAGIC,
        MAGIC + b"\x00\x00\x00\x09\x08",
        MAGIC + b"\xff\xff\xff\xff\x08\x01",
        MAGIC + b"\x00\x00\x00\x02\x08\x01",  # no size
        envelope(9, 4, b"abcd"),  # no such codec
    ],
)
def test_a_broken_head_is_refused(data):
    with pytest.raises(FormatError, match="compression envelope"):
        decode_enveloped(data, opaque)


@given(st.sampled_from(Compression), st.integers(0, 5000), st.binary(max_size=300))
def test_any_body_decodes_or_is_a_format_error(kind, size, body):
    try:
        message, _ = decode_enveloped(envelope(kind.value, size, body), opaque)
    except FormatError:
        return
    assert len(message) == size
