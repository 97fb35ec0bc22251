"""Digest and key vectors come from entries a Java client wrote and a Java bookie served."""

from __future__ import annotations

import hashlib
import hmac
import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiering_assets.resources.bookkeeper.batch_body import find_records, verify_records
from tiering_assets.resources.bookkeeper.digest import DIGEST_BYTES, mac_key, master_key
from tiering_assets.resources.bookkeeper.ledger import DigestType
from tiering_assets.resources.bookkeeper.stored_entry import EntryCodec
from tiering_assets.resources.errors import FormatError, IntegrityError

HEADER = "00000000000000010000000000000000ffffffffffffffff0000000000000005"
VECTORS = {
    DigestType.CRC32C: "e3a5f74d",
    DigestType.CRC32: "0000000030a56872",
    DigestType.HMAC: "985ff33d73766e6ab95e91f14097a562ffc64ae8",
    DigestType.DUMMY: "",
}
every_digest = pytest.mark.parametrize("digest_type", list(DigestType), ids=lambda d: d.name)


def codec(digest_type=DigestType.CRC32C, ledger_id=1):
    return EntryCodec(ledger_id=ledger_id, digest_type=digest_type, password=b"secret")


def vector(digest_type):
    return bytes.fromhex(HEADER + VECTORS[digest_type]) + b"hello"


def records_of(stored):
    return memoryview(b"".join(struct.pack(">i", len(one)) + one for one in stored))


def encoded(some_codec, payloads, first=0):
    length, stored = 0, []
    for entry_id, payload in enumerate(payloads, first):
        length += len(payload)
        stored.append(
            some_codec.encode(
                entry_id=entry_id,
                last_add_confirmed=entry_id - 1,
                cumulative_length=length,
                payload=payload,
            )
        )
    return stored


def test_keys_of_a_password():
    assert master_key(b"").hex() == "850bf1071c5e3d8c24235676f8816ae0cbe2f14f"
    assert master_key(b"secret").hex() == "e793cbc379107648537183605cd361d3bb789a39"
    assert mac_key(b"secret").hex() == "190c685bae851574f5ab47c960a00c0466f96603"


@every_digest
def test_an_entry_of_the_java_client_verifies_and_encodes_back(digest_type):
    stored = vector(digest_type)
    assert len(stored) == {"CRC32C": 41, "CRC32": 45, "HMAC": 57, "DUMMY": 37}[digest_type.name]
    entry = codec(digest_type).decode(stored, entry_id=0)
    assert (entry.entry_id, entry.last_add_confirmed, entry.cumulative_length) == (0, -1, 5)
    assert entry.payload == b"hello"
    again = codec(digest_type).encode(
        entry_id=0, last_add_confirmed=-1, cumulative_length=5, payload=b"hello"
    )
    assert again == stored


@given(st.binary(max_size=200))
def test_digests_equal_the_standard_librarys(payload):
    header = struct.pack(">qqqq", 1, 3, 2, 77)
    key = hashlib.sha1(b"mac" + b"secret").digest()
    expected = {
        DigestType.CRC32: struct.pack(">Q", zlib.crc32(header + payload)),
        DigestType.HMAC: hmac.new(key, header + payload, "sha1").digest(),
        DigestType.DUMMY: b"",
    }
    for digest_type, digest in expected.items():
        stored = codec(digest_type).encode(
            entry_id=3, last_add_confirmed=2, cumulative_length=77, payload=payload
        )
        assert stored == header + digest + payload


@every_digest
def test_every_flipped_bit_is_found_unless_the_ledger_has_no_digest(digest_type):
    stored = vector(digest_type)
    checked = range(16) if digest_type is DigestType.DUMMY else range(len(stored))
    for at in checked:  # DUMMY checks the ids and nothing else
        for bit in range(8):
            bad = bytearray(stored)
            bad[at] ^= 1 << bit
            with pytest.raises(IntegrityError, match="ledger"):
                codec(digest_type).decode(bad, entry_id=0)


def test_another_password_than_the_ledgers_is_thought_of_and_not_told():
    other = EntryCodec(ledger_id=1, digest_type=DigestType.HMAC, password=b"another-password")
    with pytest.raises(IntegrityError, match=r"is bookies\.password this ledger's") as caught:
        other.decode(vector(DigestType.HMAC), entry_id=0)
    assert "another-password" not in str(caught.value)


