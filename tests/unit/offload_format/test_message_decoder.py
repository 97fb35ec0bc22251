"""Messages of single entries: batches, chunks, codecs, what is encrypted, and what is damaged."""

import random
from struct import pack

import pytest
from google_crc32c import value as crc32c

from tests.support.cold_entries import CODECS, single
from tests.support.pulsar_entries import (
    CHUNK_ID,
    CHUNKS,
    EVENT_TIME,
    MARKER_TYPE,
    MESSAGES_IN_BATCH,
    PROPERTIES,
    PUBLISH_TIME,
    UNCOMPRESSED_SIZE,
    UUID,
    any_entry,
    encoded,
    entry,
    message,
)
from tiering_assets.offload_format.message_codecs import BYTES_MAX, inflate
from tiering_assets.offload_format.message_decoder import decode_entry
from tiering_assets.offload_format.wire_fields import signed
from tiering_assets.resources.errors import FormatError

TIME = 1_795_247_080_670
COMPRESSION, ENCRYPTION_KEYS, SCHEMA_VERSION, ORDERING_KEY, NULL_VALUE = 8, 13, 16, 18, 25
PARTITION_KEY, KEY_IS_BASE64, REPLICATED_FROM, TXN_LEAST, TXN_MOST = 6, 17, 5, 22, 23


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("payload", [b"", b"x", b"the same again and again, " * 100])
def test_a_single_message_of_each_codec(codec, payload):
    code, squeeze = CODECS[codec]
    found = decode_entry(
        message(
            TIME,
            (COMPRESSION, code),
            (UNCOMPRESSED_SIZE, len(payload)),
            (EVENT_TIME, 0),
            payload=squeeze(payload),
        )
    )
    [only] = found.messages
    assert (only.payload, only.batch_index, only.event_time_ms) == (payload, -1, 0)
    assert (found.codec, found.publish_time_ms, found.producer) == (codec, TIME, "p-1")
    assert found.batch_size is None


@pytest.mark.parametrize("codec", CODECS)
def test_a_batch_of_each_codec(codec):
    code, squeeze = CODECS[codec]
    body = single(b"first", (2, b"k1"), (5, 9), (8, 40)) + single(b"", (9, 1)) + single(b"3")
    more = ((COMPRESSION, code), (UNCOMPRESSED_SIZE, len(body)), (EVENT_TIME, 7))
    found = decode_entry(
        message(TIME, *more, (MESSAGES_IN_BATCH, 3), (PARTITION_KEY, b"k1"), payload=squeeze(body))
    )
    assert [one.payload for one in found.messages] == [b"first", b"", b"3"]
    assert [one.batch_index for one in found.messages] == [0, 1, 2]
    assert [one.key for one in found.messages] == ["k1", None, None]  # none of the entry
    assert [one.event_time_ms for one in found.messages] == [9, 7, 7]  # of the entry, too
    assert [one.null_value for one in found.messages] == [False, True, False]
    assert [one.sequence_id for one in found.messages] == [40, None, None]
    assert found.batch_size == 3


def test_what_a_single_message_says_is_told():
    a_property = encoded([(1, b"k"), (2, b"v")])
    found = decode_entry(
        message(
            TIME,
            (PROPERTIES, encoded([(1, b"k"), (2, b"old")])),
            (PROPERTIES, a_property),
            (PROPERTIES, b""),
            (PARTITION_KEY, b"\xff"),
            (KEY_IS_BASE64, 1),
            (ORDERING_KEY, b"o"),
            (SCHEMA_VERSION, b"\0" * 8),
            (REPLICATED_FROM, b"east"),
            (TXN_LEAST, 5),
            (TXN_MOST, 0),
            (NULL_VALUE, 1),
            (EVENT_TIME, 2**64 - 1),
            broker=encoded([(1, 11), (2, 12)]),
        )
    )
    [only] = found.messages
    assert only.properties == {"k": "v", "": ""}  # of one name the last
    assert (only.key, only.key_is_base64, only.ordering_key) == ("\ufffd", True, b"o")
    assert (only.event_time_ms, only.sequence_id, only.null_value) == (-1, 7, True)
    assert (found.schema_version, found.replicated_from) == (b"\0" * 8, "east")
    assert (found.transaction, found.broker_time_ms, found.broker_index) == ((0, 5), 11, 12)


def test_a_chunk_is_told_and_stays_as_it_is_stored():
    how = ((UUID, b"p-1-7"), (CHUNKS, 3), (COMPRESSION, 1), (UNCOMPRESSED_SIZE, 10**6))
    found = decode_entry(message(TIME, *how, (CHUNK_ID, 2), payload=b"a piece"))
    assert (found.chunk, found.codec) == ((2, 3, "p-1-7"), "LZ4")
    assert [one.payload for one in found.messages] == [b"a piece"]
    assert decode_entry(message(TIME, (CHUNKS, 1), payload=b"whole")).chunk is None
    assert decode_entry(message(TIME, (CHUNKS, 2), (MESSAGES_IN_BATCH, 4))).chunk == (0, 2, "")


