import re
from hashlib import sha256
from struct import pack

import pytest

from tests.support.compare import first_byte_difference, first_entry_difference
from tiering_assets.offload_format.digests import EntriesDigest

LONG = bytes(range(256)) * 1024


def test_equal_bytes_have_no_difference():
    assert first_byte_difference(LONG, memoryview(bytearray(LONG))) is None
    assert first_byte_difference(b"", b"") is None


@pytest.mark.parametrize("offset", [0, 1, 65_535, 65_536, len(LONG) - 1])
def test_the_first_different_byte_is_named_with_16_either_side(offset):
    changed = bytearray(LONG)
    changed[offset] ^= 1
    changed[-1] ^= 3
    difference = first_byte_difference(LONG, changed)
    assert difference is not None
    assert difference.offset == offset
    assert difference.expected == LONG[max(0, offset - 16) : offset + 16]
    assert difference.found == changed[max(0, offset - 16) : offset + 16]
    assert f"differ at byte {offset} " in str(difference)


@pytest.mark.parametrize(("expected", "found"), [(b"abc", b"ab"), (b"ab", b"abc")])
def test_the_end_of_the_shorter_one_is_a_difference(expected, found):
    difference = first_byte_difference(expected, found)
    assert difference is not None
    assert difference.offset == 2


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ([(0, b"a"), (1, b"")], None),
        ([(0, b"a")], "entry 1: missing"),
        ([(0, b"a"), (1, b""), (2, b"x")], "entry 2: unexpected: found 1 bytes"),
        ([(0, b"a"), (2, b"")], "entry 1: entry id: expected 1, found 2"),
        ([(0, b"b"), (1, b"")], "entry 0: payload: differ at byte 0"),
        ([(0, b"a"), (1, b"x")], r"entry 1: payload: differ at byte 0 \(lengths 0 and 1\)"),
    ],
)
def test_the_first_different_entry_is_named(found, said):
    difference = first_entry_difference([(0, b"a"), (1, b"")], found)
    if said is None:
        assert difference is None
    else:
        assert difference is not None
        assert re.match(said, str(difference))


def test_entries_digest_is_sha256_over_id_length_and_payload():
    payloads = [b"hello", b"", b"world!!"]
    expected = sha256(b"".join(pack(">qi", i, len(p)) + p for i, p in enumerate(payloads, start=5)))
    one_by_one, batch = EntriesDigest(), EntriesDigest()
    for entry_id, payload in enumerate(payloads, start=5):
        one_by_one.update(entry_id, payload)
    batch.update_many(5, [memoryview(payload) for payload in payloads])
    assert one_by_one.hexdigest() == batch.hexdigest() == expected.hexdigest()
    for digest in (one_by_one, batch):
        assert (digest.entries, digest.payload_bytes) == (3, 12)


def test_where_entries_are_cut_changes_their_digest():
    one, other = EntriesDigest(), EntriesDigest()
    one.update_many(0, [b"ab", b"c"])
    other.update_many(0, [b"a", b"bc"])
    assert one.hexdigest() != other.hexdigest()