@every_digest
def test_another_entry_with_a_good_digest_is_refused(digest_type):
    with pytest.raises(IntegrityError, match="entry 1"):
        codec(digest_type).decode(vector(digest_type), entry_id=1)
    with pytest.raises(IntegrityError, match="ledger 2"):
        codec(digest_type, ledger_id=2).decode(vector(digest_type), entry_id=0)


@every_digest
def test_shorter_than_header_and_digest_is_a_format_error(digest_type):
    needed = 32 + DIGEST_BYTES[digest_type]
    for length in range(needed):
        with pytest.raises(FormatError):
            codec(digest_type).decode(vector(digest_type)[:length], entry_id=0)


@given(st.binary(max_size=100), st.sampled_from(list(DigestType)))
def test_garbage_is_a_format_or_integrity_error_or_encodes_back(data, digest_type):
    try:
        entry = codec(digest_type).decode(data, entry_id=0)
    except (FormatError, IntegrityError):
        return
    again = codec(digest_type).encode(
        entry_id=0,
        last_add_confirmed=entry.last_add_confirmed,
        cumulative_length=entry.cumulative_length,
        payload=bytes(entry.payload),
    )
    assert again == data


@given(st.lists(st.binary(max_size=50), min_size=1, max_size=8), st.sampled_from(list(DigestType)))
def test_a_batch_gives_each_entry_with_its_length_so_far(payloads, digest_type):
    some = codec(digest_type)
    records = records_of(encoded(some, payloads, first=40))
    bounds = find_records(records, count_max=100)
    entries, failure = verify_records(some, records, bounds, first_entry_id=40)
    assert failure is None
    assert [(e, bytes(p)) for e, p, _ in entries] == list(enumerate(payloads, 40))
    assert entries[-1][2] == sum(map(len, payloads))


@every_digest
@pytest.mark.parametrize("bad", range(4))
def test_the_prefix_before_a_bad_record_is_accepted(digest_type, bad):
    some = codec(digest_type)
    stored = encoded(some, [b"a", b"", b"ccc", b"dd"])
    stored[bad] = stored[bad][:8] + struct.pack(">q", 99) + stored[bad][16:]  # another entry's id
    records = records_of(stored)
    entries, failure = verify_records(
        some, records, find_records(records, count_max=9), first_entry_id=0
    )
    assert [e for e, _, _ in entries] == list(range(bad))
    assert isinstance(failure, IntegrityError)
    assert f"entry {bad}" in str(failure)


@every_digest
@pytest.mark.parametrize("ledger_id", [1, 2])
def test_a_record_of_another_entry_or_ledger_is_bad_although_its_digest_is_good(
    digest_type, ledger_id
):
    some = codec(digest_type)
    other = encoded(codec(digest_type, ledger_id), [b"x", b"y", b"z"])
    wrong = other[2] if ledger_id == 1 else other[1]  # the wrong entry, or the wrong ledger
    records = records_of([encoded(some, [b"x"])[0], wrong])
    bounds = find_records(records, count_max=9)
    entries, failure = verify_records(some, records, bounds, first_entry_id=0)
    assert len(entries) == 1
    assert isinstance(failure, IntegrityError)
    assert "asked for ledger 1 entry 1" in str(failure)


def test_a_record_too_short_for_a_digest_ends_the_prefix():
    some = codec()
    records = records_of([*encoded(some, [b"a"]), b"short"])
    entries, failure = verify_records(
        some, records, find_records(records, count_max=9), first_entry_id=0
    )
    assert len(entries) == 1
    assert isinstance(failure, FormatError)


def test_records_beyond_the_count_are_not_looked_at():
    records = records_of([b"a" * 40, b"b" * 50, b"c" * 60])
    assert find_records(records, count_max=2) == [0, 44, 98]


@pytest.mark.parametrize(
    "records",
    [
        b"",
        b"\0\0\0",
        b"\xff\xff\xff\xff",
        b"\0\0\0\x05abcd",
        b"\0\0\0\x01a\0\0",
        b"\x7f\xff\xff\xff",
    ],
)
def test_records_that_do_not_fill_the_frame_are_a_format_error(records):
    with pytest.raises(FormatError):
        find_records(memoryview(records), count_max=9)


@given(st.binary(max_size=200), st.integers(1, 5))
def test_garbage_records_are_found_inside_the_frame_or_refused(data, count_max):
    try:
        bounds = find_records(memoryview(data), count_max=count_max)
    except FormatError:
        return
    assert bounds == sorted(bounds)
    assert bounds[-1] <= len(data)
    entries, failure = verify_records(codec(), memoryview(data), bounds, first_entry_id=0)
    assert failure is not None or len(entries) == len(bounds) - 1