def test_what_is_encrypted_stays_closed():
    how = ((ENCRYPTION_KEYS, b"\x0a\x01k"), (COMPRESSION, 3), (UNCOMPRESSED_SIZE, 5))
    found = decode_entry(message(TIME, *how, (MESSAGES_IN_BATCH, 9), payload=b"closed"))
    assert (found.encrypted, found.batch_size, found.codec) == (True, 9, "ZSTD")
    assert [(one.payload, one.batch_index) for one in found.messages] == [(b"closed", -1)]


@pytest.mark.parametrize("marker", [0, 21, 99, -1])
def test_a_marker_is_named(marker):
    assert decode_entry(message(TIME, (MARKER_TYPE, marker), payload=b"")).marker == marker


def test_a_checksum_fits_or_does_not_or_is_not_there():
    rest = message(TIME, checksum=False)
    assert decode_entry(rest).checksum is None
    assert decode_entry(b"\x0e\x01" + pack(">I", crc32c(rest)) + rest).checksum is True
    assert decode_entry(message(TIME)).checksum is False


def test_a_message_taken_out_by_compaction_is_named():
    found = decode_entry(message(TIME, (MESSAGES_IN_BATCH, 1), payload=single(b"", (4, 1))))
    assert [one.compacted_out for one in found.messages] == [True]


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (b"", "goes on here"),
        (b"\x0e\x01", "goes on here"),
        (b"\x0e\x02\0\0\1\0", "broker entry metadata: 260 bytes"),
        (entry(b"")[:-1], "goes on here"),
        (entry(b""), "no producer, sequence id or publish time"),
        (entry(encoded([(1, b"p"), (2, 1)])), "no producer"),
        (entry(encoded([(PUBLISH_TIME, 1), (2, 1)])), "no producer"),
        (entry(b"\x0b"), "no field at byte 0"),  # a group
        (entry(b"\x00\x01"), "no field at byte 0"),
        (entry(b"\x0a\x05ab"), "no field at byte 0"),
        (entry(b"\xff" * 11), "no number at byte 0"),
        (entry(b"\x80"), "no number at byte 0"),
        (message(5, (COMPRESSION, 9)), "its codec is unknown"),
        (message(5, (COMPRESSION, 1), (UNCOMPRESSED_SIZE, 9)), "does not decompress"),
        (message(5, (COMPRESSION, 2), (UNCOMPRESSED_SIZE, 9), payload=b"not"), "does not decom"),
        (message(5, (COMPRESSION, 3), (UNCOMPRESSED_SIZE, 9)), "does not decompress"),
        (message(5, (COMPRESSION, 4), (UNCOMPRESSED_SIZE, 9)), "it claims"),
        (message(5, (COMPRESSION, 3), (UNCOMPRESSED_SIZE, BYTES_MAX + 1)), "at most"),
        (message(5, (MESSAGES_IN_BATCH, 2), payload=single(b"1")), "goes on here"),
        (message(5, (MESSAGES_IN_BATCH, 2**31 - 1), payload=b""), "goes on here"),
        (message(5, (MESSAGES_IN_BATCH, 1), payload=single(b"12")[:-1]), "payload of 2 bytes"),
        (message(5, (MESSAGES_IN_BATCH, 1), payload=b"\0\0\0\2\x18"), "of a batch of 1: 6 bytes"),
        (message(5, (PROPERTIES, b"\x0a\x09k")), "a property: no field"),
    ],
)
def test_what_is_damaged_is_an_error_that_says_where(bad, why):
    with pytest.raises(FormatError, match=why):
        decode_entry(bad)


@pytest.mark.parametrize("codec", ["LZ4", "ZLIB", "ZSTD", "SNAPPY"])
@pytest.mark.parametrize("claimed", [0, 99, 101, 10**6])
def test_a_size_that_lies_is_refused(codec, claimed):
    code, squeeze = CODECS[codec]
    with pytest.raises(FormatError, match=f"payload .{codec}."):
        inflate(squeeze(bytes(100)), code=code, size=claimed)


def test_any_bytes_decode_or_raise_one_error():
    source = random.Random(5)
    outcomes = {True: 0, False: 0}
    for _ in range(5_000):
        made = any_entry(source, source.randbytes(source.choice((0, 3, 60))))
        try:
            decode_entry(made)
            outcomes[True] += 1
        except FormatError:
            outcomes[False] += 1
    assert min(outcomes.values()) > 500


def test_numbers_are_read_as_their_fields_have_them():
    assert [signed(one) for one in (0, 2**63 - 1, 2**64 - 1)] == [0, 2**63 - 1, -1]
    assert [signed(one, 32) for one in (2**31, 2**32 + 3)] == [-(2**31), 3]
